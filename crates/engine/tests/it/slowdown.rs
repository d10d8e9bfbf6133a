//! DCQCN in the engine: how a QP that is told of congestion slows down.

use std::time::Duration;

use urxe_engine::dcqcn::{Params, Rate};
use urxe_engine::{Count, TimerKind};
use urxe_wire::{Ext, Reth};

use crate::lab::{BASE, Node, PEER, US};
use crate::script::{OK, SEND, WRITE};

/// A NIC at 1 Gbit/s with congestion control.
fn slow() -> Node {
    Node::new(US, PEER, |c| {
        c.dcqcn = Some(Params::paper().checked().unwrap());
        c.line_rate = Rate::from_mbps(1000);
    })
}

#[test]
fn a_cnp_slows_the_qp_down_and_packets_keep_their_distance() {
    let mut n = slow();
    let qp = n.rc(|_| {});
    // At line rate all go at once.
    n.post(qp, 1, WRITE, 4096);
    assert_eq!(n.psns(), [100, 101, 102, 103]);
    n.arrive_ack(qp, 103, 1);
    n.arrive_cnp(qp);
    assert_eq!(n.counters().get(Count::CnpHandled), 1);
    // α is 1 at first: half the rate. 1,084 bytes take 17.344 µs at 500 Mbit/s.
    n.post(qp, 2, WRITE, 3072);
    assert_eq!(n.psns(), [104]);
    let start = n.now;
    let deadline = n.nic.next_deadline().unwrap();
    assert_eq!((deadline.why, deadline.qpn), (TimerKind::Pace, qp));
    assert_eq!(deadline.at, start + Duration::from_nanos(17_344));
    n.pass(Duration::from_nanos(17_343));
    n.is_quiet();
    n.pass(Duration::from_nanos(1));
    assert_eq!(n.psns(), [105]);
    assert_eq!(n.next_deadline(), Some(Duration::from_nanos(17_344)));
    assert_eq!(n.psns(), [106]);
    n.arrive_ack(qp, 106, 2);
    assert_eq!(n.done(), [(1, OK), (2, OK)]);
    // The rate comes back in time, then no timer is left.
    let mut last = TimerKind::RateIncrease;
    while let Some(deadline) = n.nic.next_deadline() {
        last = deadline.why;
        n.next_deadline();
        assert!(n.now < start + Duration::from_secs(1), "still {last}");
    }
    assert_eq!(last, TimerKind::RateIncrease);
    assert!(n.sent().is_empty());
}

#[test]
fn the_data_of_reads_is_paced_and_acks_are_not() {
    let mut n = slow();
    let qp = n.rc(|_| {});
    n.arrive_cnp(qp);
    let read = Ext { reth: Some(reth(&n, 3072)), ..Ext::NONE };
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, read, &[]);
    assert_eq!(n.psns(), [500]);
    assert_eq!(n.next_deadline(), Some(Duration::from_nanos(17_344)));
    assert_eq!(n.psns(), [501]);
    // A request of ours waits as well.
    n.post(qp, 1, WRITE, 1024);
    n.is_quiet();
    n.next_deadline().unwrap();
    assert_eq!(n.psns(), [100]);
    n.next_deadline().unwrap();
    assert_eq!(n.psns(), [502]);
    // An ACK needs no turn.
    let write = Ext { reth: Some(reth(&n, 4)), ..Ext::NONE };
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 503, write, &[1; 4]);
    assert_eq!(n.psns(), [503]);
}

fn reth(n: &Node, dma_len: u32) -> Reth {
    Reth { va: BASE, rkey: n.mr.rkey, dma_len }
}

#[test]
fn no_pacing_timer_runs_with_nothing_to_send() {
    let mut n = slow();
    let qp = n.rc(|_| {});
    n.arrive_cnp(qp);
    n.post(qp, 1, WRITE, 1024);
    n.arrive_ack(qp, 100, 1);
    assert_eq!(n.nic.next_deadline().unwrap().why, TimerKind::RateIncrease);
    n.post(qp, 2, WRITE, 10);
    assert_eq!(n.nic.next_deadline().unwrap().why, TimerKind::Pace);
}

#[test]
fn a_slow_qp_does_not_time_out_while_it_waits_its_turn() {
    let mut n = slow();
    let qp = n.rc(|attr| {
        attr.retry_cnt = 1;
        // 8.192 µs, less than the 17.344 µs of a packet at half the rate.
        attr.timeout = urxe_wire::AckTimeout::new(1).unwrap();
    });
    n.arrive_cnp(qp);
    n.post(qp, 1, SEND, 1024);
    n.sent();
    assert_eq!(n.next_deadline(), Some(Duration::from_nanos(8192)));
    assert_eq!(n.nic.next_deadline().unwrap().why, TimerKind::Pace);
    assert_eq!(n.next_deadline(), Some(Duration::from_nanos(17_344 - 8192)));
    assert_eq!(n.psns(), [100]);
    assert_eq!(n.counters().get(Count::LocalAckTimeoutErr), 1);
    n.arrive_ack(qp, 100, 1);
    assert_eq!(n.done(), [(1, OK)]);
}

#[test]
fn a_rate_limit_spaces_packets_until_it_is_lifted() {
    // ibv_modify_qp(3), IBV_QP_RATE_LIMIT: kbit/s.
    let mut n = crate::lab::lab();
    let qp = n.rc(|_| {});
    let set = |n: &Node, rate_limit| {
        let attr = urxe_engine::QpAttr { rate_limit, ..n.attr() };
        n.nic.modify_qp(qp, &attr, urxe_engine::AttrMask::RATE_LIMIT).unwrap();
    };
    set(&n, 8000);
    // 1,084 bytes take 1.084 ms; a sender that was idle is 50 µs ahead at most.
    n.post(qp, 1, WRITE, 3072);
    assert_eq!(n.psns(), [100]);
    assert_eq!(n.nic.next_deadline().unwrap().why, TimerKind::Pace);
    assert_eq!(n.next_deadline(), Some(Duration::from_micros(1034)));
    assert_eq!(n.psns(), [101]);
    assert_eq!(n.next_deadline(), Some(Duration::from_micros(1084)));
    assert_eq!(n.psns(), [102]);
    set(&n, 0);
    n.post(qp, 2, WRITE, 3072);
    assert_eq!(n.psns(), [103, 104, 105]);
    n.arrive_ack(qp, 105, 2);
    assert_eq!((n.done(), n.next_deadline()), (vec![(1, OK), (2, OK)], None));
}
