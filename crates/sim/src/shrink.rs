//! The few operations that a failure needs.

use std::collections::BTreeSet;

use crate::{Invariant, Run};

#[cfg(test)]
mod tests;

/// Leaves operations out of a failing run as long as it fails with the same invariant (Zeller's
/// delta debugging): halves first, then ever smaller parts. At most `tries` runs; the same run
/// always gives the same answer.
#[must_use]
pub fn shrink(
    run: &Run,
    invariant: Invariant,
    all: BTreeSet<usize>,
    tries: usize,
) -> BTreeSet<usize> {
    let fails = |only: &BTreeSet<usize>| {
        let part = Run { only: Some(only.clone()), keep_trace: false, ..run.clone() };
        part.go().violation.is_some_and(|v| v.invariant == invariant)
    };
    minimise(all, tries, fails)
}

fn minimise(
    all: BTreeSet<usize>,
    tries: usize,
    fails: impl Fn(&BTreeSet<usize>) -> bool,
) -> BTreeSet<usize> {
    let (mut kept, mut parts, mut left) = (all, 2, tries);
    while kept.len() > 1 && left > 0 {
        let size = kept.len().div_ceil(parts);
        let ids: Vec<usize> = kept.iter().copied().collect();
        let mut smaller = None;
        for part in ids.chunks(size) {
            if left == 0 {
                break;
            }
            left -= 1;
            let rest: BTreeSet<usize> = ids.iter().copied().filter(|i| !part.contains(i)).collect();
            if fails(&rest) {
                smaller = Some(rest);
                break;
            }
        }
        match smaller {
            Some(rest) => {
                kept = rest;
                parts = parts.max(3) - 1;
            }
            None if size == 1 => break,
            None => parts = (parts * 2).min(kept.len()),
        }
    }
    kept
}
