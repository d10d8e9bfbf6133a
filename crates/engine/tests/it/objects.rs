//! Making and destroying: limits, what goes with what, what is in use, numbers.

use urxe_engine::{
    AhAttr, Caps, CqId, NicConfig, PostError, QpAttr, QpId, QpInit, QpKind, SrqAttr, SrqId,
    SrqInit, VerbsError, XrcdId,
};
use urxe_memory::MemoryError;
use urxe_wire::{PKey, Qpn};

use crate::ask::reth;
use crate::lab::{Node, PEER, US, lab};

fn busy<T>(what: &'static str, id: u32, users: usize) -> Result<T, VerbsError> {
    Err(VerbsError::Busy { what, id, users })
}

fn missing<T>(what: &'static str, id: u32) -> Result<T, VerbsError> {
    Err(VerbsError::NotFound { what, id })
}

fn range<T>(field: &'static str, got: u64, least: u64, most: u64) -> Result<T, VerbsError> {
    Err(VerbsError::Range { field, got, least, most })
}

fn limit<T>(what: &'static str, max: u32) -> Result<T, VerbsError> {
    Err(VerbsError::Limit { what, max })
}

const SRQ: SrqAttr = SrqAttr { max_wr: 4, max_sge: 1, limit: 0 };

#[test]
fn a_cq_stays_while_it_is_used() {
    let n = lab();
    let (cq, other) = (n.nic.create_cq(4).unwrap(), n.nic.create_cq(4).unwrap());
    let mut init = n.init(QpKind::Rc);
    (init.send_cq, init.recv_cq) = (Some(cq), Some(other));
    let a = n.nic.create_qp(&init).unwrap();
    init.recv_cq = Some(cq);
    let b = n.nic.create_qp(&init).unwrap();
    assert_eq!(n.nic.destroy_cq(cq), busy("CQ", cq.0, 3));
    assert_eq!(n.nic.destroy_cq(other), busy("CQ", other.0, 1));
    n.nic.destroy_qp(a).unwrap();
    n.nic.destroy_cq(other).unwrap();
    assert_eq!(n.nic.destroy_cq(cq), busy("CQ", cq.0, 2));
    n.nic.destroy_qp(b).unwrap();
    n.nic.destroy_cq(cq).unwrap();
    assert_eq!(n.nic.destroy_cq(cq), missing("CQ", cq.0));
}

#[test]
fn srq_pd_and_domain_stay_while_they_are_used() {
    let n = lab();
    let pd = n.nic.memory().alloc_pd().unwrap();
    let xrcd = n.nic.alloc_xrcd().unwrap();
    let cq = n.nic.create_cq(4).unwrap();
    let plain = n.nic.create_srq(&SrqInit { pd, attr: SRQ, xrc: None }).unwrap();
    let xrc = SrqInit { pd, attr: SRQ, xrc: Some((xrcd, cq)) };
    let xrc = n.nic.create_srq(&xrc).unwrap();
    let rc = QpInit { srq: Some(plain), pd, ..n.init(QpKind::Rc) };
    let rc = n.nic.create_qp(&rc).unwrap();
    let target = QpInit { xrcd: Some(xrcd), pd, ..n.init(QpKind::XrcTarget) };
    let target = n.nic.create_qp(&target).unwrap();
    let ah = n.nic.create_ah(pd, &AhAttr { dst: PEER, ..AhAttr::default() }).unwrap();
    assert_eq!(n.nic.destroy_srq(plain), busy("SRQ", plain.0, 1));
    assert_eq!(n.nic.dealloc_xrcd(xrcd), busy("XRC domain", xrcd.0, 2));
    assert_eq!(n.nic.destroy_cq(cq), busy("CQ", cq.0, 1));
    let in_use = |users| Err(MemoryError::PdBusy { pd, users });
    assert_eq!(n.nic.memory().dealloc_pd(pd), in_use(5));
    n.nic.destroy_srq(xrc).unwrap();
    n.nic.destroy_cq(cq).unwrap();
    assert_eq!(n.nic.dealloc_xrcd(xrcd), busy("XRC domain", xrcd.0, 1));
    n.nic.destroy_qp(target).unwrap();
    n.nic.dealloc_xrcd(xrcd).unwrap();
    n.nic.destroy_qp(rc).unwrap();
    n.nic.destroy_srq(plain).unwrap();
    assert_eq!(n.nic.memory().dealloc_pd(pd), in_use(1));
    n.nic.destroy_ah(ah).unwrap();
    n.nic.memory().dealloc_pd(pd).unwrap();
    assert_eq!(n.nic.destroy_srq(plain), missing("SRQ", plain.0));
    assert_eq!(n.nic.dealloc_xrcd(xrcd), missing("XRC domain", xrcd.0));
    assert_eq!(n.nic.destroy_ah(ah), missing("AH", ah.0));
    assert_eq!(n.nic.destroy_qp(rc), missing("QP", rc.value()));
}

/// What could not be made holds nothing.
#[test]
fn a_refused_object_uses_nothing() {
    let n = lab();
    let pd = n.nic.memory().alloc_pd().unwrap();
    let (cq, xrcd) = (n.nic.create_cq(4).unwrap(), n.nic.alloc_xrcd().unwrap());
    let srq = n.nic.create_srq(&SrqInit { pd: n.pd, attr: SRQ, xrc: None }).unwrap();
    let (send_cq, recv_cq) = (Some(cq), Some(cq));
    let good = QpInit { pd, send_cq, recv_cq, srq: Some(srq), ..n.init(QpKind::Rc) };
    let gone = CqId(99);
    for init in [
        QpInit { xrcd: Some(xrcd), ..good },
        QpInit { recv_cq: Some(gone), ..good },
        QpInit { srq: Some(SrqId(99)), ..good },
        QpInit { xrcd: Some(XrcdId(99)), ..good },
        QpInit { kind: QpKind::XrcInit, ..good },
    ] {
        assert!(n.nic.create_qp(&init).is_err());
    }
    assert!(n.nic.create_srq(&SrqInit { pd, attr: SRQ, xrc: Some((xrcd, gone)) }).is_err());
    let no_gid = AhAttr { dst: PEER, sgid_index: 9, ..AhAttr::default() };
    assert!(n.nic.create_ah(pd, &no_gid).is_err());
    n.nic.destroy_cq(cq).unwrap();
    n.nic.destroy_srq(srq).unwrap();
    n.nic.dealloc_xrcd(xrcd).unwrap();
    n.nic.memory().dealloc_pd(pd).unwrap();
    assert!(matches!(n.nic.create_qp(&good), Err(VerbsError::Memory(_))));
}

#[test]
fn parts_that_do_not_go_with_a_kind_are_refused() {
    let n = lab();
    let xrcd = n.nic.alloc_xrcd().unwrap();
    let plain = n.nic.create_srq(&SrqInit { pd: n.pd, attr: SRQ, xrc: None }).unwrap();
    let xrc = SrqInit { pd: n.pd, attr: SRQ, xrc: Some((xrcd, n.cq)) };
    let xrc = n.nic.create_srq(&xrc).unwrap();
    let init = |kind| n.init(kind);
    let (rc, ini, tgt) = (init(QpKind::Rc), init(QpKind::XrcInit), init(QpKind::XrcTarget));
    let target = QpInit { send_cq: None, recv_cq: None, xrcd: Some(xrcd), ..tgt };
    let initiator = QpInit { recv_cq: None, ..ini };
    for good in [rc, target, initiator, init(QpKind::Ud)] {
        n.nic.create_qp(&good).unwrap();
    }
    for kind in [QpKind::Rc, QpKind::Uc, QpKind::Ud] {
        n.nic.create_qp(&QpInit { srq: Some(plain), ..init(kind) }).unwrap();
    }
    for (bad, problem) in [
        (QpInit { send_cq: None, ..rc }, "needs a CQ for its sends"),
        (QpInit { recv_cq: None, ..rc }, "needs a CQ for its receives"),
        (QpInit { send_cq: None, ..initiator }, "needs a CQ for its sends"),
        (QpInit { srq: Some(plain), ..initiator }, "takes no SRQ: its requests name one"),
        (QpInit { srq: Some(xrc), ..target }, "takes no SRQ: its requests name one"),
        (
            QpInit { xrcd: None, ..target },
            "must name an XRC domain if, and only if, it is XRC_RECV",
        ),
        (
            QpInit { xrcd: Some(xrcd), ..rc },
            "must name an XRC domain if, and only if, it is XRC_RECV",
        ),
        (QpInit { srq: Some(xrc), ..rc }, "cannot use an XRC SRQ; it takes a plain one"),
    ] {
        let kind = bad.kind;
        assert_eq!(n.nic.create_qp(&bad), Err(VerbsError::Kind { kind, problem }));
    }
}

#[test]
fn sizes_are_checked() {
    let n = lab();
    let caps = n.nic.config().caps;
    let field = |result: Result<QpId, VerbsError>| match result {
        Err(VerbsError::Range { field, least: 0, .. }) => field,
        other => panic!("{other:?}"),
    };
    let with = |edit: fn(&mut urxe_engine::QpCaps, &Caps)| {
        let mut init = n.init(QpKind::Rc);
        edit(&mut init.caps, &caps);
        n.nic.create_qp(&init)
    };
    with(|q, c| (q.max_send_wr, q.max_recv_wr) = (8, c.max_wr)).unwrap();
    with(|q, _| *q = urxe_engine::QpCaps::default()).unwrap();
    assert_eq!(field(with(|q, c| q.max_send_wr = c.max_wr + 1)), "max_send_wr");
    assert_eq!(field(with(|q, c| q.max_recv_wr = c.max_wr + 1)), "max_recv_wr");
    assert_eq!(field(with(|q, c| q.max_send_sge = c.max_sge + 1)), "max_send_sge");
    assert_eq!(field(with(|q, c| q.max_recv_sge = c.max_sge + 1)), "max_recv_sge");
    assert_eq!(field(with(|q, c| q.max_inline_data = c.max_inline + 1)), "max_inline_data");
    assert_eq!(n.nic.create_cq(0), range("cqe", 0, 1, 1 << 22));
    assert_eq!(n.nic.create_cq((1 << 22) + 1), range("cqe", (1 << 22) + 1, 1, 1 << 22));
    let srq = |max_wr, max_sge, limit| {
        let attr = SrqAttr { max_wr, max_sge, limit };
        n.nic.create_srq(&SrqInit { pd: n.pd, attr, xrc: None }).map(|_| ())
    };
    assert_eq!(srq(0, 1, 0), range("srq max_wr", 0, 1, 1 << 14));
    assert_eq!(srq(1, 0, 0), range("srq max_sge", 0, 1, 32));
    assert_eq!(srq(1, 1, 2), range("srq limit", 2, 0, 1));
    assert_eq!(srq(1, 1, 1), Ok(()));
    for flow_label in [1 << 20, 0xf_ffff] {
        let attr = AhAttr { dst: PEER, flow_label, ..AhAttr::default() };
        assert_eq!(n.nic.create_ah(n.pd, &attr).is_err(), flow_label == 1 << 20);
    }
}

#[test]
fn a_cq_is_as_large_as_the_nic_allows() {
    let n = Node::new(US, PEER, |c| c.caps.max_cqe = 256);
    let cq = n.nic.create_cq(256).unwrap();
    assert_eq!(n.nic.create_cq(257), range("cqe", 257, 1, 256));
    n.nic.resize_cq(cq, 1).unwrap();
    n.nic.resize_cq(cq, 256).unwrap();
    assert!(n.nic.resize_cq(cq, 257).is_err());
}

#[test]
fn there_are_65536_xrc_domains() {
    let n = lab();
    (0..1 << 16).for_each(|i| assert_eq!(n.nic.alloc_xrcd(), Ok(XrcdId(i))));
    assert_eq!(n.nic.alloc_xrcd(), limit("XRC domains", 1 << 16));
}

#[test]
fn a_nic_holds_as_many_as_it_may() {
    let edit = |c: &mut NicConfig| {
        (c.caps.max_qp, c.caps.max_cq, c.caps.max_srq, c.caps.max_ah) = (2, 2, 1, 1);
    };
    let n = Node::new(US, PEER, edit);
    n.nic.create_cq(1).unwrap();
    assert_eq!(n.nic.create_cq(1), limit("CQs", 2));
    let srq = SrqInit { pd: n.pd, attr: SRQ, xrc: None };
    n.nic.create_srq(&srq).unwrap();
    assert_eq!(n.nic.create_srq(&srq), limit("SRQs", 1));
    let attr = AhAttr { dst: PEER, ..AhAttr::default() };
    n.nic.create_ah(n.pd, &attr).unwrap();
    assert_eq!(n.nic.create_ah(n.pd, &attr), limit("AHs", 1));
    let init = n.init(QpKind::Rc);
    n.nic.create_qp(&init).unwrap();
    let second = n.nic.create_qp(&init).unwrap();
    assert_eq!(n.nic.create_qp(&init), limit("QPs", 2));
    // QP1 is beside them, and one.
    assert_eq!(n.nic.create_qp(&n.init(QpKind::Gsi)), Ok(Qpn::GSI));
    assert_eq!(n.nic.create_qp(&n.init(QpKind::Gsi)), limit("QPs", 2));
    n.nic.destroy_qp(Qpn::GSI).unwrap();
    assert_eq!(n.nic.destroy_qp(Qpn::GSI), missing("QP", 1));
    assert_eq!(n.nic.create_qp(&n.init(QpKind::Gsi)), Ok(Qpn::GSI));
    n.nic.destroy_qp(second).unwrap();
    assert_eq!(n.nic.create_qp(&init), Ok(second));
}

/// A QPN is the slot's 6 bits over an index of 18; a number comes back as late as possible.
#[test]
fn qpns_hold_their_slot_and_come_back_late() {
    for slot in [0, 1, 63] {
        let n = Node::new(US, PEER, |c| (c.slot, c.caps.max_qp) = (slot, 3));
        let make = || n.nic.create_qp(&n.init(QpKind::Rc)).map(Qpn::value);
        let base = u32::from(slot) << 18;
        let [a, b] = [make().unwrap(), make().unwrap()];
        assert_eq!([a, b], [base + 2, base + 3]);
        n.nic.destroy_qp(Qpn::new(a)).unwrap();
        assert_eq!(make(), Ok(base + 4), "a number that never was");
        assert_eq!(make(), Ok(a));
        n.nic.destroy_qp(Qpn::new(b)).unwrap();
        n.nic.destroy_qp(Qpn::new(a)).unwrap();
        assert_eq!((make(), make()), (Ok(b), Ok(a)), "freed first comes first");
        assert!(n.nic.query_qp(Qpn::new((base ^ 1 << 18) + 2)).is_err());
    }
}

/// A QP that is gone takes nothing and is found by nobody.
#[test]
fn a_destroyed_qp_is_gone() {
    let mut n = lab();
    let qp = n.rc256();
    n.recv(qp, 1, 0, 64);
    assert!(!n.nic.timers_armed());
    n.send_bytes(qp, 2, 0, 4);
    assert!(n.nic.next_deadline().is_some() && n.nic.timers_armed());
    n.sent();
    n.nic.destroy_qp(qp).unwrap();
    assert_eq!(n.nic.next_deadline(), None);
    assert!(!n.nic.timers_armed());
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 500, reth(0, 0, 0), &[]);
    assert_eq!((n.sent().len(), n.dropped(urxe_engine::Drop::NoSuchQp)), (0, 1));
    assert_eq!(n.done(), [], "work requests vanish");
    let id = qp.value();
    let sges = [];
    let wr = urxe_engine::RecvWr { wr_id: 1, sges: &sges };
    assert_eq!(n.nic.post_recv(n.now, qp, &wr), Err(PostError::NoSuchQueue(id)));
    let wr = urxe_engine::SendWr::new(1, crate::script::SEND, &sges);
    let sent = n.nic.post_send(n.now, qp, &wr, &mut n.sink);
    assert_eq!(sent, Err(PostError::NoSuchQueue(id)));
    assert_eq!(n.nic.query_qp(qp), missing("QP", id));
    let attr = QpAttr::default();
    let modified = n.nic.modify_qp(qp, &attr, urxe_engine::AttrMask::STATE);
    assert_eq!(modified, missing("QP", id));
}

#[test]
fn a_nic_needs_a_sound_configuration() {
    let refused = |edit: fn(&mut NicConfig)| {
        let mut config = NicConfig::new(US);
        edit(&mut config);
        match urxe_engine::Nic::new(config) {
            Err(VerbsError::Range { field, .. }) => field,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(|c| c.addresses.clear()), "addresses");
    assert_eq!(refused(|c| c.addresses = vec![US; 256]), "addresses");
    assert_eq!(refused(|c| c.pkeys.clear()), "pkeys");
    assert_eq!(refused(|c| c.pkeys = vec![PKey::DEFAULT; 0x1_0000]), "pkeys");
    assert_eq!(refused(|c| c.slot = 64), "slot");
    assert_eq!(refused(|c| c.max_window = 3), "max_window");
    assert_eq!(refused(|c| c.caps.max_qp = 0), "caps.max_qp");
    // The last index of slot 63 would be the multicast QPN.
    assert_eq!(refused(|c| c.caps.max_qp = (1 << 18) - 2), "caps.max_qp");
    assert_eq!(refused(|c| c.caps.max_sge = 0), "caps.max_sge");
    assert_eq!(refused(|c| c.caps.max_inline = 4097), "caps.max_inline");
    assert_eq!(refused(|c| c.caps.max_wr = 0), "caps.max_wr");
    assert_eq!(refused(|c| c.caps.max_srq = 0x00ff_ffff), "caps.max_srq");
    let mut config = NicConfig::new(US);
    config.caps.max_qp = (1 << 18) - 3;
    assert!(urxe_engine::Nic::new(config).is_ok());
}
