//! What happened on the links, to be shown, hashed, or written as a capture.

use std::io::{self, Write};

use urxe_engine::Time;
use urxe_wire::{LinkType, Roce, Syndrome, ethertype};

use crate::fault::Key;
use crate::frame::{self, Refused};
use crate::link::Done;
use crate::rng::mix;

/// One thing that happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It left; what the link did with it.
    Sent(Done),
    /// It came and went to the engine.
    Arrived,
    /// It came and was refused before the engine.
    Refused(Refused),
}

/// A line of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When.
    pub at: Time,
    /// Sender's number.
    pub from: usize,
    /// Receiver's number.
    pub to: usize,
    /// What.
    pub what: What,
    /// IP header to ICRC.
    pub frame: Vec<u8>,
}

/// The trace of a run. It always has a hash; it keeps packets if asked to.
#[derive(Debug, Default)]
pub struct Trace {
    keeps: bool,
    hash: u64,
    count: u64,
    records: Vec<Record>,
}

/// How a nanosecond pcap file starts, in the order of little-endian machines.
const PCAP_MAGIC: u32 = 0xa1b2_3c4d;
/// Nothing is cut off: the longest frame is shorter.
const SNAP_LEN: u32 = 1 << 16;

impl Trace {
    pub(crate) fn new(keeps: bool) -> Self {
        Self { keeps, ..Self::default() }
    }

    /// Whether packets are kept.
    pub(crate) const fn keeps(&self) -> bool {
        self.keeps
    }

    /// A packet left; its bytes if they are kept, else those of its key.
    pub(crate) fn sent(
        &mut self,
        at: Time,
        ends: (usize, usize),
        done: Done,
        key: Key,
        frame: &[u8],
    ) {
        let (qpn, psn) = (key.qpn.to_le_bytes(), key.psn.to_le_bytes());
        let key = [qpn[0], qpn[1], qpn[2], key.opcode, psn[0], psn[1], psn[2]];
        self.digest(at, ends.0, ends.1, What::Sent(done), &key);
        self.keep(at, ends, What::Sent(done), frame);
    }

    /// A packet came.
    pub(crate) fn came(&mut self, at: Time, ends: (usize, usize), what: What, frame: &[u8]) {
        self.digest(at, ends.0, ends.1, what, frame);
        self.keep(at, ends, what, frame);
    }

    fn keep(&mut self, at: Time, (from, to): (usize, usize), what: What, frame: &[u8]) {
        self.count += 1;
        if self.keeps {
            self.records.push(Record { at, from, to, what, frame: frame.to_vec() });
        }
    }

    fn digest(&mut self, at: Time, from: usize, to: usize, what: What, frame: &[u8]) {
        let code = match what {
            What::Sent(done) => {
                let bit = |b: bool, n: u32| u64::from(b) << n;
                bit(done.lost.is_some(), 1)
                    | bit(done.reordered, 2)
                    | bit(done.duplicated, 3)
                    | bit(done.corrupted, 4)
                    | bit(done.marked, 5)
            }
            What::Arrived => 1 << 6,
            What::Refused(_) => 1 << 7,
        };
        let mut hash = mix(self.hash ^ at.as_nanos());
        hash = mix(hash ^ code ^ (from as u64) << 16 ^ (to as u64) << 32);
        for chunk in frame.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = hash.rotate_left(23) ^ u64::from_le_bytes(word);
            hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        self.hash = hash;
    }

    /// A number that two runs share only if they sent the same bytes at the same times.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// How many things happened.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// What happened, oldest first; empty unless the run was asked to keep it.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Writes a capture: Ethernet frames, nanoseconds, as a tap before each receiver sees them.
    /// Node *n* has MAC address 02:00:00:00:00:*n*; a packet that never arrived is there too, when
    /// it left, sent to 02:00:00:00:ff:*n*.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_pcap(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&PCAP_MAGIC.to_le_bytes())?;
        out.write_all(&[2, 0, 4, 0])?;
        out.write_all(&[0; 8])?;
        out.write_all(&SNAP_LEN.to_le_bytes())?;
        out.write_all(&LinkType::Ethernet.to_pcap().to_le_bytes())?;
        for record in &self.records {
            let lost = match record.what {
                What::Sent(done) if done.lost.is_none() => continue,
                What::Sent(_) => true,
                What::Arrived | What::Refused(_) => false,
            };
            let len = u32::try_from(record.frame.len() + 14).unwrap_or(SNAP_LEN);
            let nanos = record.at.as_nanos();
            let seconds = u32::try_from(nanos / 1_000_000_000).unwrap_or(u32::MAX);
            let rest = u32::try_from(nanos % 1_000_000_000).unwrap_or(0);
            for word in [seconds, rest, len, len] {
                out.write_all(&word.to_le_bytes())?;
            }
            out.write_all(&mac(record.to, lost))?;
            out.write_all(&mac(record.from, false))?;
            let is_v6 = record.frame.first().is_some_and(|b| b >> 4 == 6);
            let ethertype = if is_v6 { ethertype::IPV6 } else { ethertype::IPV4 };
            out.write_all(&ethertype.to_be_bytes())?;
            out.write_all(&record.frame)?;
        }
        Ok(())
    }
}

fn mac(node: usize, lost: bool) -> [u8; 6] {
    let number = u8::try_from(node).unwrap_or(u8::MAX);
    [2, 0, 0, 0, if lost { 0xff } else { 0 }, number]
}

/// `0.000012345s 0→1 RC_SEND_ONLY qp=0x11 psn=7 len=12 lost`.
impl std::fmt::Display for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let arrow = if matches!(self.what, What::Sent(_)) { "→" } else { "⇥" };
        write!(f, "{} {}{arrow}{} ", self.at, self.from, self.to)?;
        match Roce::parse(frame::transport(&self.frame)) {
            Ok(packet) => describe(&packet, f)?,
            Err(e) => write!(f, "unreadable ({e})")?,
        }
        match self.what {
            What::Sent(done) => {
                if let Some(loss) = done.lost {
                    write!(f, " {}", loss.name())?;
                }
                for (is, name) in [
                    (done.reordered, "reordered"),
                    (done.duplicated, "duplicated"),
                    (done.corrupted, "corrupted"),
                    (done.marked, "marked CE"),
                ] {
                    if is {
                        write!(f, " {name}")?;
                    }
                }
                Ok(())
            }
            What::Arrived => Ok(()),
            What::Refused(why) => write!(f, " refused: {why:?}"),
        }
    }
}

fn describe(packet: &Roce<'_>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    let (bth, ext) = (&packet.bth, &packet.ext);
    write!(f, "{} qp={} psn={}", bth.opcode, bth.dest_qp, bth.psn)?;
    if bth.ack_req {
        f.write_str(" ackreq")?;
    }
    if let Some(aeth) = ext.aeth {
        match aeth.syndrome {
            Syndrome::Ack(_) => write!(f, " msn={}", aeth.msn)?,
            Syndrome::RnrNak(timer) => {
                write!(f, " RNR NAK {:?} msn={}", timer.duration(), aeth.msn)?;
            }
            Syndrome::Nak(code) => write!(f, " NAK {code:?} msn={}", aeth.msn)?,
            Syndrome::Reserved(bits) => write!(f, " reserved syndrome {bits:#x}")?,
        }
    }
    if let Some(reth) = ext.reth {
        write!(f, " va={:#x} rkey={:#x} dmalen={}", reth.va, reth.rkey, reth.dma_len)?;
    }
    if let Some(atomic) = ext.atomic {
        write!(f, " va={:#x} rkey={:#x}", atomic.va, atomic.rkey)?;
    }
    write!(f, " len={}", packet.payload.len())
}
