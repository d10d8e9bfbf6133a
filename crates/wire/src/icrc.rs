//! The ICRC: what it covers, how it is computed without copying the payload, how it is checked.
//!
//! It is the CRC-32 of Ethernet over eight 0xff bytes (on a native link the LRH), the network
//! header, UDP, BTH, extension headers, payload and pad; fields that change on the way count as
//! all ones. It stands on the wire little-endian (IBA 7.8.1, A17.3.3).
//!
//! Two calls make one: an [`IcrcPrefix`] of what comes before the BTH, from header bytes or from
//! what a UDP socket knows, once per batch; then each packet, at once or in slices. Nothing is
//! copied, and a packet costs one pass of the CRC over its bytes as they stand: masks and the step
//! to the next identification are table entries (see `algebra.rs`).
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
use zerocopy::{Immutable, IntoBytes, Unaligned};

use crate::{ICRC_LEN, Ipv4, Ipv6, Repr, Udp, view};

mod algebra;
#[cfg(test)]
mod tests;

use algebra::ID_TO_BTH;
pub use algebra::id_difference;

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
    #[inline]
    pub fn of(got: [u8; ICRC_LEN], computed: [u8; ICRC_LEN]) -> Self {
        if got == computed { Self::Ok } else { Self::Bad { got, computed } }
    }

    /// Whether the packet may be taken.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok | Self::OkSolvedId(_))
    }
}

/// The CRC of all that the ICRC covers before the BTH.
///
/// It serves every packet of the same addresses, ports and length, so a batch of equal segments
/// needs one: [`Self::with_id`] steps from one identification to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcrcPrefix {
    crc: u32,
    id: Option<Id>,
}

/// The IPv4 identification in a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Id {
    value: u16,
    /// Bytes between it and the BTH: 22 and those of the options.
    to_bth: usize,
}

/// The last four of the eight ones, IPv4 without options, UDP: two whole blocks of the CRC.
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct V4 {
    ones: [u8; 4],
    ip: view::Ipv4,
    udp: view::Udp,
}

/// The same of IPv6.
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct V6 {
    ones: [u8; 4],
    ip: view::Ipv6,
    udp: view::Udp,
}

impl IcrcPrefix {
    /// The prefix of an IPv4 packet, from its header bytes.
    #[must_use]
    #[inline]
    pub fn ipv4(ip: &view::Ipv4, options: &[u8], udp: &view::Udp) -> Self {
        let mut v4 = V4 { ones: [0xff; 4], ip: *ip, udp: *udp };
        (v4.ip.tos, v4.ip.ttl, v4.ip.checksum) = (0xff, 0xff, u16::MAX.into());
        v4.udp.checksum = u16::MAX.into();
        let mut hasher = after_four_ones();
        if options.is_empty() {
            hasher.update(v4.as_bytes());
        } else {
            hasher.update(&v4.ones);
            hasher.update(v4.ip.as_bytes());
            hasher.update(options);
            hasher.update(v4.udp.as_bytes());
        }
        let id = Id { value: ip.id.get(), to_bth: ID_TO_BTH + options.len() };
        Self { crc: hasher.finalize(), id: Some(id) }
    }

    /// The prefix of an IPv6 packet, from its header bytes.
    #[must_use]
    #[inline]
    pub fn ipv6(ip: &view::Ipv6, udp: &view::Udp) -> Self {
        let mut v6 = V6 { ones: [0xff; 4], ip: *ip, udp: *udp };
        (v6.ip.word, v6.ip.hop_limit) = (ones_after_version(ip.word.get()).into(), 0xff);
        v6.udp.checksum = u16::MAX.into();
        let mut hasher = after_four_ones();
        hasher.update(v6.as_bytes());
        Self { crc: hasher.finalize(), id: None }
    }

    /// The prefix of a native packet, from its header bytes.
    #[must_use]
    pub fn infiniband(lrh: &view::Lrh, grh: Option<&view::Grh>) -> Self {
        let mut hasher = Hasher::new();
        let mut lrh = *lrh;
        lrh.vl_version |= 0xf0;
        hasher.update(lrh.as_bytes());
        if let Some(grh) = grh {
            let mut grh = *grh;
            (grh.word, grh.hop_limit) = (ones_after_version(grh.word.get()).into(), 0xff);
            hasher.update(grh.as_bytes());
        }
        Self { crc: hasher.finalize(), id: None }
    }

    /// The prefix that a user of a UDP socket knows of a packet to [`crate::ROCE_UDP_PORT`] whose
    /// BTH to ICRC are `len` bytes (over IPv4 at most 65507). The IPv4 header is taken to have
    /// identification `id`, DF, fragment offset 0 and no options; IPv6 has no `id`. Mapped IPv4
    /// addresses count as IPv4.
    ///
    /// `None` where one address is IPv4 and the other is not.
    #[must_use]
    #[inline]
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
    #[inline]
    pub fn socket_v4(src: Ipv4Addr, dst: Ipv4Addr, src_port: u16, id: u16, len: u16) -> Self {
        let udp_len = len.saturating_add(8);
        let ip = Ipv4 { total_len: udp_len.saturating_add(20), id, ..Ipv4::udp(src, dst) };
        let udp = Udp { len: udp_len, ..Udp::roce(src_port) };
        Self::ipv4(&ip.to_view(), &[], &udp.to_view())
    }

    /// As [`Self::socket`], for IPv6.
    #[must_use]
    #[inline]
    pub fn socket_v6(src: Ipv6Addr, dst: Ipv6Addr, src_port: u16, len: u16) -> Self {
        let udp = Udp { len: len.saturating_add(8), ..Udp::roce(src_port) };
        let ip = Ipv6 { payload_len: udp.len, ..Ipv6::udp(src, dst) };
        Self::ipv6(&ip.to_view(), &udp.to_view())
    }

    /// This prefix with another IPv4 identification; without IPv4, this prefix. Costs a few loads.
    #[must_use]
    #[inline]
    pub fn with_id(self, value: u16) -> Self {
        let Some(Id { value: old, to_bth }) = self.id else {
            return self;
        };
        let crc = self.crc ^ algebra::shift_id(value ^ old, to_bth);
        Self { crc, id: Some(Id { value, to_bth }) }
    }

    /// Starts on a packet whose BTH and extension headers are `header`. Payload and pad come next,
    /// in slices of any length; they may stand in `header` too.
    #[must_use]
    #[inline]
    pub fn start(&self, header: &[u8]) -> Icrc {
        let crc = self.crc ^ header.get(4).map_or(0, |&b| algebra::mask_bth_byte_4(b));
        // A BTH alone is too short for the hasher's SIMD.
        if let Ok(bth) = header.try_into() {
            return Icrc(Hasher::new_with_initial(algebra::update_bth(crc, bth)));
        }
        let mut icrc = Icrc(Hasher::new_with_initial(crc));
        icrc.update(header);
        icrc
    }

    /// The ICRC of a packet whose BTH to pad are `bytes`.
    #[must_use]
    #[inline]
    pub fn compute(&self, bytes: &[u8]) -> [u8; ICRC_LEN] {
        self.start(bytes).finish()
    }

    /// Checks a packet whose BTH to ICRC are `bytes`; fewer than four bytes are `Bad`.
    #[must_use]
    #[inline]
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
    #[inline]
    pub fn verify_hidden_id(&self, bytes: &[u8]) -> Verdict {
        let Some((covered, &got)) = bytes.split_last_chunk() else {
            return self.verify(bytes);
        };
        self.verdict_hidden_id(got, self.compute(covered), covered.len())
    }

    /// The verdict where the identification here is a guess; BTH to pad are `covered` bytes.
    #[inline]
    pub(crate) fn verdict_hidden_id(
        &self,
        got: [u8; ICRC_LEN],
        computed: [u8; ICRC_LEN],
        covered: usize,
    ) -> Verdict {
        let verdict = Verdict::of(got, computed);
        let (Verdict::Bad { .. }, Some(id)) = (verdict, self.id) else {
            return verdict;
        };
        match id_difference(got, computed, id.to_bth + covered) {
            Some(difference) => Verdict::OkSolvedId(id.value ^ difference),
            None => verdict,
        }
    }
}

/// A hasher that has seen the first four of the eight ones: a register of ones meets them and is
/// zero, which is what the hasher calls a CRC of all ones.
#[inline]
fn after_four_ones() -> Hasher {
    Hasher::new_with_initial(u32::MAX)
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
    #[inline]
    pub fn finish(self) -> [u8; ICRC_LEN] {
        self.0.finalize().to_le_bytes()
    }
}
