//! How many PSNs may be in flight: grows while all goes well, halves on loss, never collapses.

use urxe_wire::Psn;

/// The window of one requester, in PSNs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    size: u32,
    /// Below this it doubles each round trip, above it grows by one.
    threshold: u32,
    acked: u32,
    max: u32,
    /// Losses before this PSN belong to the one answered already.
    recover: Option<Psn>,
}

/// The smallest window: enough that one lost packet is still noticed by the next.
const MIN: u32 = 4;
const INITIAL: u32 = 64;

impl Window {
    pub(crate) fn new(max: u32) -> Self {
        let max = max.max(MIN);
        Self { size: INITIAL.min(max), threshold: max, acked: 0, max, recover: None }
    }

    pub(crate) const fn size(&self) -> u32 {
        self.size
    }

    /// `n` PSNs were acknowledged.
    pub(crate) fn on_ack(&mut self, n: u32, una: Psn) {
        if self.recover.is_some_and(|r| !una.is_before(r)) {
            self.recover = None;
        }
        if self.size < self.threshold {
            self.size = self.size.saturating_add(n);
        } else {
            self.acked = self.acked.saturating_add(n);
            if self.acked >= self.size {
                self.acked = 0;
                self.size += 1;
            }
        }
        self.size = self.size.min(self.max);
    }

    /// A packet at `una` was lost while all before `top` was in flight. Halves once a flight.
    pub(crate) fn on_loss(&mut self, top: Psn) {
        if self.recover.is_none() {
            self.threshold = (self.size / 2).max(MIN);
            self.size = self.threshold;
            self.acked = 0;
            self.recover = Some(top);
        }
    }

    /// Nothing came back for a whole timeout.
    pub(crate) fn on_timeout(&mut self, top: Psn) {
        // As RFC 5681 has it, the threshold falls once for all losses of one flight: else a few
        // timeouts in a row would make it creep for long.
        if self.recover.is_none() {
            self.threshold = (self.size / 2).max(MIN);
        }
        self.size = MIN;
        self.acked = 0;
        self.recover = Some(top);
    }
}

#[cfg(test)]
mod tests;
