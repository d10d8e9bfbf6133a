//! Loss: the local ACK timeout, PSN sequence NAKs, how often and how far back.

use std::time::Duration;

use urxe_engine::{Cause, Count, QpState, Rule, TimerKind, WcStatus};
use urxe_wire::{AckTimeout, NakCode, Psn};

use crate::lab::{Pair, lab};
use crate::script::{FLUSHED, OK, READ, SEND, WRITE};

/// 4.096 µs · 2^10
const TIMEOUT: Duration = Duration::from_nanos(4096 << 10);

#[test]
fn a_timeout_sends_all_again_from_the_oldest_psn() {
    // IBA 9.7.6.1.3
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 2500);
    n.post(qp, 2, WRITE, 10);
    assert_eq!(n.psns(), [100, 101, 102, 103]);
    n.arrive_ack(qp, 100, 0);
    assert_eq!(n.next_deadline(), Some(TIMEOUT));
    let resent = [
        "RC_SEND_MIDDLE psn=101 len=1024",
        "RC_SEND_LAST psn=102 ackreq len=452",
        "RC_RDMA_WRITE_ONLY psn=103 ackreq va=0x9000 rkey=0x4242 dmalen=10 len=10",
    ];
    assert_eq!(n.sent(), resent);
    assert_eq!(n.counters().get(Count::LocalAckTimeoutErr), 1);
    assert_eq!(n.counters().get(Count::Retransmitted), 3);
    n.arrive_ack(qp, 103, 2);
    assert_eq!(n.done(), [(1, OK), (2, OK)]);
}

#[test]
fn after_retry_cnt_retries_without_progress_the_request_fails() {
    // IBA 9.7.6.1.3, 9.9.2.1
    for retry_cnt in 0..=7 {
        let mut n = lab();
        let qp = n.rc(|attr| attr.retry_cnt = retry_cnt);
        n.post(qp, 1, SEND, 10);
        n.post(qp, 2, SEND, 10);
        n.recv(qp, 3, 0, 10);
        n.sent();
        for _ in 0..retry_cnt {
            assert_eq!(n.next_deadline(), Some(TIMEOUT));
            assert_eq!(n.psns(), [100, 101]);
            assert_eq!(n.done(), []);
        }
        assert_eq!(n.next_deadline(), Some(TIMEOUT));
        assert!(n.sent().is_empty());
        let done = n.completions();
        let told: Vec<_> = done.iter().map(|c| (c.wr_id, c.status)).collect();
        assert_eq!(told, [(1, WcStatus::RetryExcErr), (2, FLUSHED), (3, FLUSHED)]);
        assert_eq!(done[0].cause, Some(Cause::at(Rule::RetryExhausted, Psn::new(100))));
        assert_eq!(n.nic.query_qp(qp).unwrap().attr.qp_state, QpState::Err);
        assert_eq!(n.counters().get(Count::RetryExceeded), 1);
        assert_eq!(n.next_deadline(), None);
    }
}

#[test]
fn progress_gives_all_retries_back() {
    // IBA 9.9.2.1
    let mut n = lab();
    let qp = n.rc(|attr| attr.retry_cnt = 1);
    n.post(qp, 1, SEND, 2000);
    n.next_deadline().unwrap();
    n.arrive_ack(qp, 100, 0);
    n.next_deadline().unwrap();
    assert_eq!(n.done(), []);
    n.next_deadline().unwrap();
    assert_eq!(n.done(), [(1, WcStatus::RetryExcErr)]);
}

#[test]
fn the_timer_runs_from_the_first_packet_and_starts_over_with_progress_only() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    assert_eq!(n.nic.next_deadline(), None);
    let start = n.now;
    n.post(qp, 1, SEND, 10);
    let deadline = n.nic.next_deadline().unwrap();
    assert_eq!((deadline.at, deadline.qpn), (start + TIMEOUT, qp));
    assert_eq!(deadline.why, TimerKind::Retransmit);
    n.pass(TIMEOUT / 2);
    // A further packet changes nothing.
    n.post(qp, 2, SEND, 10);
    assert_eq!(n.nic.next_deadline().unwrap().at, start + TIMEOUT);
    n.arrive_ack(qp, 100, 1);
    assert_eq!(n.nic.next_deadline().unwrap().at, n.now + TIMEOUT);
    n.arrive_ack(qp, 101, 2);
    assert_eq!(n.nic.next_deadline(), None);
    assert!(!n.nic.timers_armed());
    // It runs anew for the next.
    n.pass(TIMEOUT * 3);
    n.post(qp, 3, SEND, 10);
    assert_eq!(n.nic.next_deadline().unwrap().at, n.now + TIMEOUT);
    assert_eq!(n.counters().get(Count::LocalAckTimeoutErr), 0);
}

#[test]
fn each_timeout_code_waits_its_time_and_0_waits_for_ever() {
    // IBA 9.7.6.1.3
    for code in 0..32 {
        let mut n = lab();
        let qp = n.rc(|attr| attr.timeout = AckTimeout::new(code).unwrap());
        n.post(qp, 1, SEND, 10);
        let wait = (code != 0).then(|| Duration::from_nanos(4096 << code));
        assert_eq!(n.next_deadline(), wait, "code {code}");
    }
}

#[test]
fn a_sequence_nak_acknowledges_what_is_before_it_and_sends_the_rest_again() {
    // IBA 9.7.5.2.8
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 10);
    n.post(qp, 2, SEND, 2500);
    n.post(qp, 3, SEND, 10);
    n.sent();
    n.arrive_nak(qp, 102, NakCode::PsnSequence, 1);
    assert_eq!(n.done(), [(1, OK)]);
    let resent = [
        "RC_SEND_MIDDLE psn=102 len=1024",
        "RC_SEND_LAST psn=103 ackreq len=452",
        "RC_SEND_ONLY psn=104 ackreq len=10",
    ];
    assert_eq!(n.sent(), resent);
    assert_eq!(n.counters().get(Count::PacketSeqErr), 1);
    n.arrive_ack(qp, 104, 3);
    assert_eq!(n.done(), [(2, OK), (3, OK)]);
    assert!(!n.nic.timers_armed());
}

#[test]
fn a_sequence_nak_costs_a_retry() {
    let mut n = lab();
    let qp = n.rc(|attr| attr.retry_cnt = 2);
    n.post(qp, 1, SEND, 2000);
    n.sent();
    n.arrive_seq_nak(qp, 100);
    assert_eq!(n.psns(), [100, 101]);
    n.arrive_seq_nak(qp, 100);
    assert_eq!(n.psns(), [100, 101]);
    n.arrive_seq_nak(qp, 100);
    let done = n.completions();
    assert_eq!((done[0].wr_id, done[0].status), (1, WcStatus::RetryExcErr));
    assert_eq!(done[0].cause, Some(Cause::at(Rule::RetryExhausted, Psn::new(100))));
    assert_eq!(n.counters().get(Count::RetryExceeded), 1);
}

#[test]
fn reads_before_a_sequence_nak_must_be_answered_first() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, READ, 10);
    n.post(qp, 2, SEND, 10);
    n.sent();
    // The READ's response was lost as well as the SEND.
    n.arrive_seq_nak(qp, 101);
    assert_eq!(n.psns(), [100, 101]);
    assert_eq!(n.counters().get(Count::ImpliedNakSeqErr), 1);
    n.arrive_read(qp, "ONLY", 100, &[0; 10]);
    n.arrive_ack(qp, 101, 2);
    assert_eq!(n.done(), [(1, OK), (2, OK)]);
}

#[test]
fn a_rewind_goes_over_the_psn_wrap() {
    let mut n = lab();
    let qp = n.rc(|attr| attr.sq_psn = Psn::new(0xff_fffe));
    n.post(qp, 1, SEND, 3000);
    n.post(qp, 2, SEND, 3000);
    n.sent();
    n.arrive_seq_nak(qp, 0xff_ffff);
    assert_eq!(n.psns(), [0xff_ffff, 0, 1, 2, 3]);
    n.arrive_ack(qp, 0, 1);
    assert_eq!(n.done(), [(1, OK)]);
    n.next_deadline().unwrap();
    assert_eq!(n.psns(), [1, 2, 3]);
    assert_eq!(n.counters().get(Count::Retransmitted), 8);
}

#[test]
fn an_ack_that_comes_while_packets_are_sent_again_saves_those() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 3000);
    n.post(qp, 2, SEND, 2000);
    n.sent();
    n.sink.full = true;
    n.next_deadline().unwrap();
    // The ACK was late, not lost.
    n.arrive_ack(qp, 103, 1);
    assert_eq!(n.done(), [(1, OK)]);
    n.sink.full = false;
    n.nic.pump(n.now, &mut n.sink);
    assert_eq!(n.psns(), [104]);
}

#[test]
fn no_retry_is_taken_while_nothing_could_be_sent() {
    // The sink is full, or congestion control waits: the peer is not to blame.
    let mut n = lab();
    let qp = n.rc(|attr| attr.retry_cnt = 1);
    n.post(qp, 1, SEND, 10);
    n.sent();
    n.sink.full = true;
    assert_eq!(n.next_deadline(), Some(TIMEOUT));
    assert_eq!(n.next_deadline(), None);
    assert!(n.nic.has_work());
    n.sink.full = false;
    n.pass(TIMEOUT * 10);
    assert_eq!((n.psns(), n.done()), (vec![100], vec![]));
    assert_eq!(n.next_deadline(), Some(TIMEOUT));
    assert_eq!(n.done(), [(1, WcStatus::RetryExcErr)]);
}

#[test]
fn the_engine_gives_up_at_the_same_time_whatever_is_lost() {
    let mut p = Pair::new();
    let (qa, _) = p.connect(urxe_engine::QpKind::Rc);
    p.lose = Box::new(|_, _| true);
    let start = p.a.now;
    p.a.post(qa, 1, WRITE, 5000);
    p.settle();
    assert_eq!(p.a.done(), [(1, WcStatus::RetryExcErr)]);
    assert_eq!(p.a.now.saturating_since(start), TIMEOUT * 8);
}

/// A NAK is an answer: the timeout counts from what is sent then.
#[test]
fn a_nak_starts_the_timeout_over() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, WRITE, 2048);
    let first = n.nic.next_deadline().unwrap().at;
    n.now = n.now + Duration::from_millis(3);
    n.arrive_seq_nak(qp, 100);
    let second = n.nic.next_deadline().unwrap().at;
    assert_eq!(second.saturating_since(first), Duration::from_millis(3));
    // Nothing is in flight where nothing could be sent.
    n.sink.full = true;
    n.arrive_seq_nak(qp, 100);
    assert_eq!(n.nic.next_deadline(), None);
}
