//! What a message costs the engine, with few and with many QPs and regions.
//!
//! `cargo bench -p urxe-sim --bench packets` times each way by itself. On a machine with other
//! work the times of two runs cannot be compared: `... -- ratios` times all sizes of each way in
//! turn, a short round each, and prints the best round of each and their ratios; `... -- idle` does
//! so with few QPs in use among many at rest.
//! `... -- count WAY QPS REGIONS STEPS` makes so many steps in a function called `measured`, for
//! `tools/engine-cost`, which counts instructions and cache lines under callgrind.
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use urxe_sim::load::{Load, Shape, Way};

/// QPs and regions.
const SIZES: [(usize, usize); 4] = [(1, 1), (1_000, 1), (100_000, 1), (1, 1_000_000)];
/// QPs that exist, of which [`ACTIVE`] are used: what the others cost.
const IDLE: [usize; 3] = [16, 1_000, 100_000];
const ACTIVE: usize = 16;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ratios"] => ratios(),
        ["idle"] => idle(),
        ["count", way, qps, regions, steps] => return count(way, [qps, regions, steps]),
        _ => {
            let criterion = Criterion::default()
                .sample_size(20)
                .warm_up_time(Duration::from_secs(1))
                .measurement_time(Duration::from_secs(2));
            let mut criterion = criterion.configure_from_args();
            time(&mut criterion);
            criterion.final_summary();
        }
    }
    ExitCode::SUCCESS
}

fn time(c: &mut Criterion) {
    for way in Way::ALL {
        for (qps, regions) in SIZES {
            let id = BenchmarkId::new(way.name(), format!("{qps} QPs, {regions} MRs"));
            // Made only if it is asked for.
            let mut load = None;
            c.benchmark_group("message").bench_function(id, |b| {
                let load = load
                    .get_or_insert_with(|| Load::new(&Shape { qps, regions, ..Shape::of(way) }));
                b.iter(|| load.step());
            });
        }
    }
}

/// A round is long enough to time and short enough to fall between two interruptions.
const ROUND: u32 = 2_000;

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
#[expect(clippy::disallowed_methods, reason = "a bench reads the clock; the engine does not")]
fn ratios() {
    println!("way      QPs      MRs       ns/message  ratio");
    for way in Way::ALL {
        let mut loads =
            SIZES.map(|(qps, regions)| Load::new(&Shape { qps, regions, ..Shape::of(way) }));
        let mut best = [f64::INFINITY; SIZES.len()];
        // The first rounds touch memory for the first time; the best are later ones.
        for _ in 0..200 {
            for (load, best) in loads.iter_mut().zip(&mut best) {
                let start = Instant::now();
                (0..ROUND).for_each(|_| load.step());
                *best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUND));
            }
        }
        for ((qps, regions), ns) in SIZES.iter().zip(best) {
            let (name, ratio) = (way.name(), ns / best[0]);
            println!("{name:8} {qps:<8} {regions:<9} {ns:<11.0} {ratio:.2}");
        }
    }
}

/// As [`ratios`], with few QPs in use among many at rest.
#[expect(clippy::print_stdout, reason = "a bench prints its table")]
#[expect(clippy::disallowed_methods, reason = "a bench reads the clock; the engine does not")]
fn idle() {
    println!("way      QPs at rest  in use   ns/message  ratio");
    for way in Way::ALL {
        let mut loads = IDLE.map(|qps| Load::new(&Shape { qps, active: ACTIVE, ..Shape::of(way) }));
        let mut best = [f64::INFINITY; IDLE.len()];
        for _ in 0..200 {
            for (load, best) in loads.iter_mut().zip(&mut best) {
                let start = Instant::now();
                (0..ROUND).for_each(|_| load.step());
                *best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUND));
            }
        }
        for (qps, ns) in IDLE.iter().zip(best) {
            let (name, ratio) = (way.name(), ns / best[0]);
            println!("{name:8} {qps:<12} {ACTIVE:<8} {ns:<11.0} {ratio:.2}");
        }
    }
}

fn count(way: &str, numbers: [&str; 3]) -> ExitCode {
    let way = Way::ALL.into_iter().find(|known| known.name() == way);
    let (Some(way), [Ok(qps), Ok(regions), Ok(steps)]) = (way, numbers.map(str::parse)) else {
        return ExitCode::from(2);
    };
    let mut load = Load::new(&Shape { qps, regions, ..Shape::of(way) });
    (0..steps).for_each(|_| load.step());
    let before = load.sent();
    measured(&mut load, steps);
    assert_eq!(load.sent() - before, steps as u64, "each message sends one packet");
    ExitCode::SUCCESS
}

#[inline(never)]
fn measured(load: &mut Load, steps: usize) {
    for _ in 0..steps {
        black_box(&mut *load).step();
    }
}
