//! What changes in a side's memory, and when.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;
use urxe::{Mr, Qpn};

use super::world::Who;

/// A range that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Change {
    /// Its first byte, from the region's start.
    pub(super) at: usize,
    /// Bytes.
    pub(super) len: usize,
    /// Its first bytes before, as hexadecimal digits.
    pub(super) before: String,
    /// Its first bytes after.
    pub(super) after: String,
}

/// Bytes of a range that are shown.
const SHOWN: usize = 32;
/// Equal bytes that do not part two ranges: by chance a byte has its new value already.
const GAP: usize = 8;

/// A region that is looked at.
#[derive(Debug)]
pub(super) struct Watch {
    who: Who,
    qpn: Qpn,
    mr: Arc<Mr>,
    /// What stood there at first.
    base: Vec<u8>,
    /// What stood there when it was looked at last.
    last: Vec<u8>,
}

impl Watch {
    /// Looks at it for the first time.
    pub(super) fn new(who: Who, qpn: Qpn, mr: &Arc<Mr>) -> Self {
        let mut watch = Self { who, qpn, mr: Arc::clone(mr), base: Vec::new(), last: Vec::new() };
        watch.rebase();
        watch
    }

    /// Whether it belongs to this QP.
    pub(super) fn is(&self, who: Who, qpn: Qpn) -> bool {
        self.who == who && self.qpn == qpn
    }

    fn look(&self) -> Vec<u8> {
        // A region can always be read as a whole.
        self.mr.to_vec(0..self.mr.len()).unwrap_or_default()
    }

    /// What stands there now is what counts as before.
    pub(super) fn rebase(&mut self) {
        self.base = self.look();
        self.last.clone_from(&self.base);
    }

    /// What has changed since it was looked at last.
    pub(super) fn changes(&mut self) -> Vec<Change> {
        let now = self.look();
        let changes = difference(&self.last, &now);
        self.last = now;
        changes
    }

    /// What has changed in all.
    pub(super) fn in_all(&self) -> Vec<Change> {
        difference(&self.base, &self.look())
    }
}

/// The ranges in which two equally long runs of bytes differ.
pub(super) fn difference(before: &[u8], after: &[u8]) -> Vec<Change> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    if before == after {
        return Vec::new();
    }
    for (at, _) in before.iter().zip(after).enumerate().filter(|(_, (b, a))| b != a) {
        match ranges.last_mut() {
            Some((_, end)) if at <= *end + GAP => *end = at + 1,
            _ => ranges.push((at, at + 1)),
        }
    }
    let hex = |bytes: &[u8]| {
        bytes.iter().take(SHOWN).fold(String::new(), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        })
    };
    let change = |(at, end): (usize, usize)| Change {
        at,
        len: end - at,
        before: hex(&before[at..end]),
        after: hex(&after[at..end]),
    };
    ranges.into_iter().map(change).collect()
}

#[cfg(test)]
mod tests;
