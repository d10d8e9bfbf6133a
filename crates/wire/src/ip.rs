//! IPv4 and IPv6 headers. Checksums are fields, kept as they came.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::{Checksum, Error, Header, Repr, Result, Wanted, view};

#[cfg(test)]
mod tests;

/// Protocol numbers that matter here (IANA).
pub mod protocol {
    /// UDP.
    pub const UDP: u8 = 17;
    /// "Next header" of a GRH whose BTH follows (IBA 8.3).
    pub const IBA_TRANSPORT: u8 = 0x1b;

    /// Whether the number names an IPv6 extension header (RFC 7045's registry).
    #[must_use]
    pub const fn is_ipv6_extension(next_header: u8) -> bool {
        matches!(next_header, 0 | 43 | 44 | 50 | 51 | 60 | 135 | 139 | 140 | 253 | 254)
    }
}

/// An IPv4 header without its options, whose length `ihl` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// Header length with options, 32-bit words, 5 to 15.
    pub ihl: u8,
    /// DSCP and ECN (not covered by the ICRC).
    pub tos: u8,
    /// Header, options and payload, bytes.
    pub total_len: u16,
    /// Identification.
    pub id: u16,
    /// The reserved flag; false when sent.
    pub reserved: bool,
    /// DF: routers shall not fragment.
    pub dont_fragment: bool,
    /// MF: more fragments follow.
    pub more_fragments: bool,
    /// Fragment offset, units of 8 bytes, 0 to 8191.
    pub fragment_offset: u16,
    /// Time to live, hops (not covered by the ICRC).
    pub ttl: u8,
    /// What follows the header.
    pub protocol: u8,
    /// Header checksum (not covered by the ICRC).
    pub checksum: u16,
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
}

impl Ipv4 {
    /// A header of a UDP datagram that urxe would send: no options, ID 0, DF, TTL 64; lengths and
    /// checksum 0, to be filled once the payload is known.
    #[must_use]
    pub const fn udp(src: Ipv4Addr, dst: Ipv4Addr) -> Self {
        Self {
            ihl: 5,
            tos: 0,
            total_len: 0,
            id: 0,
            reserved: false,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol: protocol::UDP,
            checksum: 0,
            src,
            dst,
        }
    }

    /// Length of header and options, bytes, 20 to 60.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        self.ihl as usize * 4
    }

    /// Whether this is one piece of a larger packet.
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }

    /// The right checksum of this header with `options`; the field itself does not count.
    #[must_use]
    pub fn right_checksum(&self, options: &[u8]) -> u16 {
        let mut header = *self;
        header.checksum = 0;
        let mut sum = Checksum::new();
        sum.add(zerocopy::IntoBytes::as_bytes(&header.to_view()));
        sum.add(options);
        sum.finish()
    }
}

impl Repr for Ipv4 {
    type View = view::Ipv4;

    fn from_view(v: &view::Ipv4) -> Result<Self> {
        check_version(view::Ipv4::NAME, v.version_ihl >> 4, 4)?;
        let ihl = v.version_ihl & 0xf;
        if ihl < 5 {
            return Err(Error::new(
                "IPv4",
                "header length",
                u64::from(ihl),
                Wanted::Between(5, 15),
            ));
        }
        let flags = v.flags_offset.get();
        Ok(Self {
            ihl,
            tos: v.tos,
            total_len: v.total_len.get(),
            id: v.id.get(),
            reserved: flags & 0x8000 != 0,
            dont_fragment: flags & 0x4000 != 0,
            more_fragments: flags & 0x2000 != 0,
            fragment_offset: flags & 0x1fff,
            ttl: v.ttl,
            protocol: v.protocol,
            checksum: v.checksum.get(),
            src: v.src.into(),
            dst: v.dst.into(),
        })
    }

    fn to_view(&self) -> view::Ipv4 {
        let bit = |on: bool, shift: u32| u16::from(on) << shift;
        let flags = bit(self.reserved, 15)
            | bit(self.dont_fragment, 14)
            | bit(self.more_fragments, 13)
            | self.fragment_offset & 0x1fff;
        view::Ipv4 {
            version_ihl: 0x40 | self.ihl & 0xf,
            tos: self.tos,
            total_len: self.total_len.into(),
            id: self.id.into(),
            flags_offset: flags.into(),
            ttl: self.ttl,
            protocol: self.protocol,
            checksum: self.checksum.into(),
            src: self.src.octets(),
            dst: self.dst.octets(),
        }
    }
}

/// An IPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// DSCP and ECN (not covered by the ICRC).
    pub traffic_class: u8,
    /// Flow label, 20 bits (not covered by the ICRC).
    pub flow_label: u32,
    /// What follows the header, bytes.
    pub payload_len: u16,
    /// The protocol or extension header that follows.
    pub next_header: u8,
    /// Hop limit (not covered by the ICRC).
    pub hop_limit: u8,
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
}

impl Ipv6 {
    /// A header of a UDP datagram: hop limit 64, no label; the length is 0, to be filled once the
    /// payload is known.
    #[must_use]
    pub const fn udp(src: Ipv6Addr, dst: Ipv6Addr) -> Self {
        Self {
            traffic_class: 0,
            flow_label: 0,
            payload_len: 0,
            next_header: protocol::UDP,
            hop_limit: 64,
            src,
            dst,
        }
    }
}

impl Repr for Ipv6 {
    type View = view::Ipv6;

    fn from_view(v: &view::Ipv6) -> Result<Self> {
        let (traffic_class, flow_label) = split_word(view::Ipv6::NAME, v.word.get())?;
        Ok(Self {
            traffic_class,
            flow_label,
            payload_len: v.payload_len.get(),
            next_header: v.next_header,
            hop_limit: v.hop_limit,
            src: v.src.into(),
            dst: v.dst.into(),
        })
    }

    fn to_view(&self) -> view::Ipv6 {
        view::Ipv6 {
            word: join_word(self.traffic_class, self.flow_label).into(),
            payload_len: self.payload_len.into(),
            next_header: self.next_header,
            hop_limit: self.hop_limit,
            src: self.src.octets(),
            dst: self.dst.octets(),
        }
    }
}

/// Traffic class and flow label of the first word that IPv6 and GRH share.
pub(crate) fn split_word(header: &'static str, word: u32) -> Result<(u8, u32)> {
    let [top, second, ..] = word.to_be_bytes();
    check_version(header, top >> 4, 6)?;
    Ok((top << 4 | second >> 4, word & 0x000f_ffff))
}

/// The first word that IPv6 and GRH share.
pub(crate) fn join_word(traffic_class: u8, flow_label: u32) -> u32 {
    6 << 28 | u32::from(traffic_class) << 20 | flow_label & 0x000f_ffff
}

fn check_version(header: &'static str, got: u8, wanted: u64) -> Result<()> {
    if u64::from(got) == wanted {
        return Ok(());
    }
    Err(Error::new(header, "version", u64::from(got), Wanted::Exactly(wanted)))
}
