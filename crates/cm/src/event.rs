//! What an owner is told.

use std::fmt;
use std::time::Duration;

use urxe_wire::cm::{IpHeader, RejReason, Req, RetryCount, ServiceId, SidrStatus};
use urxe_wire::{PKey, Psn, QKey, Qpn};

use crate::{Accept, ConnId, Ece, ListenerId, Message, Route, Transport};

/// What happened. The boxed ones are large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A peer wants a connection: [`crate::Cm::accept`] or [`crate::Cm::reject`] answers.
    ConnectRequest(Box<Request>),
    /// The peer accepts: [`crate::Cm::establish`] once the QP is ready, or [`crate::Cm::reject`].
    ConnectResponse(Box<Response>),
    /// The passive side's connection is established.
    Established {
        /// Which.
        id: ConnId,
        /// What told of it.
        how: How,
        /// The peer's, 224 bytes; zeros if it was not an RTU that told.
        private_data: Box<[u8]>,
    },
    /// The peer refuses, or has given up; there is no connection.
    Rejected {
        /// Which.
        id: ConnId,
        /// Why.
        reason: RejReason,
        /// For some reasons, what would have been right.
        info: Box<[u8]>,
        /// The peer's, 148 bytes.
        private_data: Box<[u8]>,
        /// Whether our QPN is free only after a [`Event::TimewaitExit`].
        timewait: bool,
    },
    /// No answer came, after all retries; there is no connection.
    Unreachable {
        /// Which.
        id: ConnId,
        /// What was not answered: a REQ or a REP.
        message: Message,
        /// Whether our QPN is free only after a [`Event::TimewaitExit`].
        timewait: bool,
    },
    /// The peer ends the connection: stop the QP, then answer with [`crate::Cm::disconnect`].
    DisconnectRequest {
        /// Which.
        id: ConnId,
        /// The peer's, 220 bytes.
        private_data: Box<[u8]>,
    },
    /// The connection has ended; a [`Event::TimewaitExit`] follows.
    Disconnected {
        /// Which.
        id: ConnId,
        /// How it ended.
        how: Closed,
    },
    /// No packet of an old connection is under way any more; its id is gone.
    TimewaitExit {
        /// Which.
        id: ConnId,
        /// The QPN that may be used again.
        qpn: Qpn,
    },
    /// A peer asks for the QP of a service: [`crate::Cm::sidr_answer`] answers.
    SidrRequest(Box<SidrRequest>),
    /// The answer to a question of ours.
    SidrResponse(Box<SidrResponse>),
    /// No answer came to a question of ours, after all retries.
    SidrUnreachable {
        /// Which.
        id: ConnId,
    },
}

/// What told that a connection is established.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// The RTU.
    Rtu,
    /// Data came before it, or instead: [`crate::Cm::notify_established`].
    Data,
    /// A DREQ came instead: the peer had it established, and ends it already.
    Dreq,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Closed {
    /// We asked, the peer agreed.
    Agreed,
    /// Both sides asked at once.
    Both,
    /// We asked, no answer came.
    Unanswered,
    /// The peer never had it, or has given it up.
    Rejected(RejReason),
}

/// A request for a connection. What it says of depths and PSNs is from the receiver's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it will be called.
    pub id: ConnId,
    /// Whom it was for.
    pub listener: ListenerId,
    /// Between which addresses.
    pub route: Route,
    /// The transport.
    pub transport: Transport,
    /// The peer's QP.
    pub remote_qpn: Qpn,
    /// The peer's device.
    pub remote_ca_guid: u64,
    /// READs and atomics at once that the peer would like to have outstanding.
    pub responder_resources: u8,
    /// READs and atomics at once that the peer serves.
    pub initiator_depth: u8,
    /// Options of a vendor.
    pub ece: Ece,
    /// The IP header, if the listener wants one.
    pub ip: Option<IpHeader>,
    /// All of the message.
    pub req: Req,
}

impl Request {
    /// What the peer's program sent: 92 bytes, 56 after an IP header.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        after_ip(&self.req.private_data, self.ip.is_some())
    }

    /// How to accept it with a QP, with what it asks for as far as the device has it.
    #[must_use]
    pub const fn accept(&self, qpn: Qpn, psn: Psn) -> Accept<'_> {
        Accept::new(qpn, psn)
    }
}

/// What follows an IP header of 36 bytes, if there is one.
pub(crate) fn after_ip(private_data: &[u8], ip: bool) -> &[u8] {
    const IP_HEADER: usize = 36;
    if ip { &private_data[IP_HEADER..] } else { private_data }
}

/// A peer accepts our connection. What it says of depths is from our view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Which.
    pub id: ConnId,
    /// The peer's QP.
    pub remote_qpn: Qpn,
    /// The peer's device.
    pub remote_ca_guid: u64,
    /// READs and atomics at once that the peer will have outstanding.
    pub responder_resources: u8,
    /// READs and atomics at once that the peer serves.
    pub initiator_depth: u8,
    /// Whether the peer's QP takes its receive WQEs from an SRQ.
    pub srq: bool,
    /// Whether the peer's QP implements end-to-end credits.
    pub flow_control: bool,
    /// Retries of our QP after RNR NAKs.
    pub rnr_retry_count: RetryCount,
    /// Options of a vendor.
    pub ece: Ece,
    /// The peer's.
    pub private_data: [u8; 196],
}

/// A question of a peer: which QP serves this?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidrRequest {
    /// What it is called.
    pub id: ConnId,
    /// Whom it was for.
    pub listener: ListenerId,
    /// Between which addresses.
    pub route: Route,
    /// What is asked for.
    pub service_id: ServiceId,
    /// Partition.
    pub pkey: PKey,
    /// The IP header, if the listener wants one.
    pub ip: Option<IpHeader>,
    pub(crate) data: [u8; 216],
}

impl SidrRequest {
    /// What the peer's program sent: 216 bytes, 180 after an IP header.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        after_ip(&self.data, self.ip.is_some())
    }
}

/// An answer to a question of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidrResponse {
    /// Which.
    pub id: ConnId,
    /// Between which addresses.
    pub route: Route,
    /// How it went; QP and Q_Key count only with [`SidrStatus::Success`].
    pub status: SidrStatus,
    /// The QP.
    pub qpn: Qpn,
    /// The Q_Key to send with.
    pub qkey: QKey,
    /// Options of a vendor.
    pub ece: Ece,
    /// The peer's.
    pub private_data: [u8; 136],
}

/// The next time at which something is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When, since the epoch of all times that the manager is given; not before it.
    pub at: Duration,
    /// Whose.
    pub id: ConnId,
    /// What for.
    pub why: Why,
}

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The answer to this message is late.
    Answer(Message),
    /// A timewait ends.
    Timewait,
    /// A refusal or answer need not be remembered any longer.
    Forget,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(message) => write!(f, "answer to {message}"),
            Self::Timewait => f.write_str("timewait"),
            Self::Forget => f.write_str("memory of an answer"),
        }
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agreed => f.write_str("closed by us"),
            Self::Both => f.write_str("closed by both sides at once"),
            Self::Unanswered => f.write_str("closed by us; the peer did not answer"),
            Self::Rejected(reason) => write!(f, "given up by the peer: {}", reason.text()),
        }
    }
}
