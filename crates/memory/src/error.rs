//! Errors: of calls that manage objects ([`MemoryError`]), and of keys in use ([`KeyError`]).

use crate::{Access, MrId, MwId, MwType, PdId};

/// Why a call that manages PDs, regions or windows was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The device holds as many as it may (ENOMEM).
    #[error("no more {what}: all {max} are in use; free one or raise the limit")]
    Limit {
        /// Kind of object.
        what: &'static str,
        /// The limit.
        max: u32,
    },
    /// The PD was deallocated or never existed (EINVAL).
    #[error("{0} does not exist")]
    UnknownPd(PdId),
    /// The region was deregistered or never existed (EINVAL).
    #[error("{0} does not exist")]
    UnknownMr(MrId),
    /// The window was deallocated or never existed (EINVAL).
    #[error("{0} does not exist")]
    UnknownMw(MwId),
    /// Objects still belong to the PD (EBUSY).
    #[error("{pd} is in use by {users} objects; destroy them first")]
    PdBusy {
        /// The PD.
        pd: PdId,
        /// Regions, windows, QPs, SRQs and AHs in it.
        users: u32,
    },
    /// More releases than holds of a PD: a defect of the caller.
    #[error("{0} was released more often than held")]
    PdNotHeld(PdId),
    /// Windows are bound to the region (EBUSY).
    #[error("{mr} has {windows} windows bound; unbind or deallocate them first")]
    WindowsBound {
        /// The region.
        mr: MrId,
        /// Windows bound to it.
        windows: u32,
    },
    /// Accesses are in progress, or another thread is changing the region (EBUSY).
    #[error("{mr} is in use by an access or call in progress; try again")]
    MrBusy {
        /// The region.
        mr: MrId,
    },
    /// A right for peers to change memory without the owner's right to (EINVAL).
    #[error("access {access:?}: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE")]
    NeedsLocalWrite {
        /// What was asked for.
        access: Access,
    },
    /// Flags that are neither known nor optional (EINVAL).
    #[error("unknown access flags {unknown:#x}")]
    UnknownAccess {
        /// The flags that are not known.
        unknown: u32,
    },
    /// The region would reach past the end of the address space (EINVAL).
    #[error("{len:#x} bytes at {addr:#x} reach past the end of the address space")]
    AddressOverflow {
        /// First address.
        addr: u64,
        /// Bytes.
        len: u64,
    },
    /// A null pointer was given for memory that has a length (EFAULT).
    #[error("null pointer given for {len} bytes of memory")]
    NullPointer {
        /// Bytes.
        len: u64,
    },
    /// A part of a buffer that the buffer does not have (EINVAL).
    #[error("bytes {offset:#x}+{len:#x} are not within a buffer of {have:#x} bytes")]
    BufferRange {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
        /// Bytes in the buffer.
        have: u64,
    },
    /// An atomic on a part of a buffer that is not 8-byte aligned (EINVAL).
    #[error("offset {offset:#x} is not 8-byte aligned")]
    Misaligned {
        /// Where it starts.
        offset: u64,
    },
    /// The allocator had no memory for a buffer (ENOMEM).
    #[error("no memory for a buffer of {len} bytes")]
    OutOfMemory {
        /// Bytes asked for.
        len: usize,
    },
}

/// Why the use of a key was refused. At a responder this ends in a remote access error NAK, at a
/// requester in a local protection error (or, for binds, a memory management error).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No object has this index.
    #[error("key {key:#010x}: nothing is registered under its index")]
    UnknownKey {
        /// The key used.
        key: u32,
    },
    /// The index is in use under another low byte: the key is older (or newer) than the object.
    #[error("key {key:#010x}: stale; the object's key now ends in {current:#04x}")]
    Stale {
        /// The key used.
        key: u32,
        /// Low byte of the key that would be right.
        current: u8,
    },
    /// The region is being deregistered.
    #[error("key {key:#010x}: the region is being deregistered")]
    Deregistering {
        /// The key used.
        key: u32,
    },
    /// The region was invalidated and not registered again.
    #[error("key {key:#010x}: invalidated; register the region again before use")]
    Invalidated {
        /// The key used.
        key: u32,
    },
    /// The object belongs to another PD.
    #[error("key {key:#010x}: belongs to {owner}, used from {used}")]
    WrongPd {
        /// The key used.
        key: u32,
        /// PD of the object.
        owner: PdId,
        /// PD of the user.
        used: PdId,
    },
    /// The window is bound for another QP.
    #[error("key {key:#010x}: window is bound for QP {bound:#x}, used by QP {used:#x}")]
    WrongQp {
        /// The key used.
        key: u32,
        /// QPN the window is bound for.
        bound: u32,
        /// QPN of the user.
        used: u32,
    },
    /// The window is not bound to a region.
    #[error("key {key:#010x}: window is not bound")]
    NotBound {
        /// The key used.
        key: u32,
    },
    /// The range is not within what the key covers.
    #[error("key {key:#010x}: {addr:#x}+{len:#x} is not within {start:#x}+{length:#x}")]
    Range {
        /// The key used.
        key: u32,
        /// First address of the access.
        addr: u64,
        /// Bytes of the access.
        len: u64,
        /// First address the key covers.
        start: u64,
        /// Bytes the key covers.
        length: u64,
    },
    /// A right is missing.
    #[error("key {key:#010x}: needs {need:?}, allows {have:?}")]
    Rights {
        /// The key used.
        key: u32,
        /// Rights that the access needs.
        need: Access,
        /// Rights that the key carries.
        have: Access,
    },
    /// An atomic on an address that is not a multiple of 8, as given or where it stands in memory.
    #[error("key {key:#010x}: {addr:#x} is not 8-byte aligned, itself or in memory")]
    Misaligned {
        /// The key used.
        key: u32,
        /// Address of the access.
        addr: u64,
    },
    /// A window's key where a region's is needed.
    #[error("key {key:#010x}: belongs to a memory window, a region's is needed")]
    NotARegion {
        /// The key used.
        key: u32,
    },
    /// More elements than [`MAX_SGE`](crate::MAX_SGE).
    #[error("{got} scatter/gather elements, at most {max} are allowed")]
    TooManySges {
        /// Elements given.
        got: usize,
        /// The limit.
        max: usize,
    },
    /// The list is shorter than the data.
    #[error("bytes {offset}+{len} are not within a scatter/gather list of {capacity} bytes")]
    ListTooShort {
        /// First byte, counted from the start of the list.
        offset: u64,
        /// Bytes.
        len: u64,
        /// Bytes in the list.
        capacity: u64,
    },
    /// More inline data than [`MAX_INLINE`](crate::MAX_INLINE).
    #[error("{got} bytes of inline data, at most {max} are allowed")]
    InlineTooLong {
        /// Bytes given.
        got: usize,
        /// The limit.
        max: usize,
    },
    /// The window of a bind was deallocated or never existed.
    #[error("{mw} does not exist")]
    UnknownMw {
        /// The window.
        mw: MwId,
    },
    /// A bound type 2 window must be invalidated before it is bound again.
    #[error("key {key:#010x}: window is bound; invalidate it before binding it again")]
    AlreadyBound {
        /// Present key of the window.
        key: u32,
    },
    /// The new key of a bind is missing, has another index than the window, or is no new one.
    #[error("new rkey {got:#x?} does not suit a {kind:?} window whose rkey is {key:#010x}")]
    NewKey {
        /// Present key of the window.
        key: u32,
        /// The key that the bind asked for.
        got: Option<u32>,
        /// Type of the window.
        kind: MwType,
    },
    /// Rights that a window of this type cannot have.
    #[error("key {key:#010x}: a {kind:?} window cannot have {access:?}")]
    WindowAccess {
        /// Present key of the window.
        key: u32,
        /// The rights that are too many.
        access: Access,
        /// Type of the window.
        kind: MwType,
    },
    /// A type 2 window cannot be unbound by a bind of length 0; it is invalidated instead.
    #[error("key {key:#010x}: a type 2 window cannot be bound with length 0; invalidate it")]
    ZeroLengthBind {
        /// Present key of the window.
        key: u32,
    },
    /// A window cannot be bound to a zero-based region.
    #[error("key {key:#010x}: a window cannot be bound to a zero-based region")]
    ZeroBasedRegion {
        /// Key of the region.
        key: u32,
    },
    /// The object cannot be invalidated: a plain region or a type 1 window.
    #[error("key {key:#010x}: only invalidatable regions and type 2 windows can be invalidated")]
    NotInvalidatable {
        /// The key used.
        key: u32,
    },
    /// A region with windows bound cannot be invalidated.
    #[error("key {key:#010x}: region has {windows} windows bound; invalidate them first")]
    WindowsBound {
        /// The key used.
        key: u32,
        /// Windows bound to the region.
        windows: u32,
    },
}
