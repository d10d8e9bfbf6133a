//! A bound port that takes requests.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use urxe_engine::QpKind;
use urxe_wire::cm::PortSpace;

use super::{Channel, Id, Incoming, What};
use crate::{Context, Error};

/// Requests that may wait for [`Listener::incoming`] and an answer.
const BACKLOG: usize = 128;

/// Takes requests for connections at a port, or questions for the QP of a datagram service.
///
/// What comes while the backlog is full is dropped, and asked again by its sender. Dropping the
/// listener refuses what waits; connections stay.
#[derive(Debug)]
pub struct Listener {
    id: Id,
    channel: Channel,
    local: SocketAddr,
}

impl Listener {
    /// Takes requests for connections to a TCP port; port 0 takes a free one.
    ///
    /// # Errors
    /// Where the address is not the device's or the port is taken.
    pub fn bind(context: &Context, to: SocketAddr) -> Result<Self, Error> {
        Self::with(context, to, PortSpace::Tcp, BACKLOG)
    }

    /// Tells who asks of the QP behind a UDP port: see [`Incoming::answer`].
    ///
    /// ```
    /// use std::thread;
    /// use urxe::cm::{Listener, Options, resolve};
    /// use urxe::{Config, Context, QKey, QpKind};
    ///
    /// let (a, b) = (Context::open(&Config::default())?, Context::open(&Config::default())?);
    /// let listener = Listener::bind_datagrams(&b, (b.address(), 7174).into())?;
    /// let to = listener.local_addr();
    /// let asking = thread::spawn(move || resolve(&a, to, &Options::default()));
    ///
    /// let (pd, cq) = (b.alloc_pd()?, b.create_cq(16)?);
    /// let qp = pd.qp(QpKind::Ud).cq(&cq).build()?;
    /// qp.ready(QKey(0x1234))?;
    /// listener.incoming()?.answer(&qp, b"")?;
    /// let remote = asking.join().unwrap()?;
    /// assert_eq!((remote.info.qpn, remote.info.qkey), (qp.qpn(), QKey(0x1234)));
    /// # Ok::<(), urxe::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::bind`].
    pub fn bind_datagrams(context: &Context, to: SocketAddr) -> Result<Self, Error> {
        Self::with(context, to, PortSpace::Udp, BACKLOG)
    }

    /// As [`Self::bind`], in any port space and with a backlog; 0 takes 1024.
    ///
    /// # Errors
    /// As [`Self::bind`].
    pub fn with(
        context: &Context,
        to: SocketAddr,
        space: PortSpace,
        backlog: usize,
    ) -> Result<Self, Error> {
        let channel = Channel::new()?;
        let kind = if space == PortSpace::Udp { QpKind::Ud } else { QpKind::Rc };
        let id = Id::new(context, &channel, space, kind)?;
        if to.port() != 0 {
            id.bind(to)?;
        }
        id.listen(backlog)?;
        let local = id.local_addr().unwrap_or(to);
        Ok(Self { id, channel, local })
    }

    /// Its address and port.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Waits for a request.
    ///
    /// # Errors
    /// Where waiting fails; [`Error::Forked`].
    pub fn incoming(&self) -> Result<Incoming, Error> {
        loop {
            if let Some(incoming) = self.next(None)? {
                return Ok(incoming);
            }
        }
    }

    /// Waits for a request, at most so long.
    ///
    /// # Errors
    /// As [`Self::incoming`].
    pub fn incoming_within(&self, timeout: Duration) -> Result<Option<Incoming>, Error> {
        self.next(Some(timeout))
    }

    fn next(&self, timeout: Option<Duration>) -> Result<Option<Incoming>, Error> {
        self.id.handle().live()?;
        let Some(event) = self.channel.wait_event(timeout)? else { return Ok(None) };
        // A listener has no other events.
        let What::ConnectRequest(id, info) = event.what else { return Ok(None) };
        let channel = Channel::new()?;
        id.migrate(&channel)?;
        Ok(Some(Incoming { id, channel, info: *info }))
    }

    /// A descriptor that is readable while a request waits.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.channel.fd()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}
