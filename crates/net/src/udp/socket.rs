//! Sockets, set as RoCEv2 needs them.

use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};
use urxe_wire::ROCE_UDP_PORT;

use crate::PortError;
use crate::sys::{attach_filter, get, set, set_buffers};

/// An unbound socket of the family of `address` whose packets have DF and IP identification 0, and
/// which tells of each packet's traffic class and TTL.
pub(crate) fn socket_for(address: IpAddr, buffer: usize) -> Result<Socket, PortError> {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let fail = |call| PortError::socket(call, address);
    let socket = Socket::new(domain, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))
        .map_err(fail("socket"))?;
    let options: &[(i32, i32, i32)] = if address.is_ipv4() {
        &[
            (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
            (libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
            (libc::IPPROTO_IP, libc::IP_RECVTTL, 1),
        ]
    } else {
        &[
            (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1),
            (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
            (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
            (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1),
            // rxe and hardware send UDP checksum 0 over IPv6 too.
            (libc::IPPROTO_UDP, UDP_NO_CHECK6_RX, 1),
        ]
    };
    for &(level, name, value) in options {
        set(&socket, level, name, value).map_err(fail("setsockopt"))?;
    }
    set_buffers(&socket, buffer);
    Ok(socket)
}

/// A socket of `address` and `port`.
pub(super) fn open(address: IpAddr, port: u16, buffer: usize) -> Result<Socket, PortError> {
    let socket = socket_for(address, buffer)?;
    bind(&socket, SocketAddr::new(address, port))?;
    Ok(socket)
}

/// Binds, and says what it is that is in the way.
pub(crate) fn bind(socket: &Socket, to: SocketAddr) -> Result<(), PortError> {
    socket.bind(&to.into()).map_err(|e| match e.raw_os_error() {
        Some(libc::EADDRNOTAVAIL) => PortError::NotOurs(to.ip()),
        Some(libc::EADDRINUSE) => PortError::Taken(to.ip()),
        Some(libc::EINVAL) if is_link_local(to.ip()) => PortError::LinkLocal(to.ip()),
        _ => PortError::socket("bind", to.ip())(e),
    })
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// Linux include/uapi/linux/udp.h; libc does not name it.
const UDP_NO_CHECK6_RX: i32 = 102;

/// A socket that only sends, from a port the host chooses.
pub(super) fn source_socket(address: IpAddr, buffer: usize) -> Result<(u16, Socket), PortError> {
    let fail = |call| PortError::socket(call, address);
    let socket = socket_for(address, buffer)?;
    attach_filter(&socket, &crate::raw::filter::nothing()).map_err(fail("SO_ATTACH_FILTER"))?;
    // Nobody reads it; where the host gives more, that costs nothing.
    let _ = socket.set_recv_buffer_size(0);
    bind(&socket, SocketAddr::new(address, 0))?;
    let local = socket.local_addr().map_err(fail("getsockname"))?;
    let port = local.as_socket().map_or(0, |a| a.port());
    Ok((port, socket))
}

/// Whether the host gathers what arrives.
pub(crate) fn enable_gro(socket: &Socket) -> bool {
    set(socket, libc::IPPROTO_UDP, libc::UDP_GRO, 1).is_ok()
}

/// As it was set.
pub(super) fn is_gathering(socket: &Socket) -> bool {
    get(socket, libc::IPPROTO_UDP, libc::UDP_GRO).is_ok_and(|on| on != 0)
}

/// A socket that gets what is sent to `group` over the interface of `address`.
pub(super) fn join(group: IpAddr, address: IpAddr, buffer: usize) -> Result<Socket, PortError> {
    let fail = |call| PortError::socket(call, group);
    let socket = socket_for(group, buffer)?;
    socket.set_reuse_address(true).map_err(fail("SO_REUSEADDR"))?;
    match (group, address) {
        (IpAddr::V4(group), IpAddr::V4(address)) => {
            socket.join_multicast_v4(&group, &address).map_err(fail("IP_ADD_MEMBERSHIP"))?;
        }
        (IpAddr::V6(group), _) => {
            let index = super::interface::of(address)?.index;
            socket.join_multicast_v6(&group, index).map_err(fail("IPV6_JOIN_GROUP"))?;
        }
        _ => return Err(PortError::NotAGroup { group, address }),
    }
    socket.bind(&SocketAddr::new(group, ROCE_UDP_PORT).into()).map_err(fail("bind"))?;
    enable_gro(&socket);
    Ok(socket)
}
