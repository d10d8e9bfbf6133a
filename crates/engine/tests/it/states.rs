//! SQD, and a sink without room.

use std::time::Duration;

use urxe_engine::{
    AsyncEvent, AttrMask, Event, QpAttr, QpId, QpKind, QpState, TimerKind, WcStatus,
};

use crate::lab::{Node, lab};
use crate::script::{OK, READ, SEND, WRITE};

fn go(n: &mut Node, qp: QpId, to: QpState, mask: AttrMask, edit: impl FnOnce(&mut QpAttr)) {
    let mut attr = QpAttr { qp_state: to, ..QpAttr::default() };
    edit(&mut attr);
    n.nic.modify_qp(qp, &attr, mask | AttrMask::STATE).unwrap();
    n.nic.pump(n.now, &mut n.sink);
}

/// To SQD; `tell` asks for the event.
fn drain(n: &mut Node, qp: QpId, tell: bool) {
    let mask = AttrMask::EN_SQD_ASYNC_NOTIFY;
    go(n, qp, QpState::Sqd, mask, |attr| attr.en_sqd_async_notify = tell);
}

fn resume(n: &mut Node, qp: QpId) {
    go(n, qp, QpState::Rts, AttrMask::empty(), |_| {});
}

#[test]
fn in_sqd_what_was_begun_goes_on_and_nothing_new_begins() {
    // IBA 10.3.1
    let mut n = lab();
    let qp = n.rc(|attr| attr.path_mtu = urxe_wire::Mtu::B256);
    // 80 packets, of which the window lets 64 go.
    n.post(qp, 1, SEND, 80 * 256);
    n.post(qp, 2, SEND, 10);
    n.sent();
    drain(&mut n, qp, true);
    n.post(qp, 3, SEND, 10);
    assert_eq!((n.sent(), n.events()), (vec![], vec![]));
    assert!(n.nic.query_qp(qp).unwrap().attr.sq_draining);
    n.arrive_ack(qp, 163, 0);
    assert_eq!(n.psns(), (164..180).collect::<Vec<_>>());
    // Retries go on, too.
    n.next_deadline().unwrap();
    assert_eq!(n.psns(), [164, 165, 166, 167]);
    assert_eq!(n.events(), []);
    n.arrive_ack(qp, 179, 1);
    assert_eq!(n.done(), [(1, OK)]);
    assert_eq!(n.sent(), Vec::<String>::new());
    assert!(!n.nic.timers_armed());
    // IBA 11.6.3
    assert_eq!(n.events(), [Event::Async(AsyncEvent::SqDrained(qp))]);
    assert!(!n.nic.query_qp(qp).unwrap().attr.sq_draining);
    resume(&mut n, qp);
    assert_eq!(n.psns(), [180, 181]);
    n.arrive_ack(qp, 181, 3);
    assert_eq!((n.done(), n.events()), (vec![(2, OK), (3, OK)], vec![]));
}

#[test]
fn a_queue_that_is_empty_is_drained_at_once() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    drain(&mut n, qp, true);
    assert_eq!(n.events(), [Event::Async(AsyncEvent::SqDrained(qp))]);
    // It is told once.
    n.post(qp, 1, SEND, 10);
    assert_eq!(n.events(), []);
}

#[test]
fn the_event_comes_only_if_this_transition_asked_for_it() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    drain(&mut n, qp, false);
    resume(&mut n, qp);
    // The attribute without its mask bit means nothing.
    go(&mut n, qp, QpState::Sqd, AttrMask::empty(), |attr| attr.en_sqd_async_notify = true);
    assert_eq!(n.events(), []);
    resume(&mut n, qp);
    drain(&mut n, qp, true);
    assert_eq!(n.events(), [Event::Async(AsyncEvent::SqDrained(qp))]);
    resume(&mut n, qp);
    go(&mut n, qp, QpState::Sqd, AttrMask::empty(), |_| {});
    assert_eq!(n.events(), []);
}

#[test]
fn an_outstanding_read_must_be_answered_before_the_queue_is_drained() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, READ, 2000);
    drain(&mut n, qp, true);
    n.sent();
    n.arrive_read(qp, "FIRST", 100, &[0; 1024]);
    n.next_deadline().unwrap();
    assert_eq!(n.psns(), [101]);
    assert_eq!(n.events(), []);
    n.arrive_read(qp, "ONLY", 101, &[0; 976]);
    assert_eq!(n.done(), [(1, OK)]);
    assert_eq!(n.events(), [Event::Async(AsyncEvent::SqDrained(qp))]);
}

#[test]
fn retries_set_in_sqd_count_from_then_on() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 10);
    drain(&mut n, qp, false);
    let mask = AttrMask::RETRY_CNT | AttrMask::RNR_RETRY | AttrMask::TIMEOUT;
    go(&mut n, qp, QpState::Sqd, mask, |attr| {
        (attr.retry_cnt, attr.rnr_retry) = (1, 0);
        attr.timeout = urxe_wire::AckTimeout::new(1).unwrap();
    });
    n.next_deadline().unwrap();
    assert_eq!(n.next_deadline(), Some(Duration::from_nanos(8192)));
    assert_eq!(n.done(), [(1, WcStatus::RetryExcErr)]);
}

#[test]
fn a_local_operation_amid_begun_requests_does_not_stop_them_in_sqd() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    let (mw, _) = n.nic.memory().alloc_mw(n.pd, urxe_memory::MwType::Type1).unwrap();
    let (lkey, access) = (n.mr.lkey, urxe_memory::Access::REMOTE_READ);
    let addr = crate::lab::BASE;
    let bind = urxe_engine::SendOp::BindMw { mw, rkey: None, lkey, addr, length: 8, access };
    n.post(qp, 1, WRITE, 10);
    n.send(qp, &urxe_engine::SendWr::new(2, bind, &[]));
    n.post(qp, 3, WRITE, 10);
    n.sent();
    drain(&mut n, qp, false);
    n.next_deadline().unwrap();
    assert_eq!(n.psns(), [100, 101]);
}

#[test]
fn a_sink_without_room_keeps_the_work() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    let uc = n.qp(QpKind::Uc, |_, _| {});
    n.nic.pump(n.now, &mut n.sink);
    n.sink.full = true;
    n.post(qp, 1, SEND, 2000);
    n.post(uc, 2, SEND, 10);
    n.recv(qp, 5, 0, 10);
    n.arrive_request(qp, "RC_SEND_ONLY", 500, urxe_wire::Ext::NONE, &[1; 4]);
    assert!(n.nic.has_work());
    assert_eq!(n.nic.next_deadline(), None);
    n.sink.full = false;
    n.nic.pump(n.now, &mut n.sink);
    let wanted = [
        "RC_ACKNOWLEDGE psn=500 ack credits=0 msn=1",
        "RC_SEND_FIRST psn=100 len=1024",
        "RC_SEND_LAST psn=101 ackreq len=976",
        "UC_SEND_ONLY psn=100 len=10",
    ];
    assert_eq!(n.sent(), wanted);
    assert!(!n.nic.has_work());
    assert!(n.nic.next_deadline().is_some());
}

#[test]
fn a_sink_that_fills_up_mid_message_gets_the_rest_later() {
    struct Narrow(usize, Vec<u8>);
    impl urxe_engine::Transmit for Narrow {
        fn room(&self) -> usize {
            self.0
        }
        fn packet(
            &mut self,
            _: &urxe_engine::Path,
            header: &[u8],
            _: urxe_engine::Payload<'_>,
            _: usize,
        ) {
            self.0 -= 1;
            self.1.push(header[11]);
        }
    }
    let mut n = lab();
    let qp = n.rc(|_| {});
    let mut sink = Narrow(2, Vec::new());
    let sges = [n.sge(0, 5000)];
    let wr = urxe_engine::SendWr::new(1, SEND, &sges);
    n.nic.post_send(n.now, qp, &wr, &mut sink).unwrap();
    assert_eq!(sink.1, [100, 101]);
    while n.nic.has_work() {
        sink.0 = 2;
        n.nic.pump(n.now, &mut sink);
    }
    assert_eq!(sink.1, [100, 101, 102, 103, 104]);
}

#[test]
fn reads_of_the_peer_and_our_requests_take_turns() {
    let mut n = lab();
    let qp = n.rc(|attr| attr.path_mtu = urxe_wire::Mtu::B256);
    n.sink.full = true;
    let (va, rkey, dma_len) = (crate::lab::BASE, n.mr.rkey, 1024);
    let reth = Some(urxe_wire::Reth { va, rkey, dma_len });
    let ext = urxe_wire::Ext { reth, ..urxe_wire::Ext::NONE };
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, ext, &[]);
    n.post(qp, 1, WRITE, 1024);
    n.sink.full = false;
    n.nic.pump(n.now, &mut n.sink);
    let psns = [500, 100, 501, 101, 502, 102, 503, 103];
    assert_eq!(n.psns(), psns);
}

/// However few packets a sink takes at a time, QPs have equal turns.
#[test]
fn a_sink_of_little_room_is_shared_fairly() {
    for room in [1, 5, 20, 31, 33, 48, 64] {
        let mut n = lab();
        let qps = [0; 3].map(|_| n.qp(QpKind::Uc, |_, attr| attr.path_mtu = urxe_wire::Mtu::B256));
        n.sink.full = true;
        for qp in qps {
            n.post(qp, 1, SEND, 65_536);
        }
        n.sink.full = false;
        let mut order = Vec::new();
        while n.nic.has_work() {
            n.sink.room = Some(room);
            n.pump();
            let taken = n.sink.sent.drain(..).map(|sent| sent.path.src_port);
            order.extend(taken);
        }
        assert_eq!(order.len(), 3 * 256, "{room}");
        assert!(order[0] != order[32] && order[32] != order[64] && order[64] != order[0]);
        // Turns of 32 packets, none cut short and none longer.
        for (turn, packets) in order.chunks(32).enumerate() {
            assert!(packets.iter().all(|p| *p == packets[0]), "room {room}, turn {turn}");
            assert_eq!(packets[0], order[turn % 3 * 32], "room {room}, turn {turn}");
        }
    }
}

/// The event of a queue that is drained already waits for no other call.
#[test]
fn a_drained_queue_is_told_of_by_the_modify_itself() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    let mask = AttrMask::STATE | AttrMask::EN_SQD_ASYNC_NOTIFY;
    let attr = QpAttr { qp_state: QpState::Sqd, en_sqd_async_notify: true, ..QpAttr::default() };
    n.nic.modify_qp(qp, &attr, mask).unwrap();
    assert_eq!(n.events(), [Event::Async(AsyncEvent::SqDrained(qp))]);
}

/// Timers run though nothing can be sent: the wait that an RNR NAK asks for, retries, the end.
#[test]
fn a_full_sink_stops_no_timer() {
    let mut n = lab();
    let qp = n.rc(|attr| attr.retry_cnt = 1);
    n.post(qp, 1, SEND, 10);
    let timeout = n.nic.next_deadline().unwrap();
    n.sink.full = true;
    n.arrive_rnr(qp, 100, 1);
    let rnr = n.nic.next_deadline().unwrap();
    assert!(rnr.why == TimerKind::Rnr && rnr.at < timeout.at);
    n.next_deadline().unwrap();
    // What was not sent again has no timer.
    assert_eq!(n.nic.next_deadline(), None);
    n.sink.full = false;
    n.pump();
    n.sink.full = true;
    assert_eq!(n.nic.next_deadline().unwrap().why, TimerKind::Retransmit);
    let other = n.rc(|attr| attr.timeout = urxe_wire::AckTimeout::new(20).unwrap());
    n.sink.full = false;
    n.post(other, 2, SEND, 10);
    n.sink.full = true;
    // Two run; when the first is over the second is known.
    n.next_deadline().unwrap();
    assert_eq!(n.nic.next_deadline().unwrap().qpn, other);
}

/// A send queue in SQE, and a QP in ERR, wait for nothing.
#[test]
fn in_error_no_timer_runs() {
    let limited = QpAttr { rate_limit: 8, ..QpAttr::default() };
    for bad in [false, true] {
        let mut n = lab();
        let uc = n.qp(QpKind::Uc, |_, _| {});
        n.nic.modify_qp(uc, &limited, AttrMask::RATE_LIMIT).unwrap();
        n.post(uc, 1, SEND, 2000);
        assert_eq!(n.nic.next_deadline().unwrap().why, TimerKind::Pace);
        if bad {
            // The rest of the message can be read no more.
            n.nic.memory().dereg_mr(n.mr.id).unwrap();
            n.next_deadline().unwrap();
            assert_eq!(n.state(uc), QpState::Sqe);
        } else {
            n.to_error(uc);
        }
        assert_eq!(n.nic.next_deadline(), None);
    }
    let mut n = Node::new(crate::lab::US, crate::lab::PEER, |c| {
        c.dcqcn = Some(urxe_engine::dcqcn::Params::paper().checked().unwrap());
    });
    let qp = n.rc(|_| {});
    n.arrive_cnp(qp);
    assert_eq!(n.nic.next_deadline().unwrap().why, TimerKind::RateIncrease);
    n.to_error(qp);
    assert_eq!(n.nic.next_deadline(), None);
}
