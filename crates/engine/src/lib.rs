//! The NIC as pure state machines (being built).
#![forbid(unsafe_code)]

mod time;

pub use time::{Deadline, Time, TimerKind};
