//! `librdmacm.so.1` on an emulated RoCEv2 NIC, so that C programs that connect by IP address run on
//! it as they are:
//!
//! ```text
//! LD_LIBRARY_PATH=target/debug/verbs rping -s
//! ```
//!
//! This library is only the surface: its symbols and their versions. A process has one NIC and one
//! connection manager, which are in urxe's `libibverbs.so.1`, and there are the functions, too: its
//! private symbol `urxe_private_v1` gives each by its name. Objects of both libraries can then be
//! told by their pointers, as those of one are. With another `libibverbs.so.1` every call fails
//! with ENODEV, and why is said once on the standard error.
//!
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | `symbols` | the table of exported symbols and their versions |
//! | `calls` | the 41 `rdma_*` calls, handed on |
//! | `provider` | finds the functions in libibverbs.so.1 |
//! | `rsockets` | the 27 calls of rsockets, which are not there: ENOSYS |
#![expect(unsafe_code, reason = "functions are C's, and found by name")]

mod calls;
mod provider;
mod rsockets;
mod symbols;
