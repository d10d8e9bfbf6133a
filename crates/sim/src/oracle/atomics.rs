//! Atomics on one word: there must be an order in which all that was seen makes sense.

use std::collections::BTreeMap;

use super::{Invariant, Oracle, Phase, Verdict};
use crate::plan::What;

/// More operations of unknown outcome than this are not tried in all combinations.
const UNKNOWN: usize = 16;

impl Oracle {
    pub(super) fn check_words(&mut self) -> Verdict {
        for word in 0..self.plan.words.len() {
            let span = self.plan.words[word].span;
            let bytes = self.actual(&[span]);
            let last = u64::from_ne_bytes(bytes.as_slice().try_into().unwrap_or_default());
            let order = if self.plan.words[word].swaps {
                self.order_of_swaps(word, last)?
            } else {
                self.order_of_adds(word, last)?
            };
            self.check_precedence(word, &order)?;
            self.adopt(&[span]);
        }
        Ok(())
    }

    /// Operations on a word: what they brought, if that is known.
    fn on_word(&self, word: usize) -> Vec<(usize, Option<u64>)> {
        let uses = |what: &What| match *what {
            What::Add { word: w, shift: 0, .. } | What::Swap { word: w, .. } => w == word,
            _ => false,
        };
        let mut all = Vec::new();
        for (id, op) in self.plan.ops.iter().enumerate() {
            let posted = matches!(self.phases[id], Phase::Posted | Phase::Good | Phase::Failed(_));
            if posted && uses(&op.what) && op.ends == crate::plan::Ends::Well {
                all.push((id, self.originals.get(&id).copied()));
            }
        }
        all
    }

    /// Each sum must be the one before it and what was added to that; what is between must have
    /// been added by operations whose outcome is not known.
    fn order_of_adds(
        &self,
        word: usize,
        last: u64,
    ) -> Result<Vec<(usize, usize)>, super::Violation> {
        let initial = self.initial[word];
        let added = |id: usize| match self.op(id).what {
            What::Add { add, .. } => add,
            _ => 0,
        };
        let all = self.on_word(word);
        let mut known: Vec<(u64, usize)> =
            all.iter().filter_map(|&(id, o)| Some((o?.wrapping_sub(initial), id))).collect();
        known.sort_unstable();
        let mut unknown: Vec<(usize, u64)> =
            all.iter().filter(|(_, o)| o.is_none()).map(|&(id, _)| (id, added(id))).collect();
        let mut sum = 0_u64;
        let end = (last.wrapping_sub(initial), usize::MAX);
        for &(seen, id) in known.iter().chain([&end]) {
            if seen != sum && !explain(&mut unknown, seen.wrapping_sub(sum)) {
                let who = match id {
                    usize::MAX => format!("word {word} at the end"),
                    id => self.plan.describe(id),
                };
                let what = format!(
                    "{who}: the sum is {seen:#x} above the first value; the fetch-adds before it \
                     make {sum:#x}, and no operation of unknown outcome explains the rest"
                );
                return self.fail(Invariant::Atomic, what);
            }
            if id != usize::MAX {
                sum = seen.wrapping_add(added(id));
            }
        }
        Ok(known.iter().enumerate().map(|(place, &(_, id))| (id, place)).collect())
    }

    /// Values replace each other in a chain, for each is swapped in once.
    fn order_of_swaps(
        &self,
        word: usize,
        last: u64,
    ) -> Result<Vec<(usize, usize)>, super::Violation> {
        let all = self.on_word(word);
        let (mut known, mut unknown) = (BTreeMap::new(), BTreeMap::<u64, Vec<u64>>::new());
        for &(id, original) in &all {
            let (compare, swap) = self.compare_and_swap(id);
            let Some(original) = original else {
                unknown.entry(compare).or_default().push(swap);
                continue;
            };
            if original == compare
                && let Some((other, _)) = known.insert(compare, (id, swap))
            {
                let (a, b) = (self.plan.describe(other), self.plan.describe(id));
                let what = format!("word {word}: {a} and {b} both replaced {compare:#x}");
                return self.fail(Invariant::Atomic, what);
            }
        }
        let known: BTreeMap<u64, u64> = known.into_iter().map(|(c, (_, s))| (c, s)).collect();
        let mut chain = vec![self.initial[word]];
        if !lead(&mut chain, known.len(), last, &known, &unknown) {
            let what = format!(
                "word {word} held {:#x} and holds {last:#x}; the {} swaps that were told good, and \
                 {} of unknown outcome, do not lead there",
                chain[0],
                known.len(),
                unknown.len()
            );
            return self.fail(Invariant::Atomic, what);
        }
        let places: BTreeMap<u64, usize> = chain.iter().copied().zip(0..).collect();
        let mut order = Vec::new();
        for (id, original) in all.iter().filter_map(|&(id, o)| Some((id, o?))) {
            let Some(&at) = places.get(&original) else {
                let who = self.plan.describe(id);
                let what = format!("{who} brought {original:#x}, which word {word} never held");
                return self.fail(Invariant::Atomic, what);
            };
            // One that swapped stands before the next value; one that did not, anywhere at it.
            order.push((id, at));
        }
        Ok(order)
    }

    fn compare_and_swap(&self, id: usize) -> (u64, u64) {
        match self.op(id).what {
            What::Swap { word, expects, swap } => (self.expected(word, expects), swap),
            _ => (0, 0),
        }
    }

    /// The value that a compare and swap expects.
    pub(crate) fn expected(&self, word: usize, expects: Option<usize>) -> u64 {
        match expects.map(|id| self.op(id).what) {
            Some(What::Swap { swap, .. }) => swap,
            _ => self.initial[word],
        }
    }

    /// What completed before another was posted, or was posted before it to the same queue, came
    /// before it.
    fn check_precedence(&self, word: usize, order: &[(usize, usize)]) -> Verdict {
        for &(a, place_a) in order {
            for &(b, place_b) in order {
                let (op_a, op_b) = (self.op(a), self.op(b));
                let same = (op_a.conn, op_a.side) == (op_b.conn, op_b.side);
                let done = self.times.get(&a).and_then(|t| t.1);
                let posted = self.times.get(&b).map(|t| t.0);
                let before = (same && a < b) || done.zip(posted).is_some_and(|(d, p)| d < p);
                if before && place_a > place_b {
                    let (a, b) = (self.plan.describe(a), self.plan.describe(b));
                    let what = format!("word {word}: {a} took effect after {b}, which came later");
                    return self.fail(Invariant::Atomic, what);
                }
            }
        }
        Ok(())
    }
}

/// Takes those away whose sum is `gap`; false if none are.
fn explain(unknown: &mut Vec<(usize, u64)>, gap: u64) -> bool {
    let count = unknown.len().min(UNKNOWN);
    for set in 1_u32..1 << count {
        let within = |i: &usize| set & (1 << i) != 0;
        let sum = (0..count).filter(within).fold(0_u64, |s, i| s.wrapping_add(unknown[i].1));
        if sum == gap {
            let mut place = 0;
            unknown.retain(|_| {
                place += 1;
                place > count || !within(&(place - 1))
            });
            return true;
        }
    }
    false
}

/// Extends a chain of values to `last` so that all known swaps are in it; says whether it can be.
fn lead(
    chain: &mut Vec<u64>,
    left: usize,
    last: u64,
    known: &BTreeMap<u64, u64>,
    unknown: &BTreeMap<u64, Vec<u64>>,
) -> bool {
    let Some(&value) = chain.last() else { return false };
    let (next, left) = match known.get(&value) {
        // What is told good was done, and no other replaced the same value.
        Some(swap) => (std::slice::from_ref(swap), left - 1),
        None if value == last && left == 0 => return true,
        None => (unknown.get(&value).map_or(&[][..], Vec::as_slice), left),
    };
    for &swap in next {
        chain.push(swap);
        if lead(chain, left, last, known, unknown) {
            return true;
        }
        chain.pop();
    }
    false
}
