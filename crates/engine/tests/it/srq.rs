//! Shared receive queues.

use urxe_engine::{
    AsyncEvent, Drop, PostError, QpId, QpKind, QpState, RecvWr, SrqAttr, SrqId, SrqInit,
    VerbsError, WcStatus,
};
use urxe_memory::{Access, PdId};
use urxe_wire::{Ext, Mtu};

use crate::ask::{imm, reth};
use crate::lab::{BASE, Node, lab};

const OK: WcStatus = WcStatus::Success;

fn srq_of(n: &Node, pd: PdId, max_wr: u32) -> SrqId {
    let attr = SrqAttr { max_wr, max_sge: 2, limit: 0 };
    n.nic.create_srq(&SrqInit { pd, attr, xrc: None }).unwrap()
}

fn rc(n: &mut Node, srq: SrqId) -> QpId {
    n.qp(QpKind::Rc, |init, attr| {
        init.srq = Some(srq);
        attr.path_mtu = Mtu::B256;
    })
}

fn post(n: &Node, srq: SrqId, wr_id: u64) -> Result<(), PostError> {
    let sges = [n.sge(1024 * wr_id, 1024)];
    n.nic.post_srq_recv(srq, &RecvWr { wr_id, sges: &sges })
}

/// Each message takes the next WQE when it begins; its completion is its own QP's.
#[test]
fn messages_of_several_qps_take_from_one_queue() {
    let mut n = lab();
    let srq = srq_of(&n, n.pd, 4);
    let (a, b) = (rc(&mut n, srq), rc(&mut n, srq));
    (1..4).for_each(|i| post(&n, srq, i).unwrap());
    n.arrive_quiet(a, "RC_SEND_FIRST", 500, Ext::NONE, &[1; 256]);
    n.arrive_request(b, "RC_SEND_ONLY", 500, Ext::NONE, &[2; 8]);
    n.arrive_request(a, "RC_SEND_LAST", 501, Ext::NONE, &[3; 8]);
    let got: Vec<_> = n.completions().iter().map(|c| (c.wr_id, c.qpn)).collect();
    assert_eq!(got, [(2, b), (1, a)]);
    assert_eq!((n.bytes(2048, 8), n.bytes(1024 + 256, 8)), (vec![2; 8], vec![3; 8]));
    // Nothing is promised to one peer of what all may take.
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=500 ack msn=1", "RC_ACKNOWLEDGE psn=501 ack msn=1"]);
    n.arrive_request(b, "RC_SEND_ONLY", 501, Ext::NONE, b"x");
    n.arrive_request(b, "RC_SEND_ONLY", 502, Ext::NONE, b"x");
    assert_eq!(n.sent()[1], "RC_ACKNOWLEDGE psn=502 rnr-nak 640µs msn=2");
    assert_eq!(n.done(), [(3, OK)]);
}

#[test]
fn the_queue_keeps_its_order_and_bounds() {
    let mut n = lab();
    let srq = srq_of(&n, n.pd, 3);
    let qp = rc(&mut n, srq);
    for round in 0..5u64 {
        for i in 1..4 {
            post(&n, srq, 3 * round + i).unwrap();
        }
        assert_eq!(post(&n, srq, 99), Err(PostError::Full { capacity: 3 }));
        for i in 0..3 {
            let psn = 500 + u32::try_from(3 * round + i).unwrap();
            n.arrive_quiet(qp, "RC_SEND_ONLY", psn, Ext::NONE, b"x");
        }
        let want: Vec<_> = (1..4).map(|i| (3 * round + i, OK)).collect();
        assert_eq!(n.done(), want);
    }
    let sges = [n.sge(0, 1); 3];
    let many = n.nic.post_srq_recv(srq, &RecvWr { wr_id: 1, sges: &sges });
    assert_eq!(many, Err(PostError::TooManySges { got: 3, max: 2 }));
    let unknown = n.nic.post_srq_recv(SrqId(77), &RecvWr { wr_id: 1, sges: &[] });
    assert_eq!(unknown, Err(PostError::NoSuchQueue(77)));
    // A QP with an SRQ has no queue of its own.
    let own = n.nic.post_recv(n.now, qp, &RecvWr { wr_id: 1, sges: &[] });
    assert_eq!(own, Err(PostError::Unsupported { op: "receive", kind: "RC" }));
}

/// Below the limit one event, then the limit is disarmed (IBA 10.2.9).
#[test]
fn the_limit_is_told_of_once() {
    let mut n = lab();
    let srq = srq_of(&n, n.pd, 8);
    let qp = rc(&mut n, srq);
    let reached = AsyncEvent::SrqLimitReached(srq);
    (1..7).for_each(|i| post(&n, srq, i).unwrap());
    n.nic.modify_srq(srq, Some(5), None).unwrap();
    assert_eq!(n.nic.query_srq(srq).unwrap(), SrqAttr { max_wr: 8, max_sge: 2, limit: 5 });
    n.arrive_quiet(qp, "RC_SEND_ONLY", 500, Ext::NONE, b"x");
    assert!(n.async_events().is_empty(), "5 are left, not fewer");
    n.arrive_quiet(qp, "RC_SEND_ONLY", 501, Ext::NONE, b"x");
    assert_eq!(n.async_events(), [reached]);
    assert_eq!(n.nic.query_srq(srq).unwrap().limit, 0);
    n.arrive_quiet(qp, "RC_SEND_ONLY", 502, Ext::NONE, b"x");
    assert!(n.async_events().is_empty());
    // Armed above what is there it tells at once.
    n.nic.modify_srq(srq, Some(4), None).unwrap();
    assert_eq!(n.async_events(), [reached]);
    n.nic.modify_srq(srq, Some(3), None).unwrap();
    assert!(n.async_events().is_empty());
    n.nic.modify_srq(srq, Some(0), None).unwrap();
    n.arrive_quiet(qp, "RC_SEND_ONLY", 503, Ext::NONE, b"x");
    assert!(n.async_events().is_empty(), "disarmed");
}

#[test]
fn resizing_keeps_what_waits() {
    let mut n = lab();
    let srq = srq_of(&n, n.pd, 4);
    let qp = rc(&mut n, srq);
    (1..5).for_each(|i| post(&n, srq, i).unwrap());
    n.arrive_quiet(qp, "RC_SEND_ONLY", 500, Ext::NONE, b"x");
    post(&n, srq, 5).unwrap();
    n.nic.modify_srq(srq, None, Some(6)).unwrap();
    post(&n, srq, 6).unwrap();
    post(&n, srq, 7).unwrap();
    assert!(matches!(post(&n, srq, 8), Err(PostError::Full { capacity: 6 })));
    let range = |field, got, least, most| Err(VerbsError::Range { field, got, least, most });
    let most = 1 << 14;
    assert_eq!(n.nic.modify_srq(srq, None, Some(5)), range("srq max_wr", 5, 6, most));
    assert_eq!(n.nic.modify_srq(srq, None, Some(0)), range("srq max_wr", 0, 1, most));
    let too_many = n.nic.modify_srq(srq, None, Some((1 << 14) + 1));
    assert_eq!(too_many, range("srq max_wr", (1 << 14) + 1, 1, most));
    assert_eq!(n.nic.modify_srq(srq, Some(7), None), range("srq limit", 7, 0, 6));
    let both = n.nic.modify_srq(srq, Some(8), Some(7));
    assert_eq!(both, range("srq limit", 8, 0, 7));
    n.nic.modify_srq(srq, None, Some(6)).unwrap();
    n.nic.modify_srq(srq, None, Some(1 << 14)).unwrap();
    n.nic.modify_srq(srq, Some(7), Some(7)).unwrap();
    for psn in 501..507 {
        n.arrive_quiet(qp, "RC_SEND_ONLY", psn, Ext::NONE, &[u8::try_from(psn - 500).unwrap()]);
    }
    let want: Vec<_> = (1..8).map(|i| (i, OK)).collect();
    assert_eq!(n.done(), want);
    assert_eq!(n.bytes(1024 * 7, 1), [6]);
}

/// A QP that comes in error takes nothing from its SRQ any more, and says so (IBA 11.6.3).
#[test]
fn a_qp_in_error_has_taken_its_last_wqe() {
    let mut n = lab();
    let srq = srq_of(&n, n.pd, 4);
    let (qp, plain) = (rc(&mut n, srq), n.rc256());
    (1..3).for_each(|i| post(&n, srq, i).unwrap());
    n.arrive_quiet(qp, "RC_SEND_FIRST", 500, Ext::NONE, &[1; 256]);
    n.to_error(qp);
    assert_eq!(n.async_events(), [AsyncEvent::QpLastWqeReached(qp)]);
    // The WQE it had is flushed, the others stay for all.
    assert_eq!(n.done(), [(1, WcStatus::WrFlushErr)]);
    n.to_error(qp);
    n.to_error(plain);
    assert!(n.async_events().is_empty());
    let other = rc(&mut n, srq);
    n.arrive_quiet(other, "RC_SEND_ONLY", 500, Ext::NONE, b"x");
    assert_eq!(n.done(), [(2, OK)]);
    assert_eq!(n.state(qp), QpState::Err);
}

/// The SRQ's WQEs name memory of the SRQ's PD.
#[test]
fn the_srqs_pd_counts_for_its_receives() {
    let mut n = lab();
    let other = n.nic.memory().alloc_pd().unwrap();
    let srq = srq_of(&n, n.pd, 4);
    let qp = n.qp(QpKind::Rc, |init, _| (init.srq, init.pd) = (Some(srq), other));
    post(&n, srq, 1).unwrap();
    n.arrive_quiet(qp, "RC_SEND_ONLY", 500, Ext::NONE, b"hello");
    assert_eq!(n.done(), [(1, OK)]);
    let srq = srq_of(&n, other, 4);
    let qp = rc(&mut n, srq);
    post(&n, srq, 2).unwrap();
    n.arrive_quiet(qp, "RC_SEND_ONLY", 500, Ext::NONE, b"hello");
    assert_eq!(n.done(), [(2, WcStatus::LocProtErr)]);
}

/// UD takes from an SRQ too.
#[test]
fn datagrams_take_from_an_srq() {
    let mut n = lab();
    let srq = srq_of(&n, n.pd, 4);
    let qp = n.qp(QpKind::Ud, |init, _| init.srq = Some(srq));
    post(&n, srq, 1).unwrap();
    let deth = urxe_wire::Deth { qkey: crate::lab::Q_KEY, ..Default::default() };
    let ext = Ext { deth: Some(deth), ..Ext::NONE };
    n.arrive_request(qp, "UD_SEND_ONLY", 0, ext, b"hello");
    assert_eq!((n.done(), n.bytes(1024 + 40, 5)), (vec![(1, OK)], b"hello".to_vec()));
}

/// A limit that is armed is not left above the size: it could never be reached again (Linux
/// drivers/infiniband/sw/rxe/rxe_srq.c, `rxe_srq_chk_attr`).
#[test]
fn a_queue_does_not_shrink_below_its_limit() {
    let n = lab();
    let srq = srq_of(&n, n.pd, 8);
    (1..6).for_each(|i| post(&n, srq, i).unwrap());
    n.nic.modify_srq(srq, Some(5), None).unwrap();
    n.nic.modify_srq(srq, None, Some(5)).unwrap();
    n.nic.modify_srq(srq, None, Some(8)).unwrap();
    (6..8).for_each(|i| post(&n, srq, i).unwrap());
    n.nic.modify_srq(srq, Some(7), None).unwrap();
    let srq_of_7 = SrqAttr { max_wr: 8, max_sge: 2, limit: 7 };
    let range = |got, least| {
        let (field, most) = ("srq max_wr", 1 << 14);
        Err(VerbsError::Range { field, got, least, most })
    };
    assert_eq!(n.nic.modify_srq(srq, None, Some(6)), range(6, 7));
    assert_eq!(n.nic.modify_srq(srq, Some(3), Some(6)), range(6, 7), "7 wait, whatever the limit");
    assert_eq!(n.nic.query_srq(srq), Ok(srq_of_7), "nothing has changed");
    let mut n = n;
    let qp = rc(&mut n, srq);
    for psn in 500..504 {
        n.arrive_quiet(qp, "RC_SEND_ONLY", psn, Ext::NONE, b"x");
    }
    assert_eq!(n.async_events(), [AsyncEvent::SrqLimitReached(srq)]);
    // Three wait, and no limit is armed.
    assert_eq!(n.nic.modify_srq(srq, None, Some(2)), range(2, 3));
    n.nic.modify_srq(srq, None, Some(3)).unwrap();
    n.nic.modify_srq(srq, Some(2), None).unwrap();
    n.arrive_quiet(qp, "RC_SEND_ONLY", 504, Ext::NONE, b"x");
    assert_eq!(n.nic.query_srq(srq).unwrap().limit, 2);
    // A limit that comes with the size counts instead of the old one.
    n.nic.modify_srq(srq, Some(1), Some(2)).unwrap();
    assert_eq!(n.nic.query_srq(srq), Ok(SrqAttr { max_wr: 2, max_sge: 2, limit: 1 }));
}

fn uc(n: &mut Node, srq: SrqId) -> QpId {
    n.qp(QpKind::Uc, |init, attr| {
        init.srq = Some(srq);
        attr.path_mtu = Mtu::B256;
    })
}

/// UC takes from an SRQ. A WQE of a message that is broken off does not wait for the QP's next
/// one, where no other QP could have it: it completes in error, and the QP goes on (Linux
/// drivers/infiniband/sw/rxe/rxe_resp.c: class E).
#[test]
fn a_broken_unreliable_message_gives_its_shared_wqe_back() {
    const BROKEN: WcStatus = WcStatus::RemInvReqErr;
    let mut n = lab();
    let srq = srq_of(&n, n.pd, 8);
    let qp = uc(&mut n, srq);
    (1..7).for_each(|i| post(&n, srq, i).unwrap());
    n.arrive_quiet(qp, "UC_SEND_FIRST", 500, Ext::NONE, &[1; 256]);
    n.arrive_quiet(qp, "UC_SEND_LAST", 501, Ext::NONE, &[2; 8]);
    assert_eq!((n.done(), n.bytes(1024 + 256, 8)), (vec![(1, OK)], vec![2; 8]));
    // A gap.
    n.arrive_quiet(qp, "UC_SEND_FIRST", 502, Ext::NONE, &[1; 256]);
    n.arrive_quiet(qp, "UC_SEND_LAST", 504, Ext::NONE, b"x");
    n.arrive_quiet(qp, "UC_SEND_LAST", 505, Ext::NONE, b"x");
    assert_eq!((n.done(), n.dropped(Drop::BrokenMessage)), (vec![(2, BROKEN)], 2));
    // The next message comes too soon; it is served all the same.
    n.arrive_quiet(qp, "UC_SEND_FIRST", 506, Ext::NONE, &[1; 256]);
    n.arrive_quiet(qp, "UC_SEND_ONLY", 507, Ext::NONE, b"y");
    assert_eq!(n.done(), [(3, BROKEN), (4, OK)]);
    // Longer than its WQE.
    for (psn, which) in (508..).zip(["FIRST", "MIDDLE", "MIDDLE", "MIDDLE", "MIDDLE"]) {
        n.arrive_quiet(qp, &format!("UC_SEND_{which}"), psn, Ext::NONE, &[1; 256]);
    }
    assert_eq!((n.done(), n.dropped(Drop::TooLong)), (vec![(5, BROKEN)], 1));
    n.arrive_quiet(qp, "UC_SEND_ONLY", 513, Ext::NONE, b"z");
    assert_eq!((n.done(), n.state(qp)), (vec![(6, OK)], QpState::Rts));
    // Without a WQE, none is told of.
    n.arrive_quiet(qp, "UC_SEND_FIRST", 514, Ext::NONE, &[1; 256]);
    n.arrive_quiet(qp, "UC_SEND_ONLY", 515, Ext::NONE, b"z");
    assert_eq!((n.done(), n.dropped(Drop::NoReceive)), (vec![], 2));
}

/// A WRITE takes its WQE with the last packet; what is broken off before has none to tell of.
#[test]
fn a_broken_unreliable_write_has_no_shared_wqe() {
    let mut n = lab();
    let srq = srq_of(&n, n.pd, 8);
    let (qp, key) = (uc(&mut n, srq), n.mr.rkey);
    (1..3).for_each(|i| post(&n, srq, i).unwrap());
    let last = "UC_RDMA_WRITE_LAST_WITH_IMMEDIATE";
    n.arrive_quiet(qp, "UC_RDMA_WRITE_FIRST", 500, reth(BASE, key, 300), &[1; 256]);
    n.arrive_quiet(qp, last, 502, imm(Ext::NONE), &[3; 44]);
    assert_eq!(n.done(), []);
    n.arrive_quiet(qp, "UC_RDMA_WRITE_FIRST", 503, reth(BASE, key, 300), &[1; 256]);
    n.arrive_quiet(qp, last, 504, imm(Ext::NONE), &[3; 44]);
    assert_eq!(n.done(), [(1, OK)]);
    // With its WQE, and of the wrong length or to the wrong place.
    let only = "UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE";
    n.arrive_quiet(qp, only, 505, imm(reth(BASE, key ^ 1, 4)), b"1234");
    assert_eq!(n.done(), [(2, WcStatus::RemAccessErr)]);
    assert_eq!(n.state(qp), QpState::Rts);
}

/// The limit is armed by a modify (IBA 10.2.9), not by what the queue was made with.
#[test]
fn a_limit_given_at_creation_is_not_armed() {
    let mut n = lab();
    let attr = SrqAttr { max_wr: 4, max_sge: 2, limit: 4 };
    let srq = n.nic.create_srq(&SrqInit { pd: n.pd, attr, xrc: None }).unwrap();
    assert_eq!(n.nic.query_srq(srq), Ok(SrqAttr { limit: 0, ..attr }));
    let qp = rc(&mut n, srq);
    post(&n, srq, 1).unwrap();
    n.arrive_quiet(qp, "RC_SEND_ONLY", 500, Ext::NONE, b"x");
    assert_eq!((n.done(), n.async_events()), (vec![(1, OK)], vec![]));
}

/// As for connected QPs: the SRQ's WQEs name memory of the SRQ's PD.
#[test]
fn the_srqs_pd_counts_for_datagrams() {
    let mut n = lab();
    let other = n.nic.memory().alloc_pd().unwrap();
    let deth = urxe_wire::Deth { qkey: crate::lab::Q_KEY, ..Default::default() };
    let ext = Ext { deth: Some(deth), ..Ext::NONE };
    let srq = srq_of(&n, n.pd, 4);
    let qp = n.qp(QpKind::Ud, |init, _| (init.srq, init.pd) = (Some(srq), other));
    post(&n, srq, 1).unwrap();
    n.arrive_request(qp, "UD_SEND_ONLY", 0, ext, b"hello");
    assert_eq!(n.done(), [(1, OK)]);
    let srq = srq_of(&n, other, 4);
    let qp = n.qp(QpKind::Ud, |init, _| init.srq = Some(srq));
    post(&n, srq, 2).unwrap();
    n.arrive_request(qp, "UD_SEND_ONLY", 0, ext, b"hello");
    assert_eq!(n.done(), [(2, WcStatus::LocProtErr)]);
}

/// A QP in error whose READ's memory goes before its answer has left has failed once.
#[test]
fn a_qp_fails_once() {
    let mut n = lab();
    let srq = srq_of(&n, n.pd, 4);
    let (qp, region) = (rc(&mut n, srq), n.region(Access::REMOTE_READ));
    n.sink.full = true;
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE, region.rkey, 8), &[]);
    n.arrive_request(qp, "RC_SEND_MIDDLE", 501, Ext::NONE, &[1; 256]);
    let failed = [AsyncEvent::QpReqErr(qp), AsyncEvent::QpLastWqeReached(qp)];
    assert_eq!(n.async_events(), failed);
    n.nic.memory().dereg_mr(region.id).unwrap();
    n.sink.full = false;
    n.pump();
    assert!(!n.async_events().contains(&AsyncEvent::QpLastWqeReached(qp)));
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=500 nak RemoteAccess msn=1"]);
}
