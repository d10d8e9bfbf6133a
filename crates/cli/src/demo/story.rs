//! What a packet is there for, in a sentence.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use urxe::{DropReason, QpKind, Qpn, Why};
use urxe_wire::{
    Direction, NakCode, OpcodeInfo, Operation, Position, Psn, Roce, Syndrome, Transport,
};

use super::recorder::{Packet, Pair};
use super::world::Who;

/// What is told of a packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// What it is there for.
    pub(super) sentence: String,
    /// Why it is sent again, if it is.
    pub(super) again: Option<String>,
    /// What became of it, if it was not acted upon.
    pub(super) end: Option<String>,
    /// What a NAK is about.
    pub(super) about: Option<String>,
}

impl Told {
    /// What a line of the timeline has no column for.
    pub(super) fn notes(&self) -> impl Iterator<Item = &str> {
        self.again.iter().chain(&self.about).chain(&self.end).map(String::as_str)
    }
}

/// A packet with its headers read.
struct Read<'a> {
    packet: &'a Packet,
    roce: Roce<'a>,
    info: &'static OpcodeInfo,
}

/// All packets of one direction that count PSNs together: from whom, to which QP, answers or not.
type Flow = (Who, Qpn, bool);

impl Read<'_> {
    fn flow(&self) -> Flow {
        (self.packet.from, self.roce.bth.dest_qp, self.info.direction == Direction::Response)
    }

    fn psn(&self) -> Psn {
        self.roce.bth.psn
    }
}

/// Tells of the packets of a step, of which full ones have so many bytes of payload.
pub(super) fn tell(packets: &[Packet], pairs: &[Pair], full: usize) -> Vec<Told> {
    let read = |packet| -> Option<Read<'_>> {
        let packet: &Packet = packet;
        let roce = packet.roce()?;
        Some(Read { packet, roce, info: roce.bth.opcode.info()? })
    };
    let all: Vec<_> = packets.iter().filter_map(read).collect();
    if all.len() != packets.len() {
        return vec![Told::default(); packets.len()];
    }
    let parts = parts(&all);
    let (before, acked) = (BTreeMap::new(), BTreeMap::new());
    let mut teller = Teller { pairs, full, before, acked, all: &all };
    all.iter().zip(parts).map(|(read, part)| teller.told(read, part)).collect()
}

/// Which of how many packets of its message each is.
fn parts(all: &[Read<'_>]) -> Vec<Option<(u32, u32)>> {
    let mut flows: BTreeMap<Flow, (Psn, BTreeSet<i32>, BTreeSet<i32>)> = BTreeMap::new();
    for read in all {
        let new = || (read.psn(), BTreeSet::new(), BTreeSet::new());
        let (base, firsts, lasts) = flows.entry(read.flow()).or_insert_with(new);
        let at = read.psn().distance(*base);
        match read.info.position {
            Position::First => _ = firsts.insert(at),
            Position::Last => _ = lasts.insert(at),
            Position::Middle | Position::Only => {}
        }
    }
    let part = |read: &Read<'_>| {
        let (base, firsts, lasts) = flows.get(&read.flow())?;
        let at = read.psn().distance(*base);
        let first = firsts.range(..=at).next_back()?;
        let last = lasts.range(at..).next()?;
        Some((u32::try_from(at - first + 1).ok()?, u32::try_from(last - first + 1).ok()?))
    };
    all.iter().map(part).collect()
}

struct Teller<'a> {
    pairs: &'a [Pair],
    /// Bytes of payload of a full packet.
    full: usize,
    /// When a request was sent last, and how many times.
    before: BTreeMap<(Flow, u32, u8), (Duration, u32)>,
    /// Up to where a flow of answers has acknowledged.
    acked: BTreeMap<Flow, Psn>,
    all: &'a [Read<'a>],
}

impl Teller<'_> {
    fn told(&mut self, read: &Read<'_>, part: Option<(u32, u32)>) -> Told {
        let again = self.again(read);
        let mut sentence = self.sentence(read, part);
        let bth = &read.roce.bth;
        if bth.ack_req && read.info.direction == Direction::Request {
            sentence.push_str(" It asks for an ACK.");
        }
        let about = read.packet.why.filter(|why| matches!(why, Why::Gap(..) | Why::Refused(_)));
        let about = about.map(|why| why.to_string().trim_start_matches("NAK: ").to_owned());
        Told { sentence: capitals(&sentence), again, end: end(read.packet), about }
    }

    /// The peer's QP and memory, and the sender's own, of a packet.
    fn pair(&self, read: &Read<'_>) -> Option<&Pair> {
        let to = read.packet.from.other();
        self.pairs.iter().find(|pair| pair.of_whom(to).0 == read.roce.bth.dest_qp)
    }

    /// Why a request is sent again, where it is.
    fn again(&mut self, read: &Read<'_>) -> Option<String> {
        if read.info.direction != Direction::Request {
            return None;
        }
        let key = (read.flow(), read.psn().value(), read.roce.bth.opcode.0);
        let left = read.packet.left;
        let (before, times) = self.before.insert(key, (left, 1)).unwrap_or((left, 0));
        self.before.insert(key, (left, times + 1));
        let peer = read.packet.from.other().name();
        let ms = left.saturating_sub(before).as_secs_f64() * 1e3;
        let why = match read.packet.why {
            Some(Why::Timeout) => format!("no answer came for {ms:.1} ms"),
            Some(Why::Nak) => format!("{peer}'s NAK asks for it"),
            Some(Why::ImpliedNak) => "an answer is missing, a later one has come".to_owned(),
            Some(Why::RnrOver) => format!("the wait that {peer} asked for is over"),
            // A part of a READ that goes on in the middle has not been sent as such before.
            _ if times == 0 => return None,
            _ => "one before it was missing".to_owned(),
        };
        let times = if times == 0 { String::new() } else { format!(", time {}", times + 1) };
        Some(format!("sent again{times}: {why}"))
    }

    fn sentence(&mut self, read: &Read<'_>, part: Option<(u32, u32)>) -> String {
        let kind = match read.info.transport {
            Transport::Rc => "RC",
            Transport::Uc => "UC",
            Transport::Ud => "UD",
            _ => "",
        };
        let (me, peer) = (read.packet.from.name(), read.packet.from.other().name());
        let place = place(read.info.position, part);
        match read.info.operation {
            Operation::Send => send(read, kind, peer, &place),
            Operation::Write => self.write(read, kind, peer, &place),
            Operation::ReadRequest => self.read_request(read, peer),
            Operation::ReadResponse => {
                format!("The answer to a READ, {place}: {me}'s memory comes to {peer}.")
            }
            Operation::FetchAdd | Operation::CompareSwap => self.atomic(read, peer),
            Operation::AtomicAcknowledge => {
                let old = read.roce.ext.atomic_ack.map_or(0, |h| h.original);
                format!("The answer to an atomic: {old} stood there before.")
            }
            Operation::Acknowledge => self.answer(read, me, peer),
            Operation::CongestionNotification => {
                format!("The network was full on the way: {peer} shall send more slowly.")
            }
            _ => format!("{kind} {:?}.", read.info.operation),
        }
    }

    /// An address of the receiver's memory, as it is told in the demo.
    fn memory(&self, read: &Read<'_>, va: u64) -> String {
        let peer = read.packet.from.other();
        let base = self.pair(read).map_or(0, |pair| pair.of_whom(peer).1);
        format!("{}'s memory +{}", peer.name(), va.wrapping_sub(base))
    }

    fn write(&self, read: &Read<'_>, kind: &str, peer: &str, place: &str) -> String {
        let mut text = format!("{kind} WRITE, {place}. ");
        match read.roce.ext.reth {
            Some(reth) => text.push_str(&format!(
                "It says where the data goes: {} bytes to {}, and shows the key for it, rkey \
                 {:#010x}.",
                reth.dma_len,
                self.memory(read, reth.va),
                reth.rkey
            )),
            None => text.push_str("It has no address: it goes on where the one before ended."),
        }
        if let Some(imm) = read.roce.ext.imm {
            let imm = u32::from_be_bytes(imm.data);
            text.push_str(&format!(
                " Its immediate data, {imm:#010x}, takes a receive of {peer}'s: so {peer}'s \
                 program is told."
            ));
        } else if matches!(read.info.position, Position::Last | Position::Only) {
            text.push_str(&format!(" {peer}'s program is not told."));
        }
        text
    }

    fn read_request(&self, read: &Read<'_>, peer: &str) -> String {
        let Some(reth) = read.roce.ext.reth else { return String::new() };
        let packets = (reth.dma_len as usize).div_ceil(self.full).max(1);
        let last = read.psn().add(u32::try_from(packets - 1).unwrap_or(0));
        let psns = if packets == 1 {
            format!("one packet, PSN {last}")
        } else {
            format!("{packets} packets, PSN {} to {last}", read.psn())
        };
        let at = self.memory(read, reth.va);
        format!(
            "READ request: it asks for {} bytes of {at}. {peer}'s NIC answers, his program takes \
             no part; the answer is {psns}.",
            reth.dma_len
        )
    }

    fn atomic(&self, read: &Read<'_>, peer: &str) -> String {
        let Some(h) = read.roce.ext.atomic else { return String::new() };
        let at = self.memory(read, h.va);
        let what = if read.info.operation == Operation::CompareSwap {
            format!("if {} stands in the 8 bytes at {at}, put {} there", h.compare, h.swap_add)
        } else {
            format!("add {} to the 8 bytes at {at}", h.swap_add)
        };
        format!(
            "Atomic: {what}. {peer}'s NIC does it in one go that nothing can come between, and \
             sends back what stood there before."
        )
    }

    /// ACK or NAK.
    fn answer(&mut self, read: &Read<'_>, me: &str, peer: &str) -> String {
        let Some(aeth) = read.roce.ext.aeth else { return String::new() };
        let psn = read.psn();
        match aeth.syndrome {
            Syndrome::Ack(_) => {
                let since = self.since(read).filter(|n| *n > 0);
                let since = match since {
                    Some(1) => " (one packet more than before)".to_owned(),
                    Some(n) => format!(" ({n} packets more than before)"),
                    None => " (nothing new)".to_owned(),
                };
                let messages = aeth.msn.value();
                let s = if messages == 1 { "" } else { "s" };
                format!(
                    "ACK: {me} has every packet up to PSN {psn}{since}: {messages} message{s} so \
                     far (MSN)."
                )
            }
            Syndrome::RnrNak(timer) => {
                let ms = timer.duration().as_secs_f64() * 1e3;
                format!(
                    "RNR NAK, receiver not ready: {me}'s program has posted no receive for PSN \
                     {psn}. {peer} shall wait {ms} ms and send it again."
                )
            }
            Syndrome::Nak(NakCode::PsnSequence) => format!(
                "NAK, PSN sequence error: {me} waits for PSN {psn}, which got lost; what came \
                 behind it is thrown away. {peer} shall send everything from {psn} on again."
            ),
            Syndrome::Nak(code) => format!(
                "NAK: {me} refuses PSN {psn}: {}. That ends the connection: both QPs go to the \
                 error state.",
                nak(code)
            ),
            Syndrome::Reserved(bits) => format!("An answer of no known meaning: {bits:#04x}."),
        }
    }

    /// How many PSNs an ACK acknowledges that were not before.
    fn since(&mut self, read: &Read<'_>) -> Option<i32> {
        let peer = read.packet.from.other();
        let theirs = self.pair(read)?.of_whom(read.packet.from).0;
        let before = self.acked.insert(read.flow(), read.psn());
        if let Some(before) = before {
            return Some(read.psn().distance(before));
        }
        let first = self.all.iter().find(|r| r.flow() == (peer, theirs, false))?;
        Some(read.psn().distance(first.psn()) + 1)
    }
}

/// Sentences with a capital letter each, even where a name in small letters begins them.
fn capitals(text: &str) -> String {
    let mut begins = true;
    let mut before = ' ';
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        begins |= before == '.' && c == ' ';
        if begins && c != ' ' {
            out.extend(c.to_uppercase());
            begins = false;
        } else {
            out.push(c);
        }
        before = c;
    }
    out
}

/// `the last of 3 packets of a message`.
fn place(position: Position, part: Option<(u32, u32)>) -> String {
    match (position, part) {
        (Position::Only, _) => "the whole message in one packet".into(),
        (Position::First, Some((_, n))) => format!("the first of {n} packets of a message"),
        (Position::Last, Some((_, n))) => format!("the last of {n} packets of a message"),
        (Position::Middle, Some((nth, n))) => format!("packet {nth} of {n} of a message"),
        (Position::First, None) => "the first packet of a message".into(),
        (Position::Middle, None) => "neither the first packet of a message nor the last".into(),
        (Position::Last, None) => "the last packet of a message".into(),
    }
}

fn send(read: &Read<'_>, kind: &str, peer: &str, place: &str) -> String {
    let mut text = format!("{kind} SEND, {place}. ");
    text.push_str(&format!("It goes to the oldest receive that {peer}'s program has posted."));
    if let Some(imm) = read.roce.ext.imm {
        let imm = u32::from_be_bytes(imm.data);
        text.push_str(&format!(" Its immediate data, {imm:#010x}, comes with the completion."));
    }
    if let Some(deth) = read.roce.ext.deth {
        text.push_str(&format!(
            " There is no connection: it says by itself that QP {:#x} sent it, and shows the \
             Q_Key {:#x} that lets it in.",
            deth.src_qp.value(),
            deth.qkey.0
        ));
    }
    text
}

const fn nak(code: NakCode) -> &'static str {
    match code {
        NakCode::PsnSequence => "a packet is missing",
        NakCode::InvalidRequest => "such a request is not possible here",
        NakCode::RemoteAccess => "remote access error, its rkey does not open that memory",
        NakCode::RemoteOperational => "its own NIC failed",
        NakCode::InvalidRdRequest => "invalid RD request",
    }
}

/// What became of a packet that was not acted upon.
fn end(packet: &Packet) -> Option<String> {
    if packet.arrived.is_none() {
        return Some("lost on its way".into());
    }
    let why = packet.dropped?;
    let rule = match why.rule() {
        "" => String::new(),
        rule => format!(" ({rule})"),
    };
    let to = packet.from.other().name();
    Some(format!("dropped by {to}: {}{rule}", words(why)))
}

/// A reason to drop a packet, in words.
fn words(why: DropReason) -> String {
    match why {
        DropReason::NoSuchQp => "there is no such QP".into(),
        DropReason::Gap => "one before it is missing, which a NAK has asked for".into(),
        DropReason::BehindRnr => "one before it has to wait for a receive".into(),
        DropReason::GhostAck => "an answer to nothing".into(),
        DropReason::DuplicateResponse => "that answer came before".into(),
        DropReason::AwaitingRetry => "an answer before it is missing and asked for again".into(),
        DropReason::WrongState => "the QP takes no packets now".into(),
        DropReason::StaleDuplicate => "a duplicate whose answer is gone".into(),
        other => other.name().trim_start_matches("drop_").replace('_', " "),
    }
}

/// What a kind of QP is called.
pub(super) const fn kind_name(kind: QpKind) -> &'static str {
    match kind {
        QpKind::Rc => "RC",
        QpKind::Uc => "UC",
        QpKind::Ud => "UD",
        _ => "other",
    }
}

#[cfg(test)]
mod tests;
