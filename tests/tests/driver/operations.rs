//! Every operation between two devices, data checked; over a link with faults too.

use urxe::{AhAttr, Context, Mr, QpKind, SendFlags, SendOp, SendWr, Srq, SrqAttr, UdDest, WcFlags};

use crate::rig::{ALL, PATIENCE, QKEY, SIZE, Side, connected, pattern, quick};

/// How the link between two devices is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Link {
    /// It loses nothing.
    Clean,
    /// It loses, so that what is unreliable may be lost.
    Faulty,
}

/// Lengths of messages: none, one byte, each pad, a packet, just more, several packets.
const LENGTHS: [usize; 9] = [0, 1, 2, 3, 1024, 1025, 4095, 4096, 10_001];

/// Everything, both ways.
pub fn all(a: &Context, b: &Context, link: Link) {
    for (from, to) in [(a, b), (b, a)] {
        send(from, to);
        write(from, to);
        read(from, to);
        atomics(from, to);
        shared(from, to);
        xrc(from, to);
        unreliable(from, to, link);
        datagrams(from, to, link);
    }
    for context in [a, b] {
        assert_eq!(context.counts(), urxe::ObjectCounts::default());
        let counters = context.counters();
        let bad = |name: &str| counters.iter().any(|(n, _)| *n == name);
        assert!(!bad("req_cqe_error") && !bad("resp_cqe_error"), "{counters:?}");
    }
}

fn holds(mr: &Mr, at: usize, wanted: &[u8], what: &str) {
    assert_eq!(mr.to_vec(at..at + wanted.len()).unwrap(), wanted, "{what}");
    assert_eq!(mr.load(at + wanted.len()).unwrap(), 0, "{what}: nothing beyond it");
}

fn send(from: &Context, to: &Context) {
    let (a, b) = connected(from, to, QpKind::Rc);
    for (n, len) in LENGTHS.into_iter().enumerate() {
        let imm = (n % 2 == 1).then_some([1, 2, 3, u8::try_from(n).unwrap()]);
        b.mr.write(0, &[0; 12_000]).unwrap();
        a.mr.write(0, &pattern(n, len)).unwrap();
        b.qp.post_recv(n as u64, &[b.mr.sge(0..SIZE)]).unwrap();
        a.qp.post_send(n as u64, SendOp::Send { imm }, &[a.mr.sge(0..len)]).unwrap();
        a.done();
        let got = b.done();
        assert_eq!((got.wr_id, got.byte_len as usize), (n as u64, len));
        assert_eq!(got.flags.contains(WcFlags::WITH_IMM), imm.is_some());
        assert!(imm.is_none_or(|imm| got.imm == imm));
        holds(&b.mr, 0, &pattern(n, len), "SEND");
    }
    // Many at once, in their order.
    for n in 0..100 {
        b.qp.post_recv(n, &[b.mr.sge(0..2048)]).unwrap();
    }
    for n in 0..100 {
        a.qp.post_send(n, SendOp::Send { imm: None }, &[a.mr.sge(0..n as usize * 16)]).unwrap();
    }
    for n in 0..100 {
        assert_eq!(a.done().wr_id, n);
        let got = b.done();
        assert_eq!((got.wr_id, u64::from(got.byte_len)), (n, n * 16));
    }
}

fn write(from: &Context, to: &Context) {
    let (a, b) = connected(from, to, QpKind::Rc);
    for (n, len) in LENGTHS.into_iter().enumerate() {
        let imm = (n % 2 == 0).then_some([9, 8, 7, u8::try_from(n).unwrap()]);
        b.mr.write(0, &[0; 12_000]).unwrap();
        a.mr.write(0, &pattern(n + 50, len)).unwrap();
        if imm.is_some() {
            b.qp.post_recv(n as u64, &[]).unwrap();
        }
        let op = SendOp::Write { remote: b.mr.addr() + 5, rkey: b.mr.rkey(), imm };
        a.qp.post_send(n as u64, op, &[a.mr.sge(0..len)]).unwrap();
        a.done();
        if let Some(imm) = imm {
            let got = b.done();
            assert_eq!((got.wr_id, got.imm), (n as u64, imm));
        }
        holds(&b.mr, 5, &pattern(n + 50, len), "WRITE");
    }
}

fn read(from: &Context, to: &Context) {
    let (a, b) = connected(from, to, QpKind::Rc);
    for (n, len) in LENGTHS.into_iter().enumerate() {
        a.mr.write(0, &[0; 12_000]).unwrap();
        b.mr.write(3, &pattern(n + 99, len)).unwrap();
        let op = SendOp::Read { remote: b.mr.addr() + 3, rkey: b.mr.rkey() };
        a.qp.post_send(n as u64, op, &[a.mr.sge(1..1 + len)]).unwrap();
        a.done();
        holds(&a.mr, 1, &pattern(n + 99, len), "READ");
    }
}

fn atomics(from: &Context, to: &Context) {
    let (a, b) = connected(from, to, QpKind::Rc);
    let (remote, rkey) = (b.mr.addr() + 64, b.mr.rkey());
    let word =
        |mr: &Mr, at: usize| u64::from_ne_bytes(mr.to_vec(at..at + 8).unwrap().try_into().unwrap());
    // Each is done once, however often it is sent: 64 of them add up.
    for n in 0..64_u64 {
        let at = n as usize * 8;
        let op = SendOp::FetchAdd { remote, rkey, add: n + 1 };
        a.qp.post_send(n, op, &[a.mr.sge(at..at + 8)]).unwrap();
    }
    for n in 0..64_u64 {
        assert_eq!(a.done().wr_id, n);
        assert_eq!(word(&a.mr, n as usize * 8), n * (n + 1) / 2, "what stood before {n}");
    }
    let sum = 64 * 65 / 2;
    assert_eq!(word(&b.mr, 64), sum);
    for (compare, swap, stands) in [(sum + 1, 5, sum), (sum, 7, 7)] {
        let op = SendOp::CompareSwap { remote, rkey, compare, swap };
        a.qp.post_send(0, op, &[a.mr.sge(0..8)]).unwrap();
        a.done();
        assert_eq!((word(&a.mr, 0), word(&b.mr, 64)), (sum, stands));
    }
}

fn shared(from: &Context, to: &Context) {
    let pd = to.alloc_pd().unwrap();
    let (mr, cq) = (pd.register(SIZE, ALL).unwrap(), to.create_cq(64).unwrap());
    let srq = pd.create_srq(SrqAttr { max_wr: 64, max_sge: 1, limit: 0 }).unwrap();
    for n in 0..20 {
        srq.post_recv(n, &[mr.sge(n as usize * 2048..(n as usize + 1) * 2048)]).unwrap();
    }
    let pairs: Vec<_> = (0..4)
        .map(|_| {
            let a = Side::new(from, QpKind::Rc);
            let b = pd.qp(QpKind::Rc).cq(&cq).srq(&srq).attr(quick).build().unwrap();
            a.qp.connect(&b.endpoint()).unwrap();
            b.connect(&a.qp.endpoint()).unwrap();
            (a, b)
        })
        .collect();
    for n in 0..20_usize {
        let (a, _) = &pairs[n % 4];
        a.mr.write(n * 2048, &pattern(n, 1500)).unwrap();
        let sge = a.mr.sge(n * 2048..n * 2048 + 1500);
        a.qp.post_send(n as u64, SendOp::Send { imm: Some([0, 0, 0, n as u8]) }, &[sge]).unwrap();
    }
    let mut taken = [false; 20];
    for _ in 0..20 {
        let got = cq.wait_for(PATIENCE).unwrap();
        let (at, n) = (got.wr_id as usize * 2048, usize::from(got.imm[3]));
        assert_eq!(got.qpn, pairs[n % 4].1.qpn(), "{}", got.explain());
        assert_eq!(mr.to_vec(at..at + 1500).unwrap(), pattern(n, 1500), "message {n}");
        assert!(!std::mem::replace(&mut taken[got.wr_id as usize], true), "taken once");
    }
    for (a, _) in pairs.iter().cycle().take(20) {
        a.done();
    }
}

fn xrc(from: &Context, to: &Context) {
    let a = Side::new(from, QpKind::XrcInit);
    let pd = to.alloc_pd().unwrap();
    let (mr, cq) = (pd.register(SIZE, ALL).unwrap(), to.create_cq(64).unwrap());
    let xrcd = to.alloc_xrcd().unwrap();
    let attr = SrqAttr { max_wr: 8, max_sge: 1, limit: 0 };
    let srqs = [0, 1].map(|_| Srq::xrc(&pd, attr, &xrcd, &cq).unwrap());
    let target = pd.qp(QpKind::XrcTarget).xrcd(&xrcd).access(ALL).attr(quick).build().unwrap();
    a.qp.connect(&target.endpoint()).unwrap();
    target.connect(&a.qp.endpoint()).unwrap();
    for (n, srq) in srqs.iter().enumerate() {
        let at = n * 4096;
        srq.post_recv(n as u64, &[mr.sge(at..at + 4096)]).unwrap();
        a.mr.write(0, &pattern(n, 3000)).unwrap();
        let sges = [a.mr.sge(0..3000)];
        let wr = SendWr::new(5, SendOp::Send { imm: None }, &sges);
        a.qp.post(&SendWr { remote_srqn: srq.number(), ..wr }).unwrap();
        a.done();
        let got = cq.wait_for(PATIENCE).unwrap();
        assert_eq!((got.wr_id, got.byte_len), (n as u64, 3000), "{}", got.explain());
        assert_eq!(mr.to_vec(at..at + 3000).unwrap(), pattern(n, 3000));
    }
}

/// UC: what arrives is right; on a clean link all of it does, in order. A faulty link may bring a
/// message late or twice, which UC takes as a new one.
fn unreliable(from: &Context, to: &Context, link: Link) {
    const COUNT: usize = 40;
    let (a, b) = connected(from, to, QpKind::Uc);
    for n in 0..COUNT {
        b.qp.post_recv(n as u64, &[b.mr.sge(n * 1500..(n + 1) * 1500)]).unwrap();
    }
    for n in 0..COUNT {
        let at = n * 1500;
        a.mr.write(at, &pattern(n, 1500)).unwrap();
        let imm = Some([0, 0, 0, u8::try_from(n).unwrap()]);
        a.qp.post_send(n as u64, SendOp::Send { imm }, &[a.mr.sge(at..at + 1500)]).unwrap();
    }
    (0..COUNT).for_each(|n| assert_eq!(a.done().wr_id, n as u64));
    // The last message may be lost: more follow until one arrives.
    let (mut got, mut last, mut more) = (0, None, 0);
    while got < COUNT && last != Some(0xff) {
        let Some(done) = b.cq.poll_one().unwrap() else {
            if link == Link::Faulty && more < 1_000 {
                more += 1;
                let op = SendOp::Send { imm: Some([0, 0, 0, 0xff]) };
                a.qp.post_send(0, op, &[a.mr.sge(0..4)]).unwrap();
                a.done();
                continue;
            }
            let done = b.done();
            last = Some(check_unreliable(&b, &done, last.filter(|_| link == Link::Clean)));
            got += 1;
            continue;
        };
        last = Some(check_unreliable(&b, &done, last.filter(|_| link == Link::Clean)));
        got += 1;
    }
    assert!(link == Link::Faulty || got == COUNT);
}

/// Gives the number of the message, which must come after that of `last`.
fn check_unreliable(b: &Side, done: &urxe::Completion, last: Option<u8>) -> u8 {
    let n = done.imm[3];
    assert!(last.is_none_or(|last| last < n), "{last:?}, then {n}");
    let at = done.wr_id as usize * 1500;
    if n != 0xff {
        let wanted = pattern(n.into(), 1500);
        assert_eq!(b.mr.to_vec(at..at + 1500).unwrap(), wanted, "UC message {n}");
    }
    n
}

/// UD, by address and by group.
fn datagrams(from: &Context, to: &Context, link: Link) {
    let (a, b) = (Side::new(from, QpKind::Ud), Side::new(to, QpKind::Ud));
    a.qp.ready(QKEY).unwrap();
    b.qp.ready(QKEY).unwrap();
    let ah = a.pd.create_ah(&AhAttr { dst: to.address(), ..AhAttr::default() }).unwrap();
    let dest = Some(UdDest { ah: ah.id(), qpn: b.qp.qpn(), qkey: QKEY });
    let mut sent = 0;
    for n in 0..20_u8 {
        b.qp.post_recv(n.into(), &[b.mr.sge(0..4096)]).unwrap();
        a.mr.write(0, &pattern(n.into(), 700)).unwrap();
        let got = loop {
            // With faults, again until one arrives.
            let sges = [a.mr.sge(0..700)];
            let op = SendOp::Send { imm: (n % 2 == 0).then_some([n, 0, 0, 1]) };
            let wr = SendWr::new(n.into(), op, &sges);
            a.qp.post(&SendWr { dest, flags: SendFlags::SIGNALED, ..wr }).unwrap();
            a.done();
            sent += 1;
            assert!(sent < 10_000, "none arrives");
            match link {
                Link::Clean => break b.done(),
                Link::Faulty => match b.cq.poll_one().unwrap() {
                    Some(got) => break got,
                    None => std::thread::yield_now(),
                },
            }
        };
        assert_eq!((got.byte_len, got.src_qp), (740, a.qp.qpn()), "{}", got.explain());
        assert!(got.flags.contains(WcFlags::GRH));
        let (imm, data) = (got.flags.contains(WcFlags::WITH_IMM), b.mr.to_vec(40..740).unwrap());
        // One sent again may come after the next was posted: it is one of those then.
        let whose = (0..=n).find(|&m| data == pattern(m.into(), 700));
        assert_eq!(whose.map(|m| m % 2 == 0), Some(imm), "datagram {n} is {whose:?}");
        assert!(link == Link::Faulty || whose == Some(n));
    }
}
