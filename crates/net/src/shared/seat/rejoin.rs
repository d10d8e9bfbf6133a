//! The broker is gone: whoever of those who have slots binds its name first starts another, with
//! the sockets that all of them keep, and each claims the slot that it has.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::{Line, Seat, State};
use crate::PortError;
use crate::shared::message::{Answer, Request};
use crate::shared::talk::{self, PATIENCE};
use crate::shared::{name, start};
use crate::sys::Epoll;

/// So long one try waits for an answer: the process has packets to take in meanwhile.
const ONE_TRY: Duration = Duration::from_millis(100);

/// What one try came to.
enum Tried {
    /// The slot is known to the broker.
    Joined,
    /// Soon again.
    Later,
}

impl Seat {
    /// Tries once; gives up when it has been trying for long.
    pub(super) fn rejoin(&self, line: &mut Line, epoll: &Epoll) {
        let State::Lost(since) = line.state else { return };
        match self.try_rejoin(line, epoll) {
            Ok(Tried::Joined) => {
                line.state = State::Open;
                self.lost.store(false, Ordering::Relaxed);
            }
            Ok(Tried::Later) if since.elapsed() < PATIENCE => {}
            other => {
                let why =
                    other.err().map_or_else(|| "nobody answers".to_owned(), |e| e.to_string());
                tracing::warn!(
                    address = %self.address, slot = self.slot, why,
                    "the broker is gone and there is no other: no process can join any more"
                );
                line.state = State::Alone;
                self.lost.store(false, Ordering::Relaxed);
            }
        }
    }

    fn try_rejoin(&self, line: &mut Line, epoll: &Epoll) -> Result<Tried, PortError> {
        let (address, slot) = (self.address, self.slot);
        let fail = |e: Errno| PortError::socket("connection to the broker", address)(e.into());
        let to = name::of(address).map_err(fail)?;
        let connection = match (talk::connect(&to), &self.vault) {
            (Ok(connection), _) => connection,
            (Err(Errno::CONNREFUSED), Some(vault)) => {
                return start::again(&to, address, vault).map(|()| Tried::Later);
            }
            (Err(Errno::CONNREFUSED | Errno::AGAIN), _) => return Ok(Tried::Later),
            (Err(e), _) => return Err(fail(e)),
        };
        talk::check_peer(&connection, address)?;
        let until = Instant::now() + ONE_TRY;
        match talk::ask(&connection, Request::Claim(slot), until, drop) {
            Ok(Answer::Slot(claimed)) if claimed == slot => {}
            Err(Errno::CONNRESET | Errno::PIPE | Errno::TIMEDOUT) => return Ok(Tried::Later),
            other => return Err(fail(other.err().unwrap_or(Errno::BUSY))),
        }
        epoll.add(connection.as_fd()).map_err(PortError::socket("epoll", address))?;
        // The slot's name goes with the old connection; until the new one has it the broker knows.
        line.connection = connection;
        if let Err(error) = name::lease(line.connection.as_fd(), address, slot) {
            tracing::debug!(%error, slot, "the slot's name is somebody's");
        }
        for service in line.services.clone() {
            line.ask(Request::Serve(service)).map_err(fail)?;
        }
        Ok(Tried::Joined)
    }
}
