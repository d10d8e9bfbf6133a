//! End-to-end credits (IBA 9.7.7.2): how many messages may wait for receive WQEs.

use urxe_engine::{QpKind, SendOp, SendWr, UdDest};

use crate::lab::{Pair, lab};
use crate::script::{OK, READ, REMOTE, RKEY, SEND, WRITE};

const WRITE_IMM: SendOp = SendOp::Write { remote: REMOTE, rkey: RKEY, imm: Some([0; 4]) };

#[test]
fn one_message_goes_before_the_peer_has_granted_any() {
    let mut n = lab();
    let qp = n.qp(QpKind::Rc, |_, _| {});
    for wr_id in 1..=3 {
        n.post(qp, wr_id, SEND, 10);
    }
    assert_eq!(n.psns(), [100]);
}

#[test]
fn as_many_go_as_are_granted_and_one_to_ask() {
    // LSN = MSN + credits; one beyond it may go.
    let mut n = lab();
    let qp = n.qp(QpKind::Rc, |_, _| {});
    for wr_id in 1..=9 {
        n.post(qp, wr_id, SEND, 10);
    }
    assert_eq!(n.psns(), [100]);
    n.arrive_credits(qp, 100, 1, 3);
    assert_eq!(n.psns(), [101, 102, 103, 104]);
    // The ACK of the first of them: the same three WQEs less one.
    n.arrive_credits(qp, 101, 2, 2);
    n.is_quiet();
    n.arrive_credits(qp, 102, 3, 2);
    assert_eq!(n.psns(), [105]);
}

#[test]
fn an_unlimited_credit_lets_all_go() {
    let mut n = lab();
    let qp = n.qp(QpKind::Rc, |_, _| {});
    for wr_id in 1..=9 {
        n.post(qp, wr_id, SEND, 10);
    }
    n.sent();
    n.arrive_ack(qp, 100, 1);
    assert_eq!(n.psns(), [101, 102, 103, 104, 105, 106, 107, 108]);
}

#[test]
fn a_limit_may_come_after_none_was_said() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 10);
    n.arrive_credits(qp, 100, 1, 1);
    n.sent();
    for wr_id in 2..=5 {
        n.post(qp, wr_id, SEND, 10);
    }
    assert_eq!(n.psns(), [101, 102]);
}

#[test]
fn an_older_ack_takes_no_credit_back() {
    let mut n = lab();
    let qp = n.qp(QpKind::Rc, |_, _| {});
    n.post(qp, 1, SEND, 10);
    n.arrive_credits(qp, 100, 1, 4);
    n.arrive_credits(qp, 100, 1, 0);
    n.sent();
    for wr_id in 2..=9 {
        n.post(qp, wr_id, SEND, 10);
    }
    assert_eq!(n.psns(), [101, 102, 103, 104, 105]);
}

#[test]
fn only_what_takes_a_receive_wqe_needs_credit() {
    let mut n = lab();
    let qp = n.qp(QpKind::Rc, |_, _| {});
    n.post(qp, 1, SEND, 10);
    n.arrive_credits(qp, 100, 1, 0);
    n.sent();
    n.post(qp, 2, SEND, 10);
    n.post(qp, 3, WRITE_IMM, 10);
    assert_eq!(n.psns(), [101]);
    let mut n = lab();
    let qp = n.qp(QpKind::Rc, |_, _| {});
    n.post(qp, 1, SEND, 10);
    n.arrive_credits(qp, 100, 1, 0);
    n.sent();
    for (wr_id, what) in (2..).zip([WRITE, READ, WRITE, SEND, SEND]) {
        n.post(qp, wr_id, what, 10);
    }
    // They count in the peer's MSN but use nothing up: the first SEND behind them asks.
    assert_eq!(n.psns(), [101, 102, 103, 104]);
    n.arrive_read(qp, "ONLY", 102, &[0; 10]);
    n.arrive_credits(qp, 104, 5, 1);
    assert_eq!(n.psns(), [105]);
}

#[test]
fn with_credit_for_two_a_write_between_does_not_hold_the_second_back() {
    let mut n = lab();
    let qp = n.qp(QpKind::Rc, |_, _| {});
    n.post(qp, 1, SEND, 10);
    n.arrive_credits(qp, 100, 1, 1);
    n.sent();
    n.sink.full = true;
    for (wr_id, what) in (2..).zip([WRITE, SEND, WRITE, SEND, SEND]) {
        n.post(qp, wr_id, what, 10);
    }
    n.sink.full = false;
    n.nic.pump(n.now, &mut n.sink);
    // One granted, one to ask, and the WRITEs.
    assert_eq!(n.psns(), [101, 102, 103, 104]);
}

#[test]
fn unreliable_messages_need_no_credit() {
    let mut n = lab();
    let uc = n.qp(QpKind::Uc, |_, _| {});
    let ud = n.qp(QpKind::Ud, |_, _| {});
    let ah = n.nic.create_ah(n.pd, &n.attr().ah).unwrap();
    let dest = Some(UdDest { ah, qpn: crate::lab::PEER_QPN, qkey: crate::lab::Q_KEY });
    for wr_id in 1..=3 {
        n.post(uc, wr_id, SEND, 10);
        let sges = [n.sge(0, 10)];
        n.send(ud, &SendWr { dest, ..SendWr::new(wr_id, SEND, &sges) });
    }
    assert_eq!(n.psns(), [100, 100, 101, 101, 102, 102]);
    assert_eq!(n.done().len(), 6);
}

#[test]
fn a_request_sent_again_needs_no_new_credit() {
    let mut n = lab();
    let qp = n.qp(QpKind::Rc, |_, _| {});
    n.post(qp, 1, SEND, 10);
    n.arrive_credits(qp, 100, 1, 0);
    n.post(qp, 2, SEND, 10);
    n.post(qp, 3, SEND, 10);
    n.sent();
    n.next_deadline().unwrap();
    assert_eq!(n.psns(), [101]);
}

#[test]
fn a_peer_that_never_has_more_than_one_receive_wqe_gets_all_messages() {
    // Credits of 0 in each ACK must not stop the flow.
    let mut p = Pair::new();
    let (qa, qb) = p.connect(QpKind::Rc);
    for wr_id in 1..=20 {
        p.a.post(qa, wr_id, SEND, 2000);
    }
    for wr_id in 1..=20 {
        p.b.recv(qb, wr_id, 0, 2000);
        let mut got = Vec::new();
        p.run_until(|p| {
            got.extend(p.b.done());
            !got.is_empty()
        });
        assert_eq!(got, [(wr_id, OK)], "{:#?}", p.log);
    }
    p.settle();
    let all: Vec<_> = (1..=20).map(|wr_id| (wr_id, OK)).collect();
    assert_eq!(p.a.done(), all);
}

#[test]
fn the_last_ack_again_may_bring_credits() {
    // IBA 9.7.7.2: an unsolicited ACK.
    let mut n = lab();
    let qp = n.qp(QpKind::Rc, |_, _| {});
    n.post(qp, 1, SEND, 1);
    n.arrive_credits(qp, 100, 1, 0);
    n.post(qp, 2, SEND, 1);
    n.post(qp, 3, SEND, 1);
    assert_eq!(n.psns(), [100, 101]);
    // An older one does not.
    n.arrive_ack(qp, 99, 1);
    n.is_quiet();
    n.arrive_credits(qp, 100, 1, 2);
    assert_eq!(n.psns(), [102]);
}
