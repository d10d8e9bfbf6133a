//! What is looked at before a request is: QP, state, P_Key, address, transport, opcode.

use std::net::{IpAddr, Ipv4Addr};

use urxe_engine::{AsyncEvent, Count, Drop, QpKind, QpState, Received};
use urxe_wire::{Bth, Ext, PKey, Psn, Qpn};

use crate::ask::{imm, reth};
use crate::lab::{BASE, Node, PEER, US, bytes_of, lab, op};

const SEND: &str = "RC_SEND_ONLY";

#[test]
fn a_packet_for_no_qp_is_dropped() {
    let mut n = lab();
    let qp = n.rc256();
    let high = Qpn::new(1 << 18 | qp.value());
    for other in [Qpn::new(0), Qpn::new(3), Qpn::GSI, high, Qpn::new(0xff_fffe)] {
        n.arrive_request(other, SEND, 500, Ext::NONE, b"x");
    }
    assert!(n.sent().is_empty());
    assert_eq!(n.dropped(Drop::NoSuchQp), 5);
}

/// Partitions are equal in 15 bits and not both sides are limited members (IBA 10.9.3).
#[test]
fn p_keys_match_by_partition_unless_both_are_limited_members() {
    for (ours, theirs, fits) in [
        (0x8123, 0x8123, true),
        (0x8123, 0x0123, true),
        (0x0123, 0x8123, true),
        (0x0123, 0x0123, false),
        (0x8123, 0x8124, false),
        (0x8123, 0xffff, false),
    ] {
        let mut n = Node::new(US, PEER, |c| c.pkeys = vec![PKey::DEFAULT, PKey(ours)]);
        let qp = n.rc256_with(|_, attr| attr.pkey_index = 1);
        let mut bth = Bth::new(op("RC_RDMA_WRITE_ONLY"), qp, Psn::new(500));
        bth.pkey = PKey(theirs);
        bth.ack_req = true;
        n.arrive(bth, reth(BASE, n.mr.rkey, 0), &[]);
        let answers = std::mem::take(&mut n.sink.sent);
        assert_eq!(answers.len(), usize::from(fits), "{ours:#x} {theirs:#x}");
        assert_eq!(n.dropped(Drop::BadPKey), u64::from(!fits), "{ours:#x} {theirs:#x}");
        // What we send carries our own key.
        assert!(answers.iter().all(|p| p.roce().bth.pkey == PKey(ours)));
    }
}

/// A connected QP listens to its peer alone (IBA 9.6.1.2).
#[test]
fn a_packet_of_another_address_is_dropped() {
    let mut n = lab();
    let qp = n.rc256();
    let stranger = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9));
    let mut bth = Bth::new(op("RC_RDMA_WRITE_ONLY"), qp, Psn::new(500));
    bth.ack_req = true;
    let bytes = bytes_of(bth, reth(BASE, n.mr.rkey, 0), &[]);
    for (src, dst) in [(stranger, US), (PEER, stranger), (US, PEER)] {
        let (src_port, traffic_class, hop_limit) = (1, 0, 64);
        let packet = Received { src, dst, src_port, traffic_class, hop_limit, bytes: &bytes };
        n.nic.receive(n.now, &packet, &mut n.sink);
    }
    assert!(n.sent().is_empty());
    assert_eq!(n.dropped(Drop::WrongAddress), 3);
    n.arrive_bytes(&bytes);
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=500 ack credits=0 msn=1"]);
}

#[test]
fn a_packet_of_another_transport_is_dropped() {
    let names = |kind| match kind {
        QpKind::Rc => "RC_RDMA_WRITE_ONLY",
        QpKind::Uc => "UC_RDMA_WRITE_ONLY",
        QpKind::Ud => "UD_SEND_ONLY",
        _ => "XRC_RDMA_WRITE_ONLY",
    };
    for kind in [QpKind::Rc, QpKind::Uc, QpKind::Ud] {
        for other in [QpKind::Rc, QpKind::Uc, QpKind::Ud, QpKind::XrcInit] {
            let mut n = lab();
            let qp = n.qp(kind, |_, _| {});
            let mut ext = reth(BASE, n.mr.rkey, 0);
            if other == QpKind::Ud {
                let deth = urxe_wire::Deth { qkey: crate::lab::Q_KEY, ..Default::default() };
                ext = Ext { deth: Some(deth), ..Ext::NONE };
            }
            if other == QpKind::XrcInit {
                ext.xrceth = Some(urxe_wire::XrcEth::default());
            }
            n.arrive_request(qp, names(other), 500, ext, &[]);
            let wrong = n.dropped(Drop::WrongTransport);
            assert_eq!(wrong, u64::from(kind != other), "{kind} {other}");
        }
    }
}

/// A code no table has is an invalid request, in its turn (IBA 9.6.1.1.2).
#[test]
fn an_unknown_opcode_is_refused_when_it_is_its_turn() {
    let mut n = lab();
    let qp = n.rc256();
    let unknown = |psn: u32| {
        let mut bytes = bytes_of(Bth::new(op(SEND), qp, Psn::new(psn)), Ext::NONE, b"1234");
        bytes[0] = 0x1f;
        bytes
    };
    for psn in [499, 501] {
        n.arrive_bytes(&unknown(psn));
    }
    assert!(n.sent().is_empty());
    assert_eq!(n.dropped(Drop::UnknownOpcode), 2);
    n.arrive_bytes(&unknown(500));
    let got = n.outcome(qp);
    assert_eq!(got.sent, ["RC_ACKNOWLEDGE psn=500 nak InvalidRequest msn=0"]);
    assert_eq!(got.state, QpState::Err);
    assert_eq!(got.events, [AsyncEvent::QpReqErr(qp)]);
    assert_eq!(n.count(Count::NakErrorSent), 1);
}

#[test]
fn an_unknown_opcode_on_an_unreliable_qp_is_dropped() {
    let mut n = lab();
    for (kind, code) in [(QpKind::Uc, 0x3f), (QpKind::Ud, 0x7f)] {
        let qp = n.qp(kind, |_, _| {});
        let mut bytes = bytes_of(Bth::new(op(SEND), qp, Psn::new(500)), Ext::NONE, b"1234");
        bytes[0] = code;
        n.arrive_bytes(&bytes);
        assert_eq!(n.state(qp), QpState::Rts);
    }
    let drops = n.dropped(Drop::UnknownOpcode) + n.dropped(Drop::Malformed);
    assert_eq!((drops, n.sent().len()), (2, 0));
}

/// The first packet in RTR tells that the connection stands (IBA 11.6.3.1), once.
#[test]
fn the_first_packet_in_rtr_is_told_of_once() {
    let mut n = lab();
    let qp = n.nic.create_qp(&n.init(QpKind::Rc)).unwrap();
    let attr = n.attr();
    to_rtr(&n, qp, &attr);
    let write = |n: &mut Node, psn| {
        let ext = reth(BASE, n.mr.rkey, 0);
        n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", psn, ext, &[]);
    };
    write(&mut n, 500);
    write(&mut n, 501);
    let got = n.outcome(qp);
    assert_eq!(got.events, [AsyncEvent::CommEst(qp)]);
    assert_eq!((got.state, got.sent.len()), (QpState::Rtr, 2), "requests are answered in RTR");
    // In RTS there is nothing to tell; after RESET there is again.
    let state = urxe_engine::AttrMask::STATE;
    let reset = urxe_engine::QpAttr { qp_state: QpState::Reset, ..attr };
    n.nic.modify_qp(qp, &reset, state).unwrap();
    to_rtr(&n, qp, &attr);
    write(&mut n, 500);
    assert_eq!(n.async_events(), [AsyncEvent::CommEst(qp)]);
    let qp = n.rc256();
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 500, reth(BASE, n.mr.rkey, 0), &[]);
    assert!(n.async_events().is_empty());
}

fn to_rtr(n: &Node, qp: Qpn, attr: &urxe_engine::QpAttr) {
    use urxe_engine::attr::Needs;
    for (from, to) in [(QpState::Reset, QpState::Init), (QpState::Init, QpState::Rtr)] {
        let needs = Needs::of(QpKind::Rc, from, to).unwrap();
        let attr = urxe_engine::QpAttr { qp_state: to, ..*attr };
        n.nic.modify_qp(qp, &attr, needs.required | urxe_engine::AttrMask::STATE).unwrap();
    }
}

/// The rxe profile speaks P_Key 0xFFFF alone and promises no credits.
#[test]
fn the_rxe_profile_answers_with_its_own_manners() {
    let mut n = Node::new(US, PEER, |c| {
        c.profile = urxe_engine::Profile::RXE;
        c.pkeys = vec![PKey(0x8123)];
    });
    let qp = n.rc256();
    n.recv(qp, 1, 0, 64);
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", 500, imm(reth(0, 0, 0)), &[]);
    let answer = &n.sink.sent[0];
    assert_eq!(answer.line(), "RC_ACKNOWLEDGE psn=500 ack msn=1");
    let bth = answer.roce().bth;
    assert_eq!((bth.pkey, bth.mig_req), (PKey::DEFAULT, false));
}

/// Packets and bytes are counted: of what came BTH to ICRC, of what left all but the ICRC.
#[test]
fn packets_and_bytes_are_counted() {
    let mut n = lab();
    let qp = n.rc256();
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 500, reth(BASE, n.mr.rkey, 5), b"12345");
    // Dropped ones came, too. BTH 12, RETH 16, payload and pad 8, ICRC 4.
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 500, reth(BASE, n.mr.rkey, 5), b"12345");
    n.arrive_request(Qpn::new(99), SEND, 0, Ext::NONE, &[]);
    let counts = [Count::RxPackets, Count::RxBytes, Count::TxPackets, Count::TxBytes];
    assert_eq!(counts.map(|what| n.count(what)), [3, 2 * 40 + 16, 2, 2 * 16]);
}

/// Before RTS nothing was asked: an answer is none.
#[test]
fn responses_before_rts_are_dropped() {
    let mut n = lab();
    let qp = n.nic.create_qp(&n.init(QpKind::Rc)).unwrap();
    let attr = n.attr();
    to_rtr(&n, qp, &attr);
    n.arrive_ack(qp, 100, 0);
    assert_eq!((n.dropped(Drop::WrongState), n.dropped(Drop::GhostAck)), (1, 0));
}

/// The P_Key's index is the QP's own.
#[test]
fn a_completion_tells_the_p_key_index() {
    let mut n = Node::new(US, PEER, |c| c.pkeys = vec![PKey(0x8001), PKey(0x8002)]);
    let qp = n.rc256_with(|_, attr| attr.pkey_index = 1);
    n.recv(qp, 1, 0, 64);
    let mut bth = Bth::new(op(SEND), qp, Psn::new(500));
    bth.pkey = PKey(0x8002);
    n.arrive(bth, Ext::NONE, b"x");
    assert_eq!(n.completions()[0].pkey_index, 1);
}

/// A NAK that refuses is counted, once.
#[test]
fn refusals_are_counted() {
    let mut n = lab();
    let qp = n.rc256();
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 500, reth(BASE, 1, 4), b"1234");
    assert_eq!((n.count(Count::NakErrorSent), n.sent().len()), (1, 1));
}
