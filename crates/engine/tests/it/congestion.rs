//! Congestion: marks that come, notifications that go and come.

use std::time::Duration;

use urxe_engine::dcqcn::Params;
use urxe_engine::{Count, Drop, NicConfig, Profile, QpId, QpKind, Received};
use urxe_wire::{Bth, CnpPad, Deth, Ext, Opcode, Psn, Qpn};

use crate::ask::reth;
use crate::lab::{Node, PEER, Q_KEY, US, bytes_of, lab, lab_with, op};

/// A packet of the peer's, with this traffic class.
fn marked(n: &mut Node, traffic_class: u8, bth: Bth, ext: Ext) {
    let bytes = bytes_of(bth, ext, &[]);
    let (src_port, hop_limit) = (0xd123, 64);
    let packet = Received { src: PEER, dst: US, src_port, traffic_class, hop_limit, bytes: &bytes };
    n.nic.receive(n.now, &packet, &mut n.sink);
}

fn write(n: &mut Node, qp: QpId, psn: u32, traffic_class: u8) {
    let bth = Bth::new(op("RC_RDMA_WRITE_ONLY"), qp, Psn::new(psn));
    marked(n, traffic_class, bth, reth(0, 0, 0));
}

fn cnp(qp: QpId) -> (Bth, Ext) {
    let mut bth = Bth::new(Opcode::CNP, qp, Psn::ZERO);
    bth.becn = true;
    (bth, Ext { cnp: Some(CnpPad::default()), ..Ext::NONE })
}

/// BECN, PSN 0, no AckReq, 16 zero bytes (IBA A17.9.3), to the QP that sent the marked packet.
#[test]
fn a_mark_is_answered_by_a_notification_of_these_bytes() {
    let mut n = lab();
    let qp = n.rc256_with(|_, attr| attr.ah.traffic_class = 0x6a);
    write(&mut n, qp, 500, 3);
    let sent = &n.sink.sent[0];
    let mut wanted = vec![0x81, 0x40, 0xff, 0xff, 0x40, 0, 0, 0x77, 0, 0, 0, 0];
    wanted.resize(12 + 16 + 4, 0);
    assert_eq!(sent.bytes, wanted);
    assert_eq!((sent.path.src, sent.path.dst, sent.path.traffic_class), (US, PEER, 48 << 2));
    assert_eq!((n.count(Count::EcnMarked), n.count(Count::CnpSent)), (1, 1));
    // The request is served all the same.
    assert_eq!(n.nic.query_qp(qp).unwrap().msn, 1);
}

#[test]
fn only_congestion_experienced_is_a_mark() {
    let mut n = lab();
    let qp = n.rc256();
    for (psn, traffic_class) in (500..).zip([0, 1, 2, 0xfc, 0xfd, 0xfe]) {
        write(&mut n, qp, psn, traffic_class);
    }
    assert_eq!((n.sent().len(), n.count(Count::EcnMarked)), (0, 0));
    write(&mut n, qp, 506, 0xff);
    assert_eq!((n.sent().len(), n.count(Count::EcnMarked)), (1, 1));
}

/// At most one in 50 µs to each QP of a peer.
#[test]
fn notifications_are_sparse_for_each_destination() {
    let mut n = lab();
    let a = n.rc256();
    let b = n.rc256_with(|_, attr| attr.dest_qp = Qpn::new(0x88));
    write(&mut n, a, 500, 3);
    write(&mut n, a, 501, 3);
    write(&mut n, b, 500, 3);
    let to: Vec<u32> = n.sink.sent.iter().map(|p| p.roce().bth.dest_qp.value()).collect();
    assert_eq!(to, [0x77, 0x88]);
    n.sent();
    n.pass(Duration::from_nanos(49_999));
    write(&mut n, a, 502, 3);
    assert_eq!(n.sent().len(), 0);
    n.pass(Duration::from_nanos(1));
    write(&mut n, a, 503, 3);
    assert_eq!(n.sent().len(), 1);
    assert_eq!((n.count(Count::EcnMarked), n.count(Count::CnpSent)), (5, 3));
}

/// A full sink takes no notification, and the next mark is in time for one.
#[test]
fn a_notification_without_room_is_not_sent_later() {
    let mut n = lab();
    let qp = n.rc256();
    n.sink.full = true;
    write(&mut n, qp, 500, 3);
    n.sink.full = false;
    n.pump();
    assert_eq!(n.sent().len(), 0);
    write(&mut n, qp, 501, 3);
    assert_eq!(n.sent().len(), 1);
}

/// A datagram's sender is named by its DETH, and the path is turned round.
#[test]
fn a_marked_datagram_is_answered_to_its_sender() {
    let mut n = lab();
    let qp = n.qp(QpKind::Ud, |_, _| {});
    let deth = Some(Deth { qkey: Q_KEY, reserved: 0, src_qp: Qpn::new(0x4321) });
    marked(&mut n, 3, Bth::new(op("UD_SEND_ONLY"), qp, Psn::ZERO), Ext { deth, ..Ext::NONE });
    let sent = &n.sink.sent[0];
    assert_eq!(sent.roce().bth.dest_qp, Qpn::new(0x4321));
    assert_eq!((sent.path.src, sent.path.dst, sent.path.src_port), (US, PEER, 0xd123));
    assert_eq!(n.count(Count::EcnMarked), 1);
    // One that nobody may send here says nothing.
    n.sent();
    n.pass(Duration::from_millis(1));
    let deth = Some(Deth { qkey: urxe_wire::QKey(1), reserved: 0, src_qp: Qpn::new(1) });
    marked(&mut n, 3, Bth::new(op("UD_SEND_ONLY"), qp, Psn::ZERO), Ext { deth, ..Ext::NONE });
    assert_eq!(n.sent().len(), 0);
    // A datagram QP has no rate to slow.
    let (bth, ext) = cnp(qp);
    n.arrive(bth, ext, &[]);
    assert_eq!(n.dropped(Drop::CnpIgnored), 1);
}

/// rxe ignores marks and drops notifications (its profile).
#[test]
fn the_rxe_profile_neither_sends_nor_takes_notifications() {
    let with = |c: &mut NicConfig| {
        c.profile = Profile::RXE;
        c.dcqcn = Some(Params::paper().checked().unwrap());
    };
    let mut n = Node::new(US, PEER, with);
    let qp = n.rc256();
    write(&mut n, qp, 500, 3);
    let (bth, ext) = cnp(qp);
    n.arrive(bth, ext, &[]);
    assert_eq!((n.sent().len(), n.count(Count::CnpSent), n.count(Count::CnpHandled)), (0, 0, 0));
    assert_eq!((n.count(Count::EcnMarked), n.dropped(Drop::CnpIgnored)), (1, 1));
}

/// ConnectX-5 and -6 send a notification with a PSN sequence NAK.
#[test]
fn the_connectx_profile_notifies_with_a_nak() {
    let mut n = lab_with(Profile::CONNECTX);
    let qp = n.rc256();
    write(&mut n, qp, 501, 0);
    let lines = ["CNP psn=0", "RC_ACKNOWLEDGE psn=500 nak PsnSequence msn=0"];
    assert_eq!(n.sent(), lines);
    assert_eq!((n.count(Count::EcnMarked), n.count(Count::CnpSent)), (0, 1));
}

/// A notification slows a QP with congestion control, and is ignored by one without.
#[test]
fn a_notification_slows_a_qp_with_congestion_control() {
    for slows in [true, false] {
        let with = |c: &mut NicConfig| {
            c.dcqcn = slows.then(|| Params::paper().checked().unwrap());
        };
        let mut n = Node::new(US, PEER, with);
        let qp = n.rc256();
        let (bth, ext) = cnp(qp);
        n.arrive(bth, ext, &[]);
        assert_eq!(n.count(Count::CnpHandled), u64::from(slows));
        assert_eq!(n.dropped(Drop::CnpIgnored), u64::from(!slows));
        assert_eq!(n.nic.next_deadline().is_some(), slows, "the rate rises again by timer");
        // A notification is no request: nothing is answered, no PSN is taken.
        assert_eq!(n.sent().len(), 0);
        n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 500, reth(0, 0, 0), &[]);
        assert_eq!(n.sent().len(), 1);
    }
}

#[test]
fn a_notification_that_is_cut_short_is_malformed() {
    let mut n = Node::new(US, PEER, |c| c.dcqcn = Some(Params::paper().checked().unwrap()));
    let qp = n.rc256();
    let (bth, ext) = cnp(qp);
    let bytes = bytes_of(bth, ext, &[]);
    n.arrive_bytes(&bytes[..bytes.len() - 4]);
    n.arrive_bytes(&bytes[..12]);
    assert_eq!((n.dropped(Drop::Malformed), n.count(Count::CnpHandled)), (2, 0));
}

/// A notification carries the P_Key of the QP that sends it, and lives as long as a fresh packet.
#[test]
fn a_notification_has_the_qps_p_key_and_its_own_ttl() {
    let keys = [0xffff, 0x8123].map(urxe_wire::PKey);
    let mut n = Node::new(US, PEER, |c| c.pkeys = keys.to_vec());
    let qp = n.qp(QpKind::Ud, |_, attr| attr.pkey_index = 1);
    let deth = Some(Deth { qkey: Q_KEY, reserved: 0, src_qp: Qpn::new(0x4321) });
    let mut bth = Bth::new(op("UD_SEND_ONLY"), qp, Psn::ZERO);
    bth.pkey = keys[1];
    let bytes = bytes_of(bth, Ext { deth, ..Ext::NONE }, &[]);
    let (src_port, traffic_class, hop_limit) = (1, 3, 2);
    let packet = Received { src: PEER, dst: US, src_port, traffic_class, hop_limit, bytes: &bytes };
    n.nic.receive(n.now, &packet, &mut n.sink);
    let sent = &n.sink.sent[0];
    assert_eq!((sent.roce().bth.pkey, sent.path.hop_limit), (keys[1], 64));
}
