//! The NIC as pure state machines (being built).
#![forbid(unsafe_code)]

pub mod attr;
pub mod dcqcn;
pub mod timers;

mod time;

pub use attr::{AhAttr, AttrError, AttrMask, QpAttr, QpCaps, QpKind, QpState};
pub use time::{Deadline, Time, TimerKind};
