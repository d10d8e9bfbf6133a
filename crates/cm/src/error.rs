//! Why a call was not done.

use std::fmt;

use urxe_wire::Qpn;
use urxe_wire::cm::ServiceId;

use crate::{ConnId, ListenerId, State};

/// A message that an owner can put private data in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Connection request.
    Req,
    /// Connection reply.
    Rep,
    /// Ready to use.
    Rtu,
    /// Rejection.
    Rej,
    /// Receipt acknowledged.
    Mra,
    /// Disconnection request.
    Dreq,
    /// Disconnection reply.
    Drep,
    /// Service id resolution request.
    SidrReq,
    /// Service id resolution reply.
    SidrRep,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Req => "REQ",
            Self::Rep => "REP",
            Self::Rtu => "RTU",
            Self::Rej => "REJ",
            Self::Mra => "MRA",
            Self::Dreq => "DREQ",
            Self::Drep => "DREP",
            Self::SidrReq => "SIDR_REQ",
            Self::SidrRep => "SIDR_REP",
        })
    }
}

/// Why a call was not done; nothing of it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection has ended, or never was.
    #[error("connection {0} does not exist, or has ended; its last event said how")]
    NoConnection(ConnId),
    /// The question of service has been answered, or never was.
    #[error("question of service {0} does not exist, or is answered")]
    NoQuestion(ConnId),
    /// The listener was closed, or never was.
    #[error("listener {} does not exist", .0.0)]
    NoListener(ListenerId),
    /// The state does not allow it.
    #[error("connection {id} is in state {state}; {call} needs {wanted}")]
    WrongState {
        /// Which.
        id: ConnId,
        /// Where it is.
        state: State,
        /// What was asked for.
        call: &'static str,
        /// Where it would have to be.
        wanted: &'static str,
    },
    /// Private data or additional information has no room.
    #[error("{len} bytes of {what} do not fit a {message}, which has room for {room}")]
    TooLong {
        /// In which message.
        message: Message,
        /// Private data, or additional information.
        what: &'static str,
        /// Bytes given.
        len: usize,
        /// Bytes there are.
        room: usize,
    },
    /// Something listens there already.
    #[error("service id {0} is listened to already; choose another port")]
    ServiceInUse(ServiceId),
    /// A QP of this number is in another connection, or in its timewait.
    #[error("QP {qpn} is still of connection {of}; wait for its TimewaitExit, or use another QP")]
    QpnInUse {
        /// The QP.
        qpn: Qpn,
        /// Whose it is.
        of: ConnId,
    },
    /// A limit is reached.
    #[error("there are {limit} {what} already, the most that are allowed; end some first")]
    Full {
        /// Of what.
        what: &'static str,
        /// How many.
        limit: usize,
    },
    /// A parameter makes no sense.
    #[error("{field} is {got}, wanted {wanted}")]
    Parameter {
        /// Which.
        field: &'static str,
        /// What it was.
        got: u64,
        /// What it may be.
        wanted: &'static str,
    },
    /// The addresses of an IP header are of two families.
    #[error(transparent)]
    Address(#[from] urxe_wire::Error),
}
