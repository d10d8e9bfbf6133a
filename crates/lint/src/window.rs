//! The requests of one direction that are kept, by PSN.

use std::collections::VecDeque;

use urxe_wire::{Opcode, Psn};

use crate::fact::{Fact, Flow};
use crate::report::Place;

/// When something passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) frame: u64,
    pub(crate) time: Option<i64>,
}

impl Mark {
    pub(crate) const fn of(fact: &Fact) -> Self {
        Self { frame: fact.frame, time: fact.time }
    }

    /// Nanoseconds from `earlier` to this.
    pub(crate) fn since(self, earlier: Self) -> Option<i64> {
        self.time?.checked_sub(earlier.time?)
    }

    /// For findings about a packet of `flow` that passed then.
    pub(crate) const fn place(self, flow: Flow, opcode: Option<Opcode>, psn: Psn) -> Place {
        Place {
            frame: self.frame,
            time: self.time,
            flow: Some(flow),
            src_qp: None,
            opcode,
            psn: Some(psn),
        }
    }
}

/// A request packet that passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) psn: Psn,
    /// How many PSNs it takes: more than one for a READ.
    pub(crate) span: u32,
    /// The span is a guess: a READ whose path MTU is not known.
    pub(crate) guess: bool,
    pub(crate) opcode: Opcode,
    pub(crate) len: u32,
    /// It ends a message that the MSN has yet to count.
    pub(crate) counts: bool,
    pub(crate) ack_req: bool,
    pub(crate) ip_id: Option<u16>,
    pub(crate) first: Mark,
    pub(crate) last: Mark,
    pub(crate) times: u32,
}

impl Sent {
    pub(crate) fn end(&self) -> Psn {
        self.psn.add(self.span)
    }
}

/// Requests in the order of their PSNs; what is between two of them was not seen.
#[derive(Debug, Default)]
pub(crate) struct Window {
    sent: VecDeque<Sent>,
}

impl Window {
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Sent> {
        self.sent.iter()
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut Sent> {
        self.sent.back_mut()
    }

    pub(crate) fn front(&self) -> Option<&Sent> {
        self.sent.front()
    }

    /// How many start before or at `psn`.
    fn rank(&self, psn: Psn) -> usize {
        let Some(front) = self.sent.front().map(|sent| sent.psn) else { return 0 };
        let at = psn.distance(front);
        self.sent.partition_point(|sent| sent.psn.distance(front) <= at)
    }

    /// The request whose PSNs `psn` is one of.
    pub(crate) fn find(&self, psn: Psn) -> Option<&Sent> {
        let at = self.rank(psn).checked_sub(1)?;
        self.sent.get(at).filter(|sent| psn.since(sent.psn) < sent.span)
    }

    pub(crate) fn find_mut(&mut self, psn: Psn) -> Option<&mut Sent> {
        let at = self.rank(psn).checked_sub(1)?;
        self.sent.get_mut(at).filter(|sent| psn.since(sent.psn) < sent.span)
    }

    /// Adds a request in its place; of more than `most`, the oldest one goes, and that is told.
    pub(crate) fn insert(&mut self, sent: Sent, most: usize) -> bool {
        let at = self.rank(sent.psn);
        self.sent.insert(at, sent);
        let full = self.sent.len() > most.max(1);
        if full {
            self.sent.pop_front();
        }
        full
    }

    /// Takes out what is acknowledged through `psn`; gives how many messages that completes. A
    /// READ counts when its first PSN is (C9-148).
    pub(crate) fn acknowledge(&mut self, psn: Psn) -> u32 {
        let mut completed = 0;
        while let Some(front) = self.sent.front_mut() {
            if front.psn.is_after(psn) {
                break;
            }
            completed += u32::from(std::mem::take(&mut front.counts));
            if front.end().is_after(psn.next()) {
                break;
            }
            self.sent.pop_front();
        }
        completed
    }

    /// How many messages the MSN has yet to count.
    pub(crate) fn uncounted(&self) -> u32 {
        let n = self.sent.iter().filter(|sent| sent.counts).count();
        u32::try_from(n).unwrap_or(u32::MAX)
    }
}

/// PSNs that were skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) first: Psn,
    pub(crate) len: u32,
    /// The packet that showed it.
    pub(crate) shown_by: Mark,
    /// A finding tells of it already.
    pub(crate) told: bool,
}

impl Gap {
    pub(crate) fn holds(&self, psn: Psn) -> bool {
        psn.since(self.first) < self.len
    }

    /// What is left of it without the `span` PSNs from `psn`.
    pub(crate) fn without(self, psn: Psn, span: u32) -> [Option<Self>; 2] {
        let before = psn.since(self.first);
        let after = before + span;
        let low = (before > 0).then_some(Self { len: before, ..self });
        let high = (after < self.len).then(|| Self {
            first: self.first.add(after),
            len: self.len - after,
            ..self
        });
        [low, high]
    }

    pub(crate) fn text(&self) -> String {
        psns(self.first, self.len)
    }
}

/// PSNs in words.
pub(crate) fn psns(first: Psn, len: u32) -> String {
    match len {
        0 | 1 => format!("PSN {first}"),
        _ => format!("PSNs {first} to {}", first.add(len - 1)),
    }
}
