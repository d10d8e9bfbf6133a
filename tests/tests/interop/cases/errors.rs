//! What a peer refuses, and how: each refusal has its status at the requester, its effect at the
//! responder, and ends the connection.

use urxe::{Access, SendOp, WcStatus};

use super::reliable::{read_op, write_op};
use crate::bench::{Bench, Pair, Role};
use crate::departures::Departure;
use crate::node::{ALL, SIZE, Spec};

/// A request that fails takes all behind it along, in order, and changes nothing at the peer.
fn refused(bench: &mut Bench, p: &Pair, op: SendOp, len: usize, wanted: WcStatus) {
    bench.b.fill(&p.rb.piece(0..4096), 1);
    bench.a.fill(&p.ra.piece(0..4096), 2);
    bench.a.send(p.qa, 1, op, &[p.ra.piece(0..len)]);
    let first = bench.a.next();
    let got = (first.wr_id, first.status);
    if wanted == WcStatus::RemInvReqErr
        && matches!(op, SendOp::Send { .. })
        && bench.column.role == Role::Urxe
        && got == (1, WcStatus::RemOpErr as u32)
    {
        bench.met.insert(Departure::LongSend);
    } else {
        assert_eq!(got, (1, wanted as u32), "{op:?}: {}", bench.a.counters());
    }
    for id in [2, 3] {
        bench.a.send(p.qa, id, write_op(p, None), &[p.ra.piece(0..8)]);
    }
    for id in [2, 3] {
        let next = bench.a.next();
        assert_eq!((next.wr_id, next.status), (id, WcStatus::WrFlushErr as u32), "{op:?}");
    }
    bench.b.holds(&p.rb.piece(0..4096), 1, "a refused request");
}

/// The three kinds of access to `addr` under `rkey`.
const fn accesses(addr: u64, rkey: u32) -> [(SendOp, usize); 3] {
    [
        (SendOp::Write { remote: addr, rkey, imm: None }, 2000),
        (SendOp::Read { remote: addr, rkey }, 2000),
        (SendOp::FetchAdd { remote: addr, rkey, add: 1 }, 8),
    ]
}

pub fn keys(bench: &mut Bench) {
    for n in 0..3 {
        let p = bench.pair(&Spec::default());
        let (op, len) = accesses(p.rb.addr, p.rb.rkey ^ 0x5500)[n];
        refused(bench, &p, op, len, WcStatus::RemAccessErr);
    }
}

pub fn ranges(bench: &mut Bench) {
    for n in 0..3 {
        for past in [SIZE as u64 - 8 + 8, u64::MAX - 7] {
            let p = bench.pair(&Spec::default());
            // The first address beyond it, and one so far that the sum wraps.
            let addr = if past > SIZE as u64 { past } else { p.rb.addr + past };
            let (op, len) = accesses(addr, p.rb.rkey)[n];
            refused(bench, &p, op, len, WcStatus::RemAccessErr);
        }
    }
    // The last packet is one byte too long.
    let p = bench.pair(&Spec::default());
    let (write, _) = accesses(p.rb.addr + SIZE as u64 - 2999, p.rb.rkey)[0];
    refused(bench, &p, write, 3000, WcStatus::RemAccessErr);
}

pub fn rights(bench: &mut Bench) {
    let rights = [Access::REMOTE_WRITE, Access::REMOTE_READ, Access::REMOTE_ATOMIC];
    for (n, right) in rights.into_iter().enumerate() {
        let p = bench.pair(&Spec::default());
        let without = bench.b.register(0, 4096, ALL.difference(right));
        let (op, len) = accesses(without.addr, without.rkey)[n];
        refused(bench, &p, op, len, WcStatus::RemAccessErr);
    }
}

pub fn domains(bench: &mut Bench) {
    let other = bench.b.pd();
    for n in 0..3 {
        let p = bench.pair(&Spec::default());
        let foreign = bench.b.register(other, 4096, ALL);
        let (op, len) = accesses(foreign.addr, foreign.rkey)[n];
        refused(bench, &p, op, len, WcStatus::RemAccessErr);
    }
}

/// What the QP itself does not allow is an invalid request.
pub fn qp_rights(bench: &mut Bench) {
    for n in 0..3 {
        let spec = Spec { access: Access::empty(), ..Spec::default() };
        let p = bench.pair_of(&Spec::default(), &spec);
        let (op, len) = accesses(p.rb.addr, p.rb.rkey)[n];
        refused(bench, &p, op, len, WcStatus::RemInvReqErr);
    }
}

pub fn misaligned(bench: &mut Bench) {
    if bench.column.role == Role::Rxe {
        bench.met.insert(Departure::Misaligned);
        return;
    }
    let p = bench.pair(&Spec::default());
    let (op, len) = accesses(p.rb.addr + 4, p.rb.rkey)[2];
    refused(bench, &p, op, len, WcStatus::RemInvReqErr);
    let p = bench.pair(&Spec::default());
    let (remote, rkey) = (p.rb.addr + 1, p.rb.rkey);
    let swap = SendOp::CompareSwap { remote, rkey, compare: 0, swap: 1 };
    refused(bench, &p, swap, 8, WcStatus::RemInvReqErr);
}

pub fn too_long(bench: &mut Bench) {
    // Within a packet, and after several.
    for (room, len) in [(10, 11), (1024, 1025), (3000, 5000)] {
        let p = bench.pair(&Spec::default());
        bench.b.receive(p.qb, 5, &[p.rb.piece(8192..8192 + room)]);
        refused(bench, &p, SendOp::Send { imm: None }, len, WcStatus::RemInvReqErr);
        let got = bench.b.next();
        let wanted = if bench.met.contains(&Departure::LongSend) {
            WcStatus::LocQpOpErr
        } else {
            WcStatus::LocLenErr
        };
        assert_eq!((got.wr_id, got.status), (5, wanted as u32));
    }
}

/// A receive whose memory its owner may not write: the responder's own fault.
pub fn bad_receive(bench: &mut Bench) {
    let p = bench.pair(&Spec::default());
    let other = bench.b.pd();
    let foreign = bench.b.register(other, 4096, ALL);
    bench.b.receive(p.qb, 5, &[foreign.piece(0..4096)]);
    refused(bench, &p, SendOp::Send { imm: None }, 100, WcStatus::RemOpErr);
    let got = bench.b.next();
    let (id, wanted) = (got.wr_id, [WcStatus::LocProtErr, WcStatus::LocQpOpErr]);
    assert!(id == 5 && wanted.iter().any(|w| *w as u32 == got.status), "{got:?}");
}

/// How often the requester was told that its peer is not ready.
pub fn rnr_naks(bench: &mut Bench) -> u64 {
    let counters = bench.a.counters();
    let name =
        if bench.column.role == Role::Urxe { "\"rnr_nak_received\", " } else { "rcvd_rnr_err:" };
    let rest = counters.split(name).nth(1).unwrap_or("0");
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

pub fn late_receive(bench: &mut Bench) {
    let p = bench.pair(&Spec::default());
    for (n, len) in [10, 5000].into_iter().enumerate() {
        let before = rnr_naks(bench);
        bench.a.fill(&p.ra.piece(0..len), n);
        bench.a.send(p.qa, 1, SendOp::Send { imm: None }, &[p.ra.piece(0..len)]);
        bench.eventually("an RNR NAK", |bench| rnr_naks(bench) > before);
        bench.b.receive(p.qb, 2, &[p.rb.piece(0..8192)]);
        bench.a.done(1);
        assert_eq!(bench.b.done(1)[0].byte_len as usize, len);
        bench.b.holds(&p.rb.piece(0..len), n, "SEND after RNR NAKs");
    }
}

pub fn no_receive(bench: &mut Bench) {
    let p = bench.pair(&Spec { rnr_retries: 2, ..Spec::default() });
    refused(bench, &p, SendOp::Send { imm: None }, 100, WcStatus::RnrRetryExcErr);
    let p = bench.pair(&Spec { rnr_retries: 0, ..Spec::default() });
    bench.b.write(p.rb.index, 0, &[1]);
    let write = write_op(&p, Some([0; 4]));
    bench.a.send(p.qa, 1, write, &[p.ra.piece(0..0)]);
    assert_eq!(bench.a.next().status, WcStatus::RnrRetryExcErr as u32);
}

/// A peer that is gone answers nothing.
pub fn gone(bench: &mut Bench) {
    for n in 0..3 {
        let p = bench.pair(&Spec { retries: 2, ..Spec::default() });
        bench.b.destroy(p.qb);
        let (op, len) = accesses(p.rb.addr, p.rb.rkey)[n];
        refused(bench, &p, op, len, WcStatus::RetryExcErr);
    }
}

/// What a refused request leaves other connections.
pub fn others(bench: &mut Bench) {
    let good = bench.pair(&Spec::default());
    let bad = bench.pair(&Spec::default());
    let (op, len) = accesses(bad.rb.addr, bad.rb.rkey ^ 0x5500)[0];
    refused(bench, &bad, op, len, WcStatus::RemAccessErr);
    bench.b.fill(&good.rb.piece(0..3000), 6);
    bench.a.send(good.qa, 9, read_op(&good), &[good.ra.piece(0..3000)]);
    bench.a.done(1);
    bench.a.holds(&good.ra.piece(0..3000), 6, "another connection");
}
