//! RNR NAKs: how long to wait, how often, and what happens meanwhile.

use std::time::Duration;

use urxe_engine::{Cause, Count, Drop, Rule, TimerKind, WcStatus};
use urxe_wire::{Psn, RnrTimer};

use crate::lab::{Pair, lab};
use crate::script::{FLUSHED, OK, SEND, WRITE};

#[test]
fn each_rnr_timer_code_waits_exactly_its_time() {
    // Linux include/rdma/ib_verbs.h; hundredths of a millisecond.
    let times = [
        65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
        1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
    ];
    for (code, hundredths) in (0..).zip(times) {
        let mut n = lab();
        let qp = n.rc(|_| {});
        n.post(qp, 1, SEND, 10);
        n.sent();
        n.arrive_rnr(qp, 100, code);
        assert_eq!(n.nic.next_deadline().unwrap().why, TimerKind::Rnr);
        assert_eq!(n.next_deadline(), Some(Duration::from_micros(10 * hundredths)), "{code}");
        assert_eq!(n.psns(), [100]);
    }
}

#[test]
fn nothing_is_sent_during_an_rnr_wait() {
    // IBA 9.7.5.2.8
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, WRITE, 10);
    n.post(qp, 2, SEND, 2000);
    n.post(qp, 3, SEND, 10);
    n.sent();
    n.arrive_rnr(qp, 101, 12);
    // What is before it is acknowledged.
    assert_eq!(n.done(), [(1, OK)]);
    n.post(qp, 4, WRITE, 10);
    n.pass(Duration::from_micros(639));
    assert_eq!(n.sent(), Vec::<String>::new());
    assert_eq!(n.next_deadline(), Some(Duration::from_micros(1)));
    assert_eq!(n.psns(), [101, 102, 103, 104]);
    assert_eq!(n.nic.next_deadline().unwrap().why, TimerKind::Retransmit);
    assert_eq!(n.counters().get(Count::RnrNakReceived), 1);
    n.arrive_ack(qp, 104, 4);
    assert_eq!(n.done(), [(2, OK), (3, OK), (4, OK)]);
    assert!(!n.nic.timers_armed());
}

#[test]
fn after_rnr_retry_waits_without_progress_the_request_fails() {
    // IBA 9.9.2.1
    for rnr_retry in 0..7 {
        let mut n = lab();
        let qp = n.rc(|attr| attr.rnr_retry = rnr_retry);
        n.post(qp, 1, SEND, 10);
        n.post(qp, 2, SEND, 10);
        n.sent();
        for _ in 0..rnr_retry {
            n.arrive_rnr(qp, 100, 1);
            assert_eq!(n.next_deadline(), Some(Duration::from_micros(10)));
            assert_eq!(n.psns(), [100, 101]);
        }
        n.arrive_rnr(qp, 100, 1);
        let done = n.completions();
        let told: Vec<_> = done.iter().map(|c| (c.wr_id, c.status)).collect();
        assert_eq!(told, [(1, WcStatus::RnrRetryExcErr), (2, FLUSHED)], "rnr_retry {rnr_retry}");
        assert_eq!(done[0].cause, Some(Cause::at(Rule::RnrExhausted, Psn::new(100))));
        assert_eq!(n.counters().get(Count::RnrNakRetryErr), 1);
        assert_eq!(n.next_deadline(), None);
    }
}

#[test]
fn rnr_retry_7_never_ends() {
    // IBA 9.9.2.1
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 10);
    for _ in 0..100 {
        n.arrive_rnr(qp, 100, 1);
        assert_eq!(n.next_deadline(), Some(Duration::from_micros(10)));
    }
    n.arrive_ack(qp, 100, 1);
    assert_eq!(n.done(), [(1, OK)]);
}

#[test]
fn progress_gives_all_rnr_retries_back() {
    let mut n = lab();
    let qp = n.rc(|attr| attr.rnr_retry = 1);
    n.post(qp, 1, SEND, 10);
    n.post(qp, 2, SEND, 10);
    n.arrive_rnr(qp, 100, 1);
    n.next_deadline().unwrap();
    // 1 is acknowledged by what refuses 2.
    n.arrive_rnr(qp, 101, 1);
    assert_eq!(n.done(), [(1, OK)]);
    n.next_deadline().unwrap();
    n.arrive_rnr(qp, 101, 1);
    assert_eq!(n.done(), [(2, WcStatus::RnrRetryExcErr)]);
}

#[test]
fn an_rnr_wait_costs_no_retry_of_the_other_kind() {
    // A peer that NAKs what was in flight behind its RNR NAK, as rxe does, must not bring us to
    // give up: it is there, it only has no receive WQE.
    let mut n = lab();
    let qp = n.rc(|attr| attr.retry_cnt = 1);
    n.post(qp, 1, SEND, 10);
    n.post(qp, 2, SEND, 10);
    for _ in 0..10 {
        n.sent();
        n.arrive_rnr(qp, 100, 1);
        n.arrive_seq_nak(qp, 100);
        // Nor is a doubled RNR NAK a further one.
        n.arrive_rnr(qp, 100, 1);
        assert!(n.sent().is_empty());
        assert_eq!(n.next_deadline(), Some(Duration::from_micros(10)));
        assert_eq!(n.psns(), [100, 101]);
    }
    assert_eq!(n.counters().drops(Drop::AwaitingRetry), 20);
    n.arrive_ack(qp, 101, 2);
    assert_eq!(n.done(), [(1, OK), (2, OK)]);
}

#[test]
fn the_ack_timeout_does_not_run_during_an_rnr_wait() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, WRITE, 10);
    n.post(qp, 2, SEND, 10);
    n.post(qp, 3, SEND, 10);
    n.sent();
    n.arrive_rnr(qp, 101, 0);
    // An ACK amid it, of what went before, starts none either.
    n.arrive_ack(qp, 101, 2);
    assert_eq!(n.next_deadline(), Some(Duration::from_micros(655_360)));
    assert_eq!(n.counters().get(Count::LocalAckTimeoutErr), 0);
    assert_eq!(n.psns(), [102]);
}

#[test]
fn an_acknowledged_request_is_not_sent_again_after_the_wait() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 10);
    n.sent();
    n.arrive_rnr(qp, 100, 5);
    n.arrive_ack(qp, 100, 1);
    assert_eq!(n.done(), [(1, OK)]);
    n.next_deadline().unwrap();
    assert!(n.sent().is_empty() && !n.nic.timers_armed());
}

#[test]
fn a_peer_that_posts_late_gets_the_message() {
    let mut p = Pair::new();
    let (qa, qb) = p.connect_as(urxe_engine::QpKind::Rc, |_, attr| {
        attr.min_rnr_timer = RnrTimer::new(20).unwrap();
    });
    p.a.post(qa, 1, SEND, 3000);
    p.run();
    assert_eq!(p.b.done(), []);
    assert_eq!(p.a.nic.next_deadline().unwrap().at, p.a.now + Duration::from_micros(10_240));
    p.b.recv(qb, 5, 0, 4096);
    p.settle();
    assert_eq!((p.a.done(), p.b.done()), (vec![(1, OK)], vec![(5, OK)]));
    assert_eq!(p.b.nic.counters().get(Count::OutOfBuffer), 1);
}

/// A wait may be shorter than the way there and back: what was in flight when the RNR NAK came is
/// then NAKed after the wait. That costs neither a retry nor another flight; a loss after it is
/// noticed by the timer.
#[test]
fn a_sequence_nak_that_comes_after_the_wait_it_belongs_to_is_ignored() {
    let mut n = lab();
    let qp = n.rc(|attr| attr.retry_cnt = 1);
    n.post(qp, 1, SEND, 10);
    n.post(qp, 2, SEND, 10);
    for _ in 0..10 {
        n.sent();
        n.arrive_rnr(qp, 100, 1);
        assert_eq!(n.next_deadline(), Some(Duration::from_micros(10)));
        assert_eq!(n.psns(), [100, 101]);
        n.arrive_seq_nak(qp, 100);
        assert!(n.sent().is_empty());
    }
    assert_eq!(n.counters().drops(Drop::AwaitingRetry), 10);
    // The timer's retry is the one there is, and then a NAK counts.
    n.next_deadline();
    assert_eq!(n.psns(), [100, 101]);
    n.arrive_seq_nak(qp, 100);
    assert_eq!(n.done(), [(1, WcStatus::RetryExcErr), (2, FLUSHED)]);
}
