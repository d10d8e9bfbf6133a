//! What can be told of a packet that does not parse as a whole.

use urxe_wire::{
    Ethernet, Grh, Ipv4, Ipv6, LinkType, Lrh, NextHeader, Repr, Sll, Sll2, Udp, Vlan, ethertype,
};

use super::outcome::Ends;

/// Addresses of a packet that does not parse as a whole, and what its lengths, where they can be
/// right, leave of it for the transport.
pub(crate) fn ends_of(link: LinkType, bytes: &[u8]) -> Option<(Ends, Option<&[u8]>)> {
    let (mut next, mut rest) = match link {
        LinkType::Ethernet => Ethernet::parse(bytes).map(|(h, rest)| (h.ethertype, rest)).ok()?,
        LinkType::Sll => Sll::parse(bytes).map(|(h, rest)| (h.ethertype, rest)).ok()?,
        LinkType::Sll2 => Sll2::parse(bytes).map(|(h, rest)| (h.ethertype, rest)).ok()?,
        LinkType::RawIp if bytes.first()? >> 4 == 6 => (ethertype::IPV6, bytes),
        LinkType::RawIp => (ethertype::IPV4, bytes),
        LinkType::Infiniband => return native(bytes),
    };
    let mut vlans = Vec::new();
    while ethertype::is_vlan(next) {
        let (tag, after) = Vlan::parse(rest).ok()?;
        vlans.push(tag.id);
        (next, rest) = (tag.ethertype, after);
    }
    let (src, dst, datagram) = if next == ethertype::IPV6 {
        let (ip, rest) = Ipv6::parse(rest).ok()?;
        (ip.src.to_string(), ip.dst.to_string(), within(rest, 0, ip.payload_len.into()))
    } else {
        let (ip, after) = Ipv4::parse(rest).ok()?;
        let after = after.get(ip.header_len() - Ipv4::LEN..)?;
        let datagram = within(after, ip.header_len(), ip.total_len.into());
        (ip.src.to_string(), ip.dst.to_string(), datagram)
    };
    Some((Ends { src, dst, vlans }, udp_payload(datagram)))
}

fn udp_payload(datagram: &[u8]) -> Option<&[u8]> {
    let (udp, rest) = Udp::parse(datagram).ok()?;
    Some(within(rest, Udp::LEN, udp.len.into()))
}

/// A native packet's GIDs, or LIDs where it has none.
fn native(bytes: &[u8]) -> Option<(Ends, Option<&[u8]>)> {
    let (lrh, rest) = Lrh::parse(bytes).ok()?;
    let rest = within(rest, Lrh::LEN, lrh.packet_bytes());
    let ends = |src, dst| Ends { src, dst, vlans: Vec::new() };
    let local = || ends(format!("lid {}", lrh.slid), format!("lid {}", lrh.dlid));
    Some(match lrh.next {
        NextHeader::Local => (local(), Some(rest)),
        NextHeader::Global => match Grh::parse(rest) {
            Ok((grh, rest)) => {
                let transport = within(rest, 0, grh.payload_len.into());
                (ends(grh.sgid.to_string(), grh.dgid.to_string()), Some(transport))
            }
            Err(_) => (local(), None),
        },
        NextHeader::RawEthertype | NextHeader::RawIpv6 => (local(), None),
    })
}

/// `rest` as far as a length of `len` bytes, of which a header took `header`, says. A length less
/// than the header is wrong itself and says nothing.
fn within(rest: &[u8], header: usize, len: usize) -> &[u8] {
    match len.checked_sub(header) {
        Some(len) => &rest[..len.min(rest.len())],
        None => rest,
    }
}
