//! The ICRC: what it covers, how it is computed without copying the payload, how it is checked.
//!
//! It is the CRC-32 of Ethernet over eight 0xff bytes (on a native link the LRH), the network
//! header, UDP, BTH, extension headers, payload and pad; fields that change on the way count as
//! all ones. It stands on the wire little-endian (IBA 7.8.1, A17.3.3).
//!
//! Two calls make one: an [`IcrcPrefix`] of what comes before the BTH, from header bytes or from
//! what a UDP socket knows; then the packet, at once or in slices:
//!
//! ```
//! use urxe_wire::{IcrcPrefix, Verdict};
//! // The transport packet of a UC SEND only, as it came out of a UDP socket.
//! let packet = [
//!     0x24, 0x60, 0xff, 0xff, 0, 0, 0, 0xd3, 0, 0xcf, 0x17, 0x10, 0x46, 0x30, 0x81, 0x8b, 0xe2,
//!     0x89, 0x35, 0xd9, 0x0e, 0x9a, 0x95, 0x50, 0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0, 0, 0x78,
//!     0xf3, 0x53, 0xf3,
//! ];
//! let host = [192, 168, 0, 7].into();
//! let prefix = IcrcPrefix::socket(host, host, 49152, 0, 36).unwrap();
//! assert_eq!(prefix.verify_hidden_id(&packet), Verdict::OkSolvedId(1144));
//! ```

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crc32fast::Hasher;
use zerocopy::IntoBytes;

pub use solve::id_difference;

use crate::{Bth, ICRC_LEN, Ipv4, Ipv6, Repr, Udp, view};

mod solve;
#[cfg(test)]
mod tests;

/// How a packet's ICRC was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Right.
    Ok,
    /// Right if the sender's IPv4 identification, which could not be seen, was this one. One bad
    /// packet in 2^16 is taken for right that way, so count these apart.
    OkSolvedId(u16),
    /// Wrong: the packet was changed on its way, or its sender computes something else.
    Bad {
        /// The ICRC that the packet brought.
        got: [u8; ICRC_LEN],
        /// The ICRC that it should have brought.
        computed: [u8; ICRC_LEN],
    },
}

impl Verdict {
    /// The verdict on a packet all of which was seen.
    #[must_use]
    pub fn of(got: [u8; ICRC_LEN], computed: [u8; ICRC_LEN]) -> Self {
        if got == computed { Self::Ok } else { Self::Bad { got, computed } }
    }

    /// Whether the packet may be taken.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok | Self::OkSolvedId(_))
    }
}

/// Bytes the stack buffer of a prefix has: the ones, IPv4 with all options, UDP and the longest
/// BTH with extension headers fit.
const CAPACITY: usize = 128;
/// The CRC's own step: SIMD folds whole blocks of so many bytes.
const BLOCK: usize = 16;

/// What the ICRC covers before the BTH, masked.
///
/// The bytes start with zeros as many as make prefix and BTH whole blocks, and with the first four
/// ones inverted: a CRC register that starts at 0 passes the zeros unchanged, and from there on is
/// where one that starts at all ones would be. Whole blocks are what SIMD is fast on.
#[derive(Clone, Copy, Debug)]
pub struct IcrcPrefix {
    bytes: [u8; CAPACITY],
    len: usize,
    /// Bytes between the IPv4 identification and the BTH.
    id_to_bth: Option<usize>,
}

impl IcrcPrefix {
    /// The prefix of an IPv4 packet, from its header bytes. Of `options` 40 bytes count, which is
    /// all an IPv4 header has room for.
    #[must_use]
    pub fn ipv4(ip: &view::Ipv4, options: &[u8], udp: &view::Udp) -> Self {
        let mut ip = *ip;
        (ip.tos, ip.ttl, ip.checksum) = (0xff, 0xff, u16::MAX.into());
        let options = &options[..options.len().min(40)];
        let mut prefix = Self::new(8 + Ipv4::LEN + options.len() + Udp::LEN);
        prefix.push_ones();
        prefix.push(ip.as_bytes());
        prefix.push(options);
        prefix.push_udp(udp);
        // What follows the identification, which ends six bytes into the header.
        prefix.id_to_bth = Some(Ipv4::LEN - 6 + options.len() + Udp::LEN);
        prefix
    }

    /// The prefix of an IPv6 packet, from its header bytes.
    #[must_use]
    pub fn ipv6(ip: &view::Ipv6, udp: &view::Udp) -> Self {
        let mut ip = *ip;
        (ip.word, ip.hop_limit) = (ones_after_version(ip.word.get()).into(), 0xff);
        let mut prefix = Self::new(8 + Ipv6::LEN + Udp::LEN);
        prefix.push_ones();
        prefix.push(ip.as_bytes());
        prefix.push_udp(udp);
        prefix
    }

    /// The prefix of a native packet, from its header bytes.
    #[must_use]
    pub fn infiniband(lrh: &view::Lrh, grh: Option<&view::Grh>) -> Self {
        let mut prefix = Self::new(size_of_val(lrh) + grh.map_or(0, size_of_val));
        let mut lrh = *lrh;
        lrh.vl_version |= 0xf0;
        // The prefix's first four bytes are inverted, as the ones of the other links are.
        let (start, rest) = lrh.as_bytes().split_at(4);
        prefix.push(&[!start[0], !start[1], !start[2], !start[3]]);
        prefix.push(rest);
        if let Some(grh) = grh {
            let mut grh = *grh;
            (grh.word, grh.hop_limit) = (ones_after_version(grh.word.get()).into(), 0xff);
            prefix.push(grh.as_bytes());
        }
        prefix
    }

    /// The prefix that a user of a UDP socket knows of a packet to [`crate::ROCE_UDP_PORT`] whose
    /// BTH to ICRC are `len` bytes (over IPv4 at most 65507). The IPv4 header is taken to have
    /// identification `id`, DF, fragment offset 0 and no options; IPv6 has no `id`. Mapped IPv4
    /// addresses count as IPv4.
    ///
    /// `None` where one address is IPv4 and the other is not.
    #[must_use]
    pub fn socket(src: IpAddr, dst: IpAddr, src_port: u16, id: u16, len: u16) -> Option<Self> {
        match (src.to_canonical(), dst.to_canonical()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                Some(Self::socket_v4(src, dst, src_port, id, len))
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => Some(Self::socket_v6(src, dst, src_port, len)),
            _ => None,
        }
    }

    /// As [`Self::socket`], for IPv4.
    #[must_use]
    pub fn socket_v4(src: Ipv4Addr, dst: Ipv4Addr, src_port: u16, id: u16, len: u16) -> Self {
        let udp_len = len.saturating_add(8);
        let ip = Ipv4 { total_len: udp_len.saturating_add(20), id, ..Ipv4::udp(src, dst) };
        let udp = Udp { len: udp_len, ..Udp::roce(src_port) };
        Self::ipv4(&ip.to_view(), &[], &udp.to_view())
    }

    /// As [`Self::socket`], for IPv6.
    #[must_use]
    pub fn socket_v6(src: Ipv6Addr, dst: Ipv6Addr, src_port: u16, len: u16) -> Self {
        let udp = Udp { len: len.saturating_add(8), ..Udp::roce(src_port) };
        let ip = Ipv6 { payload_len: udp.len, ..Ipv6::udp(src, dst) };
        Self::ipv6(&ip.to_view(), &udp.to_view())
    }

    /// Starts on a packet whose BTH and extension headers are `header`. Payload and pad come next,
    /// in slices of any length; they may stand in `header` too.
    #[must_use]
    pub fn start(&self, header: &[u8]) -> Icrc {
        let mut bytes = self.bytes;
        let (near, far) = header.split_at(header.len().min(CAPACITY - self.len));
        let end = self.len + near.len();
        bytes[self.len..end].copy_from_slice(near);
        if near.len() > 4 {
            bytes[self.len + 4] = 0xff;
        }
        // A register at 0 is what the hasher calls the CRC of all ones.
        let mut icrc = Icrc(Hasher::new_with_initial(u32::MAX));
        icrc.update(&bytes[..end]);
        icrc.update(far);
        icrc
    }

    /// The ICRC of a packet whose BTH to pad are `bytes`.
    #[must_use]
    pub fn compute(&self, bytes: &[u8]) -> [u8; ICRC_LEN] {
        // What is not a whole number of blocks goes with the BTH, where it costs the least.
        let near = match bytes.len().checked_sub(Bth::LEN) {
            Some(rest) if bytes.len() > CAPACITY - self.len => Bth::LEN + rest % BLOCK,
            _ => bytes.len(),
        };
        let (near, far) = bytes.split_at(near);
        let mut icrc = self.start(near);
        icrc.update(far);
        icrc.finish()
    }

    /// Checks a packet whose BTH to ICRC are `bytes`; fewer than four bytes are `Bad`.
    #[must_use]
    pub fn verify(&self, bytes: &[u8]) -> Verdict {
        let Some((covered, &got)) = bytes.split_last_chunk() else {
            return Verdict::Bad { got: [0; ICRC_LEN], computed: self.compute(&[]) };
        };
        Verdict::of(got, self.compute(covered))
    }

    /// Checks a packet whose BTH to ICRC are `bytes` and whose IPv4 identification the caller
    /// could not see, so that the one in this prefix is a guess: where it is wrong, the only one
    /// that would make the ICRC right is solved for. Without IPv4, as [`Self::verify`].
    #[must_use]
    pub fn verify_hidden_id(&self, bytes: &[u8]) -> Verdict {
        let Some((covered, &got)) = bytes.split_last_chunk() else {
            return self.verify(bytes);
        };
        self.verdict_hidden_id(got, self.compute(covered), covered.len())
    }

    /// The verdict where the identification here is a guess; BTH to pad are `covered` bytes.
    pub(crate) fn verdict_hidden_id(
        &self,
        got: [u8; ICRC_LEN],
        computed: [u8; ICRC_LEN],
        covered: usize,
    ) -> Verdict {
        let verdict = Verdict::of(got, computed);
        let (Verdict::Bad { .. }, Some(id_to_bth)) = (verdict, self.id_to_bth) else {
            return verdict;
        };
        match id_difference(got, computed, id_to_bth + covered) {
            Some(difference) => Verdict::OkSolvedId(self.id(id_to_bth) ^ difference),
            None => verdict,
        }
    }

    /// The identification that stands `id_to_bth` bytes before the end.
    fn id(&self, id_to_bth: usize) -> u16 {
        let at = self.len - id_to_bth;
        u16::from_be_bytes([self.bytes[at - 2], self.bytes[at - 1]])
    }

    /// Room for `len` bytes that end, with a BTH, at the end of a block.
    fn new(len: usize) -> Self {
        let lead = (len + Bth::LEN).next_multiple_of(BLOCK) - len - Bth::LEN;
        Self { bytes: [0; CAPACITY], len: lead, id_to_bth: None }
    }

    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        self.bytes[self.len..end].copy_from_slice(bytes);
        self.len = end;
    }

    /// The eight ones that stand for an LRH, the first four inverted.
    fn push_ones(&mut self) {
        self.push(&[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    }

    fn push_udp(&mut self, udp: &view::Udp) {
        let mut udp = *udp;
        udp.checksum = u16::MAX.into();
        self.push(udp.as_bytes());
    }
}

/// Ones in place of traffic class and flow label.
const fn ones_after_version(word: u32) -> u32 {
    word | 0x0fff_ffff
}

/// An ICRC under way.
#[derive(Clone, Debug)]
pub struct Icrc(Hasher);

impl Icrc {
    /// Adds what comes next: payload, then pad.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.0.update(bytes);
        }
    }

    /// The ICRC as its bytes stand on the wire.
    #[must_use]
    pub fn finish(self) -> [u8; ICRC_LEN] {
        self.0.finalize().to_le_bytes()
    }
}
