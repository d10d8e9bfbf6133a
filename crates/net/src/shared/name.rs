//! Names of Unix sockets: abstract, so that each goes with its socket, and is the network
//! namespace's. Allocates nothing: the broker may not.

use std::fmt::{self, Write as _};
use std::net::IpAddr;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::message::Token;

/// Of the protocol between broker and processes.
const VERSION: u32 = 2;

/// The name of the broker of an address and of the user that we are.
pub(super) fn of(address: IpAddr) -> Result<SocketAddrUnix, Errno> {
    name(address, format_args!(""))
}

/// Takes the name that says that a slot is somebody's, for as long as the socket lives: whoever has
/// the slot is known to live without the broker that gave it. Only those who share the address know
/// the token; a name that others could make up, they could take.
pub(super) fn lease(address: IpAddr, slot: u8, token: Token) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    rustix::net::bind(&socket, &of_slot(address, slot, token)?)?;
    rustix::net::listen(&socket, 0)?;
    Ok(socket)
}

/// Whether somebody has a slot, whom the broker may not know of.
pub(super) fn is_leased(address: IpAddr, slot: u8, token: Token) -> bool {
    let tried =
        socket().and_then(|socket| rustix::net::connect(&socket, &of_slot(address, slot, token)?));
    // AGAIN: there is one, and it was asked before.
    matches!(tried, Ok(()) | Err(Errno::AGAIN))
}

fn of_slot(address: IpAddr, slot: u8, token: Token) -> Result<SocketAddrUnix, Errno> {
    name(address, format_args!("/{slot}/{token:016x}"))
}

/// Shows those who do not share the address that a slot is somebody's, as long as the socket `on`
/// lives. Anyone could show as much, so nothing but patience stands on it.
pub(super) fn show(on: BorrowedFd<'_>, address: IpAddr, slot: u8) -> Result<(), Errno> {
    rustix::net::bind(on, &name(address, format_args!("/{slot}"))?)
}

/// Whether a slot is shown to be somebody's.
pub(super) fn is_shown(address: IpAddr, slot: u8) -> bool {
    use std::os::fd::AsFd;
    let tried = socket().and_then(|socket| show(socket.as_fd(), address, slot));
    tried == Err(Errno::ADDRINUSE)
}

/// A socket that keeps messages apart and never waits.
pub(super) fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

fn name(address: IpAddr, rest: fmt::Arguments<'_>) -> Result<SocketAddrUnix, Errno> {
    let user = rustix::process::geteuid().as_raw();
    let mut text = Text { bytes: [0; 100], len: 0 };
    let written = write!(text, "urxe/{VERSION}/{user}/{address}{rest}");
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
