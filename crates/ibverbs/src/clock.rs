//! The clock of completions' timestamps: nanoseconds of the host's monotonic one.

use urxe::{Completion, Context};

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is ours to write; both clocks exist everywhere.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Nanoseconds since some time before the host started.
pub(crate) fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// What a device's times are counted from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch(u64);

impl Epoch {
    pub(crate) fn of(nic: &Context) -> Self {
        // In this order none of its times comes out later than it was; of several tries the one
        // counts in which the least time passed between the two.
        let tries = std::iter::repeat_with(|| monotonic().saturating_sub(nic.now().as_nanos()));
        Self(tries.take(8).max().unwrap_or(0))
    }

    /// When a request completed; for one that was flushed by a call, which has no time, now.
    pub(crate) fn monotonic(self, completion: &Completion) -> u64 {
        match completion.at.as_nanos() {
            0 => monotonic(),
            at => self.0 + at,
        }
    }

    /// The same in nanoseconds since 1970.
    pub(crate) fn wall(self, completion: &Completion) -> u64 {
        let ago = monotonic().saturating_sub(self.monotonic(completion));
        read(libc::CLOCK_REALTIME).saturating_sub(ago)
    }
}
