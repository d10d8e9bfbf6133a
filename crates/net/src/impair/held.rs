//! Packets on their way, in the order in which they are due.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::{Dice, Fate, Landing};

/// What became of packets in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Packets that set out.
    pub packets: u64,
    /// Lost on their own.
    pub lost: u64,
    /// Lost in a run.
    pub lost_in_burst: u64,
    /// Lost because too many were held.
    pub overflow: u64,
    /// Packets that arrive twice.
    pub duplicated: u64,
    /// Packets held back for others to overtake.
    pub reordered: u64,
    /// Arrivals with a bit turned over.
    pub corrupted: u64,
}

/// A packet, and the bit of it that is to be turned over.
type Due<T> = (T, Option<usize>);

/// Packets on their way in one direction.
pub(super) struct Held<T> {
    dice: Dice,
    /// Those that were due when they set out, or could not be taken when they were.
    ready: VecDeque<Due<T>>,
    /// By time, then in the order in which they set out.
    packets: BTreeMap<(Duration, u64), Due<T>>,
    nth: u64,
    /// Those that are ready cannot go on: they are held too.
    stuck: bool,
    pub(super) counts: FaultCounts,
}

impl<T: Clone> Held<T> {
    pub(super) fn new(dice: Dice) -> Self {
        let counts = FaultCounts::default();
        Self {
            dice,
            ready: VecDeque::new(),
            packets: BTreeMap::new(),
            nth: 0,
            stuck: false,
            counts,
        }
    }

    /// Lets a packet of `len` bytes set out; it is made only if it arrives.
    pub(super) fn add(&mut self, now: Duration, len: usize, make: impl FnOnce() -> T) {
        self.mature(now);
        let counts = &mut self.counts;
        counts.packets += 1;
        let stuck = if self.stuck { self.ready.len() } else { 0 };
        match self.dice.fate(now, len, self.packets.len() + stuck) {
            Fate::Lost => counts.lost += 1,
            Fate::LostInBurst => counts.lost_in_burst += 1,
            Fate::Overflow => counts.overflow += 1,
            Fate::Arrives { first, again, reordered } => {
                counts.reordered += u64::from(reordered);
                let packet = make();
                if let Some(again) = again {
                    counts.duplicated += 1;
                    self.hold(now, first, packet.clone());
                    self.hold(now, again, packet);
                } else {
                    self.hold(now, first, packet);
                }
            }
        }
    }

    /// Whether those that are ready could not go on when it was tried.
    pub(super) const fn is_stuck(&self) -> bool {
        self.stuck
    }

    pub(super) const fn set_stuck(&mut self, stuck: bool) {
        self.stuck = stuck;
    }

    fn hold(&mut self, now: Duration, landing: Landing, packet: T) {
        self.counts.corrupted += u64::from(landing.flip.is_some());
        let due = (packet, landing.flip);
        if landing.at <= now {
            self.ready.push_back(due);
        } else {
            self.nth += 1;
            self.packets.insert((landing.at, self.nth), due);
        }
    }

    /// Makes ready what is due.
    fn mature(&mut self, now: Duration) {
        while let Some(first) = self.packets.first_entry()
            && first.key().0 <= now
        {
            self.ready.push_back(first.remove());
        }
    }

    /// The first packet, if it is due.
    pub(super) fn due(&mut self, now: Duration) -> Option<Due<T>> {
        self.mature(now);
        self.ready.pop_front()
    }

    /// Whether a packet is due.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        self.mature(now);
        !self.ready.is_empty()
    }

    /// Puts what [`Self::due`] gave back to the front.
    pub(super) fn put_back(&mut self, packet: T, flip: Option<usize>) {
        self.ready.push_front((packet, flip));
    }

    /// When the next packet is due; at once, 0.
    pub(super) fn next(&self) -> Option<Duration> {
        match self.ready.is_empty() {
            true => self.packets.first_key_value().map(|((at, _), _)| *at),
            false => Some(Duration::ZERO),
        }
    }
}
