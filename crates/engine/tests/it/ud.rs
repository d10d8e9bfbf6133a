//! Datagrams (IBA 9.8.3).

use std::net::{IpAddr, Ipv6Addr};

use urxe_engine::{
    AhAttr, Arm, AsyncEvent, Count, Drop, Event, NicConfig, QpId, QpKind, QpState, Received,
    RecvWr, Rule, SendOp, SendWr, UdDest, WcFlags, WcOpcode, WcStatus,
};
use urxe_memory::Sge;
use urxe_wire::{Bth, Deth, Ext, PKey, Psn, QKey, Qpn};

use crate::ask::imm;
use crate::lab::{BASE, Node, PEER, Q_KEY, US, bytes_of, lab, op};

const OK: WcStatus = WcStatus::Success;

fn ud(n: &mut Node) -> QpId {
    n.qp(QpKind::Ud, |_, _| {})
}

fn deth(qkey: QKey) -> Ext {
    Ext { deth: Some(Deth { qkey, reserved: 0, src_qp: Qpn::new(0x4321) }), ..Ext::NONE }
}

/// The IPv4 header stands in the last 20 of the 40 bytes before the payload.
#[test]
fn a_datagram_of_ipv4_has_its_header_in_the_last_20_of_40_bytes() {
    let mut n = lab();
    let qp = ud(&mut n);
    n.buffer.write(0, &[0xee; 64]).unwrap();
    n.recv(qp, 1, 0, 64);
    n.arrive_request(qp, "UD_SEND_ONLY_WITH_IMMEDIATE", 0x99_9999, imm(deth(Q_KEY)), b"hello");
    let got = n.completions()[0];
    assert_eq!((got.wr_id, got.status, got.opcode, got.byte_len), (1, OK, WcOpcode::Recv, 45));
    assert_eq!((got.flags, got.imm), (WcFlags::GRH | WcFlags::WITH_IMM, [1, 2, 3, 4]));
    assert_eq!((got.src_qp, got.qpn, got.cause), (Qpn::new(0x4321), qp, None));
    let bytes = n.bytes(0, 46);
    // Version 4, 20 bytes, TTL 64, UDP. BTH 12, DETH 8, ImmDt 4, payload and pad 8, ICRC 4; UDP 8.
    assert_eq!(bytes[20], 0x45);
    assert_eq!(u16::from_be_bytes([bytes[22], bytes[23]]), 12 + 8 + 4 + 8 + 4 + 8 + 20);
    assert_eq!((bytes[28], bytes[29]), (64, 17));
    assert_eq!((&bytes[32..36], &bytes[36..40]), (&[10, 0, 0, 2][..], &[10, 0, 0, 1][..]));
    assert_eq!(&bytes[40..], b"hello\xee");
    assert!(n.sink.sent.is_empty(), "no datagram is answered");
}

#[test]
fn a_datagram_of_ipv6_has_the_whole_header() {
    let address = |last| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last));
    let mut n = Node::new(address(1), address(2), |_| {});
    let qp = ud(&mut n);
    n.recv(qp, 1, 0, 64);
    let bytes = bytes_of(Bth::new(op("UD_SEND_ONLY"), qp, Psn::ZERO), deth(Q_KEY), b"hello");
    let (src, dst) = (address(2), address(1));
    let (src_port, traffic_class, hop_limit) = (7, 0x68, 9);
    let packet = Received { src, dst, src_port, traffic_class, hop_limit, bytes: &bytes };
    n.nic.receive(n.now, &packet, &mut n.sink);
    let got = n.completions()[0];
    assert_eq!((got.byte_len, got.traffic_class), (45, 0x68));
    let bytes = n.bytes(0, 45);
    assert_eq!(bytes[..4], [0x66, 0x80, 0, 0]);
    assert_eq!(u16::from_be_bytes([bytes[4], bytes[5]]), 12 + 8 + 8 + 4 + 8);
    assert_eq!((bytes[6], bytes[7]), (17, 9));
    assert_eq!((bytes[8], bytes[23], bytes[24], bytes[39]), (0xfd, 2, 0xfd, 1));
    assert_eq!(&bytes[40..], b"hello");
}

/// IBA 9.6.1.3: without the QP's Q_Key a datagram is dropped.
#[test]
fn a_datagram_needs_the_q_key() {
    let mut n = lab();
    let qp = ud(&mut n);
    n.recv(qp, 1, 0, 64);
    for key in [0, 1, Q_KEY.0 + 1, Q_KEY.0 | 0x8000_0000] {
        n.arrive_request(qp, "UD_SEND_ONLY", 0, deth(QKey(key)), b"x");
    }
    assert_eq!((n.dropped(Drop::BadQKey), n.done()), (4, vec![]));
    n.arrive_request(qp, "UD_SEND_ONLY", 0, deth(Q_KEY), b"x");
    assert_eq!(n.done(), [(1, OK)]);
}

#[test]
fn datagrams_have_no_order() {
    let mut n = lab();
    let qp = ud(&mut n);
    for (i, psn) in [7, 7, 3, 0xff_ffff].into_iter().enumerate() {
        n.recv(qp, i as u64, 0, 64);
        n.arrive_request(qp, "UD_SEND_ONLY", psn, deth(Q_KEY), b"x");
        assert_eq!(n.done(), [(i as u64, OK)]);
    }
}

/// A datagram without a receive, or longer than it, is dropped; the WQE serves the next.
#[test]
fn a_datagram_that_does_not_fit_is_dropped_and_counted() {
    let mut n = lab();
    let qp = ud(&mut n);
    n.arrive_request(qp, "UD_SEND_ONLY", 0, deth(Q_KEY), b"x");
    assert_eq!(n.dropped(Drop::NoReceive), 1);
    n.recv(qp, 1, 0, 44);
    n.arrive_request(qp, "UD_SEND_ONLY", 0, deth(Q_KEY), b"12345");
    assert_eq!((n.dropped(Drop::TooLong), n.done()), (1, vec![]));
    assert_eq!((n.bytes(0, 45), n.state(qp)), (vec![0; 45], QpState::Rts));
    n.arrive_request(qp, "UD_SEND_ONLY", 0, deth(Q_KEY), b"1234");
    assert_eq!((n.done(), n.bytes(40, 4)), (vec![(1, OK)], b"1234".to_vec()));
    // An empty one still takes 40 bytes.
    n.recv(qp, 2, 0, 39);
    n.arrive_request(qp, "UD_SEND_ONLY", 0, deth(Q_KEY), &[]);
    assert_eq!((n.dropped(Drop::TooLong), n.done()), (2, vec![]));
    n.to_error(qp);
    assert_eq!(n.done(), [(2, WcStatus::WrFlushErr)], "and is not lost");
}

#[test]
fn a_receive_whose_memory_is_wrong_is_fatal() {
    let mut n = lab();
    let qp = ud(&mut n);
    let sges = [n.sge(0, 40), Sge { addr: BASE, length: 64, lkey: 0xdead_0000 }];
    n.nic.post_recv(n.now, qp, &RecvWr { wr_id: 1, sges: &sges }).unwrap();
    n.recv(qp, 2, 0, 64);
    n.arrive_request(qp, "UD_SEND_ONLY", 0, deth(Q_KEY), b"x");
    assert_eq!(n.done(), [(1, WcStatus::LocProtErr), (2, WcStatus::WrFlushErr)]);
    assert_eq!(n.async_events(), [AsyncEvent::QpFatal(qp)]);
    assert_eq!(n.state(qp), QpState::Err);
    assert_eq!(n.count(Count::RespCqeError), 1);
}

/// QP1 takes what is for any P_Key of the port, and tells which.
#[test]
fn qp1_takes_any_p_key_of_the_table() {
    let keys = |c: &mut NicConfig| c.pkeys = vec![PKey(0x8001), PKey(0x8002)];
    let mut n = Node::new(US, PEER, keys);
    let gsi = n.qp(QpKind::Gsi, |_, attr| attr.qkey = QKey::GSI);
    assert_eq!(gsi, Qpn::GSI);
    let ud = ud(&mut n);
    for (qp, qkey) in [(gsi, QKey::GSI), (ud, Q_KEY)] {
        n.recv(qp, 1, 0, 64);
        n.recv(qp, 2, 0, 64);
        for key in [0x8001, 0x0002, 0x8003] {
            let mut bth = Bth::new(op("UD_SEND_ONLY"), qp, Psn::ZERO);
            bth.pkey = PKey(key);
            n.arrive(bth, deth(qkey), b"x");
        }
        let got: Vec<u16> = n.completions().iter().map(|c| c.pkey_index).collect();
        assert_eq!(got, if qp == gsi { vec![0, 1] } else { vec![0] });
    }
    assert_eq!(n.dropped(Drop::BadPKey), 3);
}

/// Between two NICs: the sender's QPN comes along, and an AH may go once the request is posted.
#[test]
fn a_datagram_between_two_nics() {
    let mut p = crate::lab::Pair::new();
    let (qa, qb) = (ud(&mut p.a), ud(&mut p.b));
    p.b.recv(qb, 7, 0, 64);
    let to = AhAttr { dst: PEER, ..AhAttr::default() };
    let ah = p.a.nic.create_ah(p.a.pd, &to).unwrap();
    p.a.buffer.write(0, b"datagram").unwrap();
    let sges = [p.a.sge(0, 8)];
    let dest = Some(UdDest { ah, qpn: qb, qkey: QKey(0x8000_0000) });
    p.a.sink.full = true;
    p.a.send(qa, &SendWr { dest, ..SendWr::new(1, SendOp::Send { imm: None }, &sges) });
    p.a.nic.destroy_ah(ah).unwrap();
    assert!(p.a.nic.destroy_ah(ah).is_err());
    p.a.sink.full = false;
    p.a.pump();
    p.run();
    let got = p.b.completions()[0];
    assert_eq!((got.wr_id, got.src_qp, got.byte_len), (7, qa, 48));
    assert_eq!((p.b.bytes(40, 8), p.a.done()), (b"datagram".to_vec(), vec![(1, OK)]));
    // What is posted with an AH that is gone is not taken.
    let wr = SendWr { dest, ..SendWr::new(2, SendOp::Send { imm: None }, &sges) };
    assert!(p.a.nic.post_send(p.a.now, qa, &wr, &mut p.a.sink).is_err());
}

/// An address handle is of its QP's PD. If not, the request fails by its completion, and the send
/// queue with it (Linux drivers/infiniband/sw/rxe/rxe_av.c and rxe_req.c).
#[test]
fn an_address_handle_of_another_pd_fails_the_request() {
    let mut n = lab();
    let qp = ud(&mut n);
    let other = n.nic.memory().alloc_pd().unwrap();
    let to = AhAttr { dst: PEER, ..AhAttr::default() };
    let [good, bad] = [n.pd, other].map(|pd| n.nic.create_ah(pd, &to).unwrap());
    n.sink.full = true;
    for (wr_id, ah) in [(1, good), (2, bad), (3, good)] {
        let dest = Some(UdDest { ah, qpn: Qpn::new(9), qkey: Q_KEY });
        n.send(qp, &SendWr { dest, ..SendWr::new(wr_id, SendOp::Send { imm: None }, &[]) });
    }
    n.sink.full = false;
    n.pump();
    assert_eq!(n.sink.sent.len(), 1);
    let got = n.completions();
    let statuses: Vec<_> = got.iter().map(|c| (c.wr_id, c.status)).collect();
    assert_eq!(statuses, [(1, OK), (2, WcStatus::LocQpOpErr), (3, WcStatus::WrFlushErr)]);
    assert_eq!(got[1].cause.map(|c| c.rule), Some(Rule::AhOfOtherPd));
    assert!(got[1].explain().contains("another PD"), "{}", got[1].explain());
    assert_eq!(n.state(qp), QpState::Sqe);
}

/// Of an IPv4 datagram the header is as it was: class, TTL, and a checksum that is right.
#[test]
fn the_header_of_ipv4_tells_class_ttl_and_a_right_checksum() {
    let mut n = lab();
    let qp = ud(&mut n);
    n.recv(qp, 1, 0, 64);
    let bytes = bytes_of(Bth::new(op("UD_SEND_ONLY"), qp, Psn::ZERO), deth(Q_KEY), b"hello");
    let (src_port, traffic_class, hop_limit) = (7, 0x68, 9);
    let packet = Received { src: PEER, dst: US, src_port, traffic_class, hop_limit, bytes: &bytes };
    n.nic.receive(n.now, &packet, &mut n.sink);
    assert_eq!(n.completions()[0].traffic_class, 0x68);
    let header = n.bytes(20, 20);
    assert_eq!((header[1], header[8]), (0x68, 9));
    let words = header.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum: u32 = words.sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "RFC 791: the sum of all words");
}

/// The solicited bit of a datagram counts as that of a SEND.
#[test]
fn a_solicited_datagram_wakes_a_cq_armed_for_it() {
    let mut n = lab();
    let qp = ud(&mut n);
    (1..3).for_each(|i| n.recv(qp, i, 0, 64));
    n.nic.arm_cq(n.cq, Arm::Solicited).unwrap();
    let mut bth = Bth::new(op("UD_SEND_ONLY"), qp, Psn::ZERO);
    n.arrive(bth, deth(Q_KEY), b"x");
    assert_eq!(n.events(), []);
    bth.solicited = true;
    n.arrive(bth, deth(Q_KEY), b"x");
    assert_eq!((n.events(), n.done().len()), (vec![Event::Completion(n.cq)], 2));
}

/// RD has a DETH too, and is another transport.
#[test]
fn only_datagrams_come_to_a_datagram_qp() {
    let mut n = lab();
    let qp = ud(&mut n);
    n.recv(qp, 1, 0, 64);
    let rdeth = Some(urxe_wire::RdEth::default());
    let rd = Ext { rdeth, ..deth(Q_KEY) };
    n.arrive(Bth::new(op("RD_SEND_ONLY"), qp, Psn::ZERO), rd, b"x");
    n.arrive(Bth::new(op("UC_SEND_ONLY"), qp, Psn::ZERO), Ext::NONE, b"x");
    assert_eq!((n.done(), n.dropped(Drop::WrongTransport)), (vec![], 2));
}

/// rxe knows one P_Key, whatever the table holds, at QP1 too.
#[test]
fn the_rxe_profile_takes_the_default_p_key_alone() {
    let mut n = Node::new(US, PEER, |c| {
        c.profile = urxe_engine::Profile::RXE;
        c.pkeys = vec![PKey(0x8001), PKey::DEFAULT];
    });
    let gsi = n.qp(QpKind::Gsi, |_, attr| attr.qkey = QKey::GSI);
    n.recv(gsi, 1, 0, 64);
    let mut bth = Bth::new(op("UD_SEND_ONLY"), gsi, Psn::ZERO);
    bth.pkey = PKey(0x8001);
    n.arrive(bth, deth(QKey::GSI), b"x");
    assert_eq!((n.done(), n.dropped(Drop::BadPKey)), (vec![], 1));
    bth.pkey = PKey::DEFAULT;
    n.arrive(bth, deth(QKey::GSI), b"x");
    assert_eq!(n.done(), [(1, OK)]);
}

/// A QP that is in INIT already, with another Q_Key, has the one it is connected with.
#[test]
fn connecting_sets_the_q_key_from_any_state_on() {
    let mut n = lab();
    let qp = n.nic.create_qp(&n.init(QpKind::Ud)).unwrap();
    let step = |n: &Node, from, to, qkey| {
        let needs = urxe_engine::attr::Needs::of(QpKind::Ud, from, to).unwrap();
        let attr = urxe_engine::QpAttr { qp_state: to, qkey, ..n.attr() };
        n.nic.modify_qp(qp, &attr, needs.required | urxe_engine::AttrMask::STATE).unwrap();
    };
    step(&n, QpState::Reset, QpState::Init, QKey(5));
    n.nic.connect_qp(qp, &n.attr()).unwrap();
    assert_eq!(n.nic.query_qp(qp).unwrap().attr.qkey, Q_KEY);
    n.recv(qp, 1, 0, 64);
    n.arrive_request(qp, "UD_SEND_ONLY", 0, deth(Q_KEY), b"x");
    assert_eq!((n.done(), n.state(qp)), (vec![(1, OK)], QpState::Rts));
}
