//! What was seen in all: the footer.

use std::collections::BTreeMap;
use std::fmt;

use super::outcome::{Icrc, Mad, Outcome};

/// Counts of frames by what they turned out to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// All frames.
    pub frames: u64,
    /// RoCEv2 packets that could be read, cut ones included.
    pub packets: u64,
    /// Those of them that the filter let through.
    pub shown: u64,
    /// Those of them whose ICRC is wrong.
    pub bad_icrc: u64,
    /// Those of them whose ICRC a snap length cut.
    pub unseen_icrc: u64,
    /// Those of them whose management datagram is wrong.
    pub bad_mads: u64,
    /// RoCEv2 packets that are wrong.
    pub broken: u64,
    /// Frames that a snap length left without a header to read.
    pub cut: u64,
    /// Frames of something else, by its name: of the first kinds that were met.
    pub skipped: BTreeMap<String, u64>,
    /// Frames of something else that were of further kinds.
    pub skipped_others: u64,
}

/// How many kinds of other frames are told apart, so that no file fills the memory.
const KINDS: usize = 64;
/// How many of them the footer lists.
const LISTED_KINDS: usize = 12;

impl Summary {
    /// Counts a frame.
    pub(crate) fn add(&mut self, outcome: &Outcome<'_>) {
        self.frames += 1;
        match outcome {
            Outcome::Roce(packet) => {
                self.packets += 1;
                self.bad_icrc += u64::from(matches!(packet.icrc, Icrc::Bad { .. }));
                self.unseen_icrc += u64::from(packet.icrc == Icrc::Unseen);
                self.bad_mads += u64::from(matches!(packet.mad, Some(Mad::Bad(_))));
            }
            Outcome::Broken { .. } => self.broken += 1,
            Outcome::Cut { .. } => self.cut += 1,
            Outcome::Skipped(why) => self.skip(why),
        }
    }

    fn skip(&mut self, why: &str) {
        if let Some(n) = self.skipped.get_mut(why) {
            *n += 1;
        } else if self.skipped.len() < KINDS {
            self.skipped.insert(why.to_owned(), 1);
        } else {
            self.skipped_others += 1;
        }
    }

    /// Whether no packet was broken and no ICRC wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.broken == 0 && self.bad_icrc == 0 && self.bad_mads == 0
    }
}

/// One line, then one for each reason to skip, the most frequent ones first.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", count(self.frames, "frame"), count(self.packets, "RoCEv2 packet"))?;
        if self.shown != self.packets {
            write!(f, " ({} shown)", self.shown)?;
        }
        match (self.bad_icrc, self.packets - self.unseen_icrc) {
            (_, 0) => {}
            (0, n) if n < self.packets => write!(f, ", {} right", count(n, "ICRC"))?,
            (0, 1) => f.write_str(", its ICRC right")?,
            (0, _) => f.write_str(", all ICRCs right")?,
            (bad, _) => write!(f, ", {}", count(bad, "wrong ICRC"))?,
        }
        let parts = [
            (self.unseen_icrc, "without ICRC (cut short)"),
            (self.broken, "broken"),
            (self.bad_mads, "with a broken management datagram"),
            (self.cut, "cut too short to read"),
            (self.skipped.values().sum::<u64>() + self.skipped_others, "skipped"),
        ];
        for (n, what) in parts {
            if n > 0 {
                write!(f, ", {n} {what}")?;
            }
        }
        let mut kinds: Vec<_> = self.skipped.iter().collect();
        // Stable: equal counts stay in the order of their names.
        kinds.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        let (listed, rest) = kinds.split_at(kinds.len().min(LISTED_KINDS));
        for (why, n) in listed {
            write!(f, "\n  skipped {n}: {why}")?;
        }
        let others = rest.iter().map(|(_, n)| **n).sum::<u64>() + self.skipped_others;
        if others > 0 {
            write!(f, "\n  and {} of other kinds", count(others, "frame"))?;
        }
        Ok(())
    }
}

fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("{n} {what}") } else { format!("{n} {what}s") }
}
