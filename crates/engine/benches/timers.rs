//! The timer queue against the two ways it was chosen over, at 1 to 100,000 armed QPs.
//!
//! `rearm` moves a random QP's deadline into the future, as each ACK does; `fire` pops the
//! earliest and arms it again; `arm_cancel` arms a QP at rest and takes it back.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use urxe_engine::Time;
use urxe_engine::timers::Timers;

/// Index space: the most QPs of a NIC.
const QPS: usize = 1 << 18;

/// What a timer queue does.
trait Queue: Default {
    fn set(&mut self, index: usize, at: Option<u64>);
    fn next(&self) -> Option<u64>;
    fn pop(&mut self) -> Option<usize>;
}

struct Heap(Timers);

impl Default for Heap {
    fn default() -> Self {
        let mut timers = Timers::new();
        timers.reserve(QPS - 1);
        Self(timers)
    }
}

impl Queue for Heap {
    fn set(&mut self, index: usize, at: Option<u64>) {
        self.0.set(index, at.map(Time::from_nanos));
    }
    fn next(&self) -> Option<u64> {
        self.0.next().map(Time::as_nanos)
    }
    fn pop(&mut self) -> Option<usize> {
        self.0.pop_expired(Time::MAX)
    }
}

const WIDTH: usize = 8;
const NEVER: u64 = u64::MAX;

/// Eight siblings in one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u64; WIDTH]);

impl Line {
    fn least(&self) -> u64 {
        self.0.into_iter().fold(NEVER, u64::min)
    }
}

/// Minima over the index space: each line's least is an entry of the level above.
struct Tree(Vec<Vec<Line>>);

impl Default for Tree {
    fn default() -> Self {
        let sizes = std::iter::successors(Some(QPS / WIDTH), |&n| (n > 1).then_some(n / WIDTH));
        Self(sizes.map(|lines| vec![Line([NEVER; WIDTH]); lines]).collect())
    }
}

impl Queue for Tree {
    fn set(&mut self, mut index: usize, at: Option<u64>) {
        let mut value = at.unwrap_or(NEVER);
        for level in &mut self.0 {
            let line = &mut level[index / WIDTH];
            let before = line.least();
            line.0[index % WIDTH] = value;
            value = line.least();
            if value == before {
                return;
            }
            index /= WIDTH;
        }
    }
    fn next(&self) -> Option<u64> {
        let least = self.0.last()?[0].least();
        (least != NEVER).then_some(least)
    }
    fn pop(&mut self) -> Option<usize> {
        let least = self.next()?;
        let mut at = 0;
        for level in self.0.iter().rev() {
            at = at * WIDTH + level[at].0.iter().position(|&v| v == least)?;
        }
        self.set(at, None);
        Some(at)
    }
}

/// The standard library's ordered set.
struct Sorted {
    set: BTreeSet<(u64, usize)>,
    at: Vec<Option<u64>>,
}

impl Default for Sorted {
    fn default() -> Self {
        Self { set: BTreeSet::new(), at: vec![None; QPS] }
    }
}

impl Queue for Sorted {
    fn set(&mut self, index: usize, at: Option<u64>) {
        if let Some(old) = std::mem::replace(&mut self.at[index], at) {
            self.set.remove(&(old, index));
        }
        if let Some(at) = at {
            self.set.insert((at, index));
        }
    }
    fn next(&self) -> Option<u64> {
        self.set.first().map(|e| e.0)
    }
    fn pop(&mut self) -> Option<usize> {
        let index = self.set.first()?.1;
        self.set(index, None);
        Some(index)
    }
}

/// A random sequence that is the same in every run (xorshift64).
fn step(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

/// Armed QP `i`'s index: spread over the index space, as QPs come and go.
fn index(i: u64) -> usize {
    usize::try_from(i * 0x9e37_79b1 % QPS as u64).unwrap_or(0)
}

fn filled<Q: Queue>(armed: u64) -> (Q, u64) {
    let mut queue = Q::default();
    for i in 0..armed {
        queue.set(index(i), Some(i * 1_000));
    }
    (queue, armed * 1_000)
}

fn measure<Q: Queue>(c: &mut Criterion, name: &str) {
    for armed in [1u64, 1_000, 100_000] {
        let mut random = 0x2545_f491_4f6c_dd1d;
        let (mut queue, mut now) = filled::<Q>(armed);
        c.benchmark_group("rearm").bench_function(BenchmarkId::new(name, armed), |b| {
            b.iter(|| {
                now += 1_000;
                queue.set(index(step(&mut random) % armed), Some(now));
                black_box(queue.next())
            });
        });
        let (mut queue, mut now) = filled::<Q>(armed);
        c.benchmark_group("fire").bench_function(BenchmarkId::new(name, armed), |b| {
            b.iter(|| {
                now += 1_000;
                let fired = queue.pop();
                queue.set(fired.unwrap_or(0), Some(now));
                black_box(queue.next())
            });
        });
        let (mut queue, now) = filled::<Q>(armed);
        c.benchmark_group("arm_cancel").bench_function(BenchmarkId::new(name, armed), |b| {
            b.iter(|| {
                let at_rest = index(100_000 + step(&mut random) % 100_000);
                queue.set(at_rest, Some(now));
                queue.set(at_rest, None);
                black_box(queue.next())
            });
        });
    }
}

fn timers(c: &mut Criterion) {
    measure::<Heap>(c, "heap");
    measure::<Tree>(c, "tree");
    measure::<Sorted>(c, "sorted_set");
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(1));
    targets = timers
}
criterion_main!(benches);
