//! A connected QP and the connection it is in.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use urxe_cm::Closed;
use urxe_wire::cm::RejReason;

use super::attr::{Upto, adopt};
use super::{Channel, ConnInfo, Id, Options, What};
use crate::events::wait;
use crate::{Context, Error, Qp};

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The peer ended it, with 220 bytes of its program's: zeros follow what it gave.
    ByPeer(Vec<u8>),
    /// We did, or the peer gave up.
    Closed(Closed),
}

/// A connection whose QP is in RTS.
///
/// When the peer ends it the QP goes to ERR, what waits in it completes as flushed, and the
/// descriptor of [`Self::fd`] is readable. Dropping it does the same and tells the peer: wait for
/// what was sent before.
#[derive(Debug)]
pub struct Connection {
    // In this order it is let go: the peer is told while the QP is there.
    id: Id,
    channel: Channel,
    qp: Qp,
    info: ConnInfo,
    ending: Mutex<Option<Ending>>,
}

impl Connection {
    pub(super) fn new(id: Id, channel: Channel, qp: Qp, info: ConnInfo) -> Self {
        Self { id, channel, qp, info, ending: Mutex::default() }
    }

    /// Connects a QP in RESET or INIT with one of who listens at `to`; it is in RTS when this
    /// returns.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Unreachable`] after all retries (77 s if `options.timing` is
    /// not set), and where an option is out of range or the QP in another state.
    pub fn connect(
        context: &Context,
        to: SocketAddr,
        qp: Qp,
        options: &Options<'_>,
    ) -> Result<Self, Error> {
        let channel = Channel::new()?;
        let id = Id::new(context, &channel, options.space, qp.query()?.kind)?;
        qp.goes_with(id.handle(), qp.query()?.kind)?;
        options.set(&id)?;
        id.agree()?;
        id.resolve_addr(None, to)?;
        id.connect(&options.param(qp.qpn(), qp.has_srq()))?;
        loop {
            let Some(event) = channel.wait_event(None)? else { continue };
            match event.what {
                What::ConnectResponse(info) => {
                    if let Err(error) = ready(&qp, &id) {
                        return Err(refuse(&id, &channel, to, error));
                    }
                    return Ok(Self::new(id, channel, qp, *info));
                }
                other => failed(Some(to), other)?,
            }
        }
    }

    /// Its QP.
    #[must_use]
    pub const fn qp(&self) -> &Qp {
        &self.qp
    }

    /// What the peer said of itself, its private data among it.
    #[must_use]
    pub const fn info(&self) -> &ConnInfo {
        &self.info
    }

    /// Our address and port.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.id.local_addr()
    }

    /// The peer's address and port.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.id.peer_addr()
    }

    /// A descriptor that is readable from the connection's end on.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.channel.fd()
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn closed(&self) -> Result<Option<Ending>, Error> {
        self.closed_within(Duration::ZERO)
    }

    /// Waits until it ends.
    ///
    /// # Errors
    /// Where waiting fails; [`Error::Forked`].
    pub fn wait_closed(&self) -> Result<Ending, Error> {
        loop {
            if let Some(ending) = self.closed_within(Duration::from_secs(3600))? {
                return Ok(ending);
            }
        }
    }

    /// Waits until it ends, at most so long.
    ///
    /// # Errors
    /// As [`Self::wait_closed`].
    pub fn closed_within(&self, timeout: Duration) -> Result<Option<Ending>, Error> {
        self.id.handle().live()?;
        let until = Instant::now().checked_add(timeout);
        loop {
            if let Some(ending) = self.look()? {
                return Ok(Some(ending));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            wait(&[self.fd()], left)?;
        }
    }

    /// Takes in what has happened.
    fn look(&self) -> Result<Option<Ending>, Error> {
        let ending = &mut *self.ending.lock();
        while ending.is_none() {
            let Some(event) = self.channel.take_event() else { break };
            *ending = match event.what {
                What::DisconnectRequest { private_data } => Some(Ending::ByPeer(private_data)),
                What::Disconnected(how) => Some(Ending::Closed(how)),
                What::Rejected { reason, .. } => Some(Ending::Closed(Closed::Rejected(reason))),
                _ => None,
            };
            if ending.is_some() {
                // Whoever waits for the descriptor too shall see it.
                self.id.tell(0)?;
            }
        }
        Ok(ending.clone())
    }

    /// Ends it, and waits for the peer's agreement: what was posted and has not completed is
    /// flushed.
    ///
    /// # Errors
    /// [`Error::Forked`]. That the peer does not answer is no error.
    pub fn disconnect(&self) -> Result<Ending, Error> {
        self.disconnect_with(&[])
    }

    /// As [`Self::disconnect`], with up to 220 bytes for the peer's program.
    ///
    /// # Errors
    /// Where private data is too long.
    pub fn disconnect_with(&self, private_data: &[u8]) -> Result<Ending, Error> {
        if let Some(ending) = self.closed()? {
            return Ok(ending);
        }
        self.qp.fail()?;
        if let Err(error) = self.id.disconnect(private_data) {
            // Unless it has ended meanwhile, and we were about to be told.
            return self.closed()?.ok_or(error);
        }
        self.wait_closed()
    }

    /// Its end as an [`Id`].
    #[must_use]
    pub const fn id(&self) -> &Id {
        &self.id
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // In a child of the process it is the parent's.
        let _ = self.qp.fail();
    }
}

fn ready(qp: &Qp, id: &Id) -> Result<(), Error> {
    adopt(qp, id, Upto::Rts)?;
    id.establish(&[])
}

/// Our QP was not made ready: because the peer gave up meanwhile, or by an error of ours, of which
/// the peer is told.
fn refuse(id: &Id, channel: &Channel, peer: SocketAddr, error: Error) -> Error {
    while let Some(event) = channel.take_event() {
        if let Err(ended) = failed(Some(peer), event.what) {
            return ended;
        }
    }
    let _ = id.reject(RejReason::ConsumerDefined, &[]);
    error
}

/// Whether an event tells that there will be no connection.
pub(super) fn failed(peer: Option<SocketAddr>, what: What) -> Result<(), Error> {
    match what {
        What::Rejected { reason, private_data, .. } => {
            Err(Error::Refused { peer, reason, private_data })
        }
        What::NoService { status, private_data } => {
            Err(Error::NoService { peer, status, private_data })
        }
        What::Unreachable { message } => Err(Error::Unreachable { peer, message }),
        What::Disconnected(how) => Err(Error::Ended { peer, how }),
        _ => Ok(()),
    }
}
