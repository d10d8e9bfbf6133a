//! Running seeds, several at a time. Each run by itself has neither clock nor thread.

use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use urxe_sim::{Run, Stats, Violation};

use super::SimArgs;
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

/// All seeds, in order.
pub(super) fn run_all(args: &SimArgs) -> Vec<SeedResult> {
    let bar = if args.json || args.seeds == 1 { ProgressBar::hidden() } else { bar(args.seeds) };
    let next = AtomicU64::new(args.first_seed);
    let end = args.first_seed + args.seeds;
    let results = Mutex::new(Vec::new());
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
    quietly(|| {
        let work = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= end {
                    return;
                }
                let outcome = run_of(args, seed).go();
                if outcome.violation.is_some() {
                    let failed = failures.fetch_add(1, Ordering::Relaxed) + 1;
                    bar.set_message(format!("{failed} failed"));
                }
                let (violation, stats) = (outcome.violation, outcome.stats);
                let result = SeedResult { seed, violation, stats, hash: outcome.trace.hash() };
                results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                done.fetch_add(1, Ordering::Relaxed);
                bar.inc(1);
            }
        };
        let jobs = args
            .jobs
            .map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
        thread::scope(|scope| {
            for _ in 1..jobs {
                scope.spawn(work);
            }
            work();
        });
    });
    bar.finish_and_clear();
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|r| r.seed);
    results
}

fn bar(seeds: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} seeds, {eta} left {msg}");
    ProgressBar::new(seeds).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A panic of the engine is a failure of its seed, to be told once, with the replay.
pub(super) fn quietly<R>(work: impl FnOnce() -> R) -> R {
    let before = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = work();
    panic::set_hook(before);
    result
}
