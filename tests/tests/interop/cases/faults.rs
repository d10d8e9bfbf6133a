//! A link with faults, in either direction: the data is right and nothing completes twice.

use rxe_lab::Completed;
use urxe::{SendOp, WcStatus};

use crate::bench::{Bench, Pair, Role};
use crate::departures::Departure;
use crate::node::{Node, PATIENCE, Spec};

const LEN: usize = 9000;
const ROUNDS: usize = 10;

/// Whether requests were flushed though none has failed.
fn gave_up_without_error(done: &[Completed]) -> bool {
    let first = done.iter().find(|done| done.status != 0);
    first.is_some_and(|done| done.status == WcStatus::WrFlushErr as u32)
}

/// Each operation, in rounds that overlap.
pub fn traffic(bench: &mut Bench, p: &Pair, base: usize) {
    bench.b.write(p.rb.index, 0, &0_u64.to_ne_bytes());
    bench.b.fill(&p.rb.piece(500_000..500_000 + LEN), base);
    bench.a.fill(&p.ra.piece(0..ROUNDS * LEN), base + 1);
    for n in 0..ROUNDS {
        let at = 4096 + n * LEN;
        bench.b.receive(p.qb, n as u64, &[p.rb.piece(at..at + LEN)]);
    }
    for n in 0..ROUNDS {
        let (id, from) = (4 * n as u64, n * LEN..(n + 1) * LEN);
        let (remote, rkey) = (p.rb.addr + 250_000 + (n * LEN) as u64, p.rb.rkey);
        let write = SendOp::Write { remote, rkey, imm: None };
        let read = SendOp::Read { remote: p.rb.addr + 500_000, rkey };
        let add = SendOp::FetchAdd { remote: p.rb.addr, rkey, add: 1 };
        bench.a.send(p.qa, id, SendOp::Send { imm: None }, &[p.ra.piece(from.clone())]);
        bench.a.send(p.qa, id + 1, write, &[p.ra.piece(from)]);
        let at = 500_000 + n * LEN;
        bench.a.send(p.qa, id + 2, read, &[p.ra.piece(at..at + LEN)]);
        let at = 900_000 + n * 8;
        bench.a.send(p.qa, id + 3, add, &[p.ra.piece(at..at + 8)]);
    }
    let done = bench.a.poll(4 * ROUNDS, PATIENCE);
    if bench.column.role == Role::Rxe && gave_up_without_error(&done) {
        bench.met.insert(Departure::StaleResponse);
        return;
    }
    let bad = done.len() != 4 * ROUNDS || done.iter().any(|done| done.status != 0);
    assert!(!bad, "{}: {done:?}; {}", bench.a.name(), bench.a.counters());
    let ids: Vec<u64> = done.iter().map(|done| done.wr_id).collect();
    assert_eq!(ids, (0..4 * ROUNDS as u64).collect::<Vec<_>>());
    let ids: Vec<u64> = bench.b.done(ROUNDS).iter().map(|done| done.wr_id).collect();
    assert_eq!(ids, (0..ROUNDS as u64).collect::<Vec<_>>());
    bench.b.holds(&p.rb.piece(4096..4096 + ROUNDS * LEN), base + 1, "SENDs");
    bench.b.holds(&p.rb.piece(250_000..250_000 + ROUNDS * LEN), base + 1, "WRITEs");
    let olds = bench.a.read(p.ra.index, 900_000..900_000 + ROUNDS * 8);
    for n in 0..ROUNDS {
        let at = 500_000 + n * LEN;
        bench.a.holds(&p.ra.piece(at..at + LEN), base, "READ");
        assert_eq!(olds[n * 8..n * 8 + 8], (n as u64).to_ne_bytes(), "FETCH_ADD {n}");
    }
    // Each was added just once.
    assert_eq!(bench.b.read(p.rb.index, 0..8), (ROUNDS as u64).to_ne_bytes());
    let twice = |node: &mut dyn Node| node.poll(1, std::time::Duration::ZERO);
    assert_eq!((twice(&mut *bench.a), twice(&mut *bench.b)), (vec![], vec![]));
}

/// `faults` are netem's, to what leaves the guest, and then to what enters it.
fn faulty(bench: &mut Bench, faults: &str) {
    redirected(bench, |bench| both_ways(bench, faults));
}

/// Runs something while what enters the guest suffers faults.
pub fn incoming(bench: &mut Bench, faults: &str, f: impl FnOnce(&mut Bench)) {
    redirected(bench, |bench| {
        bench.exec(&format!("tc qdisc replace dev ifb0 root netem limit 10000 {faults}"));
        f(bench);
        bench.exec("tc qdisc del dev ifb0 root");
    });
}

/// What comes in goes through ifb0.
fn redirected(bench: &mut Bench, f: impl FnOnce(&mut Bench)) {
    bench.exec("ip link set ifb0 mtu 9000 up && tc qdisc add dev eth0 ingress");
    bench.exec("tc filter add dev eth0 ingress matchall action mirred egress redirect dev ifb0");
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(bench)));
    bench.exec("tc qdisc del dev eth0 ingress");
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}

fn both_ways(bench: &mut Bench, faults: &str) {
    for device in ["eth0", "ifb0"] {
        let p = bench.pair(&Spec { rnr_retries: 7, ..Spec::default() });
        bench.exec(&format!("tc qdisc replace dev {device} root netem limit 10000 {faults}"));
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            traffic(bench, &p, 1);
        }));
        bench.exec(&format!("tc qdisc del dev {device} root"));
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    }
}

macro_rules! faults {
    ($($name:ident $faults:literal)*) => {$(
        pub fn $name(bench: &mut Bench) {
            faulty(bench, $faults);
        }
    )*};
}

faults! {
    loss_1 "loss 1%"
    loss_10 "loss 10%"
    duplicate_1 "duplicate 1%"
    duplicate_10 "duplicate 10%"
    reorder_1 "delay 2ms reorder 99%"
    reorder_10 "delay 2ms reorder 90%"
    corrupt_1 "corrupt 1%"
    corrupt_10 "corrupt 10%"
    mixed "delay 1ms 1ms loss 3% duplicate 3% corrupt 3%"
}
