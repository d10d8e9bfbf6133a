//! The broker's name: abstract, so that it goes with its socket and is the network namespace's.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Of the protocol between broker and processes.
const VERSION: u32 = 1;

/// The name of the broker of an address and of the user that we are.
pub(super) fn of(address: IpAddr) -> io::Result<SocketAddrUnix> {
    let user = rustix::process::geteuid().as_raw();
    Ok(SocketAddrUnix::new_abstract_name(format!("urxe/{VERSION}/{user}/{address}").as_bytes())?)
}

/// A socket that keeps messages apart and never waits.
pub(super) fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}
