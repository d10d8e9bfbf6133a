//! All connections, and the ways to find one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use urxe_wire::Qpn;
use urxe_wire::cm::CommId;

use crate::conn::{Conn, Keys};
use crate::{Deadline, ListenerId, State};

/// How much a [`crate::Cm`] keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// Connections that one side or both have yet to agree to.
    pub connecting: usize,
    /// Established connections.
    pub established: usize,
    /// Connections that are being ended.
    pub closing: usize,
    /// Ended connections whose QPN is not free yet.
    pub timewait: usize,
    /// Refusals and answers that are kept for duplicates of their question.
    pub remembered: usize,
    /// Questions of service that wait for an answer.
    pub sidr: usize,
    /// Listeners.
    pub listeners: usize,
    /// Requests that count against a backlog.
    pub backlog: usize,
    /// Events that wait to be polled.
    pub events: usize,
}

impl Stats {
    /// Whether nothing is kept, listeners aside.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        *self == Self { listeners: self.listeners, ..Self::default() }
    }
}

/// Connections by their id, and by what messages and QPs say of them.
#[derive(Debug, Default)]
pub(crate) struct Table {
    conns: BTreeMap<CommId, Conn>,
    by_remote_id: BTreeMap<(IpAddr, CommId), CommId>,
    by_remote_qpn: BTreeMap<(IpAddr, Qpn), CommId>,
    by_local_qpn: BTreeMap<Qpn, CommId>,
    timers: BTreeSet<(Duration, CommId)>,
    refused: usize,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.conns.len()
    }

    pub(crate) const fn refused(&self) -> usize {
        self.refused
    }

    pub(crate) fn get(&self, id: CommId) -> Option<&Conn> {
        self.conns.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: CommId) -> Option<&mut Conn> {
        self.conns.get_mut(&id)
    }

    pub(crate) fn contains(&self, id: CommId) -> bool {
        self.conns.contains_key(&id)
    }

    pub(crate) fn with_remote_id(&self, address: IpAddr, id: CommId) -> Option<CommId> {
        self.by_remote_id.get(&(address, id)).copied()
    }

    pub(crate) fn with_remote_qpn(&self, address: IpAddr, qpn: Qpn) -> Option<CommId> {
        self.by_remote_qpn.get(&(address, qpn)).copied()
    }

    pub(crate) fn with_local_qpn(&self, qpn: Qpn) -> Option<CommId> {
        self.by_local_qpn.get(&qpn).copied()
    }

    /// Adds a connection, found by its keys. None of them is another's.
    pub(crate) fn insert(&mut self, id: CommId, mut conn: Conn) {
        let keys = std::mem::take(&mut conn.keys);
        self.conns.insert(id, conn);
        self.index(id, keys);
    }

    /// Changes what a connection is found by.
    pub(crate) fn rekey(&mut self, id: CommId, change: impl FnOnce(&mut Keys)) {
        let Some(conn) = self.conns.get(&id) else { return };
        let mut keys = conn.keys;
        change(&mut keys);
        self.unindex(id);
        self.index(id, keys);
    }

    /// Sets when something is to be done; takes the place of the time there was.
    pub(crate) fn at(&mut self, id: CommId, deadline: Option<Duration>) {
        self.rekey(id, |keys| keys.deadline = deadline);
    }

    /// Moves a connection to a state.
    pub(crate) fn to(&mut self, id: CommId, state: State) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        self.refused -= usize::from(conn.state == State::Refused);
        self.refused += usize::from(state == State::Refused);
        conn.state = state;
    }

    pub(crate) fn remove(&mut self, id: CommId) -> Option<Conn> {
        self.unindex(id);
        let conn = self.conns.remove(&id)?;
        self.refused -= usize::from(conn.state == State::Refused);
        Some(conn)
    }

    /// The next deadline.
    pub(crate) fn next(&self) -> Option<Deadline> {
        let &(at, id) = self.timers.first()?;
        let why = self.conns.get(&id)?.why();
        Some(Deadline { at, id, why })
    }

    /// A connection whose deadline has come; it has none then.
    pub(crate) fn expired(&mut self, now: Duration) -> Option<CommId> {
        let &(at, id) = self.timers.first()?;
        if at > now {
            return None;
        }
        self.at(id, None);
        Some(id)
    }

    /// Those of a listener that wait for the owner's decision.
    pub(crate) fn undecided(&self, listener: ListenerId) -> Vec<CommId> {
        let of = |conn: &Conn| conn.state == State::ReqReceived && conn.listener == Some(listener);
        self.conns.iter().filter(|(_, conn)| of(conn)).map(|(&id, _)| id).collect()
    }

    pub(crate) fn count(&self, stats: &mut Stats) {
        for conn in self.conns.values() {
            match conn.state {
                State::ReqSent | State::ReqReceived | State::RepReceived | State::RepSent => {
                    stats.connecting += 1;
                }
                State::Established => stats.established += 1,
                State::DreqSent | State::DreqReceived => stats.closing += 1,
                State::Timewait => stats.timewait += 1,
                State::Refused => stats.remembered += 1,
            }
        }
    }

    fn index(&mut self, id: CommId, keys: Keys) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let remote = conn.route.remote;
        conn.keys = keys;
        if let Some(remote_id) = keys.remote_id {
            self.by_remote_id.entry((remote, remote_id)).or_insert(id);
        }
        if let Some(qpn) = keys.remote_qpn {
            self.by_remote_qpn.entry((remote, qpn)).or_insert(id);
        }
        if let Some(qpn) = keys.local_qpn {
            self.by_local_qpn.entry(qpn).or_insert(id);
        }
        if let Some(at) = keys.deadline {
            self.timers.insert((at, id));
        }
    }

    fn unindex(&mut self, id: CommId) {
        let Some(conn) = self.conns.get(&id) else { return };
        let (remote, keys) = (conn.route.remote, conn.keys);
        if let Some(remote_id) = keys.remote_id {
            drop_own(&mut self.by_remote_id, &(remote, remote_id), id);
        }
        if let Some(qpn) = keys.remote_qpn {
            drop_own(&mut self.by_remote_qpn, &(remote, qpn), id);
        }
        if let Some(qpn) = keys.local_qpn {
            drop_own(&mut self.by_local_qpn, &qpn, id);
        }
        if let Some(at) = keys.deadline {
            self.timers.remove(&(at, id));
        }
    }
}

/// Takes an entry out that is `id`'s own.
fn drop_own<K: Ord>(map: &mut BTreeMap<K, CommId>, key: &K, id: CommId) {
    if map.get(key) == Some(&id) {
        map.remove(key);
    }
}
