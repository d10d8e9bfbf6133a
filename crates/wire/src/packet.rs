//! A whole packet as a capture holds it: link header to trailer.

use crate::{
    Error, Grh, Header, ICRC_LEN, Ipv4, Ipv6, Lrh, NextHeader, ROCE_UDP_PORT, Repr, Result, Roce,
    Udp, VCRC_LEN, Wanted, ethertype, protocol, view,
};

mod error;
mod link;
mod seal;
#[cfg(test)]
mod tests;

pub use error::{NotRoce, ParseError};
pub use link::{Link, LinkType, MAX_VLANS, Vlans};

/// What stands between link header and BTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network<'a> {
    /// IPv4 and UDP.
    Ipv4 {
        /// The header without its options.
        header: Ipv4,
        /// The options, a multiple of four bytes, up to 40.
        options: &'a [u8],
        /// UDP.
        udp: Udp,
    },
    /// IPv6, without extension headers, and UDP.
    Ipv6 {
        /// The header.
        header: Ipv6,
        /// UDP.
        udp: Udp,
    },
    /// GRH of a native packet.
    Grh(Grh),
    /// Nothing: the native packet stays in its subnet.
    Local,
}

impl Network<'_> {
    /// Length, bytes, UDP included.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Ipv4 { options, .. } => Ipv4::LEN + options.len() + Udp::LEN,
            Self::Ipv6 { .. } => Ipv6::LEN + Udp::LEN,
            Self::Grh(_) => Grh::LEN,
            Self::Local => 0,
        }
    }

    /// Whether there is nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize> {
        match self {
            Self::Ipv4 { header, options, udp } => {
                let header_len = Ipv4::LEN + options.len();
                if header.header_len() != header_len {
                    let wanted = Wanted::Exactly(header_len as u64);
                    let got = header.header_len() as u64;
                    return Err(Error::new("IPv4", "header length in bytes", got, wanted));
                }
                if out.len() < self.len() {
                    return Err(Error::short("IPv4", out.len(), self.len()));
                }
                header.emit(out)?;
                out[Ipv4::LEN..header_len].copy_from_slice(options);
                Ok(header_len + udp.emit(&mut out[header_len..])?)
            }
            Self::Ipv6 { header, udp } => {
                let len = header.emit(out)?;
                Ok(len + udp.emit(&mut out[len..])?)
            }
            Self::Grh(header) => header.emit(out),
            Self::Local => Ok(0),
        }
    }
}

/// A RoCEv2 packet, or one of native InfiniBand. What parses emits the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The link header.
    pub link: Link,
    /// Its VLAN tags, outermost first.
    pub vlans: Vlans,
    /// Network header and UDP.
    pub network: Network<'a>,
    /// BTH to ICRC.
    pub roce: Roce<'a>,
    /// What follows the packet in its frame: the padding of short Ethernet frames, or an FCS.
    pub trailer: &'a [u8],
}

impl<'a> Packet<'a> {
    /// The packet that `bytes` of a capture of type `link_type` hold. Checksums and CRCs are not
    /// checked, see [`Self::icrc_verdict`]; all lengths are.
    ///
    /// # Errors
    /// [`ParseError::NotRoce`] where something else was captured, [`ParseError::Bad`] where the
    /// packet is RoCEv2, or too broken to tell, and a field of it is wrong.
    pub fn parse(link_type: LinkType, bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (link, rest) = Link::parse(link_type, bytes)?;
        if let Link::Infiniband { lrh, .. } = link {
            return native(&lrh, bytes, rest);
        }
        let (vlans, ethertype, rest) = match link.ethertype() {
            Some(first) => Vlans::parse(first, rest)?,
            None => (Vlans::NONE, ethertype_of_version(rest)?, rest),
        };
        let (network, transport, trailer) = match ethertype {
            ethertype::IPV4 => ipv4(rest)?,
            ethertype::IPV6 => ipv6(rest)?,
            ethertype::ROCE_V1 => return Err(NotRoce::RoceV1.into()),
            other => return Err(NotRoce::Ethertype(other).into()),
        };
        Ok(Self { link, vlans, network, roce: Roce::parse(transport)?, trailer })
    }

    /// The UDP header; native packets have none.
    #[must_use]
    pub const fn udp(&self) -> Option<&Udp> {
        match &self.network {
            Network::Ipv4 { udp, .. } | Network::Ipv6 { udp, .. } => Some(udp),
            Network::Grh(_) | Network::Local => None,
        }
    }

    /// Length of the whole, bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        let vcrc = if self.link.is_native() { VCRC_LEN } else { 0 };
        self.link.len()
            + self.vlans.len()
            + self.network.len()
            + self.roce.len()
            + vcrc
            + self.trailer.len()
    }

    /// Never: a packet has at least a BTH.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes the packet to the front of `out`, each field as it is; gives its length.
    ///
    /// # Errors
    /// Where `out` is too short, a native link has IP or an IP link has none, a link without
    /// ethertype has VLAN tags, the IPv4 options are not as long as the header says, or
    /// [`Roce::emit`] fails.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize> {
        self.check_link()?;
        let len = self.len();
        if out.len() < len {
            return Err(Error::short("packet", out.len(), len));
        }
        let mut at = self.link.emit(out)?;
        at += self.vlans.emit(&mut out[at..])?;
        at += self.network.emit(&mut out[at..])?;
        at += self.roce.emit(&mut out[at..])?;
        if let Link::Infiniband { vcrc, .. } = self.link {
            out[at..at + VCRC_LEN].copy_from_slice(&vcrc);
            at += VCRC_LEN;
        }
        out[at..len].copy_from_slice(self.trailer);
        Ok(len)
    }

    /// Native headers go with native links, IP with all others; only an ethertype tells of tags.
    fn check_link(&self) -> Result<()> {
        if self.link.ethertype().is_none() && !self.vlans.is_empty() {
            let got = self.vlans.tags().len() as u64;
            return Err(Error::new("VLAN tag", "count", got, Wanted::Exactly(0)));
        }
        if self.link.is_native() == self.udp().is_none() {
            return Ok(());
        }
        let wanted = if self.link.is_native() {
            Wanted::OneOf("GRH, none (a native link)")
        } else {
            Wanted::OneOf("IPv4, IPv6 (a link that carries IP)")
        };
        Err(Error::new("packet", "network header length", self.network.len() as u64, wanted))
    }
}

/// Network, transport packet and trailer.
type Split<'a> = (Network<'a>, &'a [u8], &'a [u8]);

fn ethertype_of_version(bytes: &[u8]) -> Result<u16, ParseError> {
    match bytes.first().map(|b| b >> 4) {
        Some(4) => Ok(ethertype::IPV4),
        Some(6) => Ok(ethertype::IPV6),
        Some(other) => Err(NotRoce::IpVersion(other).into()),
        None => Err(Error::short("IP", 0, Ipv4::LEN).into()),
    }
}

fn ipv4(bytes: &[u8]) -> Result<Split<'_>, ParseError> {
    let (header, rest) = Ipv4::parse(bytes)?;
    if header.protocol != protocol::UDP {
        return Err(NotRoce::Protocol(header.protocol).into());
    }
    if header.is_fragment() {
        return Err(NotRoce::Fragment.into());
    }
    let header_len = header.header_len();
    let Some((options, rest)) = rest.split_at_checked(header_len - Ipv4::LEN) else {
        return Err(Error::short("IPv4", bytes.len(), header_len).into());
    };
    let udp = roce_udp(rest)?;
    let total = usize::from(header.total_len);
    let (least, most) = (header_len + Udp::LEN, bytes.len());
    if total < least || total > most {
        let wanted = Wanted::Between(least as u64, most as u64);
        return Err(Error::new("IPv4", "total length", total as u64, wanted).into());
    }
    let (datagram, trailer) = rest.split_at(total - header_len);
    let transport = udp_payload(&udp, datagram)?;
    Ok((Network::Ipv4 { header, options, udp }, transport, trailer))
}

fn ipv6(bytes: &[u8]) -> Result<Split<'_>, ParseError> {
    let (header, rest) = Ipv6::parse(bytes)?;
    match header.next_header {
        protocol::UDP => {}
        next if protocol::is_ipv6_extension(next) => {
            return Err(NotRoce::Ipv6Extension(next).into());
        }
        next => return Err(NotRoce::Protocol(next).into()),
    }
    let udp = roce_udp(rest)?;
    let Some((datagram, trailer)) = rest.split_at_checked(usize::from(header.payload_len)) else {
        let (got, wanted) = (u64::from(header.payload_len), Wanted::AtMost(rest.len() as u64));
        return Err(Error::new("IPv6", "payload length", got, wanted).into());
    };
    let transport = udp_payload(&udp, datagram)?;
    Ok((Network::Ipv6 { header, udp }, transport, trailer))
}

fn roce_udp(bytes: &[u8]) -> Result<Udp, ParseError> {
    let (udp, _) = Udp::parse(bytes)?;
    if udp.dst_port == ROCE_UDP_PORT { Ok(udp) } else { Err(NotRoce::Port(udp.dst_port).into()) }
}

/// What follows the UDP header in `datagram`, which the network header says is all there is.
fn udp_payload<'a>(udp: &Udp, datagram: &'a [u8]) -> Result<&'a [u8]> {
    if usize::from(udp.len) != datagram.len() {
        let wanted = Wanted::Exactly(datagram.len() as u64);
        return Err(Error::new("UDP", "length", u64::from(udp.len), wanted));
    }
    Ok(view::Udp::view(datagram)?.1)
}

/// The rest of a native packet; `bytes` is all of it, `rest` what follows the LRH.
fn native<'a>(lrh: &Lrh, bytes: &'a [u8], rest: &'a [u8]) -> Result<Packet<'a>, ParseError> {
    let global = match lrh.next {
        NextHeader::Local => false,
        NextHeader::Global => true,
        raw => return Err(NotRoce::RawInfiniband(raw).into()),
    };
    let (least, most) = (Lrh::LEN + ICRC_LEN, bytes.len().saturating_sub(VCRC_LEN));
    if most < least {
        return Err(Error::short("LRH to VCRC", bytes.len(), least + VCRC_LEN).into());
    }
    let len = lrh.packet_bytes();
    if len < least || len > most {
        let wanted = Wanted::Between(least as u64, most as u64);
        return Err(Error::new("LRH", "packet length in bytes", len as u64, wanted).into());
    }
    let (inner, after) = rest.split_at(len - Lrh::LEN);
    let Some((&vcrc, trailer)) = after.split_first_chunk() else {
        return Err(Error::short("VCRC", after.len(), VCRC_LEN).into());
    };
    let (network, transport) = if global {
        let (grh, transport) = Grh::parse(inner)?;
        if grh.next_header != protocol::IBA_TRANSPORT {
            return Err(NotRoce::Protocol(grh.next_header).into());
        }
        if usize::from(grh.payload_len) != transport.len() {
            let wanted = Wanted::Exactly(transport.len() as u64);
            let got = u64::from(grh.payload_len);
            return Err(Error::new("GRH", "payload length", got, wanted).into());
        }
        (Network::Grh(grh), transport)
    } else {
        (Network::Local, inner)
    };
    let link = Link::Infiniband { lrh: *lrh, vcrc };
    Ok(Packet { link, vlans: Vlans::NONE, network, roce: Roce::parse(transport)?, trailer })
}
