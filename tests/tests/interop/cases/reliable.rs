//! Each operation of a reliable connection; data checked, and what lies beyond it.

use urxe::{Access, FlushLevel, FlushScope, SendFlags, SendOp, WcFlags, WcOpcode, WcStatus};

use crate::bench::{Bench, Pair, Role};
use crate::departures::Departure;
use crate::node::{Node, SIZE, Spec};

/// Lengths at MTU 1024: none, one byte, each pad, about a packet, several, 1 MiB.
pub const LENGTHS: [usize; 10] = [0, 1, 2, 3, 1023, 1024, 1025, 4096, 10_001, 1 << 20];

const IMM: [u8; 4] = [0xde, 0xad, 0xbe, 0xef];
/// What stands beyond the data, and must not change.
const GUARD: [u8; 8] = [0x5a; 8];

pub fn write_op(pair: &Pair, imm: Option<[u8; 4]>) -> SendOp {
    SendOp::Write { remote: pair.rb.addr, rkey: pair.rb.rkey, imm }
}

pub fn read_op(pair: &Pair) -> SendOp {
    SendOp::Read { remote: pair.rb.addr, rkey: pair.rb.rkey }
}

fn guard(node: &mut dyn Node, region: usize, len: usize) {
    node.write(region, len, &GUARD);
}

fn guarded(node: &mut dyn Node, region: usize, len: usize, what: &str) {
    assert_eq!(node.read(region, len..len + 8), GUARD, "{what}: nothing beyond it");
}

pub fn send(bench: &mut Bench) {
    let p = bench.pair(&Spec::default());
    for (n, len) in LENGTHS.into_iter().enumerate() {
        let id = n as u64;
        for imm in [None, Some(IMM)] {
            let seed = 2 * n + usize::from(imm.is_some());
            bench.a.fill(&p.ra.piece(0..len), seed);
            guard(&mut *bench.b, p.rb.index, len);
            bench.b.receive(p.qb, id, &[p.rb.piece(0..SIZE)]);
            bench.a.send(p.qa, id, SendOp::Send { imm }, &[p.ra.piece(0..len)]);
            let sent = bench.a.done(1)[0];
            assert_eq!((sent.wr_id, sent.opcode), (id, WcOpcode::Send as u32));
            let got = bench.b.done(1)[0];
            assert_eq!((got.wr_id, got.byte_len as usize), (id, len), "{got:?}");
            assert_eq!(got.opcode, WcOpcode::Recv as u32);
            let flag = got.flags & WcFlags::WITH_IMM.bits() != 0;
            assert_eq!(flag, imm.is_some(), "{got:?}");
            assert!(!flag || got.extra == u32::from_be_bytes(IMM), "{got:?}");
            let what = format!("SEND of {len}");
            bench.b.holds(&p.rb.piece(0..len), seed, &what);
            guarded(&mut *bench.b, p.rb.index, len, &what);
        }
    }
}

/// A window of all of the responder's region.
fn window(bench: &mut Bench, p: &Pair, access: Access) -> u32 {
    let window = bench.b.window();
    let rkey = bench.b.bind(p.qb, 900, window, &p.rb.piece(0..4096), access);
    assert_eq!(bench.b.done(1)[0].opcode, WcOpcode::BindMw as u32);
    rkey
}

pub fn send_invalidate(bench: &mut Bench) {
    let p = bench.pair(&Spec::default());
    let rkey = window(bench, &p, Access::REMOTE_WRITE);
    let write = SendOp::Write { remote: p.rb.addr, rkey, imm: None };
    bench.a.fill(&p.ra.piece(0..3000), 1);
    bench.a.send(p.qa, 1, write, &[p.ra.piece(0..3000)]);
    bench.a.done(1);
    bench.b.holds(&p.rb.piece(0..3000), 1, "WRITE through the window");
    bench.b.receive(p.qb, 2, &[p.rb.piece(4096..8192)]);
    bench.a.send(p.qa, 2, SendOp::SendInvalidate { rkey }, &[p.ra.piece(0..2000)]);
    assert_eq!(bench.a.done(1)[0].opcode, WcOpcode::Send as u32);
    let got = bench.b.done(1)[0];
    assert_eq!((got.byte_len, got.extra), (2000, rkey), "{got:?}");
    assert_ne!(got.flags & WcFlags::WITH_INV.bits(), 0, "{got:?}");
    bench.b.holds(&p.rb.piece(4096..6096), 1, "SEND with invalidate");
    // The key is dead.
    bench.a.send(p.qa, 3, write, &[p.ra.piece(0..8)]);
    assert_eq!(bench.a.next().status, WcStatus::RemAccessErr as u32);
}

pub fn write(bench: &mut Bench) {
    let p = bench.pair(&Spec::default());
    for (n, len) in LENGTHS.into_iter().enumerate() {
        let id = n as u64;
        for imm in [None, Some(IMM)] {
            let seed = 2 * n + usize::from(imm.is_some());
            bench.a.fill(&p.ra.piece(0..len), seed);
            guard(&mut *bench.b, p.rb.index, len);
            if imm.is_some() {
                bench.b.receive(p.qb, id, &[]);
            }
            bench.a.send(p.qa, id, write_op(&p, imm), &[p.ra.piece(0..len)]);
            let sent = bench.a.done(1)[0];
            assert_eq!((sent.wr_id, sent.opcode), (id, WcOpcode::RdmaWrite as u32));
            if imm.is_some() {
                let got = bench.b.done(1)[0];
                assert_eq!((got.wr_id, got.opcode), (id, WcOpcode::RecvRdmaWithImm as u32));
                assert_eq!((got.byte_len as usize, got.extra), (len, u32::from_be_bytes(IMM)));
            }
            let what = format!("WRITE of {len}");
            bench.b.holds(&p.rb.piece(0..len), seed, &what);
            guarded(&mut *bench.b, p.rb.index, len, &what);
        }
    }
}

pub fn read(bench: &mut Bench) {
    let p = bench.pair(&Spec::default());
    for (n, len) in LENGTHS.into_iter().enumerate() {
        bench.b.fill(&p.rb.piece(0..len), n);
        guard(&mut *bench.a, p.ra.index, len);
        bench.a.send(p.qa, n as u64, read_op(&p), &[p.ra.piece(0..len)]);
        let done = bench.a.done(1)[0];
        assert_eq!((done.wr_id, done.opcode), (n as u64, WcOpcode::RdmaRead as u32));
        let what = format!("READ of {len}");
        bench.a.holds(&p.ra.piece(0..len), n, &what);
        guarded(&mut *bench.a, p.ra.index, len, &what);
    }
}

fn number(node: &mut dyn Node, region: usize, at: usize) -> u64 {
    u64::from_ne_bytes(node.read(region, at..at + 8).try_into().unwrap())
}

pub fn atomics(bench: &mut Bench) {
    let p = bench.pair(&Spec::default());
    let (remote, rkey) = (p.rb.addr + 64, p.rb.rkey);
    bench.b.write(p.rb.index, 64, &u64::MAX.to_ne_bytes());
    let ops = [
        // (operation, what stood there, what stands there then)
        (SendOp::FetchAdd { remote, rkey, add: 6 }, u64::MAX, 5),
        (SendOp::FetchAdd { remote, rkey, add: 1 << 40 }, 5, (1 << 40) + 5),
        (SendOp::CompareSwap { remote, rkey, compare: 5, swap: 9 }, (1 << 40) + 5, (1 << 40) + 5),
        (SendOp::CompareSwap { remote, rkey, compare: (1 << 40) + 5, swap: 9 }, (1 << 40) + 5, 9),
    ];
    for (n, (op, before, after)) in ops.into_iter().enumerate() {
        bench.a.send(p.qa, n as u64, op, &[p.ra.piece(8..16)]);
        let done = bench.a.done(1)[0];
        let wanted = if n < 2 { WcOpcode::FetchAdd } else { WcOpcode::CompSwap };
        assert_eq!((done.wr_id, done.opcode), (n as u64, wanted as u32));
        assert_eq!(number(&mut *bench.a, p.ra.index, 8), before, "{op:?}");
        assert_eq!(number(&mut *bench.b, p.rb.index, 64), after, "{op:?}");
    }
}

pub fn flush(bench: &mut Bench) {
    for (n, scope) in [FlushScope::Range, FlushScope::MemoryRegion].into_iter().enumerate() {
        let p = bench.pair(&Spec { retries: 2, ..Spec::default() });
        bench.a.fill(&p.ra.piece(0..5000), 3 + n);
        let (remote, rkey, level) = (p.rb.addr, p.rb.rkey, FlushLevel::GLOBAL);
        let flush = SendOp::Flush { remote, length: 5000, rkey, scope, level };
        bench.a.send(p.qa, 1, write_op(&p, None), &[p.ra.piece(0..5000)]);
        bench.a.send(p.qa, 2, flush, &[]);
        assert_eq!(bench.a.done(1)[0].wr_id, 1);
        bench.b.holds(&p.rb.piece(0..5000), 3 + n, "WRITE before FLUSH");
        let done = bench.a.next();
        if done.status == WcStatus::RetryExcErr as u32 {
            let by_icrc = !bench.b.counters().contains("rx_icrc_bad: 0");
            assert!(bench.column.role == Role::Urxe || by_icrc, "{}", bench.b.counters());
            bench.met.insert(Departure::FlushIcrc);
        } else {
            assert_eq!((done.status, done.opcode), (0, WcOpcode::Flush as u32), "{done:?}");
        }
    }
}

pub fn atomic_write(bench: &mut Bench) {
    let p = bench.pair(&Spec::default());
    for n in 0..4_u64 {
        let value = 0x0102_0304_0506_0708 + n;
        bench.a.write(p.ra.index, 16, &value.to_ne_bytes());
        guard(&mut *bench.b, p.rb.index, 48);
        let op = SendOp::AtomicWrite { remote: p.rb.addr + 40, rkey: p.rb.rkey };
        bench.a.send(p.qa, n, op, &[p.ra.piece(16..24)]);
        let done = bench.a.done(1)[0];
        assert_eq!((done.wr_id, done.opcode), (n, WcOpcode::AtomicWrite as u32));
        assert_eq!(number(&mut *bench.b, p.rb.index, 40), value);
        guarded(&mut *bench.b, p.rb.index, 48, "ATOMIC WRITE");
    }
}

pub fn pieces(bench: &mut Bench) {
    let p = bench.pair(&Spec::default());
    bench.a.fill(&p.ra.piece(0..6000), 5);
    let cut = [0..1, 1..1500, 1500..1503, 1503..6000].map(|part| p.ra.piece(part));
    let into = [4000..4100, 0..3000, 3000..3001, 5000..9000].map(|part| p.rb.piece(part));
    bench.b.receive(p.qb, 1, &into);
    bench.a.send(p.qa, 1, SendOp::Send { imm: None }, &cut);
    bench.a.done(1);
    assert_eq!(bench.b.done(1)[0].byte_len, 6000);
    let mut got = Vec::new();
    for part in [4000..4100, 0..3000, 3000..3001, 5000..7899] {
        got.extend(bench.b.read(p.rb.index, part));
    }
    assert_eq!(got, crate::node::pattern(5, 6000));
    // A READ scatters too.
    bench.b.fill(&p.rb.piece(0..5000), 6);
    let into = [10_000..10_007, 20_000..22_000, 30_000..32_993].map(|part| p.ra.piece(part));
    bench.a.send(p.qa, 2, read_op(&p), &into);
    bench.a.done(1);
    let mut got = Vec::new();
    for piece in into {
        got.extend(bench.a.read(piece.region, piece.part));
    }
    assert_eq!(got, crate::node::pattern(6, 5000));
    let flags = SendFlags::SIGNALED | SendFlags::INLINE;
    bench.a.fill(&p.ra.piece(0..61), 7);
    bench.a.post(p.qa, 3, write_op(&p, None), &[p.ra.piece(0..61)], flags);
    bench.a.fill(&p.ra.piece(0..61), 8);
    bench.a.done(1);
    bench.b.holds(&p.rb.piece(0..61), 7, "inline WRITE");
}

pub fn quiet(bench: &mut Bench) {
    let p = bench.pair(&Spec { signal_all: false, ..Spec::default() });
    bench.b.fill(&p.rb.piece(0..5000), 9);
    bench.b.receive(p.qb, 1, &[p.rb.piece(8192..16_384)]);
    for id in 0..4 {
        bench.a.post(p.qa, id, write_op(&p, None), &[p.ra.piece(0..0)], SendFlags::empty());
    }
    // The SEND carries what the READ brings.
    bench.a.post(p.qa, 4, read_op(&p), &[p.ra.piece(0..5000)], SendFlags::empty());
    let flags = SendFlags::SIGNALED | SendFlags::FENCE;
    bench.a.post(p.qa, 5, SendOp::Send { imm: None }, &[p.ra.piece(0..5000)], flags);
    assert_eq!(bench.a.done(1)[0].wr_id, 5);
    bench.b.done(1);
    bench.b.holds(&p.rb.piece(8192..13_192), 9, "SEND behind a fence");
    assert!(bench.a.poll(1, std::time::Duration::ZERO).is_empty(), "only one was signaled");
}

pub fn windows(bench: &mut Bench) {
    let p = bench.pair(&Spec::default());
    let rkey = window(bench, &p, Access::REMOTE_WRITE | Access::REMOTE_READ);
    let (write, read) = (
        SendOp::Write { remote: p.rb.addr, rkey, imm: None },
        SendOp::Read { remote: p.rb.addr, rkey },
    );
    bench.a.fill(&p.ra.piece(0..4096), 4);
    bench.a.send(p.qa, 1, write, &[p.ra.piece(0..4096)]);
    bench.a.send(p.qa, 2, read, &[p.ra.piece(8192..12_288)]);
    bench.a.done(2);
    bench.b.holds(&p.rb.piece(0..4096), 4, "WRITE through the window");
    bench.a.holds(&p.ra.piece(8192..12_288), 4, "READ through the window");
    // One byte more than it opens.
    bench.a.send(p.qa, 3, write, &[p.ra.piece(0..4097)]);
    let done = bench.a.next();
    if done.status == 0 && bench.column.role == Role::Urxe {
        bench.met.insert(Departure::WindowRange);
    } else {
        assert_eq!(done.status, WcStatus::RemAccessErr as u32);
    }
}
