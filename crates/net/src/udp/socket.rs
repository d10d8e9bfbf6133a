//! Sockets, set as RoCEv2 needs them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use socket2::{Domain, Protocol, Socket, Type};
use urxe_wire::ROCE_UDP_PORT;

use crate::PortError;

/// Sets an integer socket option.
fn set(socket: &Socket, level: i32, name: i32, value: i32) -> io::Result<()> {
    let len = libc::socklen_t::try_from(size_of::<i32>()).unwrap_or(4);
    // SAFETY: the descriptor is open, `value` lives through the call and is `len` bytes long.
    let rc = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), len)
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A socket of `address` and `port` whose packets have DF and IP identification 0.
pub(super) fn open(address: IpAddr, port: u16, buffer: usize) -> Result<Socket, PortError> {
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
    socket.bind(&SocketAddr::new(address, port).into()).map_err(|e| match e.raw_os_error() {
        Some(libc::EADDRNOTAVAIL) => PortError::NotOurs(address),
        Some(libc::EADDRINUSE) => PortError::Taken(address),
        _ => fail("bind")(e),
    })?;
    Ok(socket)
}

/// Linux include/uapi/linux/udp.h; libc does not name it.
const UDP_NO_CHECK6_RX: i32 = 102;

/// As large as asked for if we may, else as large as the host lets anyone.
fn set_buffers(socket: &Socket, buffer: usize) {
    let size = i32::try_from(buffer).unwrap_or(i32::MAX);
    for (force, plain) in
        [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
    {
        if set(socket, libc::SOL_SOCKET, force, size).is_err() {
            // The host caps what it gives; `urxe doctor` tells of a cap that is too low.
            let _ = set(socket, libc::SOL_SOCKET, plain, size);
        }
    }
}

/// A socket that only sends, from a port the host chooses.
pub(super) fn source_socket(address: IpAddr, buffer: usize) -> Result<(u16, Socket), PortError> {
    let socket = open(address, 0, buffer)?;
    let fail = PortError::socket("getsockname", address);
    let local = socket.local_addr().map_err(&fail)?;
    let port = local.as_socket().map_or(0, |a| a.port());
    Ok((port, socket))
}

/// Whether the host gathers what arrives.
pub(super) fn enable_gro(socket: &Socket) -> bool {
    set(socket, libc::IPPROTO_UDP, libc::UDP_GRO, 1).is_ok()
}

/// A socket that gets what is sent to `group` over the interface of `address`.
pub(super) fn join(group: IpAddr, address: IpAddr) -> Result<Socket, PortError> {
    let domain = if group.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let fail = |call| PortError::socket(call, group);
    let socket = Socket::new(domain, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))
        .map_err(fail("socket"))?;
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

/// Waits until `fd` can send, or for `timeout_ms`.
pub(super) fn wait_writable(fd: BorrowedFd<'_>, timeout_ms: i32) -> io::Result<()> {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one initialised pollfd, which lives through the call.
    let rc = unsafe { libc::poll(&raw mut poll, 1, timeout_ms) };
    if rc >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// An epoll instance: one descriptor that is readable when any of several is.
#[derive(Debug)]
pub(super) struct Epoll(OwnedFd);

impl Epoll {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers; the result is checked.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(super) fn add(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let events = u32::try_from(libc::EPOLLIN).unwrap_or(1);
        let mut event = libc::epoll_event { events, u64: 0 };
        let (own, fd) = (self.0.as_raw_fd(), fd.as_raw_fd());
        // SAFETY: both descriptors are open, `event` lives through the call.
        let rc = unsafe { libc::epoll_ctl(own, libc::EPOLL_CTL_ADD, fd, &raw mut event) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until `fd` has something, or for `timeout_ms`.
#[cfg(test)]
pub(super) fn wait_readable(fd: BorrowedFd<'_>, timeout_ms: i32) -> io::Result<()> {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one initialised pollfd, which lives through the call.
    let rc = unsafe { libc::poll(&raw mut poll, 1, timeout_ms) };
    if rc > 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
