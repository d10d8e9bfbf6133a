//! A process's place on an address that it shares.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::{Shutdown, SocketAddrUnix};
use socket2::Socket;

use super::message::{Answer, Came, Request};
use super::talk::{self, Heard, PATIENCE, PAUSE};
use super::who::{Holders, Sharing};
use super::{SLOTS, name, start};
use crate::sys::{self, Epoll};
use crate::{Flow, PortError};

mod rejoin;

/// So long an address may be held by a process that has just ended, or a broker that is ending.
const LEAVING: Duration = Duration::from_millis(300);
/// So long a process that leaves waits until the broker has let go what was its.
const FAREWELL: Duration = Duration::from_secs(1);
/// So often at most it is looked whether the broker has said something: its packets are few.
const LOOK: Duration = Duration::from_millis(1);
/// Packets that wait, at most.
const WAITING: usize = 256;

/// A slot, as long as it lives.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) slot: u8,
    address: IpAddr,
    /// Keeps the group whole if the broker dies.
    vault: Option<OwnedFd>,
    /// Has the slot's name.
    lease: Option<OwnedFd>,
    line: Mutex<Line>,
    /// Whose it is: a child of it that lets it go says nothing to the broker.
    pid: u32,
    /// The broker was told of mixed runs.
    told: AtomicBool,
    opened: Instant,
    /// When it was looked last whether the broker has said something, ns.
    looked: AtomicU64,
    /// The broker is gone, and there shall be another: how long it is until that is tried again,
    /// ms; 0 while there is one.
    lost: AtomicU64,
    /// Packets wait that came before an answer.
    kept: AtomicBool,
}

/// The line to the broker.
#[derive(Debug)]
struct Line {
    /// The broker frees the slot when this closes. Where the broker is gone it is of use still: it
    /// shows others that the slot is somebody's.
    connection: OwnedFd,
    state: State,
    /// Packets that came before an answer.
    waiting: VecDeque<(Came, Vec<u8>)>,
    services: BTreeSet<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The broker is gone.
    Lost {
        since: Instant,
        /// When the next try is.
        again: Instant,
    },
    /// There will be none any more.
    Alone,
}

impl Seat {
    /// Takes a slot of `address`, and its socket, whose buffers are set to `buffer` bytes; starts a
    /// broker where there is none.
    pub(crate) fn take(address: IpAddr, buffer: usize) -> Result<(Socket, Self), PortError> {
        let start = Instant::now();
        let until = start + PATIENCE;
        let to = name::of(address)
            .map_err(|e| PortError::socket("the broker's name", address)(e.into()))?;
        loop {
            match Self::try_take(&to, address, until) {
                Ok(None) if Instant::now() > until => {
                    return Err(PortError::NoAnswer { address, broker: 0 });
                }
                Ok(None) => {}
                // By a process that ends, or by some that are about to have a broker again.
                Err(PortError::Taken(_))
                    if start.elapsed() < LEAVING
                        || (Instant::now() < until && has_orphans(address)) => {}
                Ok(Some((socket, seat))) => {
                    sys::set_buffers(&socket, buffer);
                    return Ok((socket, seat));
                }
                Err(e) => return Err(e),
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
        let connection = match talk::connect(to) {
            Ok(connection) => connection,
            // Too many at once.
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::CONNREFUSED) => return start::anew(to, address).map(|()| None),
            Err(e) => return Err(fail(e)),
        };
        talk::check_peer(&connection, address)?;
        let mut descriptors = Vec::with_capacity(2);
        let answer = talk::ask(&connection, Request::Take, until, |fd| descriptors.push(fd));
        match answer {
            Ok(Answer::Slot(slot, token)) => {
                let mut descriptors = descriptors.into_iter();
                let (Some(socket), vault) = (descriptors.next(), descriptors.next()) else {
                    return Err(fail(Errno::MFILE));
                };
                let lease = name::lease(address, slot, token).map_err(fail)?;
                Ok(Some((socket.into(), Self::new(slot, address, (vault, lease), connection))))
            }
            Ok(Answer::Failed(libc::ETOOMANYREFS)) => Err(PortError::TooManyInFlight { address }),
            Ok(Answer::Failed(errno)) => {
                let call = "the broker's passing of a socket";
                Err(PortError::socket(call, address)(Errno::from_raw_os_error(errno).into()))
            }
            Ok(Answer::Full(pids)) => {
                let holders = Sharing::new(&pids, 0).holders.iter().map(|h| h.pid).collect();
                Err(PortError::NoSlot { address, holders: Holders(holders) })
            }
            // It is ending, or had too many at once.
            Err(Errno::CONNRESET | Errno::PIPE) => Ok(None),
            Err(Errno::TIMEDOUT) | Ok(_) => {
                Err(PortError::NoAnswer { address, broker: talk::pid(&connection) })
            }
            Err(e) => Err(fail(e)),
        }
    }

    fn new(
        slot: u8,
        address: IpAddr,
        (vault, lease): (Option<OwnedFd>, OwnedFd),
        connection: OwnedFd,
    ) -> Self {
        if let Err(error) = name::show(connection.as_fd(), address, slot) {
            tracing::debug!(%error, slot, "another shows the slot to be its own");
        }
        let (waiting, services) = (VecDeque::new(), BTreeSet::new());
        Self {
            slot,
            address,
            vault,
            lease: Some(lease),
            line: Mutex::new(Line { connection, state: State::Open, waiting, services }),
            pid: std::process::id(),
            told: AtomicBool::new(false),
            opened: Instant::now(),
            looked: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            kept: AtomicBool::new(false),
        }
    }

    /// Lets `epoll` be readable when the broker has something to say, or is gone.
    pub(crate) fn watch(&self, epoll: &Epoll) -> std::io::Result<()> {
        epoll.add(self.line.lock().connection.as_fd())
    }

    /// Packets of several slots came as one run: the host must not gather them any more.
    pub(crate) fn mixed(&self) {
        // Without a broker there is nobody who could do it; the next one is told.
        if !self.told.load(Ordering::Relaxed)
            && let Some(line) = self.line.try_lock()
            && talk::say(&line.connection, Request::Mixed).is_ok()
        {
            self.told.store(true, Ordering::Relaxed);
        }
    }

    /// Serves a service, or no longer: the broker hands on the MADs that are for it.
    pub(crate) fn serve(&self, service: u64, on: bool) -> Result<(), PortError> {
        let line = &mut *self.line.lock();
        let request = if on { Request::Serve(service) } else { Request::Unserve(service) };
        let address = self.address;
        if line.state == State::Alone && on {
            return Err(PortError::NoBroker(address));
        }
        // What is said to no broker is said to the next one when there is one.
        if line.state == State::Open {
            let answer = line.ask(request);
            self.kept.store(!line.waiting.is_empty(), Ordering::Relaxed);
            match answer {
                Ok(Answer::Refused) => return Err(PortError::ServiceTaken { service, address }),
                Ok(_) | Err(Errno::CONNRESET | Errno::PIPE) => {}
                Err(_) => {
                    let broker = talk::pid(&line.connection);
                    return Err(PortError::NoAnswer { address, broker });
                }
            }
        }
        if on {
            line.services.insert(service);
        } else {
            line.services.remove(&service);
        }
        Ok(())
    }

    /// Gives what the broker has handed on since, and sees to it that there is a broker. Cheap
    /// where it is called often. `give` says whether it had room.
    pub(crate) fn attend(&self, epoll: &Epoll, mut give: impl FnMut(Flow, &[u8]) -> bool) -> usize {
        let now = u64::try_from(self.opened.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let since = now.saturating_sub(self.looked.load(Ordering::Relaxed));
        if u128::from(since) < LOOK.as_nanos() && !self.kept.load(Ordering::Relaxed) {
            return 0;
        }
        let Some(mut line) = self.line.try_lock() else { return 0 };
        self.looked.store(now, Ordering::Relaxed);
        if line.state == State::Open {
            line.take_in(WAITING);
        }
        let mut given = 0;
        while let Some((came, packet)) = line.waiting.front() {
            if !give(self.flow(came), packet) {
                break;
            }
            line.waiting.pop_front();
            given += 1;
        }
        if matches!(line.state, State::Lost { .. }) {
            if self.lost.load(Ordering::Relaxed) == 0 {
                // It would be readable for ever.
                let _ = epoll.remove(line.connection.as_fd());
            }
            self.rejoin(&mut line, epoll);
        }
        self.kept.store(!line.waiting.is_empty(), Ordering::Relaxed);
        given
    }

    /// When it wants to be attended to though its descriptor is not readable.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        if self.kept.load(Ordering::Relaxed) {
            return Some(Duration::ZERO);
        }
        let pause = self.lost.load(Ordering::Relaxed);
        (pause != 0).then(|| Duration::from_millis(pause))
    }

    fn flow(&self, came: &Came) -> Flow {
        Flow {
            src: came.from.ip(),
            dst: self.address,
            src_port: came.from.port(),
            traffic_class: came.traffic_class,
            hop_limit: came.hop_limit,
            flow_label: 0,
        }
    }
}

impl Line {
    /// Takes in what has been said, as long as fewer packets wait.
    fn take_in(&mut self, most: usize) {
        while self.waiting.len() < most {
            match talk::listen(&self.connection, drop) {
                Ok(Heard::Packet(came, packet)) => self.waiting.push_back((came, packet)),
                // To a question that nobody waits for any more.
                Ok(Heard::Answer(_)) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    let now = Instant::now();
                    self.state = State::Lost { since: now, again: now };
                    return;
                }
            }
        }
    }

    fn ask(&mut self, request: Request) -> Result<Answer, Errno> {
        ask(&self.connection, request, Instant::now() + PATIENCE, &mut self.waiting)
    }
}

/// Asks while packets may come.
fn ask(
    connection: &OwnedFd,
    request: Request,
    until: Instant,
    waiting: &mut VecDeque<(Came, Vec<u8>)>,
) -> Result<Answer, Errno> {
    talk::say(connection, request)?;
    loop {
        match talk::hear(connection, until, drop)? {
            Heard::Answer(answer) => return Ok(answer),
            Heard::Packet(came, packet) => waiting.push_back((came, packet)),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return;
        }
        drop((self.vault.take(), self.lease.take()));
        let line = self.line.get_mut();
        // When the broker closes its side the slot is free, and the address too if it was the last.
        if line.state == State::Open
            && rustix::net::shutdown(&line.connection, Shutdown::Write).is_ok()
        {
            let until = Instant::now() + FAREWELL;
            while talk::hear(&line.connection, until, drop).is_ok() {}
        }
    }
}

/// Whether there are processes that have slots of an address, whose broker is gone.
fn has_orphans(address: IpAddr) -> bool {
    (0..).take(SLOTS).any(|slot| name::is_shown(address, slot))
}

#[cfg(test)]
mod tests;
