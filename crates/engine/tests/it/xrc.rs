//! Extended reliable connections: a target QP hands messages to the SRQ they name (IBA A14).

use urxe_engine::{
    AsyncEvent, CqId, Drop, QpAttr, QpId, QpInit, QpKind, QpState, RecvWr, SendOp, SendWr, SrqAttr,
    SrqId, SrqInit, WcStatus, XrcdId,
};
use urxe_memory::PdId;
use urxe_wire::{Ext, Mtu, XrcEth};

use crate::ask::{imm, reth};
use crate::lab::{BASE, Node, Pair, lab};

const OK: WcStatus = WcStatus::Success;
const FLUSHED: WcStatus = WcStatus::WrFlushErr;

/// A domain, an SRQ in it and the SRQ's own CQ.
fn srq(n: &Node, pd: PdId, xrcd: XrcdId) -> (SrqId, CqId) {
    let cq = n.nic.create_cq(64).unwrap();
    let attr = SrqAttr { max_wr: 16, max_sge: 4, limit: 0 };
    let srq = n.nic.create_srq(&SrqInit { pd, attr, xrc: Some((xrcd, cq)) }).unwrap();
    (srq, cq)
}

fn target_init(init: &mut QpInit, xrcd: XrcdId) {
    (init.send_cq, init.recv_cq, init.xrcd) = (None, None, Some(xrcd));
}

fn target(n: &mut Node, xrcd: XrcdId) -> QpId {
    n.qp(QpKind::XrcTarget, |init, attr| {
        target_init(init, xrcd);
        attr.path_mtu = Mtu::B256;
    })
}

fn post(n: &Node, srq: SrqId, wr_id: u64, offset: u64) {
    let sges = [n.sge(offset, 1024)];
    n.nic.post_srq_recv(srq, &RecvWr { wr_id, sges: &sges }).unwrap();
}

fn done(n: &Node, cq: CqId) -> Vec<(u64, WcStatus)> {
    let mut all = Vec::new();
    n.nic.poll_cq(cq, &mut all, 99).unwrap();
    all.iter().map(|c| (c.wr_id, c.status)).collect()
}

fn to(srq: SrqId, ext: Ext) -> Ext {
    Ext { xrceth: Some(XrcEth { reserved: 0, srqn: srq.0 }), ..ext }
}

#[test]
fn a_message_goes_to_the_srq_it_names_and_completes_to_that_srqs_cq() {
    let mut n = lab();
    let xrcd = n.nic.alloc_xrcd().unwrap();
    let ((one, one_cq), (two, two_cq)) = (srq(&n, n.pd, xrcd), srq(&n, n.pd, xrcd));
    let qp = target(&mut n, xrcd);
    post(&n, one, 1, 0);
    post(&n, two, 2, 1024);
    n.arrive_request(qp, "XRC_SEND_ONLY", 500, to(two, Ext::NONE), b"two");
    let write = to(one, imm(reth(BASE + 4096, n.mr.rkey, 5)));
    n.arrive_request(qp, "XRC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", 501, write, b"write");
    assert_eq!((done(&n, one_cq), done(&n, two_cq)), (vec![(1, OK)], vec![(2, OK)]));
    assert_eq!((n.bytes(1024, 3), n.bytes(4096, 5)), (b"two".to_vec(), b"write".to_vec()));
    // A shared queue promises nothing.
    let lines = ["XRC_ACKNOWLEDGE psn=500 ack msn=1", "XRC_ACKNOWLEDGE psn=501 ack msn=2"];
    assert_eq!(n.sent(), lines);
    n.arrive_request(qp, "XRC_SEND_ONLY", 502, to(two, Ext::NONE), b"two");
    assert_eq!(n.sent(), ["XRC_ACKNOWLEDGE psn=502 rnr-nak 640µs msn=2"]);
}

/// A target is in no PD: the receive WQE's keys and the remote ones are of the SRQ's PD, of each
/// request's own, and a READ that is being answered keeps its.
#[test]
fn requests_reach_what_the_srq_that_they_name_may() {
    let mut n = lab();
    let xrcd = n.nic.alloc_xrcd().unwrap();
    let other = n.nic.memory().alloc_pd().unwrap();
    let (srq, cq) = srq(&n, n.pd, xrcd);
    let qp = n.qp(QpKind::XrcTarget, |init, _| {
        target_init(init, xrcd);
        init.pd = other;
    });
    post(&n, srq, 1, 0);
    n.arrive_request(qp, "XRC_SEND_ONLY", 500, to(srq, Ext::NONE), b"hello");
    assert_eq!((done(&n, cq), n.bytes(0, 5)), (vec![(1, OK)], b"hello".to_vec()));
    let read = to(srq, reth(BASE, n.mr.rkey, 4));
    n.sent();
    n.arrive_request(qp, "XRC_RDMA_READ_REQUEST", 501, read, &[]);
    let answered = ["XRC_RDMA_READ_RESPONSE_ONLY psn=501 ack msn=2 len=4"];
    assert_eq!(n.sent(), answered);
    // Another SRQ of the domain is in the other PD: what is received through it is there, and the
    // key is not.
    let (elsewhere, _) = self::srq(&n, other, xrcd);
    let write = to(elsewhere, reth(BASE, n.mr.rkey, 4));
    // A duplicate READ is answered again.
    n.arrive_request(qp, "XRC_RDMA_READ_REQUEST", 501, read, &[]);
    assert_eq!(n.sent(), answered);
    n.arrive_request(qp, "XRC_RDMA_WRITE_ONLY", 502, write, b"nope");
    assert_eq!(n.sent(), ["XRC_ACKNOWLEDGE psn=502 nak RemoteAccess msn=2"]);
}

/// No such SRQ, a plain one, one of another domain: dropped and counted.
#[test]
fn an_srq_of_another_domain_is_not_there() {
    let mut n = lab();
    let (xrcd, other) = (n.nic.alloc_xrcd().unwrap(), n.nic.alloc_xrcd().unwrap());
    let (foreign, foreign_cq) = srq(&n, n.pd, other);
    let attr = SrqAttr { max_wr: 16, max_sge: 4, limit: 0 };
    let plain = n.nic.create_srq(&SrqInit { pd: n.pd, attr, xrc: None }).unwrap();
    let qp = target(&mut n, xrcd);
    post(&n, foreign, 1, 0);
    post(&n, plain, 2, 0);
    for srqn in [foreign, plain, SrqId(0), SrqId(0xff_ffff)] {
        n.arrive_request(qp, "XRC_SEND_ONLY", 500, to(srqn, Ext::NONE), b"x");
    }
    assert_eq!((n.dropped(Drop::NoSuchSrq), n.sent().len()), (4, 0));
    assert_eq!((done(&n, foreign_cq), n.done(), n.state(qp)), (vec![], vec![], QpState::Rts));
    // The PSN is looked at first: a gap is a gap and a duplicate one.
    n.arrive_request(qp, "XRC_SEND_ONLY", 501, to(foreign, Ext::NONE), b"x");
    n.arrive_request(qp, "XRC_SEND_ONLY", 499, to(foreign, Ext::NONE), b"x");
    let lines =
        ["XRC_ACKNOWLEDGE psn=500 nak PsnSequence msn=0", "XRC_ACKNOWLEDGE psn=499 ack msn=0"];
    assert_eq!(n.sent(), lines);
}

/// A message stays with the SRQ that its first packet named.
#[test]
fn a_message_stays_with_its_srq() {
    let mut n = lab();
    let xrcd = n.nic.alloc_xrcd().unwrap();
    let ((one, one_cq), (two, two_cq)) = (srq(&n, n.pd, xrcd), srq(&n, n.pd, xrcd));
    let qp = target(&mut n, xrcd);
    post(&n, one, 1, 0);
    post(&n, two, 2, 1024);
    n.arrive_quiet(qp, "XRC_SEND_FIRST", 500, to(one, Ext::NONE), &[1; 256]);
    n.arrive_quiet(qp, "XRC_SEND_LAST", 501, to(two, Ext::NONE), &[2; 8]);
    assert_eq!((done(&n, one_cq), done(&n, two_cq)), (vec![(1, OK)], vec![]));
    assert_eq!(n.bytes(0, 264), [vec![1; 256], vec![2; 8]].concat());
    let first = to(two, reth(BASE, n.mr.rkey, 300));
    n.arrive_quiet(qp, "XRC_RDMA_WRITE_FIRST", 502, first, &[3; 256]);
    let last = to(one, imm(Ext::NONE));
    n.arrive_quiet(qp, "XRC_RDMA_WRITE_LAST_WITH_IMMEDIATE", 503, last, &[3; 44]);
    assert_eq!((done(&n, one_cq), done(&n, two_cq)), (vec![], vec![(2, OK)]));
}

/// A message that begins within another is refused, and does not change where that one went.
#[test]
fn a_message_within_a_message_takes_no_other_srq() {
    for other in [true, false] {
        let mut n = lab();
        let xrcd = n.nic.alloc_xrcd().unwrap();
        let ((one, one_cq), (two, two_cq)) = (srq(&n, n.pd, xrcd), srq(&n, n.pd, xrcd));
        let qp = target(&mut n, xrcd);
        post(&n, one, 1, 0);
        post(&n, two, 2, 1024);
        n.arrive_quiet(qp, "XRC_SEND_FIRST", 500, to(one, Ext::NONE), &[1; 256]);
        let named = if other { two } else { SrqId(77) };
        n.arrive_quiet(qp, "XRC_SEND_ONLY", 501, to(named, Ext::NONE), &[2; 8]);
        assert_eq!((done(&n, one_cq), done(&n, two_cq)), (vec![(1, FLUSHED)], vec![]));
        assert_eq!(n.nic.query_qp(qp).unwrap().attr.qp_state, QpState::Err);
    }
}

/// What an unfinished message has taken is flushed to the SRQ's CQ, not lost.
#[test]
fn the_receive_of_an_unfinished_message_is_flushed_to_the_srqs_cq() {
    let mut n = lab();
    let xrcd = n.nic.alloc_xrcd().unwrap();
    let (srq, cq) = srq(&n, n.pd, xrcd);
    let qp = target(&mut n, xrcd);
    post(&n, srq, 1, 0);
    n.arrive_quiet(qp, "XRC_SEND_FIRST", 500, to(srq, Ext::NONE), &[1; 256]);
    n.to_error(qp);
    assert_eq!(done(&n, cq), [(1, FLUSHED)]);
    assert_eq!(n.async_events(), [AsyncEvent::QpLastWqeReached(qp)]);
}

#[test]
fn a_fault_is_told_to_the_srqs_cq_and_to_the_peer() {
    let mut n = lab();
    let xrcd = n.nic.alloc_xrcd().unwrap();
    let (srq, cq) = srq(&n, n.pd, xrcd);
    let qp = target(&mut n, xrcd);
    let sges = [n.sge(0, 4)];
    n.nic.post_srq_recv(srq, &RecvWr { wr_id: 1, sges: &sges }).unwrap();
    n.arrive_request(qp, "XRC_SEND_ONLY", 500, to(srq, Ext::NONE), b"12345");
    assert_eq!(done(&n, cq), [(1, WcStatus::LocLenErr)]);
    assert_eq!(n.sent(), ["XRC_ACKNOWLEDGE psn=500 nak InvalidRequest msn=0"]);
    assert_eq!(n.state(qp), QpState::Err);
}

/// The initiator takes responses alone, the target requests alone.
#[test]
fn each_side_takes_its_own_packets_alone() {
    let mut n = lab();
    let xrcd = n.nic.alloc_xrcd().unwrap();
    let (srq, _) = srq(&n, n.pd, xrcd);
    let ini = n.qp(QpKind::XrcInit, |init, _| init.recv_cq = None);
    let tgt = target(&mut n, xrcd);
    n.arrive_request(ini, "XRC_RDMA_WRITE_ONLY", 500, to(srq, reth(0, 0, 0)), &[]);
    let aeth = urxe_wire::Aeth::new(
        urxe_wire::Syndrome::Ack(urxe_wire::Credit::UNLIMITED),
        urxe_wire::Psn::ZERO,
    );
    n.arrive_request(tgt, "XRC_ACKNOWLEDGE", 500, Ext { aeth: Some(aeth), ..Ext::NONE }, &[]);
    assert_eq!((n.dropped(Drop::WrongTransport), n.sent().len()), (2, 0));
}

/// All operations from an initiator on one NIC to a target on another.
#[test]
fn a_round_trip_between_two_nics() {
    let mut p = Pair::new();
    let xrcd = p.b.nic.alloc_xrcd().unwrap();
    let (srq, cq) = srq(&p.b, p.b.pd, xrcd);
    let mut init = p.a.init(QpKind::XrcInit);
    init.recv_cq = None;
    let ini = p.a.nic.create_qp(&init).unwrap();
    let mut init = p.b.init(QpKind::XrcTarget);
    target_init(&mut init, xrcd);
    let tgt = p.b.nic.create_qp(&init).unwrap();
    let join = |node: &Node, own, dest_qp| {
        let attr = node.attr();
        let attr = QpAttr { dest_qp, rq_psn: attr.sq_psn, ..attr };
        node.nic.connect_qp(own, &attr).unwrap();
    };
    join(&p.a, ini, tgt);
    join(&p.b, tgt, ini);
    p.a.fill();
    p.b.buffer.write(32768, &7u64.to_ne_bytes()).unwrap();
    post(&p.b, srq, 70, 0);
    post(&p.b, srq, 71, 1024);
    let rkey = p.b.mr.rkey;
    let (send, small, word) = ([p.a.sge(0, 1000)], [p.a.sge(4096, 3000)], [p.a.sge(8192, 8)]);
    let remote = BASE + 16384;
    for (wr_id, op, sges) in [
        (1, SendOp::Send { imm: Some([1, 2, 3, 4]) }, &send[..]),
        (2, SendOp::Write { remote, rkey, imm: None }, &small),
        (3, SendOp::Write { remote, rkey, imm: Some([0; 4]) }, &small),
        (4, SendOp::Read { remote: BASE + 32768, rkey }, &word),
        (5, SendOp::FetchAdd { remote: BASE + 32768, rkey, add: 3 }, &word),
    ] {
        p.a.send(ini, &SendWr { remote_srqn: srq.0, ..SendWr::new(wr_id, op, sges) });
    }
    p.settle();
    assert_eq!(p.a.done(), [(1, OK), (2, OK), (3, OK), (4, OK), (5, OK)], "{:#?}", p.log);
    assert_eq!(done(&p.b, cq), [(70, OK), (71, OK)]);
    assert_eq!(p.b.bytes(0, 1000), crate::ask::bytes_at(0, 1000));
    assert_eq!(p.b.bytes(16384, 3000), crate::ask::bytes_at(4096, 3000));
    assert_eq!(p.a.bytes(8192, 8), 7u64.to_ne_bytes());
    assert_eq!(p.b.bytes(32768, 8), 10u64.to_ne_bytes());
    // A refusal comes back to the initiator.
    let read = SendOp::Read { remote, rkey: rkey ^ 1 };
    p.a.send(ini, &SendWr { remote_srqn: srq.0, ..SendWr::new(6, read, &word) });
    p.settle();
    assert_eq!(p.a.done(), [(6, WcStatus::RemAccessErr)]);
    assert_eq!((p.a.state(ini), p.b.state(tgt)), (QpState::Err, QpState::Err));
}
