//! What becomes of each packet: randomness of a seed that is passed in, and no clock. The same
//! faults, seed, packets and times give the same fates.

use std::time::Duration;

use super::{Faults, Share};

#[cfg(test)]
mod tests;

/// One step of SplitMix64 (Steele, Lea, Flood 2014): every bit of `x` changes half of the result's.
#[must_use]
pub const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A stream of random numbers: SplitMix64.
#[derive(Clone, Copy, Debug)]
struct Stream(u64);

impl Stream {
    const fn new(seed: u64, of: u64) -> Self {
        Self(mix(seed) ^ mix(!of))
    }

    fn bits(&mut self) -> u64 {
        let out = mix(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        out
    }

    /// A number below `n`; 0 if `n` is 0.
    fn below(&mut self, n: u64) -> u64 {
        let wide = u128::from(self.bits()) * u128::from(n);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    fn chance(&mut self, share: Share) -> bool {
        self.below(u64::from(Share::WHOLE.billionths())) < u64::from(share.billionths())
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.below(nanos.saturating_add(1)))
    }
}

/// How a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landing {
    /// When it arrives.
    pub at: Duration,
    /// The bit, counted from the first of the packet, that is turned over.
    pub flip: Option<usize>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Lost on its own.
    Lost,
    /// Lost in a run.
    LostInBurst,
    /// Lost because too many are held.
    Overflow,
    /// It arrives, and perhaps once more.
    Arrives {
        /// As it is.
        first: Landing,
        /// Again.
        again: Option<Landing>,
        /// It was held back for others to overtake.
        reordered: bool,
    },
}

/// Decides the fate of one packet after the other, in one direction. Each fault has a stream of
/// its own, so that to change one leaves the others as they were.
#[derive(Clone, Debug)]
pub struct Dice {
    faults: Faults,
    loss: Stream,
    burst: Stream,
    duplicate: Stream,
    reorder: Stream,
    corrupt: Stream,
    jitter: Stream,
    /// Packets that a run has still to lose.
    burst_left: u32,
    /// When the link is free again.
    free: Duration,
    /// When the packet before, if not held back, arrives: later ones keep behind it.
    before: Duration,
}

/// Bytes of the shortest packet of which a bit is turned over: a BTH and an ICRC.
const SHORTEST: usize = 16;

impl Dice {
    /// The dice of a direction: 0 for packets that leave, 1 for those that arrive, say.
    #[must_use]
    pub fn new(faults: Faults, seed: u64, direction: u64) -> Self {
        let of = |fault: u64| Stream::new(seed, direction << 32 | fault);
        Self {
            faults,
            loss: of(0),
            burst: of(1),
            duplicate: of(2),
            reorder: of(3),
            corrupt: of(4),
            jitter: of(5),
            burst_left: 0,
            free: Duration::ZERO,
            before: Duration::ZERO,
        }
    }

    /// The fate of a packet of `len` bytes that sets out at `now`, while `held` are on their way.
    pub fn fate(&mut self, now: Duration, len: usize, held: usize) -> Fate {
        let lost = self.loss.chance(self.faults.loss);
        let burst = self.burst.chance(self.faults.burst);
        if self.burst_left == 0 && burst {
            self.burst_left = self.faults.burst_length;
        }
        if self.burst_left > 0 {
            self.burst_left -= 1;
            return Fate::LostInBurst;
        }
        if lost {
            return Fate::Lost;
        }
        if held >= self.faults.queue {
            return Fate::Overflow;
        }
        let again = self.duplicate.chance(self.faults.duplicate);
        let reordered = self.reorder.chance(self.faults.reorder);
        let first = self.landing(now, len, reordered);
        let again = again.then(|| self.landing(now, len, false));
        Fate::Arrives { first, again, reordered }
    }

    fn landing(&mut self, now: Duration, len: usize, reordered: bool) -> Landing {
        let sent = match self.faults.rate {
            Some(rate) => {
                let bits = len as u128 * 8 * 1_000_000_000;
                let nanos = u64::try_from(bits / u128::from(rate)).unwrap_or(u64::MAX);
                self.free = self.free.max(now).saturating_add(Duration::from_nanos(nanos));
                self.free
            }
            None => now,
        };
        let jitter = self.jitter.up_to(self.faults.jitter);
        let at = sent.saturating_add(self.faults.delay).saturating_add(jitter).max(self.before);
        let flip = self.corrupt.chance(self.faults.corrupt).then(|| self.bit(len)).flatten();
        if reordered {
            let by = self.reorder.up_to(self.faults.reorder_by);
            return Landing { at: at.saturating_add(by).max(now + Duration::from_nanos(1)), flip };
        }
        self.before = at;
        Landing { at, flip }
    }

    /// A bit that the ICRC covers, or one of its own.
    fn bit(&mut self, len: usize) -> Option<usize> {
        if len < SHORTEST {
            return None;
        }
        let bit = usize::try_from(self.corrupt.below((len as u64 - 1) * 8)).ok()?;
        // Not those of BTH byte 4, which routers may change.
        Some(if bit < 32 { bit } else { bit + 8 })
    }
}
