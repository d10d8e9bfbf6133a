//! What was seen in all: the footer.

use std::fmt;

use urxe_lint::Totals;

/// Counts of a whole capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// What was judged and found.
    pub totals: Totals,
    /// Findings that were shown.
    pub shown: u64,
    /// Frames of link types that are not read.
    pub other_links: u64,
}

/// One line, then one for each rule with findings.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = &self.totals;
        write!(f, "{}, {}, ", count(t.frames, "frame"), count(t.packets, "RoCEv2 packet"))?;
        write!(f, "{}: ", count(t.connections, "connection"))?;
        match (t.violations(), t.notes()) {
            (0, 0) => f.write_str("nothing found")?,
            (0, n) => write!(f, "no violation, {}", count(n, "note"))?,
            (v, 0) => f.write_str(&count(v, "violation"))?,
            (v, n) => write!(f, "{}, {}", count(v, "violation"), count(n, "note"))?,
        }
        let parts = [
            (t.others, "of something else"),
            (t.unseen, "not judged (cut short, or captured before segmentation)"),
        ];
        for (n, what) in parts {
            if n > 0 {
                write!(f, "\n  {} {what}", count(n, "frame"))?;
            }
        }
        if t.single > 0 {
            write!(f, "\n  {} without its other direction", count(t.single, "flow"))?;
        }
        for (rule, found) in &t.counts {
            write!(f, "\n  {rule}: ")?;
            match (found.violations, found.notes) {
                (v, 0) => f.write_str(&count(v, "violation"))?,
                (0, n) => f.write_str(&count(n, "note"))?,
                (v, n) => write!(f, "{}, {}", count(v, "violation"), count(n, "note"))?,
            }
            if found.held_back > 0 {
                write!(f, " ({} more than are shown; --all shows them)", found.held_back)?;
            }
        }
        Ok(())
    }
}

fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("{n} {what}") } else { format!("{n} {what}s") }
}
