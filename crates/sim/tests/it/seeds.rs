//! Seeds pass, and replay.

use std::collections::BTreeSet;
use std::time::Duration;

use urxe_sim::link::{Burst, LinkConfig, Marking};
use urxe_sim::{Rate, Run, Settings, Share, Stats, Topology};

pub(crate) fn faulty(percent: u32) -> Settings {
    let share = Share::percent(percent);
    let link = LinkConfig {
        loss: share,
        duplicate: share,
        reorder: share,
        corrupt: share,
        ..LinkConfig::default()
    };
    Settings { link, ..Settings::default() }
}

/// Runs seeds; a failing one says so, and how to replay it.
fn pass(settings: &Settings, seeds: std::ops::Range<u64>) -> Stats {
    let mut sum = Stats::default();
    for seed in seeds {
        let outcome = Run::new(seed, settings.clone()).go();
        if let Some(violation) = outcome.violation {
            panic!("seed {seed} of {settings:?}: {violation}");
        }
        sum.good += outcome.stats.good;
        sum.retransmitted += outcome.stats.retransmitted;
        sum.bad_icrc += outcome.stats.bad_icrc;
    }
    sum
}

#[test]
fn seeds_pass_on_a_good_network() {
    let sum = pass(&Settings { trouble: false, ..Settings::default() }, 0..20);
    assert!(sum.good >= 20 * 60, "without trouble all is done: {}", sum.good);
}

#[test]
fn seeds_pass_on_a_bad_network() {
    let sum = pass(&faulty(5), 0..60);
    assert!(sum.good > 60 * 30 && sum.retransmitted > 1000 && sum.bad_icrc > 500, "{sum:?}");
}

#[test]
fn seeds_pass_with_bursts_a_switch_and_a_cut() {
    let burst = Burst { enter: Share::percent(1), leave: Share::percent(20), loss: Share::WHOLE };
    let link = LinkConfig {
        burst: Some(burst),
        rate: Some(Rate::from_mbps(1000)),
        queue: 64 << 10,
        jitter: Duration::from_micros(20),
        marking: Some(Marking::above(20 << 10)),
        ..LinkConfig::default()
    };
    let partition = Some(Duration::from_millis(5));
    let topology = Topology::Star;
    pass(&Settings { link, partition, topology, ..Settings::default() }, 0..20);
}

#[test]
fn a_seed_is_a_run_byte_for_byte() {
    for seed in 0..5 {
        let hash = |keep_trace| {
            let run = Run { keep_trace, ..Run::new(seed, faulty(5)) };
            run.go().trace.hash()
        };
        assert_eq!(hash(false), hash(false));
        assert_eq!(hash(false), hash(true), "keeping the packets changes nothing");
    }
    let of = |seed| Run::new(seed, faulty(5)).go().trace.hash();
    assert_ne!(of(0), of(1));
}

#[test]
fn a_part_of_a_run_keeps_its_operations_and_their_data() {
    let settings = Settings { trouble: false, ..Settings::default() };
    let whole = Run { keep_trace: true, ..Run::new(3, settings) };
    let some: BTreeSet<usize> = (0..60).filter(|id| id % 3 == 0).collect();
    let part = Run { only: Some(some.clone()), ..whole.clone() };
    let (whole, part) = (whole.go(), part.go());
    assert!(part.violation.is_none());
    assert!(whole.violation.is_none() && whole.stats.good >= 60);
    assert!((1..=some.len()).contains(&part.stats.good), "{:?}", part.stats);
    for id in some {
        assert_eq!(part.plan.describe(id), whole.plan.describe(id));
    }
}
