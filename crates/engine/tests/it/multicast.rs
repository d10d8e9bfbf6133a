//! Multicast groups (IBA 10.5.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use urxe_engine::{Drop, QpId, QpKind, Received, VerbsError, WcStatus};
use urxe_wire::{Bth, Deth, Ext, Psn, Qpn};

use crate::lab::{Node, PEER, Q_KEY, US, bytes_of, lab, op};

const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 1, 1, 1));
const OTHER: IpAddr = IpAddr::V6(Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 1));

fn arrive(n: &mut Node, dst: IpAddr, qpn: Qpn) {
    arrive_marked(n, dst, qpn, 0);
}

fn arrive_marked(n: &mut Node, dst: IpAddr, qpn: Qpn, traffic_class: u8) {
    let deth = Deth { qkey: Q_KEY, reserved: 0, src_qp: Qpn::new(0x4321) };
    let ext = Ext { deth: Some(deth), ..Ext::NONE };
    let bytes = bytes_of(Bth::new(op("UD_SEND_ONLY"), qpn, Psn::ZERO), ext, b"to all");
    let (src_port, hop_limit) = (1, 1);
    let packet = Received { src: PEER, dst, src_port, traffic_class, hop_limit, bytes: &bytes };
    n.nic.receive(n.now, &packet, &mut n.sink);
}

fn ud(n: &mut Node, wr_id: u64) -> QpId {
    let qp = n.qp(QpKind::Ud, |_, _| {});
    n.recv(qp, wr_id, 64 * wr_id, 64);
    n.recv(qp, wr_id + 10, 64 * wr_id, 64);
    qp
}

const OK: WcStatus = WcStatus::Success;

#[test]
fn a_group_is_heard_by_each_qp_attached_to_it() {
    let mut n = lab();
    let (a, b, _c) = (ud(&mut n, 1), ud(&mut n, 2), ud(&mut n, 3));
    n.nic.attach_mcast(a, GROUP).unwrap();
    n.nic.attach_mcast(a, GROUP).unwrap();
    n.nic.attach_mcast(b, GROUP).unwrap();
    n.nic.attach_mcast(b, OTHER).unwrap();
    arrive(&mut n, GROUP, Qpn::MULTICAST);
    assert_eq!(n.done(), [(1, OK), (2, OK)], "each once");
    assert_eq!(n.bytes(64 + 40, 6), b"to all");
    assert_eq!(n.bytes(128 + 40, 6), b"to all");
    n.nic.detach_mcast(a, GROUP).unwrap();
    arrive(&mut n, GROUP, Qpn::MULTICAST);
    assert_eq!(n.done(), [(12, OK)]);
    n.nic.detach_mcast(b, GROUP).unwrap();
    arrive(&mut n, GROUP, Qpn::MULTICAST);
    assert_eq!((n.done(), n.dropped(Drop::NoListener)), (vec![], 1));
}

/// The sender to a group is not told of congestion: one mark would bring a notification of each.
#[test]
fn a_marked_multicast_is_not_answered() {
    let mut n = lab();
    let qp = ud(&mut n, 1);
    n.nic.attach_mcast(qp, GROUP).unwrap();
    arrive_marked(&mut n, GROUP, Qpn::MULTICAST, 3);
    assert_eq!((n.done(), n.sent().len()), (vec![(1, OK)], 0));
}

/// One QP's full queue is not the other's.
#[test]
fn a_listener_without_a_receive_misses_it_alone() {
    let mut n = lab();
    let poor = n.qp(QpKind::Ud, |_, _| {});
    let rich = ud(&mut n, 1);
    n.nic.attach_mcast(poor, GROUP).unwrap();
    n.nic.attach_mcast(rich, GROUP).unwrap();
    arrive(&mut n, GROUP, Qpn::MULTICAST);
    assert_eq!((n.done(), n.dropped(Drop::NoReceive)), (vec![(1, OK)], 1));
}

/// The multicast QPN goes with a group, and a group with it alone.
#[test]
fn group_and_multicast_qpn_go_together() {
    let mut n = lab();
    let qp = ud(&mut n, 1);
    n.nic.attach_mcast(qp, GROUP).unwrap();
    arrive(&mut n, US, Qpn::MULTICAST);
    arrive(&mut n, GROUP, qp);
    assert_eq!(n.done(), []);
    assert_eq!((n.dropped(Drop::NoListener), n.dropped(Drop::WrongAddress)), (1, 1));
}

#[test]
fn what_cannot_be_attached_or_detached_is_refused() {
    let mut n = Node::new(US, PEER, |c| c.caps.max_mcast_qp_attach = 2);
    let rc = n.rc256();
    let ud: Vec<QpId> = (1..4).map(|i| ud(&mut n, i)).collect();
    let nic = &n.nic;
    assert!(matches!(nic.attach_mcast(rc, GROUP), Err(VerbsError::Kind { .. })));
    assert_eq!(nic.attach_mcast(ud[0], US), Err(VerbsError::NotMulticast(US)));
    let missing = |what, id| VerbsError::NotFound { what, id };
    assert_eq!(nic.attach_mcast(Qpn::new(99), GROUP), Err(missing("QP", 99)));
    nic.attach_mcast(ud[0], GROUP).unwrap();
    nic.attach_mcast(ud[1], GROUP).unwrap();
    let full = VerbsError::Limit { what: "QPs in the group", max: 2 };
    assert_eq!(nic.attach_mcast(ud[2], GROUP), Err(full));
    let not_in = missing("QP in the group", ud[2].value());
    assert_eq!(nic.detach_mcast(ud[2], GROUP), Err(not_in));
    assert_eq!(nic.detach_mcast(ud[2], OTHER), Err(not_in));
    // A QP is destroyed only when it is in no group.
    let (what, id) = ("QP", ud[0].value());
    assert_eq!(nic.destroy_qp(ud[0]), Err(VerbsError::Busy { what, id, users: 1 }));
    nic.detach_mcast(ud[0], GROUP).unwrap();
    nic.destroy_qp(ud[0]).unwrap();
    nic.attach_mcast(ud[2], GROUP).unwrap();
}

/// What one listener took is not dropped, whoever comes before or behind it.
#[test]
fn a_datagram_is_dropped_if_no_listener_takes_it() {
    for rich_first in [true, false] {
        let mut n = lab();
        let mut qps = [ud(&mut n, 1), n.qp(QpKind::Ud, |_, _| {})];
        if !rich_first {
            qps.reverse();
        }
        qps.iter().for_each(|qp| n.nic.attach_mcast(*qp, GROUP).unwrap());
        let deth = Deth { qkey: Q_KEY, reserved: 0, src_qp: Qpn::new(0x4321) };
        let ext = Ext { deth: Some(deth), ..Ext::NONE };
        let bth = Bth::new(op("UD_SEND_ONLY"), Qpn::MULTICAST, Psn::ZERO);
        let bytes = bytes_of(bth, ext, b"to all");
        let (src_port, traffic_class, hop_limit) = (1, 0, 1);
        let bytes = &bytes[..];
        let packet = Received { src: PEER, dst: GROUP, src_port, traffic_class, hop_limit, bytes };
        let mut fates = || n.nic.accept(n.now, &packet, &mut n.sink);
        assert_eq!((fates(), fates(), fates()), (Ok(()), Ok(()), Err(Drop::NoReceive)));
        qps.iter().for_each(|qp| n.nic.detach_mcast(*qp, GROUP).unwrap());
        assert_eq!(n.nic.object_counts().groups, 0, "an empty group is none");
    }
}
