//! The sockets of a raw port.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use urxe_wire::ROCE_UDP_PORT;

use super::filter;
use crate::PortError;
use crate::sys::{attach_filter, link_address, set, set_buffers};
use crate::udp::Interface;

/// PACKET_VNET_HDR of Linux include/uapi/linux/if_packet.h; libc does not name it.
const PACKET_VNET_HDR: i32 = 15;

/// A packet socket that takes part in nothing yet.
fn packet_socket(interface: &Interface) -> Result<Socket, PortError> {
    let domain = Domain::from(libc::AF_PACKET);
    // Protocol 0: nothing arrives before the filter stands and the socket is bound.
    Socket::new(domain, Type::RAW.nonblocking().cloexec(), None).map_err(|e| {
        match e.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => PortError::NoRights(interface.name.clone()),
            _ => PortError::socket("packet socket", interface.address)(e),
        }
    })
}

/// A socket that only sends.
pub(super) fn sender(interface: &Interface, buffer: usize) -> Result<Socket, PortError> {
    let socket = packet_socket(interface)?;
    set_buffers(&socket, buffer);
    Ok(socket)
}

/// A socket that gets what arrives at the interface of index `index` and passes `filter`, with the
/// VLAN tags that the kernel took off. `segments`: and with the header that tells of segmentation.
pub(super) fn receiver(
    interface: &Interface,
    index: u32,
    filter: &[SockFilter],
    segments: bool,
    buffer: usize,
) -> Result<Socket, PortError> {
    let fail = |call| PortError::socket(call, interface.address);
    let socket = packet_socket(interface)?;
    attach_filter(&socket, filter).map_err(fail("SO_ATTACH_FILTER"))?;
    set(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1).map_err(fail("PACKET_AUXDATA"))?;
    // What this host sends is not received, but on loopback, where it arrives too.
    set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
        .map_err(fail("PACKET_IGNORE_OUTGOING"))?;
    if segments {
        set(&socket, libc::SOL_PACKET, PACKET_VNET_HDR, 1).map_err(fail("PACKET_VNET_HDR"))?;
    }
    set_buffers(&socket, buffer);
    let all = u16::try_from(libc::ETH_P_ALL).unwrap_or(3);
    socket.bind(&link_address(index, all)).map_err(fail("bind"))?;
    Ok(socket)
}

/// A UDP socket that holds our port and reads nothing: as long as it is there the kernel does not
/// answer our packets with "port unreachable", and nobody else takes the port.
pub(super) fn holder(interface: &Interface) -> Result<Socket, PortError> {
    let address = interface.address;
    let fail = |call| PortError::socket(call, address);
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))
        .map_err(fail("socket"))?;
    attach_filter(&socket, &filter::nothing()).map_err(fail("SO_ATTACH_FILTER"))?;
    let to: SocketAddr = match address {
        IpAddr::V4(_) => SocketAddr::new(address, ROCE_UDP_PORT),
        IpAddr::V6(v6) => {
            socket.set_only_v6(true).map_err(fail("IPV6_V6ONLY"))?;
            let scope = if v6.is_unicast_link_local() { interface.index } else { 0 };
            SocketAddrV6::new(v6, ROCE_UDP_PORT, 0, scope).into()
        }
    };
    crate::udp::bind(&socket, to)?;
    Ok(socket)
}
