//! Completion queues: overflow, resizing, arming.

use urxe_engine::{
    Arm, AsyncEvent, AttrMask, Count, CqCause, CqId, Event, QpAttr, QpId, QpKind, QpState,
    ResizeError, SendFlags, VerbsError, WcStatus,
};
use urxe_wire::{Bth, Ext, Psn};

use crate::ask::{inv, reth};
use crate::lab::{Node, lab, op};

const OK: WcStatus = WcStatus::Success;

/// An RC QP whose receives complete to a CQ of `capacity`, with receives 1 to 9.
fn small(n: &mut Node, capacity: u32) -> (QpId, CqId) {
    let cq = n.nic.create_cq(capacity).unwrap();
    let qp = n.qp(QpKind::Rc, |init, _| init.recv_cq = Some(cq));
    (1..10).for_each(|i| n.recv(qp, i, 0, 64));
    (qp, cq)
}

fn send(n: &mut Node, qp: QpId, psn: u32) {
    n.arrive_quiet(qp, "RC_SEND_ONLY", psn, Ext::NONE, b"x");
}

fn solicited(n: &mut Node, qp: QpId, psn: u32) {
    let mut bth = Bth::new(op("RC_SEND_ONLY"), qp, Psn::new(psn));
    bth.solicited = true;
    n.arrive(bth, Ext::NONE, b"x");
}

fn done(n: &Node, cq: CqId) -> Vec<(u64, WcStatus)> {
    let mut all = Vec::new();
    n.nic.poll_cq(cq, &mut all, 99).unwrap();
    all.iter().map(|c| (c.wr_id, c.status)).collect()
}

/// An overflow is an error of the CQ and of the QP whose completion is lost (IBA 11.6.3); what was
/// in the CQ stays.
#[test]
fn overflow_is_told_and_takes_the_qp_to_error() {
    let mut n = lab();
    let (qp, cq) = small(&mut n, 2);
    send(&mut n, qp, 500);
    send(&mut n, qp, 501);
    let info = n.nic.query_cq(cq).unwrap();
    assert_eq!((info.capacity, info.waiting, info.overflowed), (2, 2, false));
    assert_eq!(n.state(qp), QpState::Rts);
    send(&mut n, qp, 502);
    let cq_err = AsyncEvent::CqErr(cq, CqCause::Overflow);
    assert_eq!(n.async_events(), [cq_err, AsyncEvent::QpFatal(qp)]);
    assert_eq!(n.state(qp), QpState::Err);
    assert!(n.nic.query_cq(cq).unwrap().overflowed);
    assert_eq!(done(&n, cq), [(1, OK), (2, OK)]);
    // The third, and the six flushed behind it.
    assert_eq!(n.count(Count::CqOverflow), 7);
}

/// Another QP of the CQ goes to error when it loses a completion of its own; the CQ's error is told
/// once.
#[test]
fn each_qp_fails_by_its_own_lost_completion() {
    let mut n = lab();
    let (a, cq) = small(&mut n, 2);
    let b = n.qp(QpKind::Rc, |init, _| init.recv_cq = Some(cq));
    n.recv(b, 20, 0, 64);
    (500..503).for_each(|psn| send(&mut n, a, psn));
    n.async_events();
    assert_eq!(n.state(b), QpState::Rts);
    send(&mut n, b, 500);
    assert_eq!((n.async_events(), n.state(b)), (vec![AsyncEvent::QpFatal(b)], QpState::Err));
}

/// A send that cannot complete is no less lost.
#[test]
fn a_send_completion_that_is_lost_is_fatal_too() {
    let mut n = lab();
    let cq = n.nic.create_cq(1).unwrap();
    let qp = n.qp(QpKind::Uc, |init, _| init.send_cq = Some(cq));
    n.send_bytes(qp, 1, 0, 4);
    assert_eq!(n.state(qp), QpState::Rts);
    n.send_bytes(qp, 2, 0, 4);
    assert_eq!(n.state(qp), QpState::Err);
    let events = [AsyncEvent::CqErr(cq, CqCause::Overflow), AsyncEvent::QpFatal(qp)];
    assert_eq!(n.async_events(), events);
}

#[test]
fn polling_takes_the_oldest_and_no_more_than_asked() {
    let mut n = lab();
    let (qp, cq) = small(&mut n, 16);
    (500..505).for_each(|psn| send(&mut n, qp, psn));
    let mut out = Vec::new();
    assert_eq!(n.nic.poll_cq(cq, &mut out, 0), Ok(0));
    assert_eq!(n.nic.poll_cq(cq, &mut out, 2), Ok(2));
    assert_eq!(n.nic.poll_one(cq).unwrap().unwrap().wr_id, 3);
    assert_eq!(n.nic.poll_cq(cq, &mut out, 9), Ok(2));
    assert_eq!(out.iter().map(|c| c.wr_id).collect::<Vec<_>>(), [1, 2, 4, 5]);
    assert_eq!((n.nic.poll_cq(cq, &mut out, 9), n.nic.poll_one(cq)), (Ok(0), Ok(None)));
}

#[test]
fn resizing_keeps_completions_and_their_order() {
    let mut n = lab();
    let (qp, cq) = small(&mut n, 3);
    (500..503).for_each(|psn| send(&mut n, qp, psn));
    n.nic.resize_cq(cq, 5).unwrap();
    send(&mut n, qp, 503);
    send(&mut n, qp, 504);
    let small = ResizeError::TooSmall { waiting: 5, wanted: 4 };
    assert_eq!(n.nic.resize_cq(cq, 4), Err(VerbsError::Resize(small)));
    let max = n.nic.config().caps.max_cqe;
    for wanted in [0, max + 1] {
        let wrong = ResizeError::Range { wanted: wanted as usize, max: max as usize };
        assert_eq!(n.nic.resize_cq(cq, wanted), Err(VerbsError::Resize(wrong)));
    }
    assert_eq!(n.nic.poll_one(cq).unwrap().unwrap().wr_id, 1);
    n.nic.resize_cq(cq, 4).unwrap();
    assert_eq!((n.nic.query_cq(cq).unwrap().capacity, n.state(qp)), (4, QpState::Rts));
    send(&mut n, qp, 505);
    assert_eq!(n.state(qp), QpState::Err, "4 are full");
    assert_eq!(done(&n, cq).iter().map(|c| c.0).collect::<Vec<_>>(), [2, 3, 4, 5]);
}

/// Arming is for one notification, of a completion that comes after it.
#[test]
fn an_armed_cq_notifies_once() {
    let mut n = lab();
    let (qp, cq) = small(&mut n, 16);
    send(&mut n, qp, 500);
    n.nic.arm_cq(cq, Arm::Next).unwrap();
    assert_eq!(n.events(), []);
    send(&mut n, qp, 501);
    send(&mut n, qp, 502);
    assert_eq!(n.events(), [Event::Completion(cq)]);
    n.nic.arm_cq(cq, Arm::Next).unwrap();
    n.nic.arm_cq(cq, Arm::Next).unwrap();
    send(&mut n, qp, 503);
    send(&mut n, qp, 504);
    assert_eq!(n.events(), [Event::Completion(cq)]);
}

/// Linux drivers/infiniband/hw/mlx5/cq.c, mlx5_ib_arm_cq.
#[test]
fn armed_for_all_it_notifies_of_what_waits_untold() {
    let mut n = lab();
    let (qp, cq) = small(&mut n, 16);
    send(&mut n, qp, 500);
    n.nic.arm_cq_for_all(cq, Arm::Solicited).unwrap();
    assert_eq!(n.events(), [], "what waits is not solicited");
    n.nic.arm_cq_for_all(cq, Arm::Next).unwrap();
    assert_eq!(n.events(), [Event::Completion(cq)]);
    n.nic.arm_cq_for_all(cq, Arm::Next).unwrap();
    assert_eq!(n.events(), [], "it has been told of");
    send(&mut n, qp, 501);
    assert_eq!(n.events(), [Event::Completion(cq)]);
    solicited(&mut n, qp, 502);
    n.nic.arm_cq_for_all(cq, Arm::Solicited).unwrap();
    assert_eq!(n.events(), [Event::Completion(cq)]);
    send(&mut n, qp, 503);
    assert_eq!(done(&n, cq).len(), 4);
    n.nic.arm_cq_for_all(cq, Arm::Next).unwrap();
    assert_eq!(n.events(), [], "it has been polled");
    send(&mut n, qp, 504);
    assert_eq!(n.events(), [Event::Completion(cq)]);
}

#[test]
fn armed_for_solicited_it_notifies_of_solicited_alone() {
    let mut n = lab();
    let (qp, cq) = small(&mut n, 16);
    n.nic.arm_cq(cq, Arm::Solicited).unwrap();
    send(&mut n, qp, 500);
    assert_eq!(n.events(), []);
    solicited(&mut n, qp, 501);
    solicited(&mut n, qp, 502);
    assert_eq!(n.events(), [Event::Completion(cq)]);
    // Armed for the next it stays so, whatever it is armed for on top.
    n.nic.arm_cq(cq, Arm::Next).unwrap();
    n.nic.arm_cq(cq, Arm::Solicited).unwrap();
    send(&mut n, qp, 503);
    assert_eq!(n.events(), [Event::Completion(cq)]);
    n.nic.arm_cq(cq, Arm::Solicited).unwrap();
    n.nic.arm_cq(cq, Arm::Next).unwrap();
    send(&mut n, qp, 504);
    assert_eq!(n.events(), [Event::Completion(cq)]);
}

/// The bit counts in the last packet of a SEND or WRITE with immediate alone.
#[test]
fn the_last_packet_solicits() {
    let mut n = lab();
    let cq = n.nic.create_cq(16).unwrap();
    let qp = n.rc256_with(|init, _| init.recv_cq = Some(cq));
    (1..3).for_each(|i| n.recv(qp, i, 0, 512));
    for (psn, first, last) in [(500, true, false), (502, false, true)] {
        n.nic.arm_cq(cq, Arm::Solicited).unwrap();
        for (psn, name, solicited, len) in
            [(psn, "RC_SEND_FIRST", first, 256), (psn + 1, "RC_SEND_LAST", last, 1)]
        {
            let mut bth = Bth::new(op(name), qp, Psn::new(psn));
            bth.solicited = solicited;
            n.arrive(bth, Ext::NONE, &[1; 256][..len]);
        }
        assert_eq!(n.events().len(), usize::from(last));
    }
}

/// What fails is told of, solicited or not (IBA 11.4.2).
#[test]
fn a_failed_completion_counts_as_solicited() {
    let mut n = lab();
    let (qp, cq) = small(&mut n, 16);
    n.nic.arm_cq(cq, Arm::Solicited).unwrap();
    n.arrive_quiet(qp, "RC_SEND_ONLY_WITH_INVALIDATE", 500, inv(0xdead_0000), b"x");
    assert_eq!(n.events(), [Event::Completion(cq)]);
    // Flushed is failed.
    let (qp, cq) = small(&mut n, 16);
    n.nic.arm_cq(cq, Arm::Solicited).unwrap();
    n.to_error(qp);
    assert_eq!(n.events(), [Event::Completion(cq)]);
}

/// A send's completion is not solicited by its own flag.
#[test]
fn a_sends_own_completion_is_not_solicited() {
    let mut n = lab();
    let qp = n.qp(QpKind::Uc, |_, _| {});
    n.nic.arm_cq(n.cq, Arm::Solicited).unwrap();
    let flags = SendFlags::SIGNALED | SendFlags::SOLICITED;
    n.post_with(qp, 1, crate::script::SEND, 4, flags);
    assert_eq!((n.events(), n.done()), (vec![], vec![(1, OK)]));
}

#[test]
fn what_is_not_there_is_not_found() {
    let mut n = lab();
    let gone = n.nic.create_cq(1).unwrap();
    n.nic.destroy_cq(gone).unwrap();
    let missing = VerbsError::NotFound { what: "CQ", id: gone.0 };
    assert_eq!(n.nic.poll_one(gone), Err(missing));
    assert_eq!(n.nic.poll_cq(gone, &mut Vec::new(), 1), Err(missing));
    assert_eq!(n.nic.arm_cq(gone, Arm::Next), Err(missing));
    assert_eq!(n.nic.resize_cq(gone, 4), Err(missing));
    assert_eq!(n.nic.query_cq(gone), Err(missing));
    assert_eq!(n.nic.destroy_cq(gone), Err(missing));
    let qp = n.rc256();
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 500, reth(0, 0, 0), &[]);
    assert_eq!(n.done(), [], "a plain WRITE completes nowhere");
}

/// Completions lost while the QP is flushed are no reason to fail it once more: it can be reset and
/// used anew.
#[test]
fn a_qp_whose_flushes_were_lost_can_be_reset() {
    for posted_in_error in [false, true] {
        let mut n = lab();
        let (qp, cq) = small(&mut n, 2);
        n.sink.full = true;
        (500..503).for_each(|psn| send(&mut n, qp, psn));
        assert_eq!(n.state(qp), QpState::Err);
        if posted_in_error {
            // It is flushed at once, and lost.
            n.recv(qp, 20, 0, 64);
        }
        n.async_events();
        done(&n, cq);
        let attr = QpAttr { qp_state: QpState::Reset, ..n.attr() };
        n.nic.modify_qp(qp, &attr, AttrMask::STATE).unwrap();
        assert_eq!((n.state(qp), n.async_events()), (QpState::Reset, vec![]));
        n.nic.connect_qp(qp, &n.attr()).unwrap();
        n.recv(qp, 30, 0, 64);
        send(&mut n, qp, 500);
        assert_eq!((n.state(qp), done(&n, cq)), (QpState::Rts, vec![(30, OK)]));
    }
}

/// A completion is lost while the sink is full: the QP does not wait for room to go to error.
#[test]
fn a_lost_completion_takes_effect_though_nothing_can_be_sent() {
    let mut n = lab();
    let (qp, _) = small(&mut n, 1);
    n.sink.full = true;
    send(&mut n, qp, 500);
    assert_eq!(n.state(qp), QpState::Rts);
    send(&mut n, qp, 501);
    assert_eq!(n.state(qp), QpState::Err);
    // A request that is flushed when it is posted is no less lost.
    let cq = n.nic.create_cq(2).unwrap();
    let uc = n.qp(QpKind::Uc, |init, _| init.send_cq = Some(cq));
    n.sink.full = false;
    let bad = [urxe_memory::Sge { addr: 0, length: 4, lkey: 1 }];
    let wr = |wr_id| urxe_engine::SendWr::new(wr_id, crate::script::SEND, &bad);
    n.send(uc, &wr(1));
    assert_eq!(n.state(uc), QpState::Sqe);
    n.sink.full = true;
    n.send(uc, &wr(2));
    assert_eq!(n.state(uc), QpState::Sqe);
    n.send(uc, &wr(3));
    assert_eq!(n.state(uc), QpState::Err);
}
