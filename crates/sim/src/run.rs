//! A run from its seed to its verdict.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use urxe_engine::{Count, Time};

use crate::oracle::{Invariant, Violation};
use crate::plan::Plan;
use crate::trace::Trace;
use crate::world::World;
use crate::{Faithful, Interpose, Settings};

/// Which run.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it is drawn from.
    pub seed: u64,
    /// What it is made of.
    pub settings: Settings,
    /// Only these operations of it; `None` is all.
    pub only: Option<BTreeSet<usize>>,
    /// Whether the trace keeps packets.
    pub keep_trace: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// What was to be done.
    pub plan: Arc<Plan>,
    /// What was wrong, if anything.
    pub violation: Option<Violation>,
    /// What went over the links.
    pub trace: Trace,
    /// How much of it.
    pub stats: Stats,
}

/// How much happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Operations that were done well.
    pub good: usize,
    /// Operations that failed.
    pub failed: usize,
    /// Packets that came to an engine.
    pub packets: u64,
    /// Packets sent again.
    pub retransmitted: u64,
    /// Packets refused for their ICRC.
    pub bad_icrc: u64,
    /// Virtual time, nanoseconds.
    pub nanos: u64,
}

impl Run {
    /// All operations of a seed.
    #[must_use]
    pub const fn new(seed: u64, settings: Settings) -> Self {
        Self { seed, settings, only: None, keep_trace: false }
    }

    /// Carries it out.
    #[must_use]
    pub fn go(&self) -> Outcome {
        self.go_with(Box::new(Faithful))
    }

    /// Carries it out with something between engine and oracle.
    #[must_use]
    pub fn go_with(&self, interpose: Box<dyn Interpose>) -> Outcome {
        let plan = Arc::new(Plan::draw(self.seed, &self.settings));
        let mut world = World::new(
            Arc::clone(&plan),
            &self.settings,
            self.only.as_ref(),
            self.keep_trace,
            interpose,
        );
        let result = catch_unwind(AssertUnwindSafe(|| world.run()));
        let violation = match result {
            Ok(verdict) => verdict.err(),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                let what = text.unwrap_or_else(|| "a panic without a text".to_owned());
                Some(Violation { invariant: Invariant::Panic, at: world.fabric.now(), what })
            }
        };
        let stats = stats(&world);
        Outcome { plan, violation, stats, trace: world.fabric.into_trace() }
    }
}

fn stats(world: &World) -> Stats {
    let sum =
        |what| (0..world.fabric.nodes()).map(|n| world.fabric.nic(n).counters().get(what)).sum();
    let good = world.oracle.good();
    Stats {
        good,
        failed: world.oracle.settled() - good,
        packets: sum(Count::RxPackets),
        retransmitted: sum(Count::Retransmitted),
        bad_icrc: sum(Count::BadIcrc),
        nanos: world.fabric.now().as_nanos() - Time::from_nanos(1_000_000).as_nanos(),
    }
}
