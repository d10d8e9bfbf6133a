//! One end of a connection, each step its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use urxe_cm::{PathParams, State as CmState, Timing};
use urxe_engine::QpKind;
use urxe_wire::Psn;
use urxe_wire::cm::{PortSpace, SidrStatus};

use super::manager::Manager;
use super::state::{Entry, Outgoing, Role, State};
use super::{Channel, What};
use crate::handle::Handle;
use crate::{Context, Error};

/// Names an [`Id`]; none is used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdNumber(u64);

static NEXT: AtomicU64 = AtomicU64::new(1);

/// One end of a connection, or a listener (`struct rdma_cm_id`). What happens to it comes as
/// events on its channel. Dropping it ends what it is at: the peer is told, waiting events go.
///
/// ```
/// use urxe::cm::{Channel, ConnParam, Id, PortSpace, What};
/// use urxe::{Config, Context, QpKind, QpState, Qpn};
///
/// let (a, b) = (Context::open(&Config::default())?, Context::open(&Config::default())?);
/// let (to_a, to_b) = (Channel::new()?, Channel::new()?);
/// let server = Id::new(&b, &to_b, PortSpace::Tcp, QpKind::Rc)?;
/// server.bind((b.address(), 0).into())?;
/// server.listen(8)?;
///
/// let client = Id::new(&a, &to_a, PortSpace::Tcp, QpKind::Rc)?;
/// client.resolve_addr(None, server.local_addr().unwrap())?;
/// client.resolve_route()?;
/// let next = |channel: &Channel| channel.wait_event(None).map(|event| event.unwrap().what);
/// assert!(matches!(next(&to_a)?, What::AddrResolved));
/// assert!(matches!(next(&to_a)?, What::RouteResolved));
/// client.connect(&ConnParam { private_data: b"hello", ..ConnParam::new(Qpn::new(17)) })?;
///
/// let What::ConnectRequest(request, info) = next(&to_b)? else { panic!() };
/// assert!(info.private_data.starts_with(b"hello") && info.qpn == Qpn::new(17));
/// let (rtr, _) = request.qp_attr(QpState::Rtr)?; // for ibv_modify_qp of a QP, 18 here
/// assert_eq!((rtr.dest_qp, rtr.ah.dst), (Qpn::new(17), a.address()));
/// request.accept(&ConnParam::new(Qpn::new(18)))?;
///
/// let What::ConnectResponse(info) = next(&to_a)? else { panic!() };
/// assert_eq!(info.qpn, Qpn::new(18));
/// client.establish(&[])?;
/// assert!(matches!(next(&to_b)?, What::Established { .. }));
/// # Ok::<(), urxe::Error>(())
/// ```
#[derive(Debug)]
pub struct Id {
    handle: Arc<Handle>,
    number: IdNumber,
}

impl Id {
    /// An id without an address. What it connects are QPs of `kind`: RC, UC, XRC (`XrcInit` asks,
    /// `XrcTarget` is asked), or UD, for which it asks or tells of a service's QP.
    ///
    /// # Errors
    /// Where QP1 cannot be made, or the kind is none of these.
    pub fn new(
        context: &Context,
        channel: &Channel,
        space: PortSpace,
        kind: QpKind,
    ) -> Result<Self, Error> {
        if kind == QpKind::Gsi {
            return Err(Error::IdState { call: "Id::new", wanted: "a kind that programs connect" });
        }
        let handle = Arc::clone(&context.device);
        let device = handle.live()?;
        let path = PathParams { mtu: device.port.caps().mtu, ..PathParams::default() };
        let entry = Entry {
            channel: Arc::downgrade(&channel.inner),
            handle: Arc::downgrade(&handle),
            space,
            kind,
            local: None,
            bound: false,
            again: false,
            peer: None,
            path,
            timing: Timing::default(),
            psn: device.next_psn(),
            qpn: None,
            role: Role::Idle,
            agrees: false,
        };
        let manager = device.manager()?;
        let kept = Arc::clone(&handle);
        Ok(manager.with(device, |state, _, _| Self::enter(state, kept, entry)))
    }

    /// Adds an id to those that there are.
    pub(super) fn enter(state: &mut State, handle: Arc<Handle>, entry: Entry) -> Self {
        let number = IdNumber(NEXT.fetch_add(1, Ordering::Relaxed));
        state.ids.insert(number, entry);
        Self { handle, number }
    }

    pub(super) fn manager(&self) -> Result<&Manager, Error> {
        self.handle.live()?.manager()
    }

    pub(super) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    /// Runs `f` on the manager's state.
    pub(super) fn with<R>(
        &self,
        f: impl FnOnce(&mut State, Duration, &mut Outgoing) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.manager()?.with(self.handle.live()?, f)
    }

    /// From now on it agrees by itself when the peer ends the connection.
    pub(super) fn agree(&self) -> Result<(), Error> {
        self.edit(|entry| entry.agrees = true)
    }

    fn edit(&self, f: impl FnOnce(&mut Entry)) -> Result<(), Error> {
        self.with(|state, _, _| {
            f(state.entry_mut(self.number)?);
            Ok(())
        })
    }

    fn entry<R>(&self, f: impl FnOnce(&Entry) -> R) -> Option<R> {
        let look = |state: &State| state.ids.get(&self.number).map(f);
        self.manager().ok().and_then(|manager| manager.look(look))
    }

    /// How events name it.
    #[must_use]
    pub const fn number(&self) -> IdNumber {
        self.number
    }

    /// Our address and port, once it is bound; the address is unspecified if any will do.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.entry(|entry| entry.local).flatten()
    }

    /// The peer's address and port, once it is known.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.entry(|entry| entry.peer).flatten()
    }

    /// Where its connection stands, if there is one.
    #[must_use]
    pub fn state(&self) -> Option<CmState> {
        let look = |state: &State| match state.ids.get(&self.number)?.role {
            Role::Conn(conn) => state.cm.state(conn),
            _ => None,
        };
        self.manager().ok().and_then(|manager| manager.look(look))
    }

    /// Moves it, and the events of it that wait, to another channel.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn migrate(&self, to: &Channel) -> Result<(), Error> {
        let old = self.with(|state, _, _| {
            let entry = state.entry_mut(self.number)?;
            let old = entry.channel.upgrade();
            entry.channel = Arc::downgrade(&to.inner);
            // With the state locked, so that none comes before those that waited.
            let waiting = old.as_ref().map(|old| old.take_of(self.number)).unwrap_or_default();
            waiting.into_iter().for_each(|event| to.inner.push(event));
            Ok(old)
        })?;
        drop(old);
        Ok(())
    }

    /// Puts an event of the program's own on its channel.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn tell(&self, what: u64) -> Result<(), Error> {
        let undelivered = self.with(|state, _, _| Ok(state.tell(self.number, What::Told(what))))?;
        drop(undelivered);
        Ok(())
    }

    /// The path that a connection will ask for: MTU, traffic class, packet lifetime and so on.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn set_path(&self, path: PathParams) -> Result<(), Error> {
        self.edit(|entry| entry.path = path)
    }

    /// The path that a connection will ask for.
    #[must_use]
    pub fn path(&self) -> Option<PathParams> {
        self.entry(|entry| entry.path)
    }

    /// How long is waited for answers.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn set_timing(&self, timing: Timing) -> Result<(), Error> {
        self.edit(|entry| entry.timing = timing)
    }

    /// Whether [`Self::bind`] may take a port that another id of this device has.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn set_reuse(&self, reuse: bool) -> Result<(), Error> {
        self.edit(|entry| entry.again = reuse)
    }

    /// The PSN of the first request that our QP expects; one is chosen if none is set.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn set_psn(&self, psn: Psn) -> Result<(), Error> {
        self.edit(|entry| entry.psn = psn)
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        let Ok(device) = self.handle.live() else { return };
        let Some(manager) = device.cm.get() else { return };
        manager.stop_listening(device, self.number);
        let left = manager.with(device, |state, now, out| {
            let entry = state.ids.remove(&self.number)?;
            match entry.role {
                Role::Idle | Role::Listener(..) => {}
                Role::Conn(conn) => {
                    state.by_conn.remove(&conn);
                    // Where it has ended already nothing is left to do.
                    let _ = state.cm.abandon(now, conn, out);
                }
                Role::Asked(conn) => {
                    state.by_conn.remove(&conn);
                    let _ = state.cm.sidr_abandon(conn);
                }
                Role::Question(conn) => {
                    state.by_conn.remove(&conn);
                    let no = urxe_cm::SidrAnswer::no(SidrStatus::Rejected);
                    let _ = state.cm.sidr_answer(now, conn, &no, out);
                }
            }
            if let Some(local) = entry.local.filter(|_| entry.bound) {
                state.ports.free(entry.space, local.port());
            }
            let channel = entry.channel.upgrade()?;
            let events = channel.take_of(self.number);
            Some((channel, events))
        });
        drop(left);
    }
}
