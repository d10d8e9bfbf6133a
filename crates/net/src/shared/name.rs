//! Names of Unix sockets: abstract, so that each goes with its socket, and is the network
//! namespace's. Allocates nothing: the broker may not.

use std::fmt::{self, Write as _};
use std::net::IpAddr;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Of the protocol between broker and processes.
const VERSION: u32 = 1;

/// The name of the broker of an address and of the user that we are.
pub(super) fn of(address: IpAddr) -> Result<SocketAddrUnix, Errno> {
    name(address, None)
}

/// Takes the name that says that a slot is somebody's. It lasts as long as the socket `on`, so
/// whoever has the slot is known to live without the broker that gave it.
pub(super) fn lease(on: BorrowedFd<'_>, address: IpAddr, slot: u8) -> Result<(), Errno> {
    rustix::net::bind(on, &name(address, Some(slot))?)
}

/// Whether somebody has a slot, whom the broker may not know of.
pub(super) fn is_leased(address: IpAddr, slot: u8) -> bool {
    let tried = socket().and_then(|socket| {
        use std::os::fd::AsFd;
        lease(socket.as_fd(), address, slot)
    });
    tried == Err(Errno::ADDRINUSE)
}

/// A socket that keeps messages apart and never waits.
pub(super) fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

fn name(address: IpAddr, slot: Option<u8>) -> Result<SocketAddrUnix, Errno> {
    let user = rustix::process::geteuid().as_raw();
    let mut text = Text { bytes: [0; 100], len: 0 };
    let written = match slot {
        None => write!(text, "urxe/{VERSION}/{user}/{address}"),
        Some(slot) => write!(text, "urxe/{VERSION}/{user}/{address}/{slot}"),
    };
    written.map_err(|_| Errno::NAMETOOLONG)?;
    SocketAddrUnix::new_abstract_name(&text.bytes[..text.len])
}

/// A short text.
struct Text {
    bytes: [u8; 100],
    len: usize,
}

impl fmt::Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let end = self.len + s.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(s.as_bytes());
        self.len = end;
        Ok(())
    }
}
