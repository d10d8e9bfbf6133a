//! Why a call failed.

use std::io;

use urxe_engine::{PostError, VerbsError};
use urxe_memory::{KeyError, MemoryError};
use urxe_net::PortError;

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
    /// A peer did not say what was expected.
    #[error("the peer said `{got}`, wanted {wanted}")]
    Exchange {
        /// What came, shortened.
        got: String,
        /// What was wanted.
        wanted: &'static str,
    },
    /// The host refused something.
    #[error("{call}: {source}")]
    Host {
        /// What it refused.
        call: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn host<E: Into<io::Error>>(call: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::Host { call, source: source.into() }
    }
}
