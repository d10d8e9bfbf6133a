//! Linux guests running rdma_rxe, as peers to prove urxe against.
//!
//! A [`Lab`] is a bridge in a network namespace of its own, and guests on it: QEMU boots Debian's
//! kernel with rdma_rxe in each, and an agent there does through libibverbs what a [`Session`]
//! asks for. The process must live in a namespace of its own ([`space`]); the host's network is
//! never touched, and all ends with the process, whatever ends it.
#![forbid(unsafe_code)]

mod cache;
mod command;
mod cpio;
mod error;
mod guest;
mod image;
mod lab;
mod link;
mod modules;
mod session;
pub mod space;
mod watch;

pub use cache::{Cache, Kernel};
pub use error::LabError;
pub use guest::Guest;
pub use lab::{Lab, Options, prepare};
pub use link::{BRIDGE, HOST_V4, HOST_V6, SECOND_V4, SECOND_V6, guest_v4, guest_v6, tap};
pub use session::{Completed, Reply, Session};
pub use watch::{Died, Watch};
