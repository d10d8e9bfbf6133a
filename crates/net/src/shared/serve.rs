//! The broker itself: one thread, one loop, no allocation; see [`super::launch`] for why.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SocketFlags;

use super::launch::Parts;
use super::mads::{Register, To};
use super::message::{ANSWER, Answer, CAME, Came, PACKET, Pids, Request, UNSEEN};
use super::{GSI_SLOT, SEATS, SLOTS, group, name, pass};
use crate::udp::receive_one;

/// Connections at once: a process each, and some that only ask.
const CONNECTIONS: usize = SEATS + 33;
/// A broker that nobody needs ends after so long; one that is no longer needed, at once.
const UNUSED: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
/// Packets to QP1 that are handed on before somebody else is heard.
const PACKETS: usize = 64;

struct Connection {
    socket: OwnedFd,
    pid: u32,
    slot: Option<u8>,
}

struct Broker {
    parts: Parts,
    connections: [Option<Connection>; CONNECTIONS],
    register: Register,
    /// Where the search for a free slot starts: what is on its way to a slot that was left must
    /// not meet its next holder.
    next: u8,
    own_pid: u32,
    /// Packets to QP1 that were for nobody.
    unrouted: u32,
}

/// Whether to go on.
type Go = bool;

/// Serves until nobody has a slot any more.
pub(super) fn serve(parts: Parts) {
    let own_pid = rustix::process::getpid().as_raw_nonzero().get().cast_unsigned();
    // Who asks sees this process behind the name, not the one that started it.
    let _ = rustix::net::listen(&parts.listener, 128);
    let connections = [const { None }; CONNECTIONS];
    let register = Register::new();
    let mut broker = Broker { parts, connections, register, next: 1, own_pid, unrouted: 0 };
    while broker.round() {}
    broker.end();
}

impl Broker {
    /// Waits for what comes, and answers it.
    fn round(&mut self) -> Go {
        let mut ready = [PollFlags::empty(); CONNECTIONS + 2];
        match self.wait(&mut ready) {
            Ok(0) => return self.has_seats(),
            Ok(_) => {}
            Err(Errno::INTR) => return true,
            Err(_) => return false,
        }
        if !ready[0].is_empty() {
            self.accept();
        }
        if !ready[1].is_empty() {
            self.hand_on();
        }
        for (index, ready) in ready[2..].iter().enumerate() {
            if !ready.is_empty() && !self.hear(index) {
                return false;
            }
        }
        true
    }

    fn wait(&self, ready: &mut [PollFlags; CONNECTIONS + 2]) -> Result<usize, Errno> {
        let mut all: [PollFd<'_>; CONNECTIONS + 2] = std::array::from_fn(|n| match n {
            0 => PollFd::new(&self.parts.listener, PollFlags::IN),
            1 => PollFd::new(self.socket(GSI_SLOT), PollFlags::IN),
            _ => match &self.connections[n - 2] {
                Some(connection) => PollFd::new(&connection.socket, PollFlags::IN),
                // Nothing: of this one no errors are to be expected.
                None => PollFd::new(&self.parts.listener, PollFlags::empty()),
            },
        });
        let timeout = if self.has_seats() { None } else { Some(&UNUSED) };
        let count = poll(&mut all, timeout)?;
        for (n, (ready, poll)) in ready.iter_mut().zip(&all).enumerate() {
            let is_used = n < 2 || self.connections[n - 2].is_some();
            *ready = if is_used { poll.revents() } else { PollFlags::empty() };
        }
        Ok(count)
    }

    fn socket(&self, slot: u8) -> &OwnedFd {
        &self.parts.sockets[usize::from(slot) % SLOTS]
    }

    fn has_seats(&self) -> bool {
        self.connections.iter().flatten().any(|c| c.slot.is_some())
    }

    fn holder(&self, slot: u8) -> Option<&Connection> {
        self.connections.iter().flatten().find(|c| c.slot == Some(slot))
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let Ok(socket) = rustix::net::accept_with(&self.parts.listener, flags) else {
            return;
        };
        // The name is known to all users of the host; only one has a right to the sockets.
        let Ok((pid, user)) = crate::sys::peer(socket.as_fd()) else { return };
        if user != rustix::process::geteuid().as_raw() {
            return;
        }
        let free = self.connections.iter().position(Option::is_none);
        // Who has no slot can ask again.
        let seatless = || {
            let slot = |c: &Option<Connection>| c.as_ref().is_some_and(|c| c.slot.is_none());
            self.connections.iter().position(slot)
        };
        if let Some(at) = free.or_else(seatless) {
            self.connections[at] = Some(Connection { socket, pid, slot: None });
        }
    }

    /// Hands packets to QP1 on to those whom they are for.
    fn hand_on(&mut self) {
        let mut bytes = [0; CAME + PACKET];
        for _ in 0..PACKETS {
            let gsi = self.socket(GSI_SLOT).as_fd();
            let Ok(Some(one)) = receive_one(gsi, &mut bytes[CAME..]) else { return };
            let Some(packet) = bytes.get(CAME..CAME + one.len) else {
                self.unrouted = self.unrouted.saturating_add(1);
                continue;
            };
            let slot = match To::of(packet, one.from.ip()) {
                To::Slot(slot) => Some(slot),
                To::Service(opening) => self.register.find(&opening),
                To::Nobody => None,
            };
            let (from, traffic_class, hop_limit) = (one.from, one.traffic_class, one.hop_limit);
            bytes[..CAME].copy_from_slice(&Came { from, traffic_class, hop_limit }.to_bytes());
            let message = &bytes[..CAME + one.len];
            // Who takes nothing in loses it, as at a full socket.
            let done = slot
                .and_then(|slot| self.holder(slot))
                .map(|connection| pass::send(connection.socket.as_fd(), message, &[]));
            if !matches!(done, Some(Ok(()))) {
                self.unrouted = self.unrouted.saturating_add(1);
            }
        }
    }

    /// Hears a connection.
    fn hear(&mut self, index: usize) -> Go {
        let Some(connection) = &self.connections[index] else { return true };
        let mut bytes = [0; 64];
        match pass::recv(connection.socket.as_fd(), &mut bytes, false, drop) {
            Err(Errno::AGAIN | Errno::INTR) => true,
            Ok(0) | Err(_) => self.part(index),
            Ok(n) => {
                let request = Request::parse(&bytes[..n]).ok_or(Errno::INVAL);
                match request.and_then(|request| self.obey(index, request)) {
                    Ok(()) => true,
                    Err(_) => self.part(index),
                }
            }
        }
    }

    fn obey(&mut self, index: usize, request: Request) -> Result<(), Errno> {
        let slot = self.connections[index].as_ref().and_then(|c| c.slot);
        match (request, slot) {
            (Request::Take, None) => self.give(index),
            (Request::Who, _) => self.answer(index, Answer::Who(self.pids(), self.unrouted), &[]),
            (Request::Mixed, Some(_)) => {
                for socket in &self.parts.sockets {
                    group::set_gathering(socket.as_fd(), false);
                }
                Ok(())
            }
            (Request::Claim(claimed), None) => self.admit(index, claimed),
            (Request::Serve(service), Some(slot)) => {
                let done = self.register.serve(service, slot);
                self.answer(index, if done { Answer::Done } else { Answer::Refused }, &[])
            }
            (Request::Unserve(service), Some(slot)) => {
                self.register.unserve(service, slot);
                self.answer(index, Answer::Done, &[])
            }
            // Only a process that is not ours would say so.
            _ => Err(Errno::INVAL),
        }
    }

    fn give(&mut self, index: usize) -> Result<(), Errno> {
        let Some(slot) = self.free_slot() else {
            return self.answer(index, Answer::Full(self.pids()), &[]);
        };
        let socket = self.socket(slot).as_fd();
        group::clear(socket);
        let token = self.parts.tokens[usize::from(slot)];
        let descriptors = [socket, self.parts.vault.as_fd()];
        if let Err(e) = self.answer(index, Answer::Slot(slot, token), &descriptors) {
            // The host lets a user have only so many descriptors on their way.
            return self.answer(index, Answer::Failed(e.raw_os_error()), &[]);
        }
        self.register.forget(slot);
        self.seat(index, slot);
        self.next = slot + 1;
        Ok(())
    }

    /// A process that has a slot from a broker before this one.
    fn admit(&mut self, index: usize, slot: u8) -> Result<(), Errno> {
        let is_seat = slot != GSI_SLOT && usize::from(slot) < SLOTS;
        if !is_seat || self.holder(slot).is_some() {
            return self.answer(index, Answer::Refused, &[]);
        }
        let token = self.parts.tokens[usize::from(slot)];
        self.answer(index, Answer::Slot(slot, token), &[])?;
        self.seat(index, slot);
        Ok(())
    }

    fn seat(&mut self, index: usize, slot: u8) {
        if let Some(connection) = &mut self.connections[index] {
            connection.slot = Some(slot);
        }
    }

    fn free_slot(&self) -> Option<u8> {
        // Its holder may not have come to this broker yet.
        let Parts { address, tokens, .. } = &self.parts;
        let leased = |slot| name::is_leased(*address, slot, tokens[usize::from(slot)]);
        let all = 1..=u8::try_from(SEATS).unwrap_or(63);
        let (before, behind) = (all.clone(), all);
        let behind = behind.filter(|&slot| slot >= self.next);
        behind.chain(before).find(|&slot| self.holder(slot).is_none() && !leased(slot))
    }

    fn answer(
        &self,
        index: usize,
        answer: Answer,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), Errno> {
        let Some(connection) = &self.connections[index] else { return Ok(()) };
        let mut bytes = [0; ANSWER];
        let len = answer.write(&mut bytes);
        pass::send(connection.socket.as_fd(), &bytes[..len], descriptors)
    }

    fn pids(&self) -> Pids {
        let mut pids = [0; SLOTS];
        pids[usize::from(GSI_SLOT)] = self.own_pid;
        for connection in self.connections.iter().flatten() {
            if let Some(slot) = connection.slot {
                pids[usize::from(slot)] = match connection.pid {
                    0 => UNSEEN,
                    pid => pid,
                };
            }
        }
        pids
    }

    /// A process has gone, or speaks nonsense.
    fn part(&mut self, index: usize) -> Go {
        let Some(connection) = self.connections[index].take() else { return true };
        let Some(slot) = connection.slot else { return true };
        if !self.has_seats() {
            // It sees its connection closed when all else is.
            self.connections[index] = Some(connection);
            return false;
        }
        self.register.forget(slot);
        group::clear(self.socket(slot).as_fd());
        true
    }

    /// Lets the address go, then the name, then those who wait for that.
    fn end(self) {
        let Self { parts, connections, .. } = self;
        let Parts { listener, sockets, vault, .. } = parts;
        drop((sockets, vault));
        drop(listener);
        drop(connections);
    }
}
