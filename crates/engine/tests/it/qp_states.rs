//! Each state of a QP: what it takes of packets and work requests (IBA 10.3.1).

use urxe_engine::{
    AsyncEvent, AttrMask, Drop, PostError, QpAttr, QpId, QpKind, QpState, RecvWr, SendOp, SendWr,
};
use urxe_memory::Sge;
use urxe_wire::{Deth, Ext};

use crate::ask::reth;
use crate::lab::{Node, Q_KEY, lab};

/// A `kind` QP in `state`.
fn in_state(n: &mut Node, kind: QpKind, state: QpState) -> QpId {
    use QpState::{Err, Init, Reset, Rtr, Rts, Sqd, Sqe};
    use urxe_engine::attr::Needs;
    let qp = n.nic.create_qp(&n.init(kind)).unwrap();
    let attr = n.attr();
    let way: &[QpState] = match state {
        Reset => &[],
        Init => &[Init],
        Rtr => &[Init, Rtr],
        Sqd => &[Init, Rtr, Rts, Sqd],
        Rts | Sqe => &[Init, Rtr, Rts],
        Err => &[Init, Rtr, Rts, Err],
    };
    for &to in way {
        let from = n.state(qp);
        let needs = Needs::of(kind, from, to).unwrap().required;
        n.nic.modify_qp(qp, &QpAttr { qp_state: to, ..attr }, needs | AttrMask::STATE).unwrap();
    }
    if state == Sqe {
        // A send whose memory is wrong.
        let sges = [Sge { addr: 0, length: 4, lkey: 0xdead_0000 }];
        n.send(qp, &wr(n, kind, &sges));
        n.done();
    }
    assert_eq!(n.state(qp), state);
    qp
}

fn wr<'a>(n: &Node, kind: QpKind, sges: &'a [Sge]) -> SendWr<'a> {
    let dest = (kind == QpKind::Ud).then(|| {
        let attr = urxe_engine::AhAttr { dst: n.peer, ..Default::default() };
        let ah = n.nic.create_ah(n.pd, &attr).unwrap();
        urxe_engine::UdDest { ah, qpn: crate::lab::PEER_QPN, qkey: Q_KEY }
    });
    SendWr { dest, ..SendWr::new(1, SendOp::Send { imm: None }, sges) }
}

/// What comes of a packet, of a receive and of a send that are tried in a state: `taken`,
/// `flushed` (completed in error at once), `refused`, `dropped`, `waits`.
fn fate(kind: QpKind, state: QpState) -> [&'static str; 3] {
    let mut n = lab();
    let qp = in_state(&mut n, kind, state);
    let msn = n.nic.query_qp(qp).unwrap().msn;
    let (name, ext) = match kind {
        QpKind::Rc => ("RC_RDMA_WRITE_ONLY", reth(0, 0, 0)),
        QpKind::Uc => ("UC_RDMA_WRITE_ONLY", reth(0, 0, 0)),
        _ => {
            let deth = Deth { qkey: Q_KEY, ..Deth::default() };
            ("UD_SEND_ONLY", Ext { deth: Some(deth), ..Ext::NONE })
        }
    };
    n.arrive_request(qp, name, 500, ext, &[]);
    let counted = n.dropped(Drop::NoReceive) + u64::from(n.nic.query_qp(qp).unwrap().msn - msn);
    let packet = match (counted, n.dropped(Drop::WrongState)) {
        (1, 0) => "taken",
        (0, 1) => "dropped",
        other => panic!("{other:?}"),
    };
    n.sent();
    let sges = [n.sge(0, 64)];
    let receive = match n.nic.post_recv(n.now, qp, &RecvWr { wr_id: 2, sges: &sges }) {
        Err(PostError::State { wanted: "INIT or later", .. }) => "refused",
        Err(other) => panic!("{other}"),
        Ok(()) if n.done().is_empty() => "waits",
        Ok(()) => "flushed",
    };
    let wr = wr(&n, kind, &sges);
    let send = match n.nic.post_send(n.now, qp, &wr, &mut n.sink) {
        Err(PostError::State { wanted: "RTS", .. }) => "refused",
        Err(other) => panic!("{other}"),
        Ok(()) if n.sink.sent.len() == 1 => "taken",
        Ok(()) if n.done().is_empty() => "waits",
        Ok(()) => "flushed",
    };
    [packet, receive, send]
}

#[test]
fn every_state_with_every_packet_and_post() {
    use QpState::{Err, Init, Reset, Rtr, Rts, Sqd, Sqe};
    for kind in [QpKind::Rc, QpKind::Uc, QpKind::Ud] {
        assert_eq!(fate(kind, Reset), ["dropped", "refused", "refused"], "{kind}");
        assert_eq!(fate(kind, Init), ["dropped", "waits", "refused"], "{kind}");
        assert_eq!(fate(kind, Rtr), ["taken", "waits", "refused"], "{kind}");
        assert_eq!(fate(kind, Rts), ["taken", "waits", "taken"], "{kind}");
        assert_eq!(fate(kind, Sqd), ["taken", "waits", "waits"], "{kind}");
        assert_eq!(fate(kind, Err), ["dropped", "flushed", "flushed"], "{kind}");
        if kind != QpKind::Rc {
            assert_eq!(fate(kind, Sqe), ["taken", "waits", "flushed"], "{kind}");
        }
    }
}

/// RESET forgets all: work requests vanish, PSNs and saved answers begin anew.
#[test]
fn reset_forgets_everything() {
    let mut n = lab();
    let qp = n.rc256();
    n.recv(qp, 1, 0, 512);
    n.recv(qp, 2, 0, 512);
    let add = crate::ask::atomic(crate::lab::BASE, n.mr.rkey, 1, 0);
    n.arrive_quiet(qp, "RC_FETCH_ADD", 500, add, &[]);
    n.arrive_quiet(qp, "RC_SEND_FIRST", 501, Ext::NONE, &[1; 256]);
    n.sink.full = true;
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 400, reth(0, 0, 0), &[]);
    n.sink.full = false;
    n.sent();
    let attr = QpAttr { qp_state: QpState::Reset, ..n.attr() };
    n.nic.modify_qp(qp, &attr, AttrMask::STATE).unwrap();
    n.pump();
    assert_eq!((n.done(), n.sent().len()), (vec![], 0));
    let attr = QpAttr { rq_psn: urxe_wire::Psn::new(501), ..n.attr() };
    n.nic.connect_qp(qp, &attr).unwrap();
    assert_eq!(n.nic.query_qp(qp).unwrap().msn, 0);
    // No saved answer, no message in progress, no receive.
    n.arrive_request(qp, "RC_FETCH_ADD", 500, add, &[]);
    assert_eq!(n.dropped(Drop::StaleDuplicate), 1);
    n.arrive_request(qp, "RC_SEND_ONLY", 501, Ext::NONE, b"x");
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=501 rnr-nak 640µs msn=0"]);
}

/// ERR asked for by the program: nothing is answered any more, all is flushed.
#[test]
fn error_by_the_program_is_silent() {
    let mut n = lab();
    let qp = n.rc256();
    n.recv(qp, 1, 0, 64);
    n.sink.full = true;
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, reth(crate::lab::BASE, n.mr.rkey, 8), &[]);
    n.to_error(qp);
    n.sink.full = false;
    n.pump();
    assert_eq!(n.sent().len(), 0);
    assert_eq!(n.done(), [(1, urxe_engine::WcStatus::WrFlushErr)]);
    assert!(n.async_events().is_empty());
}

/// What the peer may ask at a time can be changed in SQD (IBA 10.3.1).
#[test]
fn answer_slots_change_in_sqd() {
    let mut n = lab();
    let qp = n.rc256_with(|_, attr| attr.max_dest_rd_atomic = 1);
    let add = crate::ask::atomic(crate::lab::BASE, n.mr.rkey, 1, 0);
    n.arrive_request(qp, "RC_FETCH_ADD", 500, add, &[]);
    let change = |n: &Node, slots| {
        let attr = QpAttr { qp_state: QpState::Sqd, max_dest_rd_atomic: slots, ..n.attr() };
        n.nic.modify_qp(qp, &attr, AttrMask::STATE).unwrap();
        n.nic.modify_qp(qp, &attr, AttrMask::MAX_DEST_RD_ATOMIC).unwrap();
        let attr = QpAttr { qp_state: QpState::Rts, ..attr };
        n.nic.modify_qp(qp, &attr, AttrMask::STATE).unwrap();
    };
    change(&n, 3);
    n.sent();
    // The answer kept before is kept, and there is room for two more.
    for psn in 501..503 {
        n.accept(qp, "RC_FETCH_ADD", psn, add, &[]);
    }
    n.accept(qp, "RC_FETCH_ADD", 500, add, &[]);
    n.pump();
    assert_eq!((n.sent().len(), n.dropped(Drop::StaleDuplicate)), (3, 0));
    change(&n, 1);
    n.arrive_request(qp, "RC_FETCH_ADD", 501, add, &[]);
    n.arrive_request(qp, "RC_FETCH_ADD", 502, add, &[]);
    assert_eq!((n.sent().len(), n.dropped(Drop::StaleDuplicate)), (1, 1));
    n.accept(qp, "RC_FETCH_ADD", 503, add, &[]);
    n.accept(qp, "RC_FETCH_ADD", 504, add, &[]);
    n.pump();
    assert!(n.sent()[1].contains("nak InvalidRequest"));
    assert_eq!(n.async_events(), [AsyncEvent::QpReqErr(qp)]);
}
