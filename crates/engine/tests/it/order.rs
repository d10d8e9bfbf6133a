//! Which request may go when: fences, the depth of READs and atomics, local operations.

use urxe_engine::{Cause, QpKind, Rule, SendFlags, SendOp, SendWr, WcOpcode, WcStatus};
use urxe_memory::{Access, Backing, BindMw, KeyError, MrOptions, MwId, MwType, Sge};

use crate::lab::{BASE, Node, lab};
use crate::script::{ADD, FLUSHED, OK, READ, SEND, WRITE};

const FENCED: SendFlags = SendFlags::SIGNALED.union(SendFlags::FENCE);

#[test]
fn no_more_reads_and_atomics_are_outstanding_than_max_rd_atomic() {
    // The initiator depth (IBA 10.2.4).
    let mut n = lab();
    let qp = n.rc(|attr| attr.max_rd_atomic = 2);
    for (wr_id, what) in (1..).zip([READ, ADD, READ, SEND]) {
        n.post(qp, wr_id, what, 8);
    }
    // The order of the queue is kept: the SEND waits too.
    assert_eq!(n.psns(), [100, 101]);
    n.arrive_read(qp, "ONLY", 100, &[0; 8]);
    assert_eq!(n.psns(), [102, 103]);
    n.post(qp, 5, ADD, 8);
    n.is_quiet();
    n.arrive_atomic(qp, 101, 0);
    assert_eq!(n.psns(), [104]);
    n.arrive_read(qp, "ONLY", 102, &[0; 8]);
    n.arrive_atomic(qp, 104, 0);
    assert_eq!(n.done(), (1..=5).map(|wr_id| (wr_id, OK)).collect::<Vec<_>>());
}

#[test]
fn the_depth_holds_after_retries_too() {
    let mut n = lab();
    let qp = n.rc(|attr| attr.max_rd_atomic = 2);
    for wr_id in 1..=4 {
        n.post(qp, wr_id, READ, 8);
    }
    assert_eq!(n.psns(), [100, 101]);
    for _ in 0..3 {
        n.next_deadline().unwrap();
        assert_eq!(n.psns(), [100, 101]);
    }
    // 100 is answered while both are to go again: one is left.
    n.sink.full = true;
    n.next_deadline().unwrap();
    n.arrive_read(qp, "ONLY", 100, &[0; 8]);
    n.sink.full = false;
    n.nic.pump(n.now, &mut n.sink);
    assert_eq!(n.psns(), [101, 102]);
    n.arrive_read(qp, "ONLY", 101, &[0; 8]);
    assert_eq!(n.psns(), [103]);
}

#[test]
fn a_read_on_a_qp_without_depth_fails_in_its_turn() {
    let mut n = lab();
    let qp = n.rc(|attr| attr.max_rd_atomic = 0);
    n.post(qp, 1, SEND, 8);
    n.post(qp, 2, ADD, 8);
    n.post(qp, 3, SEND, 8);
    assert_eq!(n.psns(), [100]);
    assert_eq!(n.done(), []);
    n.arrive_ack(qp, 100, 1);
    let done = n.completions();
    let told: Vec<_> = done.iter().map(|c| (c.wr_id, c.status)).collect();
    assert_eq!(told, [(1, OK), (2, WcStatus::LocQpOpErr), (3, FLUSHED)]);
    let rule = Rule::NotAllowed(crate::lab::op("RC_FETCH_ADD"));
    assert_eq!(done[1].cause, Some(Cause::new(rule)));
    let qp = n.rc(|attr| attr.max_rd_atomic = 0);
    n.post(qp, 4, READ, 8);
    assert_eq!(n.done(), [(4, WcStatus::LocQpOpErr)]);
}

#[test]
fn a_fence_waits_for_the_reads_and_atomics_before_it() {
    // ibv_post_send(3), IBV_SEND_FENCE
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, READ, 2000);
    n.post(qp, 2, ADD, 8);
    n.post(qp, 3, WRITE, 8);
    n.post_with(qp, 4, SEND, 8, FENCED);
    n.post(qp, 5, SEND, 8);
    // It does not wait for the WRITE.
    assert_eq!(n.psns(), [100, 102, 103]);
    n.arrive_read(qp, "FIRST", 100, &[0; 1024]);
    n.arrive_read(qp, "LAST", 101, &[0; 976]);
    n.is_quiet();
    n.arrive_atomic(qp, 102, 0);
    assert_eq!(n.psns(), [104, 105]);
    n.arrive_ack(qp, 105, 5);
    assert_eq!(n.done(), (1..=5).map(|wr_id| (wr_id, OK)).collect::<Vec<_>>());
    // With nothing before it, it goes at once.
    n.post_with(qp, 6, READ, 8, FENCED);
    assert_eq!(n.psns(), [106]);
}

/// A region whose key can be invalidated.
fn fast(n: &Node) -> u32 {
    let backing = Backing::buffer(std::sync::Arc::clone(&n.buffer));
    let options = MrOptions { invalidatable: true };
    let memory = n.nic.memory();
    memory.reg_mr_with(n.pd, backing, 0, crate::lab::all_rights(), options).unwrap().lkey
}

fn local_inv(n: &mut Node, qp: urxe_engine::QpId, wr_id: u64, rkey: u32) {
    n.send(qp, &SendWr::new(wr_id, SendOp::LocalInvalidate { rkey }, &[]));
}

#[test]
fn a_local_invalidate_waits_for_all_requests_before_it() {
    // They may be sent again with the key.
    let mut n = lab();
    let qp = n.rc(|_| {});
    let key = fast(&n);
    let sge = Sge { addr: 0, length: 2000, lkey: key };
    n.send(qp, &SendWr::new(1, SEND, &[sge]));
    local_inv(&mut n, qp, 2, key);
    n.send(qp, &SendWr::new(3, SEND, &[sge]));
    assert_eq!(n.psns(), [100, 101]);
    n.next_deadline().unwrap();
    assert_eq!(n.psns(), [100, 101]);
    n.arrive_ack(qp, 101, 1);
    let done = n.completions();
    let told: Vec<_> = done.iter().map(|c| (c.wr_id, c.opcode, c.status)).collect();
    let wanted = [
        (1, WcOpcode::Send, OK),
        (2, WcOpcode::LocalInv, OK),
        (3, WcOpcode::Send, WcStatus::LocProtErr),
    ];
    assert_eq!(told, wanted);
    assert!(n.sent().is_empty());
}

#[test]
fn a_local_invalidate_of_a_wrong_key_fails() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 8);
    let lkey = n.mr.lkey;
    local_inv(&mut n, qp, 2, lkey);
    n.post(qp, 3, SEND, 8);
    n.arrive_ack(qp, 100, 1);
    let done = n.completions();
    let told: Vec<_> = done.iter().map(|c| (c.wr_id, c.status)).collect();
    assert_eq!(told, [(1, OK), (2, WcStatus::LocQpOpErr), (3, FLUSHED)]);
    let rule = Rule::LocalKey(KeyError::NotInvalidatable { key: lkey });
    assert_eq!(done[1].cause, Some(Cause::new(rule)));
}

fn bind(n: &Node, mw: MwId, key: u32, access: Access) -> SendOp {
    SendOp::BindMw { mw, rkey: Some(key), lkey: n.mr.lkey, addr: BASE, length: 4096, access }
}

#[test]
fn a_window_is_bound_in_its_turn_and_completes_in_order() {
    // IBA 10.6.7: binds go behind the requests before them, whose ACKs it does not wait for.
    for kind in [QpKind::Rc, QpKind::Uc] {
        let mut n = lab();
        let qp = n.qp(kind, |_, _| {});
        let (mw, key) = n.nic.memory().alloc_mw(n.pd, MwType::Type2B).unwrap();
        let new = key & !0xff | 0x5a;
        n.post(qp, 1, WRITE, 8);
        let what = bind(&n, mw, new, Access::REMOTE_READ);
        n.send(qp, &SendWr::new(2, what, &[]));
        n.post(qp, 3, WRITE, 8);
        let info = n.nic.memory().query_mw(mw).unwrap();
        assert_eq!((info.bound, info.rkey, info.length), (true, new, 4096));
        assert_eq!(n.psns(), [100, 101]);
        if kind == QpKind::Rc {
            assert_eq!(n.done(), []);
            n.arrive_ack(qp, 101, 2);
        }
        let done = n.completions();
        let told: Vec<_> = done.iter().map(|c| (c.wr_id, c.opcode)).collect();
        let wanted = [(1, WcOpcode::RdmaWrite), (2, WcOpcode::BindMw), (3, WcOpcode::RdmaWrite)];
        assert_eq!(told, wanted);
    }
}

#[test]
fn a_window_that_cannot_be_bound_is_told_when_all_before_it_are_done() {
    // IBA 11.6.2: memory window bind error
    let mut n = lab();
    let qp = n.rc(|_| {});
    let (mw, key) = n.nic.memory().alloc_mw(n.pd, MwType::Type2B).unwrap();
    n.post(qp, 1, WRITE, 8);
    let new = key ^ 1;
    let lkey = 0x00de_ad00;
    let access = Access::REMOTE_READ;
    let what = SendOp::BindMw { mw, rkey: Some(new), lkey, addr: BASE, length: 4096, access };
    n.send(qp, &SendWr::new(2, what, &[]));
    n.post(qp, 3, WRITE, 8);
    assert_eq!((n.psns(), n.done()), (vec![100], vec![]));
    n.arrive_ack(qp, 100, 1);
    let done = n.completions();
    let told: Vec<_> = done.iter().map(|c| (c.wr_id, c.status)).collect();
    assert_eq!(told, [(1, OK), (2, WcStatus::MwBindErr), (3, FLUSHED)]);
    let rule = Rule::Bind(KeyError::UnknownKey { key: lkey });
    assert_eq!(done[1].cause, Some(Cause::new(rule)));
    assert!(!n.nic.memory().query_mw(mw).unwrap().bound);
}

#[test]
fn a_bind_is_not_done_again_when_requests_around_it_are() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    let (mw, key) = n.nic.memory().alloc_mw(n.pd, MwType::Type1).unwrap();
    n.post(qp, 1, WRITE, 8);
    let what = bind(&n, mw, key ^ 1, Access::REMOTE_READ);
    n.send(qp, &SendWr::new(2, what, &[]));
    n.post(qp, 3, WRITE, 8);
    n.sent();
    // Meanwhile another request binds it anew.
    let lkey = n.mr.lkey;
    let again = BindMw {
        mw,
        pd: n.pd,
        qpn: qp.value(),
        lkey,
        new_rkey: None,
        addr: BASE,
        len: 8,
        access: Access::REMOTE_READ,
    };
    n.nic.memory().bind_mw(&again).unwrap();
    n.next_deadline().unwrap();
    // Both around it go at once: it holds nothing up.
    assert_eq!(n.psns(), [100, 101]);
    assert_eq!(n.nic.memory().query_mw(mw).unwrap().length, 8);
    n.arrive_ack(qp, 101, 2);
    assert_eq!(n.done(), [(1, OK), (2, OK), (3, OK)]);
    assert!(n.sent().is_empty() && !n.nic.timers_armed());
}
