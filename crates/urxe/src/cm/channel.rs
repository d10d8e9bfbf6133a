//! Events of connections on a descriptor that can be polled.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use urxe_cm::{Closed, How, Message};
use urxe_wire::cm::{RejReason, SidrStatus};

use super::{ConnInfo, Id, IdNumber, UdInfo};
use crate::Error;
use crate::events::{Wake, wait};

/// Something happened to an [`Id`].
#[derive(Debug)]
pub struct Event {
    /// To which; a request comes to the listener.
    pub id: IdNumber,
    /// What.
    pub what: What,
}

/// What happened (`enum rdma_cm_event_type`).
#[derive(Debug)]
pub enum What {
    /// [`Id::resolve_addr`] has found the way.
    AddrResolved,
    /// [`Id::resolve_route`] has.
    RouteResolved,
    /// A peer wants a connection, or asks for the QP of a service: accept or reject it through its
    /// own id, which has its events on the listener's channel until it is moved.
    ConnectRequest(Id, Box<ConnInfo>),
    /// The peer accepts: [`Id::establish`] when our QP is ready, or [`Id::reject`].
    ConnectResponse(Box<ConnInfo>),
    /// The connection that we accepted stands.
    Established {
        /// What told of it.
        how: How,
        /// The peer's, 224 bytes; zeros if no RTU told.
        private_data: Vec<u8>,
    },
    /// The answer to a question of service.
    Resolved(Box<UdInfo>),
    /// The peer refuses, or has given up.
    Rejected {
        /// Why.
        reason: RejReason,
        /// For some reasons, what would have been right.
        info: Vec<u8>,
        /// The peer's program's, 148 bytes: zeros follow what it gave.
        private_data: Vec<u8>,
        /// Whether a [`What::TimewaitExit`] follows.
        timewait: bool,
    },
    /// The peer does not tell of the service's QP.
    NoService {
        /// Why.
        status: SidrStatus,
        /// The peer's program's, 136 bytes.
        private_data: Vec<u8>,
    },
    /// No answer came, after all retries.
    Unreachable {
        /// What was not answered.
        message: Message,
    },
    /// The peer ends the connection: stop the QP and [`Id::disconnect`].
    DisconnectRequest {
        /// The peer's program's, 220 bytes.
        private_data: Vec<u8>,
    },
    /// The connection has ended.
    Disconnected(Closed),
    /// No packet of the ended connection is under way any more.
    TimewaitExit,
    /// What the program itself has put here, with [`Id::tell`].
    Told(u64),
}

/// Where events of [`Id`]s come. Clones are the same channel.
#[derive(Clone, Debug)]
pub struct Channel {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    events: Mutex<VecDeque<Event>>,
    wake: Wake,
}

impl Inner {
    pub(super) fn push(&self, event: Event) {
        let events = &mut *self.events.lock();
        if events.is_empty() {
            self.wake.ring();
        }
        events.push_back(event);
    }

    fn pop(&self) -> Option<Event> {
        let events = &mut *self.events.lock();
        let event = events.pop_front()?;
        if events.is_empty() {
            self.wake.hush();
        }
        Some(event)
    }

    /// Takes the events of an id out. They are to be dropped while nothing is locked: there may be
    /// ids in them.
    pub(super) fn take_of(&self, id: IdNumber) -> Vec<Event> {
        let events = &mut *self.events.lock();
        let (of, rest): (Vec<_>, Vec<_>) = events.drain(..).partition(|event| event.id == id);
        events.extend(rest);
        if events.is_empty() && !of.is_empty() {
            self.wake.hush();
        }
        of
    }
}

impl Channel {
    /// A channel without events.
    ///
    /// # Errors
    /// Where the host has no more descriptors.
    pub fn new() -> Result<Self, Error> {
        let inner = Inner { events: Mutex::default(), wake: Wake::new()? };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A descriptor that is readable while an event waits. Whether it has O_NONBLOCK is the
    /// program's to change; no call here depends on it.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.inner.wake.fd()
    }

    /// The oldest event, if one waits.
    #[must_use]
    pub fn take_event(&self) -> Option<Event> {
        self.inner.pop()
    }

    /// Waits for an event, at most so long if a time is given.
    ///
    /// # Errors
    /// Where waiting fails.
    pub fn wait_event(&self, timeout: Option<Duration>) -> Result<Option<Event>, Error> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            if let Some(event) = self.take_event() {
                return Ok(Some(event));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            wait(&[self.fd()], left)?;
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}
