//! The NIC as pure state machines.
//!
//! No clock, socket, thread or random source lives here: time, packets and seeds come in as
//! arguments; packets go out through a [`Transmit`] sink, completions and events wait to be polled.
//! The same engine runs over UDP, over raw frames and in virtual time.
//!
//! # Order of calls
//! 1. `post_send`, `receive` and `expire` may make packets: each is handed a [`Transmit`].
//! 2. When the sink had no room, [`Nic::has_work`] stays true; call [`Nic::pump`] once it has.
//! 3. After any of them ask [`Nic::next_deadline`] and call [`Nic::expire`] when it has come.
//! 4. Take what happened with [`Nic::poll_cq`] and [`Nic::take_event`].
#![forbid(unsafe_code)]

pub mod attr;
pub mod dcqcn;
pub mod timers;

mod ah;
mod completer;
mod config;
mod conn;
mod cq;
mod line;
mod nic;
mod path;
mod qp;
mod reason;
mod requester;
mod responder;
mod rq;
mod segment;
mod sq;
mod table;
mod time;
mod types;
mod window;
mod wr;

pub use attr::{AhAttr, AttrError, AttrMask, QpAttr, QpCaps, QpKind, QpState};
pub use config::{Caps, NicConfig, Profile};
pub use cq::{Arm, ResizeError};
pub use line::Held;
pub use nic::{CqInfo, Nic, ObjectCounts, QpInfo, QpInit, SrqInit, VerbsError};
pub use path::{Ecn, Path, Payload, Received, Transmit};
pub use reason::{Cause, Count, Counters, Drop, Rule, Why};
pub use rq::SrqAttr;
pub use time::{Deadline, Time, TimerKind};
pub use types::{
    AhId, AsyncEvent, Completion, CqCause, CqId, Event, QpId, SrqId, WcFlags, WcOpcode, WcStatus,
    XrcdId,
};
pub use wr::{PostError, RecvWr, SendFlags, SendOp, SendWr, UdDest};
