//! On bad links every connection ends established on both sides or failed on both, in its time,
//! and nothing is left.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::fabric::{Fabric, Outcome, Plan, Rng};

/// Runs `plan` of many seeds, or of the one that is asked for.
fn seeds(test: &str, n: u64, plan: impl Fn(&mut Rng) -> Plan) -> Vec<Fabric> {
    const ONE: &str = "URXE_CM_SEED";
    let asked = std::env::var(ONE).ok().map(|seed| seed.parse().expect("a number"));
    let range = asked.map_or(0..n, |seed: u64| seed..seed + 1);
    let run = |seed| {
        let mut fabric = Fabric::new(plan(&mut Rng::new(seed)), seed);
        fabric.run();
        fabric.judge();
        fabric
    };
    let one = |seed| {
        catch_unwind(AssertUnwindSafe(|| run(seed))).unwrap_or_else(|panic| {
            eprintln!("again: {ONE}={seed} cargo test -p urxe-cm --test it {test}");
            resume_unwind(panic)
        })
    };
    range.map(one).collect()
}

fn established(runs: &[Fabric]) -> usize {
    let all = runs.iter().flat_map(|run| run.active.values());
    all.filter(|outcome| **outcome == Outcome::Established).count()
}

#[test]
fn small_runs_of_every_kind() {
    let runs = seeds("small_runs_of_every_kind", 3000, |rng| Plan {
        nodes: usize::try_from(2 + rng.below(3)).unwrap(),
        connects: usize::try_from(1 + rng.below(12)).unwrap(),
        loss: rng.below(21),
        duplicate: rng.below(30),
        late: rng.below(30),
        refuse: rng.below(30),
        slow: rng.below(50),
        restarts: 0,
    });
    if runs.len() > 1 {
        assert!(established(&runs) > 5000);
        assert!(runs.iter().map(|run| run.lost).sum::<u64>() > 5000);
        assert!(runs.iter().map(|run| run.answered).sum::<usize>() > 500);
    }
}

/// 256 at once, a tenth of MADs lost, a tenth twice, a tenth late.
#[test]
fn many_at_once_on_a_bad_link() {
    let runs = seeds("many_at_once_on_a_bad_link", 40, |_| Plan::bad(2, 256));
    if runs.len() > 1 {
        assert!(established(&runs) > 40 * 200);
    }
}

/// Nodes that forget all they knew leave nothing behind on the others.
#[test]
fn peers_that_start_again() {
    let runs = seeds("peers_that_start_again", 500, |rng| Plan {
        restarts: 1 + rng.below(4),
        ..Plan::bad(3, 20)
    });
    assert!(established(&runs) > 0);
}

/// Without faults nothing is sent twice.
#[test]
fn a_good_link_needs_no_retries() {
    let good = Plan { loss: 0, duplicate: 0, late: 0, refuse: 0, slow: 0, ..Plan::bad(2, 60) };
    for run in seeds("a_good_link_needs_no_retries", 20, |_| good) {
        assert_eq!((run.lost, run.retried()), (0, 0));
        assert_eq!(established(std::slice::from_ref(&run)), 60);
    }
}

/// A link that loses more than it carries: most fail, all end.
#[test]
fn a_link_that_hardly_works() {
    let plan = Plan { loss: 70, restarts: 1, ..Plan::bad(2, 30) };
    let runs = seeds("a_link_that_hardly_works", 100, |_| plan);
    let failed = |run: &Fabric| {
        run.active.values().filter(|outcome| **outcome != Outcome::Established).count()
    };
    assert!(runs.iter().map(failed).sum::<usize>() > 0);
}
