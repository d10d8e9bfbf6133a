//! Packets on their way out and in, many at a time.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Range;

use urxe_wire::{ICRC_LEN, IcrcPrefix};

use crate::frame;
use crate::shared::slot_of;

mod rx;

pub(crate) use rx::{Arrival, Segment};
pub use rx::{Record, RxBatch, RxPacket};

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
    /// What a tap wants to know: all that left, as it left. `None` while nobody listens.
    pub(crate) record: Option<Vec<Sent>>,
}

/// A packet in a [`TxBatch`]: BTH to ICRC, the ICRC not yet computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TxPacket {
    pub(crate) flow: Flow,
    pub(crate) range: Range<usize>,
    /// The bit, counted from the BTH's first, that is turned over once the ICRC stands.
    pub(crate) flip: Option<usize>,
    /// What a tap writes beside the packet.
    pub(crate) comment: Option<Box<str>>,
}

/// A packet that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// All of it that the port made, or what the host put to it as far as that is known.
    pub(crate) frame: Vec<u8>,
    pub(crate) comment: Option<Box<str>>,
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
            record: None,
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
        let range = start..self.bytes.len();
        self.packets.push_back(TxPacket { flow, range, flip: None, comment: None });
    }

    /// Gives the packet that was pushed last a comment for the tap: why it is sent, say, where that
    /// is no new request's doing.
    pub fn comment_last(&mut self, text: &str) {
        if let Some(packet) = self.packets.back_mut() {
            packet.comment = Some(text.into());
        }
    }

    /// Writes the ICRC of the packet at `index`, as sent from `src_port` with IP ID `id`.
    pub(crate) fn seal(&mut self, index: usize, src_port: u16, id: u16) {
        let Some(TxPacket { flow, range, flip, .. }) = self.packets.get(index) else {
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
        // Sealed anew and turned over again, the packet is as wrong as before.
        if let Some(bit) = *flip {
            flip_bit(packet, bit);
        }
    }

    /// Adds a packet, BTH to the room for its ICRC, of which a bit may be turned over in the end.
    pub(crate) fn push_given(
        &mut self,
        flow: Flow,
        bytes: &[u8],
        flip: Option<usize>,
        comment: Option<Box<str>>,
    ) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let range = start..self.bytes.len();
        self.packets.push_back(TxPacket { flow, range, flip, comment });
    }

    /// Tells the tap, if there is one, of the packet at `index` as it is given to a link that has
    /// yet to send it: with the headers it may then have.
    pub(crate) fn note_given(&mut self, index: usize, ethernet: bool) {
        let Some(TxPacket { flow, range, .. }) = self.packets.get(index) else {
            return;
        };
        if self.record.is_none() {
            return;
        }
        let (flow, range) = (*flow, range.clone());
        self.seal(index, flow.src_port, 0);
        let link = ethernet.then(frame::LinkHeader::default);
        let transport = &self.bytes[range];
        let headers = frame::headers(link.as_ref(), &flow, flow.src_port, 0, true, transport);
        self.note_sent(index, headers.as_ref().map_or(&[], frame::Headers::bytes));
    }

    /// Tells the tap, if there is one, of the sealed packet at `index`, which left with `headers`.
    pub(crate) fn note_sent(&mut self, index: usize, headers: &[u8]) {
        let (Some(record), Some(packet)) = (&mut self.record, self.packets.get_mut(index)) else {
            return;
        };
        let frame = [headers, &self.bytes[packet.range.clone()]].concat();
        record.push(Sent { frame, comment: packet.comment.take() });
    }

    /// As [`Self::note_sent`], of a packet to which the host puts the headers.
    pub(crate) fn note_sent_by_host(&mut self, index: usize, src_port: u16, id: u16) {
        if self.record.is_none() {
            return;
        }
        if let Some(TxPacket { flow, range, .. }) = self.packets.get(index) {
            let transport = &self.bytes[range.clone()];
            let headers = frame::headers(None, flow, src_port, id, true, transport);
            self.note_sent(index, headers.as_ref().map_or(&[], frame::Headers::bytes));
        }
    }

    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// How many packets from `from` on are one run: of one flow and size (the last may be
    /// shorter), at most `max` and `max_bytes`. All are for one slot: where processes share the
    /// destination, the host there gives a run to the first packet's.
    pub(crate) fn run(&self, from: usize, max: usize, max_bytes: usize) -> usize {
        let mut rest = self.packets.range(from..);
        let Some(first) = rest.next() else {
            return 0;
        };
        let (size, mut bytes, mut n) = (first.range.len(), first.range.len(), 1);
        let slot = |packet: &TxPacket| slot_of(&self.bytes[packet.range.clone()]);
        let first_slot = slot(first);
        let mut end = first.range.end;
        for packet in rest {
            let len = packet.range.len();
            bytes += len;
            let behind = packet.range.start == end;
            end = packet.range.end;
            let same = behind && packet.flow == first.flow && slot(packet) == first_slot;
            if n == max || bytes > max_bytes || !same || len > size {
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

/// Turns a bit over; one beyond the end is none.
pub(crate) fn flip_bit(bytes: &mut [u8], bit: usize) {
    if let Some(byte) = bytes.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}

#[cfg(test)]
mod tests;
