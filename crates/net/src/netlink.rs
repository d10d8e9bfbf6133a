//! Questions to the kernel about routes, neighbours and links (Linux
//! include/uapi/linux/rtnetlink.h, neighbour.h, if_link.h).
//!
//! The kernel answers as it would route itself: rules, tables and metrics count, which the tables
//! under `/proc/net` do not show. Asking needs no rights.

use std::io::{self, Read, Write};
use std::net::IpAddr;

use parking_lot::Mutex;
use socket2::{Domain, Protocol, Socket, Type};
use urxe_wire::Mac;

use crate::PortError;

#[cfg(test)]
mod tests;

/// What the kernel would do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The destination is this host itself.
    pub(crate) local: bool,
    /// Where the packet goes first, if not to its destination.
    pub(crate) gateway: Option<IpAddr>,
}

/// An interface as the kernel sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkInfo {
    /// MTU, bytes.
    pub(crate) mtu: u32,
    /// Hardware address, zeros where there is none.
    pub(crate) mac: Mac,
    /// Whether it is up.
    pub(crate) up: bool,
    /// What kind of hardware it is, ARPHRD_* of Linux include/uapi/linux/if_arp.h.
    pub(crate) hardware: u16,
}

impl LinkInfo {
    /// Whether it carries Ethernet frames.
    pub(crate) const fn is_ethernet(self) -> bool {
        matches!(self.hardware, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK)
    }
}

/// A socket that asks the kernel; each question is answered before the next.
#[derive(Debug)]
pub(crate) struct Netlink(Mutex<Socket>);

/// Header of a message: length, type, flags, sequence number, port.
const HEADER: usize = 16;
/// RTAX_MTU of Linux include/uapi/linux/rtnetlink.h; libc does not name it.
const RTAX_MTU: u16 = 2;
/// Neighbour states in which the address may be used: reachable, stale, delay, probe, noarp,
/// permanent.
const USABLE: u16 = 0x02 | 0x04 | 0x08 | 0x10 | 0x40 | 0x80;

impl Netlink {
    /// Opens the socket in the network namespace of the caller.
    pub(crate) fn open() -> io::Result<Self> {
        let protocol = Some(Protocol::from(libc::NETLINK_ROUTE));
        let domain = Domain::from(libc::AF_NETLINK);
        Socket::new(domain, Type::RAW.cloexec(), protocol).map(|s| Self(Mutex::new(s)))
    }

    /// The way to `to` out of interface `index`; an error where there is none.
    pub(crate) fn route(&self, to: IpAddr, index: u32) -> io::Result<Route> {
        let answer = self.ask_route(to, (libc::RTA_OIF, index.to_ne_bytes().to_vec()))?;
        let kind = answer.get(7).copied().unwrap_or(0);
        let gateway = find(&answer, 12, libc::RTA_GATEWAY).and_then(address).or_else(|| {
            // A family, then a gateway of that family.
            let (_, rest) = find(&answer, 12, libc::RTA_VIA)?.split_at_checked(2)?;
            address(rest)
        });
        match kind {
            libc::RTN_LOCAL => Ok(Route { local: true, gateway: None }),
            libc::RTN_UNICAST => Ok(Route { local: false, gateway }),
            _ => Err(io::Error::from_raw_os_error(libc::EHOSTUNREACH)),
        }
    }

    /// Whether `address` is of this host.
    pub(crate) fn is_local(&self, address: IpAddr) -> io::Result<bool> {
        let answer = self.ask_route(address, (libc::RTA_UNSPEC, Vec::new()))?;
        Ok(answer.get(7) == Some(&libc::RTN_LOCAL))
    }

    /// Fails where `address` cannot be a port's own: it is of another kind, or an interface's
    /// broadcast address.
    pub(crate) fn check_own(&self, address: IpAddr) -> Result<(), PortError> {
        PortError::check_own(address)?;
        let answer = self.ask_route(address, (libc::RTA_UNSPEC, Vec::new()));
        let kind = answer.ok().and_then(|answer| answer.get(7).copied());
        let broadcast = kind == Some(libc::RTN_BROADCAST);
        if broadcast { Err(PortError::Broadcast(address)) } else { Ok(()) }
    }

    /// Bytes of the largest IP packet that fits the way from `from` to `to`, where a route says so
    /// or a router has said so; `None` where the interface's MTU is all that counts, or nothing is
    /// known.
    pub(crate) fn path_mtu(&self, from: IpAddr, to: IpAddr) -> Option<u32> {
        let source = if from.is_loopback() { libc::RTA_UNSPEC } else { libc::RTA_SRC };
        let answer = self.ask_route(to, (source, octets(from))).ok()?;
        let metrics = find(&answer, 12, libc::RTA_METRICS)?;
        let mtu = u32::from_ne_bytes(find(metrics, 0, RTAX_MTU)?.try_into().ok()?);
        Some(mtu).filter(|&mtu| mtu != 0)
    }

    /// Asks for the way to `to`, which one attribute may say more of; none of kind `RTA_UNSPEC`.
    fn ask_route(&self, to: IpAddr, more: (u16, Vec<u8>)) -> io::Result<Vec<u8>> {
        let bits = if to.is_ipv4() { 32 } else { 128 };
        // rtmsg: family, lengths of prefixes, then what the answer fills.
        let mut body = [family(to), bits, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut attributes = vec![(libc::RTA_DST, octets(to))];
        if more.0 == libc::RTA_SRC {
            body[2] = bits;
        }
        if more.0 != libc::RTA_UNSPEC {
            attributes.push(more);
        }
        self.ask(libc::RTM_GETROUTE, &body, &attributes)
    }

    /// What the kernel knows of the hardware address of `of` on interface `index`.
    pub(crate) fn neighbour(&self, of: IpAddr, index: u32) -> Option<Mac> {
        // ndmsg: family, padding, interface, state, flags, type.
        let mut body = [0; 12];
        body[0] = family(of);
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        let answer = self.ask(libc::RTM_GETNEIGH, &body, &[(libc::NDA_DST, octets(of))]).ok()?;
        let state = u16::from_ne_bytes(answer.get(8..10)?.try_into().ok()?);
        let mac = find(&answer, 12, libc::NDA_LLADDR)?.try_into().ok()?;
        (state & USABLE != 0).then_some(Mac(mac))
    }

    /// What the kernel knows of interface `index`; an error where there is none.
    pub(crate) fn link(&self, index: u32) -> io::Result<LinkInfo> {
        // ifinfomsg: family, padding, hardware type, index, flags, change.
        let mut body = [0; 16];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        self.ask_link(&body, &[])
    }

    /// As [`Self::link`], of the interface of this name; that of a label, `eth0:1`, is meant too.
    pub(crate) fn link_named(&self, name: &str) -> io::Result<LinkInfo> {
        let name = name.split(':').next().unwrap_or(name);
        let text = [name.as_bytes(), &[0]].concat();
        self.ask_link(&[0; 16], &[(libc::IFLA_IFNAME, text)])
    }

    fn ask_link(&self, body: &[u8; 16], attributes: &[(u16, Vec<u8>)]) -> io::Result<LinkInfo> {
        let answer = self.ask(libc::RTM_GETLINK, body, attributes)?;
        let short = || io::Error::from(io::ErrorKind::InvalidData);
        let hardware = answer.get(2..4).and_then(|b| b.try_into().ok()).ok_or_else(short)?;
        let mtu = find(&answer, 16, libc::IFLA_MTU).and_then(|b| b.try_into().ok());
        let mac = find(&answer, 16, libc::IFLA_ADDRESS).and_then(|b| b.try_into().ok());
        let flags = answer.get(8..12).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes);
        Ok(LinkInfo {
            up: flags & u32::try_from(libc::IFF_UP).unwrap_or(1) != 0,
            mtu: u32::from_ne_bytes(mtu.ok_or_else(short)?),
            mac: Mac(mac.unwrap_or([0; 6])),
            hardware: u16::from_ne_bytes(hardware),
        })
    }

    /// Asks, and gives the body of the answer.
    fn ask(&self, kind: u16, body: &[u8], attributes: &[(u16, Vec<u8>)]) -> io::Result<Vec<u8>> {
        let flags = u16::try_from(libc::NLM_F_REQUEST).unwrap_or(1);
        let mut message = vec![0; HEADER];
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message[6..8].copy_from_slice(&flags.to_ne_bytes());
        message.extend_from_slice(body);
        for (kind, value) in attributes {
            let len = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
            message.extend_from_slice(&len.to_ne_bytes());
            message.extend_from_slice(&kind.to_ne_bytes());
            message.extend_from_slice(value);
            message.resize(message.len().next_multiple_of(4), 0);
        }
        let len = u32::try_from(message.len()).unwrap_or(u32::MAX);
        message[..4].copy_from_slice(&len.to_ne_bytes());
        let mut answer = vec![0; 8192];
        let got = {
            let mut socket = self.0.lock();
            socket.write_all(&message)?;
            socket.read(&mut answer)?
        };
        answer.truncate(got);
        body_of(&answer)
    }
}

/// The body of an answer; what it refuses as an error.
fn body_of(answer: &[u8]) -> io::Result<Vec<u8>> {
    let (Some(header), Some(body)) = (answer.first_chunk::<HEADER>(), answer.get(HEADER..)) else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let kind = i32::from(u16::from_ne_bytes([header[4], header[5]]));
    if kind != libc::NLMSG_ERROR {
        return Ok(body.to_vec());
    }
    let code = body.first_chunk().map_or(-libc::EIO, |&b| i32::from_ne_bytes(b));
    Err(io::Error::from_raw_os_error(code.saturating_neg()))
}

fn family(of: IpAddr) -> u8 {
    let family = if of.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    u8::try_from(family).unwrap_or(0)
}

fn octets(of: IpAddr) -> Vec<u8> {
    match of {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// The value of an attribute of a body whose attributes start at `from`.
fn find(body: &[u8], from: usize, wanted: u16) -> Option<&[u8]> {
    let mut rest = body.get(from..)?;
    while let Some(&[a, b, c, d]) = rest.first_chunk() {
        let (len, kind) = (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]));
        let value = rest.get(4..len)?;
        if kind == wanted {
            return Some(value);
        }
        rest = rest.get(len.next_multiple_of(4)..)?;
    }
    None
}
