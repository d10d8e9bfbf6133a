//! A process's place on an address that it shares.

use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{Shutdown, SocketAddrUnix};
use socket2::Socket;

use super::launch::{self, Parts};
use super::message::{Answer, LONGEST, Pids, Request};
use super::{GSI_SLOT, group, name, pass};
use crate::{PortError, sys};

/// So long a broker may take to answer. It is busy for some microseconds at most.
const PATIENCE: Duration = Duration::from_secs(10);
/// So long an address may be held by a process that has just ended, or a broker that is ending.
const LEAVING: Duration = Duration::from_millis(300);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(2);
/// So long a process that leaves waits until the broker has let go what was its.
const FAREWELL: Duration = Duration::from_secs(1);

/// A slot, as long as it lives.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) slot: u8,
    /// Keeps the group whole if the broker dies.
    vault: Option<OwnedFd>,
    /// To the broker; it frees the slot when this closes.
    connection: OwnedFd,
    /// Whose it is: a child of it that lets it go says nothing to the broker.
    pid: u32,
    /// The broker was told of mixed runs.
    told: AtomicBool,
}

/// A process that has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The slot: the upper six bits of its QPNs.
    pub slot: u8,
    /// The process; 0 where it is not to be seen from the broker's namespace.
    pub pid: u32,
}

/// Who shares an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The broker's process.
    pub broker: u32,
    /// Those who have a slot, by slot.
    pub holders: Vec<Holder>,
}

impl Sharing {
    fn new(pids: &Pids) -> Self {
        let all = (0..).zip(*pids).filter(|&(slot, pid)| slot != GSI_SLOT && pid != 0);
        let holders = all.map(|(slot, pid)| Holder { slot, pid }).collect();
        Self { broker: pids[usize::from(GSI_SLOT)], holders }
    }
}

/// Who shares `address` with this process or could: those of this user. `None` where nobody does.
///
/// # Errors
/// Where there is a broker that does not answer, or the host refuses.
pub fn who_shares(address: IpAddr) -> Result<Option<Sharing>, PortError> {
    let until = Instant::now() + PATIENCE;
    let to = name::of(address).map_err(PortError::socket("name", address))?;
    loop {
        let fail = |e: Errno| PortError::socket("connection to the broker", address)(e.into());
        let connection = match connect(&to) {
            Ok(connection) => connection,
            Err(Errno::CONNREFUSED) => return Ok(None),
            Err(Errno::AGAIN) if Instant::now() < until => {
                sleep(PAUSE);
                continue;
            }
            Err(e) => return Err(fail(e)),
        };
        check_peer(&connection, address)?;
        match ask(&connection, Request::Who, until, drop) {
            Ok(Answer::Who(pids)) => return Ok(Some(Sharing::new(&pids))),
            // It ended meanwhile.
            Ok(_) | Err(Errno::CONNRESET | Errno::PIPE) if Instant::now() < until => sleep(PAUSE),
            Ok(_) | Err(_) => {
                return Err(PortError::NoAnswer { address, broker: pid(&connection) });
            }
        }
    }
}

impl Seat {
    /// Takes a slot of `address`, and its socket, whose buffers are set to `buffer` bytes; starts a
    /// broker where there is none.
    pub(crate) fn take(address: IpAddr, buffer: usize) -> Result<(Socket, Self), PortError> {
        let until = Instant::now() + PATIENCE;
        let to = name::of(address).map_err(PortError::socket("name", address))?;
        loop {
            if let Some((socket, seat)) = Self::try_take(&to, address, until)? {
                sys::set_buffers(&socket, buffer);
                return Ok((socket, seat));
            }
            if Instant::now() > until {
                return Err(PortError::NoAnswer { address, broker: 0 });
            }
            sleep(PAUSE);
        }
    }

    /// `None`: try again.
    fn try_take(
        to: &SocketAddrUnix,
        address: IpAddr,
        until: Instant,
    ) -> Result<Option<(Socket, Self)>, PortError> {
        let fail = |e: Errno| PortError::socket("connection to the broker", address)(e.into());
        let connection = match connect(to) {
            Ok(connection) => connection,
            // Too many at once.
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::CONNREFUSED) => return start(to, address).map(|()| None),
            Err(e) => return Err(fail(e)),
        };
        check_peer(&connection, address)?;
        let mut descriptors = Vec::with_capacity(2);
        let answer = ask(&connection, Request::Take, until, |fd| descriptors.push(fd));
        match answer {
            Ok(Answer::Slot(slot)) => {
                let mut descriptors = descriptors.into_iter();
                let (Some(socket), vault) = (descriptors.next(), descriptors.next()) else {
                    return Err(fail(Errno::MFILE));
                };
                let pid = std::process::id();
                Ok(Some((
                    socket.into(),
                    Self { slot, vault, connection, pid, told: AtomicBool::new(false) },
                )))
            }
            Ok(Answer::Full(pids)) => {
                let holders = Sharing::new(&pids).holders.iter().map(|h| h.pid).collect();
                Err(PortError::NoSlot { address, holders: Holders(holders) })
            }
            // It is ending, or had too many at once.
            Err(Errno::CONNRESET | Errno::PIPE) => Ok(None),
            Err(Errno::TIMEDOUT) | Ok(_) => {
                Err(PortError::NoAnswer { address, broker: pid(&connection) })
            }
            Err(e) => Err(fail(e)),
        }
    }

    /// Readable where the broker has something to say, or is gone.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }

    /// Packets of several slots came as one run: the host must not gather them any more.
    pub(crate) fn mixed(&self) {
        if self.told.swap(true, Ordering::Relaxed) {
            return;
        }
        // Without a broker there is nobody who could do it.
        let _ = pass::send(self.fd(), &Request::Mixed.to_bytes(), &[]);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return;
        }
        drop(self.vault.take());
        // When the broker closes its side the slot is free, and the address too if it was the last.
        if rustix::net::shutdown(&self.connection, Shutdown::Write).is_ok() {
            let until = Instant::now() + FAREWELL;
            while hear(&self.connection, until, drop).is_ok() {}
        }
    }
}

fn connect(to: &SocketAddrUnix) -> Result<OwnedFd, Errno> {
    let socket = name::socket()?;
    rustix::net::connect(&socket, to)?;
    Ok(socket)
}

/// A name can be anyone's.
fn check_peer(connection: &OwnedFd, address: IpAddr) -> Result<(), PortError> {
    let (_, user) =
        sys::peer(connection.as_fd()).map_err(PortError::socket("SO_PEERCRED", address))?;
    if user != rustix::process::geteuid().as_raw() {
        return Err(PortError::OtherUser { address, user });
    }
    Ok(())
}

fn pid(connection: &OwnedFd) -> u32 {
    sys::peer(connection.as_fd()).map_or(0, |(pid, _)| pid)
}

fn ask(
    connection: &OwnedFd,
    request: Request,
    until: Instant,
    take: impl FnMut(OwnedFd),
) -> Result<Answer, Errno> {
    pass::send(connection.as_fd(), &request.to_bytes(), &[])?;
    hear(connection, until, take)
}

fn hear(
    connection: &OwnedFd,
    until: Instant,
    mut take: impl FnMut(OwnedFd),
) -> Result<Answer, Errno> {
    let mut bytes = [0; LONGEST];
    loop {
        match pass::recv(connection.as_fd(), &mut bytes, false, &mut take) {
            Ok(0) => return Err(Errno::CONNRESET),
            Ok(n) => return Answer::parse(&bytes[..n]).ok_or(Errno::BADMSG),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(Errno::TIMEDOUT);
                }
                let ms = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).max(1);
                // Whatever it says, the next call tells more.
                let _ = sys::wait_readable(connection.as_fd(), ms);
            }
            Err(e) => return Err(e),
        }
    }
}

/// Starts a broker, unless another process is about to: the name is one's only.
fn start(to: &SocketAddrUnix, address: IpAddr) -> Result<(), PortError> {
    let fail = |call| move |e: Errno| PortError::socket(call, address)(e.into());
    let listener = name::socket().map_err(fail("socket"))?;
    match rustix::net::bind(&listener, to) {
        Err(Errno::ADDRINUSE) => return Ok(()),
        other => other.map_err(fail("bind of the broker's name"))?,
    }
    rustix::net::listen(&listener, 128).map_err(fail("listen"))?;
    let sockets = launch::owned(open_group(address)?);
    let vault = launch::vault(&sockets).map_err(fail("keeping the sockets"))?;
    let parts = Parts { listener, sockets, vault };
    launch::launch(&parts).map_err(PortError::socket("starting the broker", address))?;
    tracing::debug!(%address, "broker started");
    Ok(())
}

fn open_group(address: IpAddr) -> Result<[Socket; super::SLOTS], PortError> {
    let until = Instant::now() + LEAVING;
    loop {
        match group::open(address) {
            Err(PortError::Taken(_)) if Instant::now() < until => sleep(PAUSE),
            other => return other,
        }
    }
}

/// Process numbers, in words.
#[derive(Debug)]
pub struct Holders(Vec<u32>);

impl std::fmt::Display for Holders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        /// As many as help.
        const SHOWN: usize = 5;
        let mut all = self.0.clone();
        all.sort_unstable();
        all.dedup();
        let shown: Vec<_> = all.iter().take(SHOWN).map(u32::to_string).collect();
        write!(f, "{}", shown.join(", "))?;
        match all.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
