//! How a send queue fails: which request is told what, and what is flushed.

use urxe_engine::{
    AsyncEvent, AttrMask, Cause, Count, Event, QpAttr, QpKind, QpState, Rule, SendFlags, SendWr,
    WcStatus,
};
use urxe_memory::{KeyError, Sge};
use urxe_wire::{NakCode, Psn};

use crate::lab::lab;
use crate::script::{FLUSHED, OK, SEND, WRITE};

#[test]
fn each_nak_has_its_status_and_the_rest_is_flushed_in_order() {
    // IBA 9.7.5.2.8, 9.9.2.1, 10.3.1
    let naks = [
        (NakCode::InvalidRequest, WcStatus::RemInvReqErr, Rule::NakInvalidRequest),
        (NakCode::RemoteAccess, WcStatus::RemAccessErr, Rule::NakRemoteAccess),
        (NakCode::RemoteOperational, WcStatus::RemOpErr, Rule::NakRemoteOperational),
    ];
    for (code, status, rule) in naks {
        let mut n = lab();
        let qp = n.rc(|_| {});
        for (wr_id, what) in (1..).zip([SEND, WRITE, SEND, WRITE]) {
            n.post(qp, wr_id, what, 2000);
        }
        n.recv(qp, 11, 0, 10);
        n.recv(qp, 12, 0, 10);
        // The second packet of 2 is refused.
        n.arrive_nak(qp, 103, code, 1);
        let done = n.completions();
        let told: Vec<_> = done.iter().map(|c| (c.wr_id, c.status)).collect();
        let flushed = [3, 4, 11, 12].map(|wr_id| (wr_id, FLUSHED));
        assert_eq!(told, [&[(1, OK), (2, status)], &flushed[..]].concat());
        assert_eq!(done[1].cause, Some(Cause::at(rule, Psn::new(103))));
        assert!(done[2..].iter().all(|c| c.cause == Some(Cause::new(Rule::Flushed))));
        assert_eq!(n.nic.query_qp(qp).unwrap().attr.qp_state, QpState::Err);
        n.sent();
        assert_eq!((n.next_deadline(), n.nic.has_work()), (None, false));
        let counts = [Count::ReqCqeError, Count::ReqCqeFlushError, Count::RespCqeFlushError];
        assert_eq!(counts.map(|c| n.counters().get(c)), [1, 2, 2]);
    }
}

#[test]
fn what_fails_or_is_flushed_completes_though_it_is_not_signaled() {
    // IBA 10.7.3.1
    let mut n = lab();
    let qp = n.rc(|_| {});
    for wr_id in 1..=3 {
        n.post_with(qp, wr_id, SEND, 10, SendFlags::empty());
    }
    n.arrive_nak(qp, 101, NakCode::RemoteOperational, 1);
    assert_eq!(n.done(), [(2, WcStatus::RemOpErr), (3, FLUSHED)]);
}

#[test]
fn memory_that_cannot_be_read_fails_when_all_before_it_are_done() {
    // IBA 9.9.2.1: completions keep their order.
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 10);
    n.post(qp, 2, SEND, 10);
    // The third packet of four needs the second SGE.
    let bad = Sge { lkey: 0x00de_ad00, ..n.sge(0, 2000) };
    n.send(qp, &SendWr::new(3, SEND, &[n.sge(0, 2048), bad]));
    n.post(qp, 4, SEND, 10);
    assert_eq!(n.psns(), [100, 101, 102, 103]);
    n.arrive_ack(qp, 100, 1);
    assert_eq!(n.done(), [(1, OK)]);
    // What is before it is retried, itself it is not.
    n.next_deadline().unwrap();
    assert_eq!(n.psns(), [101]);
    n.arrive_ack(qp, 101, 2);
    let done = n.completions();
    let told: Vec<_> = done.iter().map(|c| (c.wr_id, c.status)).collect();
    assert_eq!(told, [(2, OK), (3, WcStatus::LocProtErr), (4, FLUSHED)]);
    let rule = Rule::LocalKey(KeyError::UnknownKey { key: 0x00de_ad00 });
    assert_eq!(done[1].cause, Some(Cause::at(rule, Psn::new(104))));
    assert!(n.sent().is_empty() && !n.nic.timers_armed());
}

#[test]
fn memory_that_is_gone_when_a_packet_is_sent_again_fails_the_request() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    let backing = urxe_memory::Backing::buffer(std::sync::Arc::clone(&n.buffer));
    let mr = n.nic.memory().reg_mr(n.pd, backing, 0, crate::lab::all_rights()).unwrap();
    let sge = Sge { addr: 0, length: 2000, lkey: mr.lkey };
    n.send(qp, &SendWr::new(1, SEND, &[sge]));
    n.post(qp, 2, SEND, 10);
    assert_eq!(n.psns(), [100, 101, 102]);
    n.nic.memory().dereg_mr(mr.id).unwrap();
    n.arrive_ack(qp, 100, 0);
    n.next_deadline().unwrap();
    assert_eq!(n.done(), [(1, WcStatus::LocProtErr), (2, FLUSHED)]);
    assert!(n.sent().is_empty() && !n.nic.timers_armed());
}

#[test]
fn memory_of_another_pd_is_refused() {
    // IBA 10.6.3
    let mut n = lab();
    let qp = n.rc(|_| {});
    let other = n.nic.memory().alloc_pd().unwrap();
    let backing = urxe_memory::Backing::buffer(std::sync::Arc::clone(&n.buffer));
    let mr = n.nic.memory().reg_mr(other, backing, 0, crate::lab::all_rights()).unwrap();
    let sge = Sge { addr: 0, length: 8, lkey: mr.lkey };
    n.send(qp, &SendWr::new(1, SEND, &[sge]));
    let done = n.completions();
    let rule = Rule::LocalKey(KeyError::WrongPd { key: mr.lkey, owner: other, used: n.pd });
    assert_eq!((done[0].status, done[0].cause.unwrap().rule), (WcStatus::LocProtErr, rule));
}

#[test]
fn an_unreliable_qp_fails_its_send_queue_alone() {
    // IBA 10.3.1: SQE. What arrives is still received.
    let mut n = lab();
    let qp = n.qp(QpKind::Uc, |_, _| {});
    n.recv(qp, 11, 0, 100);
    let bad = Sge { lkey: 0x00de_ad00, ..n.sge(0, 10) };
    n.sink.full = true;
    n.send(qp, &SendWr::new(1, SEND, &[bad]));
    n.post(qp, 2, SEND, 10);
    n.sink.full = false;
    n.nic.pump(n.now, &mut n.sink);
    assert_eq!(n.done(), [(1, WcStatus::LocProtErr), (2, FLUSHED)]);
    assert_eq!(n.nic.query_qp(qp).unwrap().attr.qp_state, QpState::Sqe);
    // Posting goes on, and is flushed.
    n.post(qp, 3, SEND, 10);
    assert_eq!(n.done(), [(3, FLUSHED)]);
    n.arrive_request(qp, "UC_SEND_ONLY", 500, urxe_wire::Ext::NONE, &[1; 4]);
    assert_eq!(n.done(), [(11, OK)]);
    // It can be brought back, and goes on with the next PSN.
    let attr = QpAttr { qp_state: QpState::Rts, ..n.attr() };
    n.nic.modify_qp(qp, &attr, AttrMask::STATE).unwrap();
    n.post(qp, 4, SEND, 10);
    assert_eq!(n.psns(), [100]);
    assert_eq!(n.done(), [(4, OK)]);
}

#[test]
fn modify_to_err_flushes_sends_and_receives() {
    // IBA 10.3.1
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 10);
    n.post(qp, 2, SEND, 10);
    n.recv(qp, 11, 0, 10);
    n.sent();
    let attr = QpAttr { qp_state: QpState::Err, ..n.attr() };
    n.nic.modify_qp(qp, &attr, AttrMask::STATE).unwrap();
    assert_eq!(n.done(), [(1, FLUSHED), (2, FLUSHED), (11, FLUSHED)]);
    assert!(!n.nic.timers_armed());
    // What is posted then is flushed, and what comes is dropped.
    n.post(qp, 3, WRITE, 10);
    n.recv(qp, 12, 0, 10);
    assert_eq!(n.done(), [(3, FLUSHED), (12, FLUSHED)]);
    n.arrive_ack(qp, 100, 1);
    assert_eq!(n.counters().drops(urxe_engine::Drop::WrongState), 1);
    n.pass(std::time::Duration::from_secs(1));
    assert!(n.sent().is_empty());
}

#[test]
fn reset_discards_all_work_and_the_qp_can_be_used_anew() {
    // IBA 10.3.1
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 3000);
    n.post(qp, 2, SEND, 10);
    n.arrive_ack(qp, 100, 0);
    n.recv(qp, 11, 0, 10);
    let attr = QpAttr { qp_state: QpState::Reset, ..n.attr() };
    n.nic.modify_qp(qp, &attr, AttrMask::STATE).unwrap();
    assert_eq!(n.done(), []);
    assert!(!n.nic.timers_armed());
    n.sent();
    let attr = QpAttr { sq_psn: Psn::new(7000), ..n.attr() };
    n.nic.connect_qp(qp, &attr).unwrap();
    n.nic.pump(n.now, &mut n.sink);
    n.is_quiet();
    n.post(qp, 3, SEND, 2000);
    assert_eq!(n.psns(), [7000, 7001]);
    n.next_deadline().unwrap();
    assert_eq!(n.psns(), [7000, 7001]);
    n.arrive_ack(qp, 7001, 1);
    assert_eq!(n.done(), [(3, OK)]);
}

#[test]
fn a_qp_with_work_outstanding_can_be_destroyed() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 3000);
    n.sink.full = true;
    n.post(qp, 2, SEND, 10);
    n.nic.destroy_qp(qp).unwrap();
    n.sink.full = false;
    n.sent();
    n.nic.pump(n.now, &mut n.sink);
    n.arrive_ack(qp, 102, 1);
    n.pass(std::time::Duration::from_secs(1));
    assert_eq!((n.done(), n.sent()), (vec![], vec![]));
    assert_eq!(n.nic.next_deadline(), None);
    assert_eq!(n.counters().drops(urxe_engine::Drop::NoSuchQp), 1);
    n.nic.destroy_cq(n.cq).unwrap();
}

#[test]
fn a_completion_that_finds_the_cq_full_takes_the_qp_to_error() {
    // IBA 10.10.3: the CQ's overflow is told by an event.
    let mut n = lab();
    n.cq = n.nic.create_cq(2).unwrap();
    let qp = n.rc(|_| {});
    for wr_id in 1..=4 {
        n.post(qp, wr_id, SEND, 10);
    }
    n.arrive_ack(qp, 102, 3);
    assert_eq!(n.done(), [(1, OK), (2, OK)]);
    assert_eq!(n.nic.query_qp(qp).unwrap().attr.qp_state, QpState::Err);
    let cause = urxe_engine::CqCause::Overflow;
    let events = [AsyncEvent::CqErr(n.cq, cause), AsyncEvent::QpFatal(qp)];
    assert_eq!(n.events(), events.map(Event::Async));
    assert_eq!(n.next_deadline(), None);
}
