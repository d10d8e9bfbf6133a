//! Running seeds, several at a time. Each run by itself has neither clock nor thread.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Once};
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use urxe_sim::{Run, Stats, Violation};

use super::{SimArgs, SimError};
use crate::ending;

/// What came of a seed.
#[derive(Debug)]
pub(super) struct SeedResult {
    pub(super) seed: u64,
    pub(super) violation: Option<Violation>,
    pub(super) stats: Stats,
    /// Hash of its trace.
    pub(super) hash: u64,
}

/// The run of a seed, as the options say.
pub(super) fn run_of(args: &SimArgs, seed: u64) -> Run {
    Run { only: args.only(), ..Run::new(seed, args.settings()) }
}

/// All seeds, in order; `each` is handed every one as soon as it and those before it are done.
pub(super) fn run_all(
    args: &SimArgs,
    mut each: impl FnMut(&SeedResult) -> Result<(), SimError>,
) -> Result<Vec<SeedResult>, SimError> {
    let bar = if args.json || args.seeds == 1 { ProgressBar::hidden() } else { bar(args.seeds) };
    let (done, failures) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    ending::at_once({
        let (bar, done, failures) = (bar.clone(), Arc::clone(&done), Arc::clone(&failures));
        let seeds = args.seeds;
        move || {
            bar.finish_and_clear();
            let [done, failed] = [done, failures].map(|n| n.load(Ordering::Relaxed));
            format!("{done} of {seeds} seeds, {failed} of which failed")
        }
    });
    let next = AtomicU64::new(0);
    let work = |results: Sender<SeedResult>| {
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            if nth >= args.seeds {
                return;
            }
            let seed = args.first_seed + nth;
            let outcome = quietly(|| run_of(args, seed).go());
            if outcome.violation.is_some() {
                let failed = failures.fetch_add(1, Ordering::Relaxed) + 1;
                bar.set_message(format!("{failed} failed"));
            }
            let (violation, stats) = (outcome.violation, outcome.stats);
            let result = SeedResult { seed, violation, stats, hash: outcome.trace.hash() };
            done.fetch_add(1, Ordering::Relaxed);
            bar.inc(1);
            // Nobody takes results any more once one could not be written.
            if results.send(result).is_err() {
                return;
            }
        }
    };
    let jobs = args
        .jobs
        .map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
    let all = thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        for _ in 0..jobs {
            let (work, sender) = (&work, sender.clone());
            scope.spawn(move || work(sender));
        }
        drop(sender);
        in_order(args.first_seed, results, &mut each)
    });
    bar.finish_and_clear();
    all
}

/// Puts what comes in any order into that of the seeds.
fn in_order(
    first: u64,
    results: Receiver<SeedResult>,
    each: &mut impl FnMut(&SeedResult) -> Result<(), SimError>,
) -> Result<Vec<SeedResult>, SimError> {
    let (mut early, mut all) = (BTreeMap::new(), Vec::new());
    let mut wanted = first;
    for result in results {
        early.insert(result.seed, result);
        while let Some(result) = early.remove(&wanted) {
            each(&result)?;
            all.push(result);
            wanted += 1;
        }
    }
    Ok(all)
}

fn bar(seeds: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} seeds, {eta} left {msg}");
    ProgressBar::new(seeds).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

thread_local! {
    /// Whether panics of this thread are told by somebody else.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// A panic of the engine is a failure of its seed, to be told once, with the replay.
pub(super) fn quietly<R>(work: impl FnOnce() -> R) -> R {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            if !QUIET.get() {
                before(what);
            }
        }));
    });
    QUIET.set(true);
    let result = work();
    QUIET.set(false);
    result
}
