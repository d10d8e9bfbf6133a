//! Several processes of one user on one address of the host.
//!
//! UDP port 4791 of the address is a group of [`SLOTS`] sockets (SO_REUSEPORT). A filter in the
//! kernel picks a packet's socket from its destination QPN: the upper six bits are the slot. Each
//! process has the socket of one slot; no packet goes through another process on its way.
//!
//! The *broker*, a process of its own, keeps all sockets open, so that their order in the group
//! never changes, and gives them out over a Unix socket whose abstract name has the user and the
//! address in it. The first process that needs it starts it, and it ends with the last one. Slot
//! [`GSI_SLOT`] is its own: QP1 is one for all.

mod group;
mod launch;
mod mads;
mod message;
mod name;
mod pass;
mod seat;
mod serve;
mod start;
mod talk;
mod who;

pub use who::{Holder, Holders, Sharing, who_shares};

pub(crate) use group::slot_of;
pub(crate) use seat::Seat;

/// Sockets of one address: what the upper six bits of a QPN can name.
pub const SLOTS: usize = 64;
/// The slot of QP1, which the broker keeps.
pub const GSI_SLOT: u8 = 0;
/// Processes, or devices of them, that can share an address.
pub const SEATS: usize = SLOTS - 1;

#[cfg(test)]
mod tests;
