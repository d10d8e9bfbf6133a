//! InfiniBand's own link and network headers, which captures of native fabrics have, and the
//! 40-byte GRH that every UD receive begins with.

use zerocopy::IntoBytes;

use crate::{Error, Gid, Header, Ipv4, Ipv6, Repr, Result, Wanted, ip, view};

#[cfg(test)]
pub(crate) mod tests;

/// Length of the VCRC that ends every packet of a native link, bytes.
pub const VCRC_LEN: usize = 2;

/// What follows an LRH: its LNH field (IBA 7.7.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum NextHeader {
    /// Raw packet with an ethertype header.
    RawEthertype = 0,
    /// Raw packet with an IPv6 header.
    RawIpv6 = 1,
    /// A BTH: the packet stays in its subnet.
    Local = 2,
    /// A GRH, then a BTH.
    Global = 3,
}

/// LRH: local route header (IBA 7.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lrh {
    /// Virtual lane, 0 to 15 (not covered by the ICRC).
    pub vl: u8,
    /// Service level, 0 to 15.
    pub sl: u8,
    /// The two reserved bits before LNH; 0 when sent.
    pub reserved2: u8,
    /// LNH: what follows.
    pub next: NextHeader,
    /// Destination LID.
    pub dlid: u16,
    /// The five reserved bits before the length; 0 when sent.
    pub reserved5: u8,
    /// LRH to ICRC, 32-bit words, 0 to 2047.
    pub packet_len: u16,
    /// Source LID.
    pub slid: u16,
}

impl Lrh {
    /// LRH to ICRC, bytes.
    #[must_use]
    pub const fn packet_bytes(&self) -> usize {
        self.packet_len as usize * 4
    }
}

impl Repr for Lrh {
    type View = view::Lrh;

    fn from_view(v: &view::Lrh) -> Result<Self> {
        let version = v.vl_version & 0xf;
        if version != 0 {
            let got = u64::from(version);
            return Err(Error::new(view::Lrh::NAME, "version", got, Wanted::Exactly(0)));
        }
        let next = match v.sl_next & 3 {
            0 => NextHeader::RawEthertype,
            1 => NextHeader::RawIpv6,
            2 => NextHeader::Local,
            _ => NextHeader::Global,
        };
        let [high, _] = v.reserved_len.to_bytes();
        Ok(Self {
            vl: v.vl_version >> 4,
            sl: v.sl_next >> 4,
            reserved2: v.sl_next >> 2 & 3,
            next,
            dlid: v.dlid.get(),
            reserved5: high >> 3,
            packet_len: v.reserved_len.get() & 0x7ff,
            slid: v.slid.get(),
        })
    }

    fn to_view(&self) -> view::Lrh {
        let len = u16::from(self.reserved5 & 0x1f) << 11 | self.packet_len & 0x7ff;
        view::Lrh {
            vl_version: self.vl << 4,
            sl_next: self.sl << 4 | (self.reserved2 & 3) << 2 | self.next as u8,
            dlid: self.dlid.into(),
            reserved_len: len.into(),
            slid: self.slid.into(),
        }
    }
}

/// GRH: global route header (IBA 8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grh {
    /// Traffic class (not covered by the ICRC).
    pub traffic_class: u8,
    /// Flow label, 20 bits (not covered by the ICRC).
    pub flow_label: u32,
    /// From the byte after the GRH to the ICRC, bytes.
    pub payload_len: u16,
    /// What follows; 0x1b is a BTH.
    pub next_header: u8,
    /// Hop limit (not covered by the ICRC).
    pub hop_limit: u8,
    /// Source GID.
    pub sgid: Gid,
    /// Destination GID.
    pub dgid: Gid,
}

impl Repr for Grh {
    type View = view::Grh;

    fn from_view(v: &view::Grh) -> Result<Self> {
        let (traffic_class, flow_label) = ip::split_word(view::Grh::NAME, v.word.get())?;
        Ok(Self {
            traffic_class,
            flow_label,
            payload_len: v.payload_len.get(),
            next_header: v.next_header,
            hop_limit: v.hop_limit,
            sgid: Gid(v.sgid),
            dgid: Gid(v.dgid),
        })
    }

    fn to_view(&self) -> view::Grh {
        view::Grh {
            word: ip::join_word(self.traffic_class, self.flow_label).into(),
            payload_len: self.payload_len.into(),
            next_header: self.next_header,
            hop_limit: self.hop_limit,
            sgid: self.sgid.0,
            dgid: self.dgid.0,
        }
    }
}

/// The 40 bytes that a UD receive writes before the payload of a packet that came over IPv4: the
/// header, without options, stands in the last 20 (Linux include/rdma/ib_verbs.h,
/// `union rdma_network_hdr`); the first 20 are zero.
#[must_use]
pub fn ud_header_v4(ip: &Ipv4) -> [u8; 40] {
    let mut out = [0; 40];
    out[20..].copy_from_slice(ip.to_view().as_bytes());
    out
}

/// The 40 bytes that a UD receive writes before the payload of a packet that came over IPv6: its
/// header, which is laid out as a GRH.
#[must_use]
pub fn ud_header_v6(ip: &Ipv6) -> [u8; 40] {
    let mut out = [0; 40];
    out.copy_from_slice(ip.to_view().as_bytes());
    out
}

/// The VCRC over these parts, LRH to ICRC with no field masked: CRC-16 of polynomial 0x100b,
/// seed and final inversion all ones (IBA 7.8.2), as its bytes stand on the wire.
#[must_use]
pub fn vcrc(parts: &[&[u8]]) -> [u8; VCRC_LEN] {
    let mut crc = 0xffff_u16;
    for &byte in parts.iter().copied().flatten() {
        let [low, _] = crc.to_le_bytes();
        crc = crc >> 8 ^ VCRC_TABLE[usize::from(low ^ byte)];
    }
    (!crc).to_le_bytes()
}

/// The remainder of each byte, its first bit on the wire being its lowest.
const VCRC_TABLE: [u16; 256] = {
    const REFLECTED: u16 = 0x100b_u16.reverse_bits();
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { REFLECTED } else { 0 };
            bit += 1;
        }
        table[byte as usize] = crc;
        byte += 1;
    }
    table
};
