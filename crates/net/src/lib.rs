//! Ports: how packets leave and arrive.
//!
//! A [`Port`] moves batches. A [`TxBatch`] takes packets as header, payload and pad; the port puts
//! IP, UDP and a true ICRC to them. An [`RxBatch`] gives packets whose ICRC was looked at.
//!
//! Holds unsafe code: socket calls with ancillary data, which no safe library offers in batches.
#![allow(unsafe_code, reason = "sendmmsg and recvmmsg with segmentation offload")]

mod batch;
mod cmsg;
mod error;
pub mod fork;
mod frame;
pub mod impair;
mod netlink;
mod port;
pub mod raw;
pub mod shared;
mod stats;
mod sys;
pub mod tap;
#[cfg(test)]
mod testing;
pub mod udp;

pub use batch::{Flow, Record, RxBatch, RxPacket, TxBatch};
pub use error::{PortError, what_to_do};
pub use port::{IcrcMode, Port, PortCaps};
pub use stats::{PortStats, PortStatsSnapshot};
