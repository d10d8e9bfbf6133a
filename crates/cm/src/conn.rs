//! One connection, or an attempt at one.

use std::fmt;
use std::time::Duration;

use urxe_wire::Qpn;
use urxe_wire::cm::{CommId, Rej, RejMessage, RejReason, Req, ServiceId};

use crate::attrs::Agreed;
use crate::{Error, ListenerId, Mad, Message, Route, Why};

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Active: the REQ waits for its answer.
    ReqSent,
    /// Passive: the owner has not decided yet.
    ReqReceived,
    /// Active: the owner has not made its QP ready yet.
    RepReceived,
    /// Passive: the REP waits for an RTU, or for data.
    RepSent,
    /// Both sides may send.
    Established,
    /// The DREQ waits for its answer.
    DreqSent,
    /// The owner has not stopped its QP yet.
    DreqReceived,
    /// Ended; old packets may be under way.
    Timewait,
    /// Refused; what said so is kept for duplicates of the question.
    Refused,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReqSent => "REQ sent",
            Self::ReqReceived => "REQ received",
            Self::RepReceived => "REP received",
            Self::RepSent => "REP sent",
            Self::Established => "established",
            Self::DreqSent => "DREQ sent",
            Self::DreqReceived => "DREQ received",
            Self::Timewait => "timewait",
            Self::Refused => "refused",
        })
    }
}

/// What tells a REQ that came again from another one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Print {
    tid: u64,
    qpn: Qpn,
    service_id: ServiceId,
    psn: urxe_wire::Psn,
}

impl Print {
    pub(crate) const fn new(tid: u64, req: &Req) -> Self {
        let (qpn, psn) = (req.local_qpn, req.starting_psn);
        Self { tid, qpn, service_id: req.service_id, psn }
    }
}

/// How a message is sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    /// How long an answer may take.
    pub(crate) interval: Duration,
    /// How often, at most.
    pub(crate) max: u8,
    /// How often still.
    pub(crate) left: u8,
}

impl Retry {
    pub(crate) const fn new(interval: Duration, max: u8) -> Self {
        Self { interval, max, left: max }
    }
}

#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) state: State,
    pub(crate) route: Route,
    /// Whom the request was for, if the peer asked.
    pub(crate) listener: Option<ListenerId>,
    /// The REQ, if the peer asked.
    pub(crate) print: Option<Print>,
    /// Transaction id of the REQ, which all answers carry.
    pub(crate) tid: u64,
    pub(crate) retry: Retry,
    /// What was sent last, for the peer to have again.
    pub(crate) last: Option<Box<Mad>>,
    /// How long a peer waits before it asks again: so long a refusal is of use.
    pub(crate) patience: Duration,
    /// An MRA has come, for this state and what was sent last; or, where the owner has to decide,
    /// has gone out.
    pub(crate) told_to_wait: bool,
    /// The REQ has an alternate path.
    pub(crate) alternate: bool,
    pub(crate) agreed: Agreed,
    /// What the table finds it by; it alone changes these.
    pub(crate) keys: Keys,
}

/// What a connection is found by, beside its id.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keys {
    /// The peer's id.
    pub(crate) remote_id: Option<CommId>,
    /// The peer's QP, while a second connection with it would be wrong.
    pub(crate) remote_qpn: Option<Qpn>,
    /// Our QP, until it is free.
    pub(crate) local_qpn: Option<Qpn>,
    /// When something is to be done.
    pub(crate) deadline: Option<Duration>,
}

impl Conn {
    pub(crate) const fn is_active(&self) -> bool {
        self.listener.is_none()
    }

    /// How long packets of it may be under way: twice the lifetime and the delay of the peer's
    /// device, which the local ACK timeout covers (Linux drivers/infiniband/core/cm.c).
    pub(crate) fn timewait(&self) -> Duration {
        self.agreed.ack_timeout.duration().unwrap_or_default()
    }

    /// What its deadline is for.
    pub(crate) const fn why(&self) -> Why {
        match self.state {
            State::Timewait => Why::Timewait,
            State::Refused => Why::Forget,
            State::RepSent => Why::Answer(Message::Rep),
            State::DreqSent => Why::Answer(Message::Dreq),
            _ => Why::Answer(Message::Req),
        }
    }

    pub(crate) fn wrong_state(
        &self,
        id: CommId,
        call: &'static str,
        wanted: &'static str,
    ) -> Error {
        Error::WrongState { id, state: self.state, call, wanted }
    }

    /// The REJ that ends it where it stands.
    pub(crate) fn rej(&self, id: CommId, reason: RejReason) -> Rej {
        let message = match self.state {
            State::ReqReceived => RejMessage::Req,
            State::RepReceived => RejMessage::Rep,
            _ => RejMessage::None,
        };
        let remote_comm_id = self.keys.remote_id.unwrap_or_default();
        Rej { local_comm_id: id, remote_comm_id, message, reason, ..Rej::default() }
    }
}
