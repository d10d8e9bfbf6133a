//! The connection manager itself: what it holds, and what every part of it uses.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use urxe_wire::cm::{CmMessage, CommId, IpHeader, RejReason, ServiceId};
use urxe_wire::{MadHeader, Qpn, Repr};

use crate::attrs::QpAttrs;
use crate::conn::Conn;
use crate::ids::Ids;
use crate::mad::pack;
use crate::sidrs::Sidrs;
use crate::table::Table;
use crate::{
    Config, ConnId, Count, Counters, Deadline, Drop, Error, Event, Listen, ListenerId, Mad,
    Message, Route, Sink, State, Stats,
};

mod active;
mod close;
mod passive;
mod receive;
mod refuse;
mod sidr;
mod wait;

/// One device's connection manager.
///
/// All times are durations since an epoch of the caller's choice and must not go backwards.
///
/// ```
/// use std::time::Duration;
/// use urxe_cm::{Cm, Config, Connect, Event, Listen, Mad, Route};
/// use urxe_wire::{Psn, Qpn, cm::PortSpace};
///
/// let now = Duration::ZERO;
/// let (mut ann, mut bob) = (Cm::new(Config::new(1, 7)), Cm::new(Config::new(2, 8)));
/// bob.listen(&Listen::port(PortSpace::Tcp, 7174, 8))?;
///
/// // What ann sends arrives at bob, and the other way round.
/// let mut wire: Vec<(Route, Mad)> = Vec::new();
/// let mut out = |route: &Route, mad: &Mad| {
///     wire.push((Route::new(route.remote, route.local), *mad));
/// };
/// let (from, to) = ("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:7174".parse().unwrap());
/// let want = Connect::ip(PortSpace::Tcp, from, to, Qpn::new(17), Psn::new(100))?;
/// let id = ann.connect(now, &want, &mut out)?;
/// let (route, req) = wire.pop().unwrap();
///
/// let mut out = |route: &Route, mad: &Mad| {
///     wire.push((Route::new(route.remote, route.local), *mad));
/// };
/// bob.receive(now, &route, &req, &mut out);
/// let Some(Event::ConnectRequest(request)) = bob.poll_event() else { panic!() };
/// bob.accept(now, request.id, &request.accept(Qpn::new(18), Psn::new(200)), &mut out)?;
/// let (route, rep) = wire.pop().unwrap();
///
/// ann.receive(now, &route, &rep, &mut |_: &Route, _: &Mad| ());
/// assert!(matches!(ann.poll_event(), Some(Event::ConnectResponse(_))));
/// let attrs = ann.qp_attrs(id)?;
/// assert_eq!((attrs.rtr.dest_qpn, attrs.rts.sq_psn), (Qpn::new(18), Psn::new(200)));
/// # Ok::<(), urxe_cm::Error>(())
/// ```
#[derive(Debug)]
pub struct Cm {
    config: Config,
    ids: Ids,
    table: Table,
    sidrs: Sidrs,
    listeners: BTreeMap<ListenerId, Listener>,
    services: BTreeMap<(ServiceId, Option<IpAddr>), ListenerId>,
    next_listener: u32,
    events: VecDeque<Event>,
    counters: Counters,
}

#[derive(Debug)]
struct Listener {
    what: Listen,
    /// Requests that wait for the owner's answer.
    waiting: usize,
}

impl Cm {
    /// A manager without connections.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            ids: Ids::new(config.slot, config.seed),
            table: Table::default(),
            sidrs: Sidrs::default(),
            listeners: BTreeMap::new(),
            services: BTreeMap::new(),
            next_listener: 0,
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// What it was told of the device.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Takes requests for a service from now on.
    ///
    /// # Errors
    /// Where something listens there already, the backlog is 0 or there are too many listeners.
    pub fn listen(&mut self, what: &Listen) -> Result<ListenerId, Error> {
        if what.backlog == 0 {
            let (field, wanted) = ("backlog", "1 or more");
            return Err(Error::Parameter { field, got: 0, wanted });
        }
        let service = (what.service_id, what.address);
        if self.services.contains_key(&service) {
            return Err(Error::ServiceInUse(what.service_id));
        }
        full("listeners", self.listeners.len(), self.config.limits.listeners)?;
        while self.listeners.contains_key(&ListenerId(self.next_listener)) {
            self.next_listener = self.next_listener.wrapping_add(1);
        }
        let id = ListenerId(self.next_listener);
        self.next_listener = self.next_listener.wrapping_add(1);
        self.listeners.insert(id, Listener { what: *what, waiting: 0 });
        self.services.insert(service, id);
        Ok(id)
    }

    /// Takes no more requests; those that wait for an answer are refused. Connections stay.
    ///
    /// # Errors
    /// Where there is no such listener.
    pub fn unlisten(
        &mut self,
        now: Duration,
        id: ListenerId,
        out: &mut dyn Sink,
    ) -> Result<(), Error> {
        let Some(listener) = self.listeners.get(&id) else { return Err(Error::NoListener(id)) };
        self.services.remove(&(listener.what.service_id, listener.what.address));
        for conn in self.table.undecided(id) {
            self.refuse(now, conn, RejReason::ConsumerDefined, &[], &[], out);
        }
        for sidr in self.sidrs.undecided(id) {
            self.refuse_sidr(now, sidr, out);
        }
        self.listeners.remove(&id);
        Ok(())
    }

    /// What happened next, if anything did.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Self::expire`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Deadline> {
        let deadlines = [self.table.next(), self.sidrs.next()];
        deadlines.into_iter().flatten().min_by_key(|deadline| deadline.at)
    }

    /// Where a connection stands, if it exists.
    #[must_use]
    pub fn state(&self, id: ConnId) -> Option<State> {
        self.table.get(id).map(|conn| conn.state)
    }

    /// The attributes of a connection's QP, as far as agreed; on the passive side with the PSN that
    /// it was accepted with (before that, [`Self::attrs_for`] gives them).
    ///
    /// # Errors
    /// Where there is no such connection, or its peer's QP is not known.
    pub fn qp_attrs(&self, id: ConnId) -> Result<QpAttrs, Error> {
        let conn = self.conn(id)?;
        let wanted = "a peer whose QP is known, and no timewait";
        let qpn = conn.keys.remote_qpn;
        let qpn = qpn.ok_or_else(|| conn.wrong_state(id, "qp_attrs", wanted))?;
        Ok(conn.agreed.attrs(qpn))
    }

    /// What is counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How much is kept.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats {
            listeners: self.listeners.len(),
            backlog: self.listeners.values().map(|listener| listener.waiting).sum(),
            events: self.events.len(),
            ..Stats::default()
        };
        self.table.count(&mut stats);
        self.sidrs.count(&mut stats);
        stats
    }

    fn conn(&self, id: CommId) -> Result<&Conn, Error> {
        let conn = self.table.get(id).filter(|conn| conn.state != State::Refused);
        conn.ok_or(Error::NoConnection(id))
    }

    /// The listener of a service at one of our addresses; one of just this address goes first.
    fn listener(&self, service: ServiceId, local: IpAddr) -> Option<ListenerId> {
        let at = |address| self.services.get(&(service, address)).copied();
        at(Some(local)).or_else(|| at(None))
    }

    /// An id that nothing has.
    fn new_id(&mut self) -> CommId {
        loop {
            let id = self.ids.next();
            if !self.table.contains(id) && self.sidrs.get(id).is_none() {
                return id;
            }
        }
    }

    /// Whether one more connection may be.
    fn room(&self) -> Result<(), Error> {
        full("connections", self.table.len(), self.config.limits.connections)
    }

    /// Whether our QP may begin a connection.
    fn check_qpn(&self, qpn: Qpn) -> Result<(), Error> {
        if !is_program_qpn(qpn) {
            let (field, got) = ("QPN", qpn.value().into());
            return Err(Error::Parameter { field, got, wanted: "0x2 to 0xfffffe" });
        }
        match self.table.with_local_qpn(qpn) {
            Some(of) => Err(Error::QpnInUse { qpn, of }),
            None => Ok(()),
        }
    }

    fn send(&mut self, route: &Route, mad: &Mad, out: &mut dyn Sink) {
        self.counters.add(Count::Sent);
        out.mad(route, mad);
    }

    /// Answers a message without keeping anything.
    fn answer(
        &mut self,
        route: &Route,
        to: &MadHeader,
        message: impl Into<CmMessage>,
        out: &mut dyn Sink,
    ) {
        let mad = pack(&message.into(), to.transaction_id, 0);
        self.send(route, &mad, out);
    }

    /// Sends again what a connection sent last; a duplicate asked for it.
    fn answer_again(&mut self, id: CommId, out: &mut dyn Sink) {
        let Some(conn) = self.table.get(id) else { return };
        let route = conn.route;
        let Some(mad) = conn.last.clone() else { return };
        self.counters.add(Count::AnsweredAgain);
        self.send(&route, &mad, out);
    }

    /// Keeps what was sent, to be sent again.
    fn keep(&mut self, id: CommId, mad: Option<Box<Mad>>) {
        if let Some(conn) = self.table.get_mut(id) {
            conn.last = mad;
        }
    }

    /// The connection that a message is for, if its sender is the peer of it.
    fn find(&self, route: &Route, ours: CommId, theirs: CommId) -> Result<CommId, Drop> {
        let conn = self.table.get(ours).ok_or(Drop::UnknownId)?;
        if !conn.route.same_ends(route) {
            return Err(Drop::WrongAddress);
        }
        if conn.keys.remote_id != Some(theirs) {
            return Err(Drop::WrongPeer);
        }
        Ok(ours)
    }

    /// Moves a connection to a state. Every change of state goes through here or [`Self::end`].
    fn to(&mut self, id: CommId, state: State) {
        self.decided(id);
        self.table.to(id, state);
        if let Some(conn) = self.table.get_mut(id) {
            conn.told_to_wait = false;
        }
    }

    /// Forgets a connection.
    fn end(&mut self, id: CommId) {
        self.decided(id);
        self.table.remove(id);
    }

    /// A request that leaves its first state no longer counts against the backlog.
    fn decided(&mut self, id: CommId) {
        let Some(conn) = self.table.get(id) else { return };
        if conn.state == State::ReqReceived
            && let Some(listener) = conn.listener.and_then(|id| self.listeners.get_mut(&id))
        {
            listener.waiting -= 1;
        }
    }

    /// Keeps a connection, which is over, until its packets are. `last` answers a duplicate DREQ.
    /// Gives whether there is a QPN to keep.
    fn timewait(&mut self, now: Duration, id: CommId, last: Option<Box<Mad>>) -> bool {
        let Some(conn) = self.table.get_mut(id) else { return false };
        if conn.keys.local_qpn.is_none() {
            self.end(id);
            return false;
        }
        conn.last = last;
        let until = now.saturating_add(conn.timewait());
        self.to(id, State::Timewait);
        self.table.rekey(id, |keys| (keys.remote_qpn, keys.deadline) = (None, Some(until)));
        true
    }

    fn dropped(&mut self, why: Drop, route: &Route, what: &'static str) {
        self.counters.dropped(why);
        tracing::debug!(why = why.name(), from = %route.remote, message = what, "dropped");
    }
}

/// A QPN that a program's QP can have.
fn is_program_qpn(qpn: Qpn) -> bool {
    qpn > Qpn::GSI && qpn != Qpn::MULTICAST
}

fn full(what: &'static str, have: usize, limit: usize) -> Result<(), Error> {
    if have < limit { Ok(()) } else { Err(Error::Full { what, limit }) }
}

/// Private data in its field.
fn data<const N: usize>(message: Message, data: &[u8]) -> Result<[u8; N], Error> {
    field(message, "private data", data)
}

fn field<const N: usize>(
    message: Message,
    what: &'static str,
    data: &[u8],
) -> Result<[u8; N], Error> {
    let mut out = [0; N];
    let Some(front) = out.get_mut(..data.len()) else {
        return Err(Error::TooLong { message, what, len: data.len(), room: N });
    };
    front.copy_from_slice(data);
    Ok(out)
}

/// Private data behind an IP header, if there is one.
fn data_after<const N: usize>(
    message: Message,
    ip: Option<&IpHeader>,
    bytes: &[u8],
) -> Result<[u8; N], Error> {
    let Some(ip) = ip else { return data(message, bytes) };
    ip.with_data(bytes).map_err(|_| {
        let room = N - IpHeader::LEN;
        Error::TooLong { message, what: "private data", len: bytes.len(), room }
    })
}
