//! A reliable connection at its edges: every MTU, the wrap, depth, many QPs.

use urxe::{Mtu, Psn, SendOp};

use super::reliable::{read_op, write_op};
use crate::bench::{Bench, Pair};
use crate::node::{SIZE, Spec};

/// SEND, WRITE and READ of `len` bytes.
fn each(bench: &mut Bench, p: &Pair, len: usize, seed: usize) {
    let at = 32_768;
    bench.a.fill(&p.ra.piece(0..len), seed);
    bench.b.receive(p.qb, 1, &[p.rb.piece(at..2 * at)]);
    bench.a.send(p.qa, 1, SendOp::Send { imm: None }, &[p.ra.piece(0..len)]);
    bench.a.send(p.qa, 2, write_op(p, None), &[p.ra.piece(0..len)]);
    bench.a.send(p.qa, 3, read_op(p), &[p.ra.piece(at..at + len)]);
    let ids: Vec<u64> = bench.a.done(3).iter().map(|done| done.wr_id).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(bench.b.done(1)[0].byte_len as usize, len);
    bench.b.holds(&p.rb.piece(at..at + len), seed, "SEND");
    bench.b.holds(&p.rb.piece(0..len), seed, "WRITE");
    bench.a.holds(&p.ra.piece(at..at + len), seed, "READ");
}

pub fn mtus(bench: &mut Bench) {
    for mtu in Mtu::ALL {
        let p = bench.pair(&Spec { mtu, ..Spec::default() });
        let packet = mtu.bytes() as usize;
        for (seed, len) in [packet - 1, packet, packet + 1, 3 * packet + 5].into_iter().enumerate()
        {
            each(bench, &p, len, seed);
        }
    }
}

pub fn wrap(bench: &mut Bench) {
    // The wrap comes within a SEND, a WRITE, a READ and its responses, and between requests.
    for back in [0, 1, 2, 3, 6, 7, 9, 12, 14] {
        let psn = Psn::new((1 << 24) - 1 - back);
        let p = bench.pair(&Spec { psn, ..Spec::default() });
        each(bench, &p, 5000, back as usize);
        bench.b.write(p.rb.index, 0, &7_u64.to_ne_bytes());
        let add = SendOp::FetchAdd { remote: p.rb.addr, rkey: p.rb.rkey, add: 1 };
        bench.a.send(p.qa, 4, add, &[p.ra.piece(0..8)]);
        bench.a.done(1);
        assert_eq!(bench.b.read(p.rb.index, 0..8), 8_u64.to_ne_bytes());
    }
}

pub fn deep(bench: &mut Bench) {
    let p = bench.pair(&Spec::default());
    bench.b.fill(&p.rb.piece(0..SIZE), 2);
    // The agent has a word with each request, so that they rather wait for us than for each other.
    for n in 0..32 {
        let at = n * 10_000;
        let op = SendOp::Read { remote: p.rb.addr + at as u64, rkey: p.rb.rkey };
        bench.a.send(p.qa, n as u64, op, &[p.ra.piece(at..at + 10_000)]);
    }
    let ids: Vec<u64> = bench.a.done(32).iter().map(|done| done.wr_id).collect();
    assert_eq!(ids, (0..32).collect::<Vec<_>>());
    bench.a.holds(&p.ra.piece(0..320_000), 2, "32 READs");
    bench.b.write(p.rb.index, 0, &0_u64.to_ne_bytes());
    for n in 0..32 {
        let add = SendOp::FetchAdd { remote: p.rb.addr, rkey: p.rb.rkey, add: 1 };
        bench.a.send(p.qa, n as u64, add, &[p.ra.piece(n * 8..n * 8 + 8)]);
    }
    bench.a.done(32);
    let got = bench.a.read(p.ra.index, 0..256);
    let olds = got.chunks(8).map(|old| u64::from_ne_bytes(old.try_into().unwrap()));
    assert_eq!(olds.collect::<Vec<_>>(), (0..32).collect::<Vec<_>>());
}

pub fn many(bench: &mut Bench) {
    const QPS: usize = 48;
    const LEN: usize = 3000;
    let spec = Spec::default();
    let first = bench.pair(&spec);
    let mut qps = vec![(first.qa, first.qb)];
    while qps.len() < QPS {
        qps.push(bench.connect(&spec, &spec));
    }
    bench.a.fill(&first.ra.piece(0..QPS * LEN), 1);
    for (n, &(qa, qb)) in qps.iter().enumerate() {
        let part = n * LEN..(n + 1) * LEN;
        bench.b.receive(qb, n as u64, &[first.rb.piece(part.clone())]);
        bench.a.send(qa, n as u64, SendOp::Send { imm: None }, &[first.ra.piece(part)]);
    }
    for done in [bench.a.done(QPS), bench.b.done(QPS)] {
        let mut ids: Vec<u64> = done.iter().map(|done| done.wr_id).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..QPS as u64).collect::<Vec<_>>());
    }
    bench.b.holds(&first.rb.piece(0..QPS * LEN), 1, "SENDs of all QPs");
}

pub fn shared(bench: &mut Bench) {
    const QPS: usize = 8;
    let (plain, spec) = (Spec::default(), Spec { shared: true, ..Spec::default() });
    let first = bench.pair_of(&plain, &spec);
    let mut qps = vec![first.qa];
    while qps.len() < QPS {
        qps.push(bench.connect(&plain, &spec).0);
    }
    for n in 0..3 * QPS {
        let at = n * 4096;
        bench.b.receive(first.qb, n as u64, &[first.rb.piece(at..at + 4096)]);
    }
    for n in 0..3 * QPS {
        let len = 1000 + n;
        bench.a.fill(&first.ra.piece(n * 4096..n * 4096 + len), n);
        let piece = first.ra.piece(n * 4096..n * 4096 + len);
        bench.a.send(qps[n % QPS], n as u64, SendOp::Send { imm: None }, &[piece]);
    }
    bench.a.done(3 * QPS);
    let got = bench.b.done(3 * QPS);
    let mut lengths: Vec<usize> = got.iter().map(|done| done.byte_len as usize).collect();
    for done in got {
        // Which message took which receive, its length tells.
        let (at, len) = (usize::try_from(done.wr_id).unwrap() * 4096, done.byte_len as usize);
        bench.b.holds(&first.rb.piece(at..at + len), len - 1000, "SEND to the SRQ");
    }
    lengths.sort_unstable();
    assert_eq!(lengths, (1000..1000 + 3 * QPS).collect::<Vec<_>>());
}
