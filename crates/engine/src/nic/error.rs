//! Why a verb was refused.

use urxe_memory::MemoryError;

use crate::attr::AttrError;
use crate::cq::ResizeError;

/// Why a call that makes, changes or destroys an object was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerbsError {
    /// No such object (EINVAL).
    #[error("no {what} {id:#x}; it may have been destroyed")]
    NotFound {
        /// Kind of object.
        what: &'static str,
        /// Its number.
        id: u32,
    },
    /// Others still use it (EBUSY).
    #[error("{what} {id:#x} is in use by {users} objects; destroy them first")]
    Busy {
        /// Kind of object.
        what: &'static str,
        /// Its number.
        id: u32,
        /// How many use it.
        users: usize,
    },
    /// The NIC has as many as it may (ENOMEM).
    #[error("no more {what}: all {max} are in use")]
    Limit {
        /// Kind of object.
        what: &'static str,
        /// The limit.
        max: u32,
    },
    /// A number is out of range (EINVAL).
    #[error("{field} is {got}, wanted {least} to {most}")]
    Range {
        /// The field.
        field: &'static str,
        /// What it was.
        got: u64,
        /// Least good value.
        least: u64,
        /// Greatest good value.
        most: u64,
    },
    /// Something that a QP of this kind needs is missing, or does not go with it (EINVAL).
    #[error("a QP of kind {kind} {problem}")]
    Kind {
        /// The kind.
        kind: crate::attr::QpKind,
        /// What is wrong.
        problem: &'static str,
    },
    /// An address is no multicast group (EINVAL).
    #[error("{0} is not a multicast address")]
    NotMulticast(std::net::IpAddr),
    /// QP attributes (EINVAL).
    #[error(transparent)]
    Attr(#[from] AttrError),
    /// A CQ's size (EINVAL).
    #[error(transparent)]
    Resize(#[from] ResizeError),
    /// PDs, regions, windows.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}
