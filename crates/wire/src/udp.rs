//! UDP, the internet checksum, and the source port that a flow gets.

use core::net::{Ipv4Addr, Ipv6Addr};

use zerocopy::IntoBytes;

use crate::{Qpn, ROCE_UDP_PORT, Repr, Result, ip::protocol, view};

#[cfg(test)]
mod tests;

/// A UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Udp {
    /// Source port: the flow's entropy for ECMP; answers do not go there.
    pub src_port: u16,
    /// Destination port; [`ROCE_UDP_PORT`] is RoCEv2.
    pub dst_port: u16,
    /// Header and payload, bytes.
    pub len: u16,
    /// Checksum (not covered by the ICRC); 0 is none.
    pub checksum: u16,
}

impl Udp {
    /// A header to [`ROCE_UDP_PORT`] without checksum; the length is 0, to be filled once the
    /// payload is known.
    #[must_use]
    pub const fn roce(src_port: u16) -> Self {
        Self { src_port, dst_port: ROCE_UDP_PORT, len: 0, checksum: 0 }
    }

    /// The right checksum over IPv4 of this header and the `payload` of these parts; the field
    /// itself does not count (RFC 768). Never 0, which would say that there is none.
    #[must_use]
    pub fn right_checksum_v4(&self, src: Ipv4Addr, dst: Ipv4Addr, payload: &[&[u8]]) -> u16 {
        self.right_checksum(&src.octets(), &dst.octets(), payload)
    }

    /// As [`Self::right_checksum_v4`], over IPv6 (RFC 8200 8.1).
    #[must_use]
    pub fn right_checksum_v6(&self, src: Ipv6Addr, dst: Ipv6Addr, payload: &[&[u8]]) -> u16 {
        self.right_checksum(&src.octets(), &dst.octets(), payload)
    }

    fn right_checksum(&self, src: &[u8], dst: &[u8], payload: &[&[u8]]) -> u16 {
        let mut sum = Checksum::new();
        sum.add(src);
        sum.add(dst);
        sum.add(&[0, protocol::UDP]);
        sum.add(&self.len.to_be_bytes());
        sum.add(Self { checksum: 0, ..*self }.to_view().as_bytes());
        for part in payload {
            sum.add(part);
        }
        match sum.finish() {
            0 => 0xffff,
            sum => sum,
        }
    }
}

impl Repr for Udp {
    type View = view::Udp;

    fn from_view(v: &view::Udp) -> Result<Self> {
        Ok(Self {
            src_port: v.src_port.get(),
            dst_port: v.dst_port.get(),
            len: v.len.get(),
            checksum: v.checksum.get(),
        })
    }

    fn to_view(&self) -> view::Udp {
        view::Udp {
            src_port: self.src_port.into(),
            dst_port: self.dst_port.into(),
            len: self.len.into(),
            checksum: self.checksum.into(),
        }
    }
}

/// The internet checksum (RFC 1071) of bytes that come in parts of any length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum {
    sum: u64,
    /// Whether an odd number of bytes came so far.
    odd: bool,
}

impl Checksum {
    /// The checksum of nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { sum: 0, odd: false }
    }

    /// Adds the next bytes; up to 2^48 of them cannot overflow it.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if self.odd
            && let Some((&low, after)) = rest.split_first()
        {
            self.sum += u64::from(low);
            self.odd = false;
            rest = after;
        }
        let (words, last) = rest.as_chunks::<2>();
        self.sum += words.iter().map(|&w| u64::from(u16::from_be_bytes(w))).sum::<u64>();
        if let [high] = last {
            self.sum += u64::from(*high) << 8;
            self.odd = true;
        }
    }

    /// The checksum of all that came: the complement of the ones' complement sum.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "folded until it fits")]
    pub const fn finish(self) -> u16 {
        let mut sum = self.sum;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

/// The UDP source port of a flow label, 0xc000 to 0xffff
/// (Linux include/rdma/ib_verbs.h, `rdma_flow_label_to_udp_sport`).
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "14 bits")]
pub const fn source_port(flow_label: u32) -> u16 {
    let label = flow_label & 0x000f_ffff;
    ((label & 0x3fff) ^ (label >> 14)) as u16 | 0xc000
}

/// The flow label, 20 bits, of two QPs that were given none
/// (Linux include/rdma/ib_verbs.h, `rdma_calc_flow_label`).
#[must_use]
pub const fn flow_label(local: Qpn, remote: Qpn) -> u32 {
    let mut v = local.value() as u64 * remote.value() as u64;
    v ^= v >> 20;
    v ^= v >> 40;
    (v & 0x000f_ffff) as u32
}
