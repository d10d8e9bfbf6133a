//! The calls of rsockets, which are sockets over RDMA: urxe has none, and each says so.

use std::ffi::c_int;

use crate::provider::fail;

/// Answers −1 and ENOSYS. Its arguments stay where the caller put them, whichever they are.
pub(crate) extern "C" fn number() -> c_int {
    fail(libc::ENOSYS)
}

/// The same for calls whose answer has 64 bits.
pub(crate) extern "C" fn long() -> isize {
    isize::try_from(number()).unwrap_or(-1)
}
