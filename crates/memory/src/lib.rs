//! Registered memory of a software RDMA NIC: protection domains, memory regions, memory windows,
//! their keys, and the copies into and out of them.
//!
//! ```
//! use std::sync::Arc;
//! use urxe_memory::{Access, Backing, Buffer, Config, Memory, Sge};
//!
//! let memory = Memory::new(Config::default());
//! let pd = memory.alloc_pd()?;
//! let buffer = Buffer::zeroed(4096)?;
//! let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
//! let mr = memory.reg_mr(pd, Backing::buffer(Arc::clone(&buffer)), 0x1000, access)?;
//!
//! // A peer's RDMA WRITE: key, range and rights are checked, then the bytes are placed.
//! memory.remote(pd, 1, mr.rkey, 0x1010, 5, Access::REMOTE_WRITE)?.write(0, b"hello")?;
//!
//! // A local SEND of the same bytes.
//! let sge = Sge { addr: 0x1010, length: 5, lkey: mr.lkey };
//! let mut sent = [0; 5];
//! memory.gather(pd, &[sge], 0, 5)?.copy_to(&mut sent);
//! assert_eq!(&sent, b"hello");
//!
//! memory.dereg_mr(mr.id)?; // no byte of the buffer is touched after this returns
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it is built
//!
//! * **Keys.** A key is a 24-bit index and, in the low byte, a generation. The index leads to a
//!   slot in a table that grows without moving, so a look-up is two loads and one short shared
//!   lock, whatever the number of regions. An index is reused late and with the next generation: a
//!   stale key is told apart from an unknown one.
//! * **Grants.** What a key allows (PD, QP, range, rights) is one immutable `Grant`. An access
//!   looks it up, clones its `Arc` (that is the *pin*) and works without any lock.
//! * **Deregistering** takes the grant out of its slot, then waits until the last pin is gone. A
//!   pin is held over one copy or one transmission, so the wait is short; see [`Memory::dereg_mr`].
//! * **Order.** The bytes of one packet are placed so that whoever sees its last byte sees all; see
//!   [`Pinned::write`].
//!
//! All raw-pointer code is in `raw.rs`. No Rust reference to registered bytes is ever formed: the
//! program and the peer may change them at any time.

mod access;
mod control;
mod data;
mod error;
mod gather;
mod grant;
mod ids;
mod memory;
mod pinned;
mod raw;
mod region;
mod table;
mod window;

#[cfg(test)]
mod tests;

pub use access::Access;
pub use error::{KeyError, MemoryError};
pub use gather::{Gather, MAX_INLINE, MAX_SGE, RawSlice};
pub use ids::{MrId, MwId, PdId, Sge};
pub use memory::{Config, Memory};
pub use pinned::Pinned;
pub use raw::{Backing, Buffer};
pub use region::{MrInfo, MrOptions, Rereg};
pub use window::{BindMw, MwInfo, MwType};
