//! Posting: what is refused, what is copied.

use urxe_engine::{
    AhId, AttrMask, PostError, QpAttr, QpCaps, QpId, QpKind, QpState, RecvWr, SendFlags, SendOp,
    SendWr, UdDest,
};
use urxe_memory::Sge;
use urxe_wire::{FlushLevel, FlushScope, Qpn};

use crate::lab::{Node, Q_KEY, lab};
use crate::script::{ADD, OK, READ, REMOTE, RKEY, SEND, WRITE};

fn refused(n: &mut Node, qp: QpId, wr: &SendWr<'_>) -> PostError {
    let error = n.nic.post_send(n.now, qp, wr, &mut n.sink).unwrap_err();
    assert!(n.sink.sent.is_empty() && n.done().is_empty());
    error
}

fn inline(wr_id: u64, op: SendOp, data: &[u8]) -> SendWr<'_> {
    let flags = SendFlags::INLINE | SendFlags::SIGNALED;
    SendWr { inline: data, flags, ..SendWr::new(wr_id, op, &[]) }
}

#[test]
fn a_queue_that_does_not_exist_takes_nothing() {
    let mut n = lab();
    let error = refused(&mut n, Qpn::new(0x1234), &SendWr::new(1, SEND, &[]));
    assert_eq!(error, PostError::NoSuchQueue(0x1234));
    let wr = RecvWr { wr_id: 1, sges: &[] };
    assert_eq!(n.nic.post_recv(n.now, Qpn::new(9), &wr), Err(PostError::NoSuchQueue(9)));
}

#[test]
fn sends_are_taken_from_rts_on() {
    // IBA 10.3.1
    let mut n = lab();
    let qp = n.nic.create_qp(&n.init(QpKind::Rc)).unwrap();
    let state = |state| PostError::State { state, wanted: "RTS" };
    let wr = SendWr::new(1, SEND, &[]);
    assert_eq!(refused(&mut n, qp, &wr), state("RESET"));
    for (to, name) in [(QpState::Init, "INIT"), (QpState::Rtr, "RTR")] {
        let from = n.nic.query_qp(qp).unwrap().attr.qp_state;
        let needs = urxe_engine::attr::Needs::of(QpKind::Rc, from, to).unwrap();
        let attr = QpAttr { qp_state: to, ..n.attr() };
        n.nic.modify_qp(qp, &attr, needs.required | AttrMask::STATE).unwrap();
        assert_eq!(refused(&mut n, qp, &wr), state(name));
    }
}

#[test]
fn a_full_queue_takes_no_more_until_requests_complete() {
    let mut n = lab();
    let caps = QpCaps { max_send_wr: 2, ..n.init(QpKind::Rc).caps };
    let qp = n.qp(QpKind::Rc, |init, _| init.caps = caps);
    n.post(qp, 1, WRITE, 8);
    n.post(qp, 2, WRITE, 8);
    n.sent();
    let sges = [n.sge(0, 8)];
    let wr = SendWr::new(3, WRITE, &sges);
    assert_eq!(refused(&mut n, qp, &wr), PostError::Full { capacity: 2 });
    n.arrive_ack(qp, 100, 1);
    n.send(qp, &wr);
    assert_eq!(n.psns(), [102]);
    n.arrive_ack(qp, 102, 3);
    assert_eq!(n.done(), [(1, OK), (2, OK), (3, OK)]);
}

#[test]
fn too_many_sges_or_inline_bytes_are_refused() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    let sges = [n.sge(0, 1); 5];
    let error = refused(&mut n, qp, &SendWr::new(1, SEND, &sges));
    assert_eq!(error, PostError::TooManySges { got: 5, max: 4 });
    n.send(qp, &SendWr::new(1, SEND, &sges[..4]));
    n.sent();
    let error = refused(&mut n, qp, &inline(2, SEND, &[0; 129]));
    assert_eq!(error, PostError::InlineTooLong { got: 129, max: 128 });
    n.send(qp, &inline(2, SEND, &[0; 128]));
    assert_eq!(n.psns(), [101]);
}

#[test]
fn a_message_is_at_most_2_to_the_31_bytes() {
    // IBA C9-94
    let mut n = lab();
    let qp = n.rc(|_| {});
    let half = Sge { length: 1 << 30, ..n.sge(0, 0) };
    let sges = [half, half, n.sge(0, 1)];
    let (got, max) = ((1 << 31) + 1, 1 << 31);
    for what in [SEND, WRITE, READ] {
        let error = refused(&mut n, qp, &SendWr::new(1, what, &sges));
        assert_eq!(error, PostError::TooLong { got, max });
    }
    n.send(qp, &SendWr::new(1, READ, &sges[..2]));
}

#[test]
fn a_datagram_is_at_most_one_mtu_and_has_a_destination() {
    // IBA 9.8.3
    let mut n = lab();
    let qp = n.qp(QpKind::Ud, |_, _| {});
    let ah = n.nic.create_ah(n.pd, &n.attr().ah).unwrap();
    let dest = Some(UdDest { ah, qpn: Qpn::new(5), qkey: Q_KEY });
    let sges = [n.sge(0, 4097)];
    let wr = SendWr { dest, ..SendWr::new(1, SEND, &sges) };
    let error = refused(&mut n, qp, &wr);
    assert_eq!(error, PostError::TooLong { got: 4097, max: 4096 });
    let sges = [n.sge(0, 4096)];
    n.send(qp, &SendWr { sges: &sges, ..wr });
    n.sent();
    assert_eq!(n.done(), [(1, OK)]);
    let error = refused(&mut n, qp, &SendWr::new(1, SEND, &sges));
    assert_eq!(error, PostError::NoDestination);
    let dest = Some(UdDest { ah: AhId(77), qpn: Qpn::new(5), qkey: Q_KEY });
    let error = refused(&mut n, qp, &SendWr { dest, ..SendWr::new(1, SEND, &sges) });
    assert_eq!(error, PostError::NoSuchAh(77));
}

#[test]
fn a_connected_qp_ignores_a_datagrams_destination() {
    let mut n = lab();
    let dest = Some(UdDest { ah: AhId(77), qpn: Qpn::new(5), qkey: Q_KEY });
    let qp = n.rc(|_| {});
    n.send(qp, &SendWr { dest, ..SendWr::new(1, SEND, &[]) });
    assert_eq!(n.sent(), ["RC_SEND_ONLY psn=100 ackreq"]);
}

#[test]
fn atomics_are_of_8_bytes() {
    // IBA 9.4.5
    let mut n = lab();
    let qp = n.rc(|_| {});
    let (remote, rkey) = (REMOTE, RKEY);
    let cas = SendOp::CompareSwap { remote, rkey, compare: 0, swap: 0 };
    for what in [ADD, cas, SendOp::AtomicWrite { remote, rkey }] {
        for length in [0, 7, 9, 16] {
            let sges = [n.sge(0, length)];
            let error = refused(&mut n, qp, &SendWr::new(1, what, &sges));
            assert_eq!(error, PostError::AtomicLength(length.into()));
        }
        let sges = [n.sge(0, 3), n.sge(3, 5)];
        n.send(qp, &SendWr::new(1, what, &sges));
        n.sent();
    }
    n.send(qp, &inline(2, SendOp::AtomicWrite { remote, rkey }, &[7; 8]));
    assert_eq!(n.sink.sent[0].roce().payload, [7; 8]);
}

#[test]
fn each_kind_takes_its_operations_only() {
    // IBA 10.2.4
    let (remote, rkey) = (REMOTE, RKEY);
    let (scope, level) = (FlushScope::Range, FlushLevel::GLOBAL);
    let all = [
        ("SEND", SEND),
        ("RDMA WRITE", WRITE),
        ("LOCAL_INV", SendOp::LocalInvalidate { rkey }),
        ("SEND with invalidate", SendOp::SendInvalidate { rkey }),
        ("RDMA READ", READ),
        ("CMP_SWAP", SendOp::CompareSwap { remote, rkey, compare: 0, swap: 0 }),
        ("FETCH_ADD", ADD),
        ("FLUSH", SendOp::Flush { remote, length: 8, rkey, scope, level }),
        ("ATOMIC WRITE", SendOp::AtomicWrite { remote, rkey }),
    ];
    let kinds = [
        (QpKind::Ud, "UD", 1),
        (QpKind::Gsi, "GSI", 1),
        (QpKind::Uc, "UC", 3),
        (QpKind::XrcTarget, "XRC_RECV", 0),
    ];
    for (kind, name, takes) in kinds {
        let mut n = lab();
        let xrcd = n.nic.alloc_xrcd().unwrap();
        let qp = n.qp(kind, |init, _| {
            init.xrcd = (kind == QpKind::XrcTarget).then_some(xrcd);
        });
        let sges = [n.sge(0, 8)];
        for (op, what) in &all[takes..] {
            let error = refused(&mut n, qp, &SendWr::new(1, *what, &sges));
            assert_eq!(error, PostError::Unsupported { op, kind: name });
        }
    }
    for kind in [QpKind::Rc, QpKind::XrcInit] {
        let mut n = lab();
        let qp = n.qp(kind, |_, _| {});
        let sges = [n.sge(0, 8)];
        for (_, what) in all {
            n.send(qp, &SendWr::new(1, what, &sges));
        }
    }
}
