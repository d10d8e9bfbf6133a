//! When the background thread leaves the port to threads that poll.

use std::time::Duration;

use urxe_engine::Time;

/// So long after a poll the background thread leaves the port to whoever polled.
pub(crate) const ASIDE: Duration = Duration::from_millis(2);
/// So long it looks after the port whoever polls, once packets have waited for nobody: the first
/// time, and at most.
const FIRST: Duration = Duration::from_millis(16);
const MOST: Duration = Duration::from_secs(1);
/// So often in a row it finds nothing, since whoever polls was there first, before it stands aside
/// again.
const IN_VAIN: u32 = 16;

/// A program that polls has its packets at once, and needs no second thread at the port. One that
/// polls now and then, and otherwise looks at its memory for what a peer writes, would wait for the
/// end of [`ASIDE`] each time: for such a one the port is looked after all the time. Which of both
/// it is, is seen by whether packets wait when standing aside ends.
#[derive(Debug)]
pub(crate) struct Aside {
    /// Until when polls do not count.
    serves_until: Time,
    serves_for: Duration,
    in_vain: u32,
    stood: bool,
}

impl Default for Aside {
    fn default() -> Self {
        Self { serves_until: Time::ZERO, serves_for: FIRST, in_vain: 0, stood: false }
    }
}

impl Aside {
    /// How long to stand aside still. `polled` is when a thread polled last, 0 for never.
    pub(crate) fn rest(&mut self, now: Time, polled: Time) -> Option<Duration> {
        if polled == Time::ZERO || now < self.serves_until {
            return None;
        }
        let rest = ASIDE.checked_sub(now.saturating_since(polled));
        self.stood |= rest.is_some();
        rest
    }

    /// Whether it has just ended.
    pub(crate) const fn ends(&self) -> bool {
        self.stood
    }

    /// It has ended, and packets waited or not.
    pub(crate) fn ended(&mut self, now: Time, waited: bool) {
        self.stood = false;
        if waited {
            self.serves_until = now + self.serves_for;
            self.serves_for = (self.serves_for * 2).min(MOST);
            self.in_vain = 0;
        }
    }

    /// The port was looked at, and something had arrived or not.
    pub(crate) fn looked(&mut self, found: bool) {
        self.in_vain = if found { 0 } else { self.in_vain + 1 };
        if self.in_vain >= IN_VAIN {
            *self = Self { stood: self.stood, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests;
