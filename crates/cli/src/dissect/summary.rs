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
    /// Frames of something else, by its name.
    pub skipped: BTreeMap<String, u64>,
}

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
            Outcome::Skipped(why) => *self.skipped.entry(why.clone()).or_default() += 1,
        }
    }

    /// Whether no packet was broken and no ICRC wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.broken == 0 && self.bad_icrc == 0 && self.bad_mads == 0
    }
}

/// One line, then one for each reason to skip.
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
            (self.skipped.values().sum(), "skipped"),
        ];
        for (n, what) in parts {
            if n > 0 {
                write!(f, ", {n} {what}")?;
            }
        }
        for (why, n) in &self.skipped {
            write!(f, "\n  skipped {n}: {why}")?;
        }
        Ok(())
    }
}

fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("{n} {what}") } else { format!("{n} {what}s") }
}
