//! Why a call failed.

use std::io;
use std::net::{IpAddr, SocketAddr};

use urxe_engine::{PostError, QpKind, VerbsError};
use urxe_memory::{KeyError, MemoryError};
use urxe_net::{PortError, what_to_do};
use urxe_wire::cm::{RejReason, SidrStatus};

/// Why a call failed. Nothing of it was done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The port could not be opened or set.
    #[error(transparent)]
    Port(#[from] PortError),
    /// An object could not be made, changed or destroyed.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// A work request was not taken.
    #[error(transparent)]
    Post(#[from] PostError),
    /// Memory could not be registered or reached.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A window could not be bound.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// No address of 127.0.0.0/8 was free.
    #[error(
        "no free address: 127.0.0.1 to 127.0.0.{tried} have UDP port 4791 taken; something has it \
         on all addresses, as the kernel's rdma_rxe does: stop it (`urxe doctor` names it)"
    )]
    NoFreeAddress {
        /// The last one tried.
        tried: u8,
    },
    /// A wait ended without what was waited for.
    #[error("no {what} within {seconds} s; counters: {counters}")]
    TimedOut {
        /// What was waited for.
        what: &'static str,
        /// How long.
        seconds: u64,
        /// What the NIC had counted.
        counters: String,
    },
    /// A text is no endpoint.
    #[error("`{text}` is no endpoint: {problem}; wanted ADDRESS QPN PSN, such as 127.0.0.1 17 99")]
    Endpoint {
        /// The text.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A setting is out of range or cannot be read.
    #[error("{name}={value}: {problem}")]
    Setting {
        /// Name of the setting or variable.
        name: String,
        /// Its value.
        value: String,
        /// What is wrong, and what is wanted.
        problem: String,
    },
    /// The device is the parent's.
    #[error("this device was opened before a fork and is the parent's; open one in the child")]
    Forked,
    /// Objects of two devices do not go together.
    #[error("the {what} is another device's; take one of the same device")]
    OtherDevice {
        /// Which object.
        what: &'static str,
    },
    /// A QP is of another kind than the connection.
    #[error("the QP is {got}, the connection is for {wanted}; make it of that kind")]
    OtherKind {
        /// What it is.
        got: QpKind,
        /// What it would have to be.
        wanted: QpKind,
    },
    /// The connection manager did not take a call.
    #[error(transparent)]
    Cm(#[from] urxe_cm::Error),
    /// A connection's id is at something else.
    #[error("{call} needs {wanted}")]
    IdState {
        /// The call.
        call: &'static str,
        /// What would do.
        wanted: &'static str,
    },
    /// An address to bind is not the device's.
    #[error("{address} is not this device's address, which is {own}; bind to that one")]
    NotOurs {
        /// As given.
        address: IpAddr,
        /// The device's.
        own: IpAddr,
    },
    /// The device cannot reach an address.
    #[error("the device at {own} cannot reach {to}; give a peer's address of the same family")]
    NoWay {
        /// As given.
        to: IpAddr,
        /// The device's.
        own: IpAddr,
    },
    /// A QP leaves a multicast group that it is not in.
    #[error(
        "QP {qpn:#x} is not in the group {group}, and cannot leave it; it has left, or never \
             joined"
    )]
    NotInGroup {
        /// The QP's number.
        qpn: u32,
        /// The group.
        group: IpAddr,
    },
    /// A port to bind is another's.
    #[error("port {port} is bound already, or none is free; choose another")]
    PortTaken {
        /// As asked for; 0 where any would have done.
        port: u16,
    },
    /// The peer refuses a connection.
    #[error("{} refuses the connection: {}{}", who(.peer), .reason, hint(*.reason))]
    Refused {
        /// Who.
        peer: Option<SocketAddr>,
        /// Why.
        reason: RejReason,
        /// Its program's, 148 bytes: zeros follow what it gave.
        private_data: Vec<u8>,
    },
    /// The peer does not tell of a service's QP.
    #[error("{} does not tell of the service's QP: {status}", who(.peer))]
    NoService {
        /// Who.
        peer: Option<SocketAddr>,
        /// Why.
        status: SidrStatus,
        /// Its program's, 136 bytes.
        private_data: Vec<u8>,
    },
    /// The peer does not answer.
    #[error(
        "{} does not answer our {message}; is it there, and does it have a connection manager?",
        who(.peer)
    )]
    Unreachable {
        /// Who.
        peer: Option<SocketAddr>,
        /// What it does not answer.
        message: urxe_cm::Message,
    },
    /// A connection ended before it stood.
    #[error("the connection with {} has ended: {how}", who(.peer))]
    Ended {
        /// With whom.
        peer: Option<SocketAddr>,
        /// How.
        how: urxe_cm::Closed,
    },
    /// A peer did not say what was expected.
    #[error("the peer said `{got}`, wanted {wanted}")]
    Exchange {
        /// What came, shortened.
        got: String,
        /// What was wanted.
        wanted: &'static str,
    },
    /// The host refused something.
    #[error("{call}: {source}; {}", what_to_do(source))]
    Host {
        /// What it refused.
        call: &'static str,
        /// Why.
        source: io::Error,
    },
}

fn who(peer: &Option<SocketAddr>) -> String {
    peer.map_or_else(|| "the peer".to_owned(), |peer| peer.to_string())
}

/// What to do about a refusal, where that is plain.
const fn hint(reason: RejReason) -> &'static str {
    match reason {
        RejReason::InvalidServiceId => "; nothing listens to that port there",
        RejReason::ConsumerDefined => "; its program said so",
        RejReason::StaleConnection => "; it remembers an old one of the QP: connect again",
        RejReason::InvalidMtu => "; ask for a smaller path MTU",
        _ => "",
    }
}

impl Error {
    pub(crate) fn host<E: Into<io::Error>>(call: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::Host { call, source: source.into() }
    }
}
