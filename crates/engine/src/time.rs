//! Time as the engine sees it: a count of nanoseconds that its caller passes in.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

use urxe_wire::Qpn;

#[cfg(test)]
mod tests;

/// A point in time: nanoseconds since an epoch of the caller's choice, 0 to 2^64 − 1 (584 years).
///
/// All times given to one engine must have the same epoch and must not go backwards. Arithmetic
/// saturates: a deadline past the end of time stays there and never comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Time(u64);

impl Time {
    /// The epoch.
    pub const ZERO: Self = Self(0);
    /// The end of time, which no run reaches.
    pub const MAX: Self = Self(u64::MAX);

    /// The time `nanos` nanoseconds after the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Saturates at [`Time::MAX`].
impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        let nanos = u64::try_from(later.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// Seconds with nine digits: `1.000002500s`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: u64 = 1_000_000_000;
        write!(f, "{}.{:09}s", self.0 / SECOND, self.0 % SECOND)
    }
}

/// Why a QP wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimerKind {
    /// The local ACK timeout: no response came for the oldest unacknowledged packet.
    Retransmit,
    /// The wait that an RNR NAK asked for is over.
    Rnr,
    /// Congestion control lets the next packet go.
    Pace,
    /// Congestion control looks at its rate again (DCQCN).
    RateIncrease,
}

impl fmt::Display for TimerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Retransmit => "local ACK timeout",
            Self::Rnr => "RNR wait",
            Self::Pace => "pacing",
            Self::RateIncrease => "rate increase",
        })
    }
}

/// The next time at which a QP has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When; not before it.
    pub at: Time,
    /// Whose.
    pub qpn: Qpn,
    /// What for.
    pub why: TimerKind,
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of QP {} at {}", self.why, self.qpn, self.at)
    }
}
