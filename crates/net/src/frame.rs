//! The headers before the BTH: made whole, and read back.

use std::net::IpAddr;

use urxe_wire::{
    Ethernet, IcrcPrefix, Ipv4, Ipv6, Mac, ROCE_UDP_PORT, Repr, Udp, Vlan, ethertype, protocol,
};

use crate::Flow;

#[cfg(test)]
mod tests;

/// Ethernet, one VLAN tag, IPv6, UDP.
const MOST: usize = Ethernet::LEN + Vlan::LEN + Ipv6::LEN + Udp::LEN;

/// Headers on their way out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    bytes: [u8; MOST],
    len: usize,
}

impl Default for Headers {
    fn default() -> Self {
        Self { bytes: [0; MOST], len: 0 }
    }
}

impl Headers {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn add(&mut self, header: &impl Repr) {
        // All that `headers` adds fits.
        self.len += header.emit(&mut self.bytes[self.len..]).unwrap_or(0);
    }
}

/// The link header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct LinkHeader {
    pub(crate) dst: Mac,
    pub(crate) src: Mac,
    pub(crate) vlan: Option<crate::raw::VlanTag>,
}

impl LinkHeader {
    /// Ethernet with this ethertype, and its tag.
    fn add_to(&self, headers: &mut Headers, ethertype: u16) {
        let Self { dst, src, vlan } = *self;
        let first = if vlan.is_some() { ethertype::VLAN } else { ethertype };
        headers.add(&Ethernet { dst, src, ethertype: first });
        if let Some(tag) = vlan {
            let (id, priority) = (tag.id, tag.priority);
            headers.add(&Vlan { id, priority, drop_eligible: false, ethertype });
        }
    }

    /// The bytes before a packet of this ethertype.
    pub(crate) fn headers(&self, ethertype: u16) -> Headers {
        let mut headers = Headers::default();
        self.add_to(&mut headers, ethertype);
        headers
    }
}

/// The headers of a sealed packet, whose ICRC was made with the same `src_port` and `id`. `None`
/// where the flow mixes families or the packet is longer than IP can carry.
pub(crate) fn headers(
    link: Option<&LinkHeader>,
    flow: &Flow,
    src_port: u16,
    id: u16,
    checksum: bool,
    transport: &[u8],
) -> Option<Headers> {
    let mut headers = Headers::default();
    let len = u16::try_from(transport.len() + Udp::LEN).ok()?;
    let mut udp = Udp { len, ..Udp::roce(src_port) };
    match (flow.src, flow.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            if let Some(link) = link {
                link.add_to(&mut headers, ethertype::IPV4);
            }
            let total_len = len.checked_add(20)?;
            let (tos, ttl) = (flow.traffic_class, flow.hop_limit.max(1));
            let mut ip = Ipv4 { total_len, tos, ttl, id, ..Ipv4::udp(src, dst) };
            ip.checksum = ip.right_checksum(&[]);
            headers.add(&ip);
            if checksum {
                udp.checksum = udp.right_checksum_v4(src, dst, &[transport]);
            }
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            if let Some(link) = link {
                link.add_to(&mut headers, ethertype::IPV6);
            }
            let (traffic_class, flow_label) = (flow.traffic_class, flow.flow_label);
            let (payload_len, hop_limit) = (len, flow.hop_limit.max(1));
            let ip =
                Ipv6 { traffic_class, flow_label, payload_len, hop_limit, ..Ipv6::udp(src, dst) };
            headers.add(&ip);
            if checksum {
                udp.checksum = udp.right_checksum_v6(src, dst, &[transport]);
            }
        }
        _ => return None,
    }
    headers.add(&udp);
    Some(headers)
}

/// IP as it came.
enum Ip<'a> {
    V4(Ipv4, &'a [u8]),
    V6(Ipv6),
}

/// Headers as they came.
struct Seen<'a> {
    ip: Ip<'a>,
    udp: Udp,
    /// Bytes of them.
    len: usize,
    /// Bytes that follow them, by what they say.
    transport: usize,
}

/// Why a frame is no RoCEv2 packet for a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotOurs {
    /// Headers cut, lengths that do not agree, another protocol.
    Malformed,
    /// The IPv4 header checksum is wrong.
    IpChecksum,
    /// A fragment of a datagram.
    Fragment,
}

/// Where the transport packet of a frame is, and its flow.
pub(crate) struct Parsed {
    pub(crate) flow: Flow,
    /// Bytes before the BTH.
    pub(crate) headers: usize,
    /// Bytes from BTH to ICRC.
    pub(crate) len: usize,
}

/// Reads the headers of an Ethernet frame.
pub(crate) fn parse(frame: &[u8]) -> Result<Parsed, NotOurs> {
    let seen = see(frame).ok_or(NotOurs::Malformed)?;
    let flow = match &seen.ip {
        Ip::V4(ip, options) => {
            if ip.checksum != ip.right_checksum(options) {
                return Err(NotOurs::IpChecksum);
            }
            if ip.is_fragment() {
                return Err(NotOurs::Fragment);
            }
            Flow {
                src: ip.src.into(),
                dst: ip.dst.into(),
                src_port: seen.udp.src_port,
                traffic_class: ip.tos,
                hop_limit: ip.ttl,
                flow_label: 0,
            }
        }
        Ip::V6(ip) => Flow {
            src: ip.src.into(),
            dst: ip.dst.into(),
            src_port: seen.udp.src_port,
            traffic_class: ip.traffic_class,
            hop_limit: ip.hop_limit,
            flow_label: ip.flow_label,
        },
    };
    let Seen { len: headers, transport: len, .. } = seen;
    if frame.len() < headers + len {
        return Err(NotOurs::Malformed);
    }
    Ok(Parsed { flow, headers, len })
}

/// What the ICRC covers of the headers before the BTH, for the datagram of `len` bytes that is
/// number `nth` of those which came with these headers: segmentation counts identifications up.
pub(crate) fn prefix(headers: &[u8], nth: u16, len: u16) -> Option<IcrcPrefix> {
    let seen = see(headers)?;
    let udp = Udp { len: len.checked_add(8)?, ..seen.udp };
    Some(match seen.ip {
        Ip::V4(mut ip, options) => {
            ip.id = ip.id.wrapping_add(nth);
            ip.total_len = u16::try_from(ip.header_len()).ok()?.checked_add(udp.len)?;
            IcrcPrefix::ipv4(&ip.to_view(), options, &udp.to_view())
        }
        Ip::V6(ip) => {
            IcrcPrefix::ipv6(&Ipv6 { payload_len: udp.len, ..ip }.to_view(), &udp.to_view())
        }
    })
}

/// The headers of one datagram of several that came with `headers`, as if it had come alone.
pub(crate) fn headers_of_segment(headers: &[u8], nth: u16, len: u16) -> Option<Vec<u8>> {
    let seen = see(headers)?;
    let mut alone = headers.to_vec();
    let (udp, at) = (Udp { len: len.checked_add(8)?, ..seen.udp }, seen.len - Udp::LEN);
    udp.emit(&mut alone[at..]).ok()?;
    match seen.ip {
        Ip::V4(mut ip, options) => {
            ip.id = ip.id.wrapping_add(nth);
            ip.total_len = u16::try_from(ip.header_len()).ok()?.checked_add(udp.len)?;
            ip.checksum = ip.right_checksum(options);
            ip.emit(&mut alone[at - ip.header_len()..]).ok()?;
        }
        Ip::V6(ip) => {
            Ipv6 { payload_len: udp.len, ..ip }.emit(&mut alone[at - Ipv6::LEN..]).ok()?;
        }
    }
    Some(alone)
}

fn see(frame: &[u8]) -> Option<Seen<'_>> {
    let (ethernet, mut rest) = Ethernet::parse(frame).ok()?;
    let mut next = ethernet.ethertype;
    while ethertype::is_vlan(next) {
        let (tag, after) = Vlan::parse(rest).ok()?;
        (next, rest) = (tag.ethertype, after);
    }
    let (ip, rest, datagram) = match next {
        ethertype::IPV4 => {
            let (ip, rest) =
                Ipv4::parse(rest).ok().filter(|(ip, _)| ip.protocol == protocol::UDP)?;
            let (options, rest) = rest.split_at_checked(ip.header_len() - Ipv4::LEN)?;
            let datagram = usize::from(ip.total_len).checked_sub(ip.header_len())?;
            (Ip::V4(ip, options), rest, datagram)
        }
        ethertype::IPV6 => {
            let (ip, rest) = Ipv6::parse(rest).ok()?;
            let datagram = usize::from(ip.payload_len);
            (Ip::V6(ip), rest, (ip.next_header == protocol::UDP).then_some(datagram)?)
        }
        _ => return None,
    };
    let (udp, rest) = Udp::parse(rest).ok()?;
    if udp.dst_port != ROCE_UDP_PORT || usize::from(udp.len) != datagram {
        return None;
    }
    let transport = datagram.checked_sub(Udp::LEN)?;
    Some(Seen { ip, udp, len: frame.len() - rest.len(), transport })
}
