//! The broker is gone: whoever of those who have slots binds its name first starts another, with
//! the sockets that all of them keep, and each claims the slot that it has.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::{Line, Seat, State, ask};
use crate::PortError;
use crate::shared::message::{Answer, Request};
use crate::shared::talk::{self, PATIENCE, PAUSE};
use crate::shared::{name, start};
use crate::sys::Epoll;
use crate::udp::interface::is_shortage;

/// So long one try waits for answers: the process has packets to take in meanwhile.
const ONE_TRY: Duration = Duration::from_millis(100);
/// Between two tries where the host has long been short of something.
const SLOWLY: Duration = Duration::from_secs(1);

/// What one try came to.
enum Tried {
    /// The slot is known to the broker.
    Joined,
    /// Soon again.
    Later,
    /// The host is short of something, which may pass.
    Short(PortError),
}

impl Seat {
    /// Tries once, if it is time to; gives up when it has been trying for long.
    pub(super) fn rejoin(&self, line: &mut Line, epoll: &Epoll) {
        let State::Lost { since, again } = line.state else { return };
        if Instant::now() < again {
            return;
        }
        let long = since.elapsed() >= PATIENCE;
        let mut pause = PAUSE;
        match self.try_rejoin(line, epoll) {
            Ok(Tried::Joined) => {
                line.state = State::Open;
                // Of runs that are mixed this broker has not heard.
                self.told.store(false, Ordering::Relaxed);
                pause = Duration::ZERO;
            }
            Ok(Tried::Short(error)) if long => {
                tracing::warn!(
                    address = %self.address, %error,
                    "the broker is gone, and another cannot be started yet: it is tried again"
                );
                pause = SLOWLY;
            }
            Ok(Tried::Later | Tried::Short(_)) if !long => {}
            other => {
                let why =
                    other.err().map_or_else(|| "nobody answers".to_owned(), |e| e.to_string());
                tracing::warn!(
                    address = %self.address, slot = self.slot, why,
                    "the broker is gone and there is no other: no process can join any more"
                );
                line.state = State::Alone;
                pause = Duration::ZERO;
            }
        }
        if let State::Lost { again, .. } = &mut line.state {
            *again = Instant::now() + pause;
        }
        let pause = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self.lost.store(pause, Ordering::Relaxed);
    }

    fn try_rejoin(&self, line: &mut Line, epoll: &Epoll) -> Result<Tried, PortError> {
        let (address, slot) = (self.address, self.slot);
        let fail = |e: Errno| PortError::socket("connection to the broker", address)(e.into());
        let to = name::of(address).map_err(fail)?;
        let connection = match (talk::connect(&to), &self.vault) {
            (Ok(connection), _) => connection,
            (Err(Errno::CONNREFUSED), Some(vault)) => {
                let started = start::again(&to, address, vault).map(|()| Tried::Later);
                return started.or_else(or_short);
            }
            (Err(e), _) => return later(e, fail),
        };
        talk::check_peer(&connection, address)?;
        let until = Instant::now() + ONE_TRY;
        match talk::ask(&connection, Request::Claim(slot), until, drop) {
            Ok(Answer::Slot(claimed, _)) if claimed == slot => {}
            Ok(_) => return Err(fail(Errno::BUSY)),
            Err(e) => return later(e, fail),
        }
        let mut lost = Vec::new();
        for &service in &line.services {
            match ask(&connection, Request::Serve(service), until, &mut line.waiting) {
                Ok(Answer::Refused) => lost.push(service),
                Ok(_) => {}
                Err(e) => return later(e, fail),
            }
        }
        // Last: what is in it is heard of even if nothing else is.
        if let Err(e) = epoll.add(connection.as_fd()) {
            return or_short(PortError::socket("epoll", address)(e));
        }
        for service in lost {
            line.services.remove(&service);
            tracing::warn!(
                %address, service,
                "another process has taken the service while there was no broker"
            );
        }
        line.connection = connection;
        if let Err(error) = name::show(line.connection.as_fd(), address, slot) {
            tracing::debug!(%error, slot, "another shows the slot to be its own");
        }
        Ok(Tried::Joined)
    }
}

/// What does not have to be so the next time: a broker that ends, or is slow.
fn later(e: Errno, fail: impl Fn(Errno) -> PortError) -> Result<Tried, PortError> {
    match e {
        Errno::CONNREFUSED | Errno::AGAIN | Errno::CONNRESET | Errno::PIPE | Errno::TIMEDOUT => {
            Ok(Tried::Later)
        }
        e => or_short(fail(e)),
    }
}

/// A shortage passes; all else stays.
fn or_short(error: PortError) -> Result<Tried, PortError> {
    if passes(&error) { Ok(Tried::Short(error)) } else { Err(error) }
}

pub(super) fn passes(error: &PortError) -> bool {
    matches!(error, PortError::Socket { source, .. } if is_shortage(source))
}
