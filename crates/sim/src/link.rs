//! One direction of a link: rate and queue, delay, and all that can go wrong.

use std::time::Duration;

use urxe_engine::Time;
use urxe_engine::dcqcn::Rate;

use crate::{Rng, Share, frame};

#[cfg(test)]
mod tests;

/// Losses that come together: a two-state chain after Gilbert and Elliott, a step each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// From good to bad.
    pub enter: Share,
    /// From bad to good.
    pub leave: Share,
    /// Lost while bad.
    pub loss: Share,
}

/// Which packets that wait are marked CE: none up to `from` bytes, all from `to` bytes on, between
/// them a share that grows to `most`. With both the same it is a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marking {
    /// Bytes that wait.
    pub from: u64,
    /// Bytes that wait.
    pub to: u64,
    /// Of those that find just less than `to` bytes.
    pub most: Share,
}

impl Marking {
    /// Marks all that find more than `bytes` waiting.
    #[must_use]
    pub const fn above(bytes: u64) -> Self {
        Self { from: bytes, to: bytes, most: Share::WHOLE }
    }

    fn marks(&self, waiting: u64, rng: &mut Rng) -> bool {
        if waiting <= self.from || waiting > self.to {
            return waiting > self.to;
        }
        let share = u128::from(self.most.billionths()) * u128::from(waiting - self.from);
        let whole = u128::from(Share::WHOLE.billionths()) * u128::from(self.to - self.from);
        u128::from(rng.bits()) * whole < share << 64
    }
}

/// What a direction of a link does to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Lost, each by itself.
    pub loss: Share,
    /// Lost in bursts.
    pub burst: Option<Burst>,
    /// Arriving twice.
    pub duplicate: Share,
    /// Held back behind later ones.
    pub reorder: Share,
    /// Arriving with one to three bits flipped, anywhere from the IP header on.
    pub corrupt: Share,
    /// Time that every packet takes.
    pub delay: Duration,
    /// More time, random up to this; the order stays.
    pub jitter: Duration,
    /// How long a reordered packet or a second copy is held back at most.
    pub hold: Duration,
    /// Bits per second; `None` is any.
    pub rate: Option<Rate>,
    /// Bytes that wait for a rate at most; what finds it full is lost.
    pub queue: u64,
    /// Which packets that wait are marked CE, if they are ECN-capable.
    pub marking: Option<Marking>,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            loss: Share::NONE,
            burst: None,
            duplicate: Share::NONE,
            reorder: Share::NONE,
            corrupt: Share::NONE,
            delay: Duration::from_micros(5),
            jitter: Duration::ZERO,
            hold: Duration::from_micros(50),
            rate: None,
            queue: 1 << 20,
            marking: None,
        }
    }
}

impl LinkConfig {
    /// What [`Self::slowest`] is at most: on a slower link, whoever waits for it asks so often that
    /// a run is taken not to come to rest.
    pub const SLOWEST: Duration = Duration::from_secs(1);

    /// The longest that a packet may take, if it arrives.
    #[must_use]
    pub fn slowest(&self) -> Duration {
        let queue = self.rate.map_or(Duration::ZERO, |rate| rate.time_for(self.queue));
        [self.jitter, self.hold, queue].into_iter().fold(self.delay, Duration::saturating_add)
    }
}

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// By itself.
    Random,
    /// In a burst.
    Burst,
    /// The queue was full.
    TailDrop,
    /// The link was cut.
    Partition,
    /// As a fault said that names it.
    Addressed,
}

impl Loss {
    /// A word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "lost",
            Self::Burst => "lost in a burst",
            Self::TailDrop => "tail-dropped",
            Self::Partition => "lost to a partition",
            Self::Addressed => "lost as addressed",
        }
    }
}

/// What a link did with one packet, beside carrying it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Done {
    /// It was lost.
    pub lost: Option<Loss>,
    /// It went out of order.
    pub reordered: bool,
    /// There are two of it.
    pub duplicated: bool,
    /// Bits were flipped.
    pub corrupted: bool,
    /// It was marked CE.
    pub marked: bool,
}

/// What a fault that names a packet asks for, in place of chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Orders {
    /// Lose it.
    pub drop: bool,
    /// Make two of it.
    pub duplicate: bool,
    /// Flip a bit of it.
    pub corrupt: bool,
    /// Hold it back so long, out of order.
    pub hold: Option<Duration>,
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) config: LinkConfig,
    bad: bool,
    /// When the last bit of what waits has left.
    free_at: Time,
    last_arrival: Time,
    /// Times in which it carries nothing.
    pub(crate) cuts: Vec<(Time, Time)>,
}

impl Link {
    pub(crate) const fn new(config: LinkConfig) -> Self {
        let (free_at, last_arrival) = (Time::ZERO, Time::ZERO);
        Self { config, bad: false, free_at, last_arrival, cuts: Vec::new() }
    }

    /// Takes a packet at `now`; what arrives, and when, goes to `arrivals`.
    pub(crate) fn carry(
        &mut self,
        now: Time,
        mut packet: Vec<u8>,
        orders: &Orders,
        rng: &mut Rng,
        arrivals: &mut Vec<(Time, Vec<u8>)>,
    ) -> Done {
        let mut done = Done { lost: self.loses(now, orders, rng), ..Done::default() };
        let c = self.config;
        if done.lost.is_none() {
            match self.leave(now, packet.len() as u64) {
                None => done.lost = Some(Loss::TailDrop),
                Some(waiting) => {
                    let marks = c.marking.is_some_and(|m| m.marks(waiting, rng));
                    done.marked = marks && frame::mark_ce(&mut packet);
                }
            }
        }
        if done.lost.is_some() {
            return done;
        }
        let took = c.delay + random(c.jitter, rng);
        let mut at = self.free_at.max(now) + took;
        let held = orders.hold.or_else(|| rng.chance(c.reorder).then(|| random(c.hold, rng)));
        if let Some(hold) = held {
            done.reordered = true;
            at = at + hold;
        } else {
            at = at.max(self.last_arrival);
            self.last_arrival = at;
        }
        if orders.duplicate || rng.chance(c.duplicate) {
            done.duplicated = true;
            arrivals.push((at + random(c.hold, rng), packet.clone()));
        }
        if orders.corrupt || rng.chance(c.corrupt) {
            done.corrupted = true;
            for _ in 0..rng.between(1, 3) {
                let bit = rng.index(packet.len() * 8);
                packet[bit / 8] ^= 1 << (bit % 8);
            }
        }
        arrivals.push((at, packet));
        done
    }

    fn loses(&mut self, now: Time, orders: &Orders, rng: &mut Rng) -> Option<Loss> {
        if orders.drop {
            return Some(Loss::Addressed);
        }
        if self.cuts.iter().any(|&(from, to)| (from..to).contains(&now)) {
            return Some(Loss::Partition);
        }
        if rng.chance(self.config.loss) {
            return Some(Loss::Random);
        }
        let burst = self.config.burst?;
        self.bad ^= rng.chance(if self.bad { burst.leave } else { burst.enter });
        (self.bad && rng.chance(burst.loss)).then_some(Loss::Burst)
    }

    /// Queues `len` bytes; says how many wait before them, or `None` if they have no room.
    fn leave(&mut self, now: Time, len: u64) -> Option<u64> {
        let Some(rate) = self.config.rate else {
            return Some(0);
        };
        let wait = self.free_at.saturating_since(now);
        let waiting = wait.as_nanos() * u128::from(rate.as_bps()) / 8_000_000_000;
        let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        if waiting.saturating_add(len) > self.config.queue {
            return None;
        }
        self.free_at = self.free_at.max(now) + rate.time_for(len);
        Some(waiting)
    }
}

fn random(most: Duration, rng: &mut Rng) -> Duration {
    let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(rng.below(most.saturating_add(1)))
}
