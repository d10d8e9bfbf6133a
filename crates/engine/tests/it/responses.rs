//! Responses that do not answer the request that waits, and memory that cannot take them.

use urxe_engine::{Cause, QpId, Rule, SendWr, WcStatus};
use urxe_memory::{Access, Backing, KeyError, Sge};
use urxe_wire::{Aeth, Bth, Ext, NakCode, Psn, Syndrome};

use crate::lab::{Node, lab, op};
use crate::script::{ADD, FLUSHED, OK, READ, SEND};

const BAD: WcStatus = WcStatus::BadRespErr;

/// A READ of 3 packets behind a SEND, at PSN 101, and one SEND behind it.
fn reader() -> (Node, QpId) {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 10);
    n.post(qp, 2, READ, 2500);
    n.post(qp, 3, SEND, 10);
    n.sent();
    (n, qp)
}

#[track_caller]
fn fails(by: impl FnOnce(&mut Node, QpId), rule: Rule, psn: u32) {
    let (mut n, qp) = reader();
    by(&mut n, qp);
    let done = n.completions();
    let told: Vec<_> = done.iter().map(|c| (c.wr_id, c.status)).collect();
    assert_eq!(told, [(1, OK), (2, BAD), (3, FLUSHED)]);
    assert_eq!(done[1].cause, Some(Cause::at(rule, Psn::new(psn))));
}

fn is_no_answer(name: &str) -> Rule {
    Rule::ResponseOpcode(op(&format!("RC_{name}")))
}

#[test]
fn a_response_out_of_its_place_is_a_bad_response() {
    // IBA 9.9.2.1: an unexpected opcode.
    for which in ["MIDDLE", "LAST", "ONLY"] {
        let rule = is_no_answer(&format!("RDMA_READ_RESPONSE_{which}"));
        fails(|n, qp| n.arrive_read(qp, which, 101, &[0; 1024]), rule, 101);
    }
    for (which, psn) in [("LAST", 102), ("ONLY", 102), ("MIDDLE", 103), ("FIRST", 103)] {
        let rule = is_no_answer(&format!("RDMA_READ_RESPONSE_{which}"));
        let by = |n: &mut Node, qp| {
            n.arrive_read(qp, "FIRST", 101, &[0; 1024]);
            if psn == 103 {
                n.arrive_read(qp, "MIDDLE", 102, &[0; 1024]);
            }
            n.arrive_read(qp, which, psn, &[0; 452]);
        };
        fails(by, rule, psn);
    }
}

#[test]
fn a_response_of_another_kind_is_a_bad_response() {
    fails(|n, qp| n.arrive_atomic(qp, 101, 0), is_no_answer("ATOMIC_ACKNOWLEDGE"), 101);
    let (mut n, qp) = reader();
    // Data for a SEND.
    n.arrive_read(qp, "ONLY", 100, &[0; 4]);
    assert_eq!(n.done(), [(1, BAD), (2, FLUSHED), (3, FLUSHED)]);
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, ADD, 8);
    n.arrive_read(qp, "ONLY", 100, &[0; 8]);
    assert_eq!(n.done(), [(1, BAD)]);
}

#[test]
fn a_response_of_another_length_is_a_bad_response() {
    // IBA 9.9.2.1: first and middle ones hold just the MTU, the last one the rest.
    for len in [0_usize, 1020, 1028] {
        let rule = Rule::ResponseLength(u32::try_from(len).unwrap(), 1024);
        fails(|n, qp| n.arrive_read(qp, "FIRST", 101, &vec![0; len]), rule, 101);
    }
    for len in [448_usize, 456] {
        let rule = Rule::ResponseLength(u32::try_from(len).unwrap(), 452);
        let by = |n: &mut Node, qp| {
            n.arrive_read(qp, "FIRST", 101, &[0; 1024]);
            n.arrive_read(qp, "MIDDLE", 102, &[0; 1024]);
            n.arrive_read(qp, "LAST", 103, &vec![0; len]);
        };
        fails(by, rule, 103);
    }
}

#[test]
fn data_under_a_nak_syndrome_is_a_bad_response() {
    let aeth = Some(Aeth::new(Syndrome::Nak(NakCode::RemoteAccess), Psn::ZERO));
    let opcode = op("RC_RDMA_READ_RESPONSE_FIRST");
    let by = |n: &mut Node, qp| {
        let bth = Bth::new(opcode, qp, Psn::new(101));
        n.arrive(bth, Ext { aeth, ..Ext::NONE }, &[0; 1024]);
    };
    fails(by, Rule::ResponseOpcode(opcode), 101);
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, ADD, 8);
    let atomic_ack = Some(urxe_wire::AtomicAckEth { original: 7 });
    let bth = Bth::new(op("RC_ATOMIC_ACKNOWLEDGE"), qp, Psn::new(100));
    n.arrive(bth, Ext { aeth, atomic_ack, ..Ext::NONE }, &[]);
    assert_eq!(n.done(), [(1, BAD)]);
    assert_eq!(n.bytes(0, 8), [0; 8]);
}

#[test]
fn memory_that_may_not_be_written_takes_no_response() {
    // IBA 9.9.2.1: a local memory protection error.
    let mut n = lab();
    let readable = Backing::buffer(std::sync::Arc::clone(&n.buffer));
    let mr = n.nic.memory().reg_mr(n.pd, readable, 0, Access::REMOTE_READ).unwrap();
    let sge = Sge { addr: 0, length: 8, lkey: mr.lkey };
    for what in [READ, ADD] {
        let qp = n.rc(|_| {});
        n.send(qp, &SendWr::new(1, what, &[sge]));
        n.post(qp, 2, SEND, 1);
        if what == READ {
            n.arrive_read(qp, "ONLY", 100, &[1; 8]);
        } else {
            n.arrive_atomic(qp, 100, 1);
        }
        let done = n.completions();
        assert_eq!((done[0].wr_id, done[0].status), (1, WcStatus::LocProtErr));
        let cause = done[0].cause.unwrap();
        assert!(matches!(cause.rule, Rule::LocalKey(KeyError::Rights { .. })), "{cause}");
        assert_eq!(cause.psn, Some(Psn::new(100)));
        assert_eq!((done[1].wr_id, done[1].status), (2, FLUSHED));
        assert_eq!(n.bytes(0, 8), [0; 8]);
    }
}

#[test]
fn a_late_response_to_a_request_that_was_sent_again_is_taken() {
    let (mut n, qp) = reader();
    n.arrive_read(qp, "FIRST", 101, &[1; 1024]);
    n.next_deadline().unwrap();
    assert_eq!(n.psns(), [102, 104]);
    // The old response goes on, the resumed one is a duplicate then.
    n.arrive_read(qp, "MIDDLE", 102, &[2; 1024]);
    n.arrive_read(qp, "FIRST", 102, &[2; 1024]);
    n.arrive_read(qp, "LAST", 103, &[3; 452]);
    n.arrive_read(qp, "LAST", 103, &[3; 452]);
    n.arrive_ack(qp, 104, 3);
    assert_eq!(n.done(), [(1, OK), (2, OK), (3, OK)]);
    assert!(n.sent().is_empty() && !n.nic.timers_armed());
}

#[test]
fn atomics_have_their_own_response_and_flush_and_atomic_write_a_read_response_of_no_bytes() {
    // Linux drivers/infiniband/sw/rxe/rxe_resp.c
    let (remote, rkey) = (0x9000, 1);
    let (scope, level) = (urxe_wire::FlushScope::Range, urxe_wire::FlushLevel::GLOBAL);
    let flush = urxe_engine::SendOp::Flush { remote, length: 8, rkey, scope, level };
    let write = urxe_engine::SendOp::AtomicWrite { remote, rkey };
    let answer = |op, length, by: &dyn Fn(&mut Node, QpId)| {
        let mut n = lab();
        let qp = n.rc(|_| {});
        n.post(qp, 1, op, length);
        by(&mut n, qp);
        n.done()
    };
    for (what, length) in [(flush, 0), (write, 8)] {
        assert_eq!(answer(what, length, &|n, qp| n.arrive_read(qp, "ONLY", 100, &[])), [(1, OK)]);
        // A mere ACK does not answer it.
        assert_eq!(answer(what, length, &|n, qp| n.arrive_ack(qp, 100, 1)), []);
        let bad = [(1, WcStatus::BadRespErr)];
        assert_eq!(answer(what, length, &|n, qp| n.arrive_read(qp, "ONLY", 100, &[1; 4])), bad);
        assert_eq!(answer(what, length, &|n, qp| n.arrive_read(qp, "FIRST", 100, &[])), bad);
        assert_eq!(answer(what, length, &|n, qp| n.arrive_atomic(qp, 100, 1)), bad);
    }
    assert_eq!(answer(ADD, 8, &|n, qp| n.arrive_ack(qp, 100, 1)), []);
}
