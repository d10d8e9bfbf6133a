//! System calls that several ports share.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use socket2::{SockAddr, SockAddrStorage, SockFilter, Socket};

/// Sets an integer socket option.
pub(crate) fn set(socket: &Socket, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_fd(socket.as_fd(), level, name, value)
}

/// As [`set`].
pub(crate) fn set_fd(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    let len = libc::socklen_t::try_from(size_of::<i32>()).unwrap_or(4);
    let fd = fd.as_raw_fd();
    // SAFETY: the descriptor is open, `value` lives through the call and is `len` bytes long.
    let rc = unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), len) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// An integer socket option.
pub(crate) fn get(socket: &Socket, level: i32, name: i32) -> io::Result<i32> {
    let mut value = 0;
    let mut len = libc::socklen_t::try_from(size_of::<i32>()).unwrap_or(4);
    let (fd, out) = (socket.as_raw_fd(), (&raw mut value).cast());
    // SAFETY: the descriptor is open; `value` is writable, `len` bytes long, and lives through the
    // call.
    let rc = unsafe { libc::getsockopt(fd, level, name, out, &raw mut len) };
    if rc == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// As large as asked for if we may, else as large as the host lets anyone.
pub(crate) fn set_buffers(socket: &Socket, buffer: usize) {
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

/// How many packets the host dropped because the socket's buffer was full (SO_MEMINFO,
/// SK_MEMINFO_DROPS of Linux include/uapi/linux/sock_diag.h).
pub(crate) fn drops(socket: &Socket) -> io::Result<u32> {
    const SO_MEMINFO: i32 = 55;
    let mut info = [0_u32; 9];
    let mut len = libc::socklen_t::try_from(size_of_val(&info)).unwrap_or(36);
    let (fd, out) = (socket.as_raw_fd(), info.as_mut_ptr().cast());
    // SAFETY: the descriptor is open; `info` is writable, `len` bytes long, and lives through the
    // call.
    let rc = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, SO_MEMINFO, out, &raw mut len) };
    if rc == 0 { Ok(info[8]) } else { Err(io::Error::last_os_error()) }
}

/// Lets `filter` say which socket of a group a packet is for, counted from 0 in the order in which
/// they joined. `socket` is one of them.
pub(crate) fn attach_group_filter(socket: &Socket, filter: &[SockFilter]) -> io::Result<()> {
    attach(socket, libc::SO_ATTACH_REUSEPORT_CBPF, filter)
}

/// Lets in what passes `filter` only.
pub(crate) fn attach_filter(socket: &Socket, filter: &[SockFilter]) -> io::Result<()> {
    attach(socket, libc::SO_ATTACH_FILTER, filter)
}

/// As sock_fprog, with zeros between its fields: the kernel copies all of it. SockFilter is laid
/// out as sock_filter is.
#[repr(C)]
struct FilterProgram {
    len: u16,
    zeros: [u8; size_of::<usize>() - 2],
    filter: *const SockFilter,
}
const _: () = assert!(size_of::<FilterProgram>() == size_of::<libc::sock_fprog>());

fn attach(socket: &Socket, name: i32, filter: &[SockFilter]) -> io::Result<()> {
    let len = u16::try_from(filter.len()).unwrap_or(0);
    let program =
        FilterProgram { len, zeros: [0; size_of::<usize>() - 2], filter: filter.as_ptr() };
    let len = libc::socklen_t::try_from(size_of_val(&program)).unwrap_or(16);
    let (fd, value) = (socket.as_raw_fd(), (&raw const program).cast());
    // SAFETY: the descriptor is open; the program and its steps live through the call, which reads
    // them.
    let rc = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, name, value, len) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Who is at the other end of a Unix socket: process and user. The process is 0 where it is not to
/// be seen from here.
pub(crate) fn peer(fd: BorrowedFd<'_>) -> io::Result<(u32, u32)> {
    let mut who = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = libc::socklen_t::try_from(size_of_val(&who)).unwrap_or(12);
    let (fd, out) = (fd.as_raw_fd(), (&raw mut who).cast());
    // SAFETY: the descriptor is open; `who` is writable, `len` bytes long, and lives through the
    // call.
    let rc =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, out, &raw mut len) };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((u32::try_from(who.pid).unwrap_or(0), who.uid))
}

/// The link-level address of an interface: where a packet socket is bound or sends to.
pub(crate) fn link_address(index: u32, protocol: u16) -> SockAddr {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: sockaddr_ll is one of the types that the storage may be seen as.
    let link = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    link.sll_family = libc::sa_family_t::try_from(libc::AF_PACKET).unwrap_or(17);
    link.sll_protocol = protocol.to_be();
    link.sll_ifindex = i32::try_from(index).unwrap_or(0);
    let len = libc::socklen_t::try_from(size_of::<libc::sockaddr_ll>()).unwrap_or(20);
    // SAFETY: the storage holds an address of `len` bytes.
    unsafe { SockAddr::new(storage, len) }
}

/// Waits for `events` on `fd`, or for `timeout_ms`; says whether any came.
fn poll(fd: BorrowedFd<'_>, events: i16, timeout_ms: i32) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 };
    // SAFETY: one initialised pollfd, which lives through the call.
    let rc = unsafe { libc::poll(&raw mut poll, 1, timeout_ms) };
    if rc >= 0 { Ok(rc > 0) } else { Err(io::Error::last_os_error()) }
}

/// Waits until `fd` can send, or for `timeout_ms`.
pub(crate) fn wait_writable(fd: BorrowedFd<'_>, timeout_ms: i32) -> io::Result<()> {
    poll(fd, libc::POLLOUT, timeout_ms).map(drop)
}

/// Waits until `fd` has something, or for `timeout_ms`; says whether it has.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, timeout_ms: i32) -> io::Result<bool> {
    poll(fd, libc::POLLIN, timeout_ms)
}

/// An epoll instance: one descriptor that is readable when any of several is.
#[derive(Debug)]
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers; the result is checked.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(crate) fn add(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let events = u32::try_from(libc::EPOLLIN).unwrap_or(1);
        let mut event = libc::epoll_event { events, u64: 0 };
        let (own, fd) = (self.0.as_raw_fd(), fd.as_raw_fd());
        // SAFETY: both descriptors are open, `event` lives through the call.
        let rc = unsafe { libc::epoll_ctl(own, libc::EPOLL_CTL_ADD, fd, &raw mut event) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let (own, fd) = (self.0.as_raw_fd(), fd.as_raw_fd());
        // SAFETY: both descriptors are open; no event is wanted.
        let rc = unsafe { libc::epoll_ctl(own, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A timer whose descriptor is readable once it has run out, until it is set anew.
#[derive(Debug)]
pub(crate) struct Timer(OwnedFd);

impl Timer {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: takes no pointers; the result is checked.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Lets it run out after `after`, at once for zero; `None` stops it.
    pub(crate) fn set(&self, after: Option<Duration>) -> io::Result<()> {
        // All zeros would stop it.
        let after = after.map_or(Duration::ZERO, |d| d.max(Duration::from_nanos(1)));
        let value = libc::timespec {
            tv_sec: libc::time_t::try_from(after.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(after.subsec_nanos().cast_signed()),
        };
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let spec = libc::itimerspec { it_interval: never, it_value: value };
        let fd = self.0.as_raw_fd();
        // SAFETY: the descriptor is open, `spec` lives through the call, no old value is wanted.
        let rc = unsafe { libc::timerfd_settime(fd, 0, &raw const spec, std::ptr::null_mut()) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
