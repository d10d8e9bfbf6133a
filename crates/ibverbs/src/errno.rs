//! Which errno stands for which error: that of the kernel and of rdma-core for the same mistake.

use std::ffi::c_int;

use libc::{
    EADDRINUSE, EADDRNOTAVAIL, EBUSY, EFAULT, EINVAL, EIO, ENETUNREACH, ENODEV, ENOMEM, EOPNOTSUPP,
};
use urxe::cm::CmError;
use urxe::{AttrError, Error, MemoryError, PortError, PostError, VerbsError};

pub(crate) fn of(error: &Error) -> c_int {
    match error {
        Error::Verbs(error) => verbs(error),
        Error::Post(error) => post(error),
        Error::Memory(error) => memory(error),
        Error::Host { source, .. } => source.raw_os_error().unwrap_or(EIO),
        Error::NotOurs { .. } => EADDRNOTAVAIL,
        Error::PortTaken { .. }
        | Error::Port(PortError::ServiceTaken { .. })
        | Error::Cm(CmError::ServiceInUse(_)) => EADDRINUSE,
        Error::Port(PortError::OtherVersion { .. } | PortError::PathTooNarrow { .. }) => EINVAL,
        Error::Port(_) | Error::NoFreeAddress { .. } => ENODEV,
        Error::NoWay { .. } => ENETUNREACH,
        Error::Cm(CmError::Full { .. }) => ENOMEM,
        // As of a device that was taken away: the kernel's `ib_uverbs_disassociate_ucontext`.
        Error::Forked => EIO,
        _ => EINVAL,
    }
}

fn verbs(error: &VerbsError) -> c_int {
    match error {
        VerbsError::Busy { .. } => EBUSY,
        VerbsError::Limit { .. } => ENOMEM,
        VerbsError::Memory(error) => memory(error),
        VerbsError::Attr(AttrError::PathMigration(_)) => EOPNOTSUPP,
        _ => EINVAL,
    }
}

fn memory(error: &MemoryError) -> c_int {
    match error {
        MemoryError::Limit { .. } | MemoryError::OutOfMemory { .. } => ENOMEM,
        MemoryError::PdBusy { .. }
        | MemoryError::WindowsBound { .. }
        | MemoryError::MrBusy { .. } => EBUSY,
        MemoryError::NullPointer { .. } => EFAULT,
        _ => EINVAL,
    }
}

fn post(error: &PostError) -> c_int {
    match error {
        PostError::Full { .. } => ENOMEM,
        _ => EINVAL,
    }
}
