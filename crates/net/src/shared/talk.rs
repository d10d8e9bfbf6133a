//! A process's side of a connection to the broker.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use super::message::{ANSWER, Answer, CAME, Came, PACKET, REQUEST, Request};
use super::{name, pass};
use crate::{PortError, sys};

/// So long a broker may take to answer. It is busy for some microseconds at most.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries.
pub(super) const PAUSE: Duration = Duration::from_millis(2);

/// What the broker says.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack")]
pub(super) enum Heard {
    Answer(Answer),
    /// A packet that came to it.
    Packet(Came, Vec<u8>),
}

pub(super) fn connect(to: &SocketAddrUnix) -> Result<OwnedFd, Errno> {
    let socket = name::socket()?;
    rustix::net::connect(&socket, to)?;
    Ok(socket)
}

/// A name can be anyone's.
pub(super) fn check_peer(connection: &OwnedFd, address: IpAddr) -> Result<(), PortError> {
    let (_, user) =
        sys::peer(connection.as_fd()).map_err(PortError::socket("SO_PEERCRED", address))?;
    if user != rustix::process::geteuid().as_raw() {
        return Err(PortError::OtherUser { address, user });
    }
    Ok(())
}

pub(super) fn pid(connection: &OwnedFd) -> u32 {
    sys::peer(connection.as_fd()).map_or(0, |(pid, _)| pid)
}

pub(super) fn say(connection: &OwnedFd, request: Request) -> Result<(), Errno> {
    let mut bytes = [0; REQUEST];
    let len = request.write(&mut bytes);
    pass::send(connection.as_fd(), &bytes[..len], &[])
}

/// Asks on a connection on which no packets come: one that has no slot yet.
pub(super) fn ask(
    connection: &OwnedFd,
    request: Request,
    until: Instant,
    mut take: impl FnMut(OwnedFd),
) -> Result<Answer, Errno> {
    say(connection, request)?;
    match hear(connection, until, &mut take)? {
        Heard::Answer(answer) => Ok(answer),
        Heard::Packet(..) => Err(Errno::BADMSG),
    }
}

/// Waits for what the broker says next: `CONNRESET` where it is gone, `TIMEDOUT` where it is
/// silent.
pub(super) fn hear(
    connection: &OwnedFd,
    until: Instant,
    mut take: impl FnMut(OwnedFd),
) -> Result<Heard, Errno> {
    loop {
        match listen(connection, &mut take) {
            Err(Errno::AGAIN) => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(Errno::TIMEDOUT);
                }
                let ms = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).max(1);
                // Whatever it says, the next call tells more.
                let _ = sys::wait_readable(connection.as_fd(), ms);
            }
            other => return other,
        }
    }
}

/// What the broker has said: `AGAIN` where that is nothing, `CONNRESET` where it is gone.
pub(super) fn listen(connection: &OwnedFd, mut take: impl FnMut(OwnedFd)) -> Result<Heard, Errno> {
    const _: () = assert!(ANSWER < CAME + PACKET);
    let mut bytes = [0; CAME + PACKET];
    loop {
        match pass::recv(connection.as_fd(), &mut bytes, false, &mut take) {
            Ok(0) => return Err(Errno::CONNRESET),
            Ok(n) => {
                if let Some((came, packet)) = Came::parse(&bytes[..n]) {
                    return Ok(Heard::Packet(came, packet.to_vec()));
                }
                return Answer::parse(&bytes[..n]).map(Heard::Answer).ok_or(Errno::BADMSG);
            }
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
}
