//! What a device's connection manager holds, under one lock.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Weak;

use urxe_cm::{Cm, ConnId, ListenerId, Mad, PathParams, Route, Sink, Timing};
use urxe_engine::QpKind;
use urxe_wire::cm::{PortSpace, ServiceId};
use urxe_wire::{Psn, Qpn};

use super::channel::Inner as ChannelInner;
use super::gsi::Gsi;
use super::ports::Ports;
use super::{Event, IdNumber, What};
use crate::Error;
use crate::handle::Handle;

#[derive(Debug)]
pub(super) struct State {
    pub(super) cm: Cm,
    pub(super) gsi: Gsi,
    pub(super) ids: HashMap<IdNumber, Entry>,
    pub(super) ports: Ports,
    /// Whose a connection or question of service is.
    pub(super) by_conn: HashMap<ConnId, IdNumber>,
    pub(super) by_listener: HashMap<ListenerId, IdNumber>,
}

/// What an id is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing, or no more.
    Idle,
    Listener(ListenerId, ServiceId),
    /// A connection, whoever asked.
    Conn(ConnId),
    /// A question of service of ours.
    Asked(ConnId),
    /// A peer's, which waits for our answer.
    Question(ConnId),
}

/// An id.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) channel: Weak<ChannelInner>,
    pub(super) handle: Weak<Handle>,
    pub(super) space: PortSpace,
    pub(super) kind: QpKind,
    pub(super) local: Option<SocketAddr>,
    /// Whether its port is counted as bound.
    pub(super) bound: bool,
    /// Whether it may bind a port that others have bound.
    pub(super) again: bool,
    pub(super) peer: Option<SocketAddr>,
    pub(super) path: PathParams,
    pub(super) timing: Timing,
    /// The PSN of the first request that its QP expects.
    pub(super) psn: Psn,
    /// The QP it was connected or accepted with.
    pub(super) qpn: Option<Qpn>,
    pub(super) role: Role,
    /// Agrees by itself when the peer ends the connection, as a TCP socket does.
    pub(super) agrees: bool,
}

/// MADs on their way out.
#[derive(Debug, Default)]
pub(super) struct Outgoing(pub(super) Vec<(Route, Mad)>);

impl Sink for Outgoing {
    fn mad(&mut self, route: &Route, mad: &Mad) {
        self.0.push((*route, *mad));
    }
}

impl State {
    pub(super) fn entry(&self, id: IdNumber) -> Result<&Entry, Error> {
        self.ids.get(&id).ok_or(Error::IdState { call: "this call", wanted: "an id that exists" })
    }

    pub(super) fn entry_mut(&mut self, id: IdNumber) -> Result<&mut Entry, Error> {
        let gone = Error::IdState { call: "this call", wanted: "an id that exists" };
        self.ids.get_mut(&id).ok_or(gone)
    }

    /// Gives an id what it is at; messages for it find it then.
    pub(super) fn begin(&mut self, id: IdNumber, role: Role) {
        match role {
            Role::Idle => {}
            Role::Listener(listener, _) => {
                self.by_listener.insert(listener, id);
            }
            Role::Conn(conn) | Role::Asked(conn) | Role::Question(conn) => {
                self.by_conn.insert(conn, id);
            }
        }
        if let Some(entry) = self.ids.get_mut(&id) {
            entry.role = role;
        }
    }

    /// A connection or question has ended, and its name may be another's later.
    pub(super) fn over(&mut self, conn: ConnId) -> Option<IdNumber> {
        let id = self.by_conn.remove(&conn)?;
        if let Some(entry) = self.ids.get_mut(&id) {
            entry.role = Role::Idle;
        }
        Some(id)
    }

    /// Tells an id; whom nobody listens to is not told. What is given back is to be dropped when
    /// nothing is locked.
    pub(super) fn tell(&self, id: IdNumber, what: What) -> Option<Undelivered> {
        let channel = self.ids.get(&id).and_then(|entry| entry.channel.upgrade());
        match channel {
            Some(channel) => {
                channel.push(Event { id, what });
                Some(Undelivered::Channel { _one: channel })
            }
            None => Some(Undelivered::What { _one: Box::new(what) }),
        }
    }
}

/// What must not be dropped while the manager is locked, for ids may be in it.
#[derive(Debug)]
pub(super) enum Undelivered {
    Channel { _one: std::sync::Arc<ChannelInner> },
    What { _one: Box<What> },
}
