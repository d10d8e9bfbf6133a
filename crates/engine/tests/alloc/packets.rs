//! No allocation for a packet or a work request, whatever befalls it.

use urxe_engine::{AhAttr, Arm, Count, QpId, QpKind, RecvWr, SendFlags, SendOp, SendWr, UdDest};

use crate::allocations;
use crate::link::{BASE, Link, Q_KEY, address};

/// Posts `op` on the first node's QP, on two SGEs with `length` bytes together.
fn post(link: &mut Link, qp: QpId, op: SendOp, length: u32, dest: Option<UdDest>) {
    let now = link.now;
    let node = &mut link.nodes[0];
    let first = length / 2;
    let sges = [node.sge(0, first), node.sge(20_000, length - first)];
    let wr = SendWr { dest, ..SendWr::new(1, op, &sges) };
    node.nic.post_send(now, qp, &wr, &mut node.out).unwrap();
}

fn receive(link: &mut Link, qp: QpId, srq: bool) {
    let now = link.now;
    let node = &link.nodes[1];
    let sges = [node.sge(30_000, 100), node.sge(40_000, 8_000)];
    let wr = RecvWr { wr_id: 2, sges: &sges };
    if srq {
        node.nic.post_srq_recv(node.srq, &wr).unwrap();
    } else {
        node.nic.post_recv(now, qp, &wr).unwrap();
    }
}

/// All operations of RC on one connection, several of each in flight.
fn reliable(link: &mut Link, [a, b]: [QpId; 2], srq: bool) {
    let (remote, rkey) = (BASE + 50_000, link.nodes[1].mr.rkey);
    let cq = link.nodes[1].cq;
    for _ in 0..2 {
        receive(link, b, srq);
        post(link, a, SendOp::Send { imm: Some([1; 4]) }, 5_000, None);
        post(link, a, SendOp::Write { remote, rkey, imm: None }, 9_000, None);
        post(link, a, SendOp::Read { remote, rkey }, 9_000, None);
        post(link, a, SendOp::FetchAdd { remote: BASE, rkey, add: 1 }, 8, None);
        let swap = SendOp::CompareSwap { remote: BASE, rkey, compare: 0, swap: 1 };
        post(link, a, swap, 8, None);
        let node = &mut link.nodes[0];
        let flags = SendFlags::INLINE | SendFlags::SIGNALED | SendFlags::SOLICITED;
        let op = SendOp::Write { remote, rkey, imm: None };
        let wr = SendWr { inline: &[7; 50], flags, ..SendWr::new(1, op, &[]) };
        node.nic.post_send(link.now, a, &wr, &mut node.out).unwrap();
    }
    link.nodes[1].nic.arm_cq(cq, Arm::Next).unwrap();
    link.settle();
}

/// A message finds no receive WQE at first.
fn not_ready(link: &mut Link, [a, b]: [QpId; 2], srq: bool) {
    post(link, a, SendOp::Send { imm: None }, 3_000, None);
    post(link, a, SendOp::Send { imm: None }, 3_000, None);
    link.settle_after(|link| {
        receive(link, b, srq);
        receive(link, b, srq);
    });
}

/// Counts of what must have happened in `rounds`, so that the test cannot pass by doing nothing.
fn happened(link: &Link, what: &[Count]) {
    for &count in what {
        let times: u64 = link.nodes.iter().map(|n| n.nic.counters().get(count)).sum();
        assert_ne!(times, 0, "{count} did not happen");
    }
}

fn counts_nothing(link: &mut Link, mut round: impl FnMut(&mut Link)) {
    // What waits at one time has its greatest number in the first rounds: queues grow to it.
    (0..20).for_each(|_| round(link));
    assert_eq!(allocations(|| (0..50).for_each(|_| round(link))), 0);
}

#[test]
fn a_reliable_connection_allocates_nothing() {
    for srq in [false, true] {
        let mut link = Link::new();
        let qps = link.pair(QpKind::Rc, srq);
        counts_nothing(&mut link, |link| reliable(link, qps, srq));
        happened(&link, &[Count::RxReadRequests, Count::RxAtomicRequests, Count::RxWriteRequests]);
    }
}

#[test]
fn recovery_from_loss_allocates_nothing() {
    let mut link = Link::new();
    let qps = link.pair(QpKind::Rc, false);
    (link.lose, link.mark) = (13, 5);
    counts_nothing(&mut link, |link| reliable(link, qps, false));
    happened(
        &link,
        &[
            Count::Retransmitted,
            Count::PacketSeqErr,
            Count::ImpliedNakSeqErr,
            Count::LocalAckTimeoutErr,
            Count::DuplicateRequest,
            Count::CnpSent,
        ],
    );
}

#[test]
fn waiting_for_receives_allocates_nothing() {
    for srq in [false, true] {
        let mut link = Link::new();
        let qps = link.pair(QpKind::Rc, srq);
        counts_nothing(&mut link, |link| not_ready(link, qps, srq));
        happened(&link, &[Count::RnrNakReceived]);
    }
}

#[test]
fn an_unreliable_connection_allocates_nothing() {
    let mut link = Link::new();
    let [a, b] = link.pair(QpKind::Uc, false);
    let rkey = link.nodes[1].mr.rkey;
    // A message that is lost leaves its receive WQE to the next.
    (0..32).for_each(|_| receive(&mut link, b, false));
    let mut number = 0;
    counts_nothing(&mut link, |link| {
        number += 1;
        link.lose = if number % 2 == 0 { 0 } else { 11 };
        receive_if_room(link, b);
        post(link, a, SendOp::Send { imm: None }, 5_000, None);
        post(link, a, SendOp::Write { remote: BASE, rkey, imm: None }, 9_000, None);
        link.settle();
    });
    happened(&link, &[Count::RxWriteRequests]);
}

#[test]
fn datagrams_allocate_nothing() {
    let mut link = Link::new();
    let [a, b] = link.pair(QpKind::Ud, false);
    let node = &link.nodes[0];
    let attr = AhAttr { dst: address(2), ..AhAttr::default() };
    let ah = node.nic.create_ah(node.pd, &attr).unwrap();
    let dest = Some(UdDest { ah, qpn: b, qkey: Q_KEY });
    link.mark = 3;
    counts_nothing(&mut link, |link| {
        receive(link, b, false);
        post(link, a, SendOp::Send { imm: Some([1; 4]) }, 2_000, dest);
        // This one finds no receive WQE.
        post(link, a, SendOp::Send { imm: None }, 2_000, dest);
        link.settle();
    });
    happened(&link, &[Count::EcnMarked, Count::CnpSent]);
}

/// A receive WQE, unless enough wait.
fn receive_if_room(link: &mut Link, qp: QpId) {
    let node = &link.nodes[1];
    let sges = [node.sge(30_000, 8_000)];
    let posted = node.nic.post_recv(link.now, qp, &RecvWr { wr_id: 2, sges: &sges });
    assert!(matches!(posted, Ok(()) | Err(urxe_engine::PostError::Full { .. })));
}
