//! DCQCN congestion control (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments",
//! SIGCOMM 2015): the two ends of it that a NIC has.
//!
//! A switch marks packets (ECN CE). The receiving NIC, the [`NotificationPoint`], answers marks
//! with CNPs, not more than one per interval and destination. The sending NIC, the
//! [`ReactionPoint`] of each QP, cuts the QP's rate at a CNP and lets it come back.
//!
//! All is integer arithmetic on times that are passed in, so that a run replays to the bit.

use std::fmt;
use std::time::Duration;

mod notification;
mod params;
mod reaction;

pub use notification::NotificationPoint;
pub use params::{Checked, ParamError, Params};
pub use reaction::{Pacer, ReactionPoint};

#[cfg(test)]
mod tests;

/// A rate, bits per second; what is counted is the bytes given to `on_sent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// `bits` per second.
    #[must_use]
    pub const fn from_bps(bits: u64) -> Self {
        Self(bits)
    }

    /// `megabits` per second, the unit of mlx5's parameters.
    #[must_use]
    pub const fn from_mbps(megabits: u32) -> Self {
        Self(megabits as u64 * 1_000_000)
    }

    /// Bits per second.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// How long `bytes` take, rounded up to a nanosecond; at rate 0, for ever.
    #[must_use]
    pub fn time_for(self, bytes: u64) -> Duration {
        let bit_nanos = u128::from(bytes) * 8 * 1_000_000_000;
        let nanos = bit_nanos.div_ceil(u128::from(self.0).max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// `12.5 Gbit/s`, `100 Mbit/s`: six digits after the point at most.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            1_000_000_000.. => (1_000_000_000, "Gbit/s"),
            1_000_000.. => (1_000_000, "Mbit/s"),
            _ => (1_000, "kbit/s"),
        };
        let fraction = format!("{:06}", self.0 % unit * 1_000_000 / unit);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{} {name}", self.0 / unit),
            rest => write!(f, "{}.{rest} {name}", self.0 / unit),
        }
    }
}
