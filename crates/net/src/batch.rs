//! Packets on their way out and in, many at a time.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Range;

use urxe_wire::{ICRC_LEN, IcrcPrefix, Verdict};

use crate::{IcrcMode, PortStats};

/// Where a packet goes or came from, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// The sender's address.
    pub src: IpAddr,
    /// The receiver's address, or a group.
    pub dst: IpAddr,
    /// The sender's UDP port.
    pub src_port: u16,
    /// DSCP and ECN as one byte.
    pub traffic_class: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// IPv6 flow label, 20 bits.
    pub flow_label: u32,
}

/// Packets to be sent, in order. Their bytes lie behind each other, so that a run of packets of
/// one size and flow is one slice for segmentation offload.
///
/// The payload is copied in: the ICRC must be of the very bytes that leave, even if the program
/// writes to its memory meanwhile.
#[derive(Debug)]
pub struct TxBatch {
    bytes: Vec<u8>,
    pub(crate) packets: VecDeque<TxPacket>,
    max_packets: usize,
    max_bytes: usize,
}

/// A packet in a [`TxBatch`]: BTH to ICRC, the ICRC not yet computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TxPacket {
    pub(crate) flow: Flow,
    pub(crate) range: Range<usize>,
}

impl TxBatch {
    /// A batch of at most `max_packets`, each of at most `max_len` bytes from BTH to ICRC.
    #[must_use]
    pub fn new(max_packets: usize, max_len: usize) -> Self {
        let max_bytes = max_packets * max_len;
        Self {
            bytes: Vec::with_capacity(max_bytes),
            packets: VecDeque::with_capacity(max_packets),
            max_packets,
            max_bytes,
        }
    }

    /// How many more packets fit.
    #[must_use]
    pub fn room(&self) -> usize {
        let longest = self.max_bytes / self.max_packets;
        let by_bytes = (self.max_bytes - self.bytes.len()) / longest;
        by_bytes.min(self.max_packets - self.packets.len())
    }

    /// Whether no packet waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// How many packets wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Adds a packet: BTH and extension headers, then what `payload` appends, then `pad` zeros.
    pub fn push(
        &mut self,
        flow: Flow,
        header: &[u8],
        payload: impl FnOnce(&mut Vec<u8>),
        pad: usize,
    ) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(header);
        payload(&mut self.bytes);
        self.bytes.resize(self.bytes.len() + pad + ICRC_LEN, 0);
        self.packets.push_back(TxPacket { flow, range: start..self.bytes.len() });
    }

    /// Writes the ICRC of the packet at `index`, as sent from `src_port` with IP ID `id`.
    pub(crate) fn seal(&mut self, index: usize, src_port: u16, id: u16) {
        let Some(TxPacket { flow, range }) = self.packets.get(index) else {
            return;
        };
        let packet = &mut self.bytes[range.clone()];
        let Ok(len) = u16::try_from(packet.len()) else {
            return;
        };
        if let Some(prefix) = IcrcPrefix::socket(flow.src, flow.dst, src_port, id, len)
            && let Some((covered, icrc)) = packet.split_last_chunk_mut::<ICRC_LEN>()
        {
            *icrc = prefix.compute(covered);
        }
    }

    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// How many packets from `from` on are one run: of one flow and size (the last may be
    /// shorter), at most `max` and `max_bytes`.
    pub(crate) fn run(&self, from: usize, max: usize, max_bytes: usize) -> usize {
        let mut rest = self.packets.range(from..);
        let Some(first) = rest.next() else {
            return 0;
        };
        let (size, mut bytes, mut n) = (first.range.len(), first.range.len(), 1);
        for packet in rest {
            let len = packet.range.len();
            bytes += len;
            if n == max || bytes > max_bytes || packet.flow != first.flow || len > size {
                break;
            }
            n += 1;
            if len < size {
                break;
            }
        }
        n
    }

    /// The packet added last, BTH to ICRC, whose ICRC is still zeros; empty where there is none.
    #[must_use]
    pub fn last(&self) -> &[u8] {
        self.packets.back().map_or(&[], |p| &self.bytes[p.range.clone()])
    }

    /// Lets go of all packets.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.bytes.clear();
    }

    /// Removes the first `n` packets.
    pub(crate) fn advance(&mut self, n: usize) {
        self.packets.drain(..n.min(self.packets.len()));
        if self.packets.is_empty() {
            self.bytes.clear();
        }
    }
}

/// What one call brought: one datagram, or several of one size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) flow: Flow,
    pub(crate) start: usize,
    pub(crate) len: usize,
    /// Bytes of each datagram but the last.
    pub(crate) stride: usize,
}

/// Packets that came.
#[derive(Debug)]
pub struct RxBatch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) slot: usize,
}

/// A packet that came, its ICRC looked at.
#[derive(Clone, Copy, Debug)]
pub struct RxPacket<'a> {
    /// Where from, and how.
    pub flow: Flow,
    /// BTH to ICRC.
    pub bytes: &'a [u8],
    /// What the ICRC says; `Ok` where it was not looked at.
    pub verdict: Verdict,
}

/// Bytes of the largest datagram, or run of datagrams, that one call brings.
pub(crate) const SLOT: usize = 65_536;
/// A BTH and an ICRC.
const SHORTEST: usize = 16;

impl RxBatch {
    /// A batch that one call fills with at most `slots` datagrams or runs of them.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let bytes = vec![0; slots.max(1) * SLOT];
        Self { bytes, arrivals: Vec::with_capacity(slots), slot: SLOT }
    }

    /// Gives each packet with its verdict, bad ones too, and counts.
    pub fn for_each(&self, mode: IcrcMode, stats: &PortStats, mut f: impl FnMut(RxPacket<'_>)) {
        for arrival in &self.arrivals {
            let all = &self.bytes[arrival.start..arrival.start + arrival.len];
            for (nth, bytes) in all.chunks(arrival.stride.max(1)).enumerate() {
                if bytes.len() < SHORTEST {
                    PortStats::add(&stats.rx_short, 1);
                    continue;
                }
                let verdict = judge(&arrival.flow, nth, bytes, mode);
                match verdict {
                    Verdict::Ok => {}
                    Verdict::OkSolvedId(_) => PortStats::add(&stats.rx_icrc_solved, 1),
                    Verdict::Bad { .. } => PortStats::add(&stats.rx_icrc_bad, 1),
                }
                f(RxPacket { flow: arrival.flow, bytes, verdict });
            }
        }
    }
}

/// The ICRC of the `nth` datagram of a run: segmentation numbers them so.
fn judge(flow: &Flow, nth: usize, bytes: &[u8], mode: IcrcMode) -> Verdict {
    let (id, len) = (u16::try_from(nth).unwrap_or(0), u16::try_from(bytes.len()).unwrap_or(0));
    let bad = Verdict::Bad { got: [0; ICRC_LEN], computed: [0; ICRC_LEN] };
    if mode == IcrcMode::Off {
        return Verdict::Ok;
    }
    let Some(prefix) = IcrcPrefix::socket(flow.src, flow.dst, flow.src_port, id, len) else {
        return bad;
    };
    match mode {
        IcrcMode::Strict => prefix.verify(bytes),
        _ => prefix.verify_hidden_id(bytes),
    }
}

#[cfg(test)]
mod tests;
