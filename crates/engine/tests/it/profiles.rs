//! Where rxe and ConnectX depart from the specification: each difference under its profile.

use std::net::IpAddr;
use std::time::Duration;

use urxe_engine::{Count, Drop, Profile, QpKind, SendWr, UdDest};
use urxe_wire::{Ext, Mtu, PKey, Qpn};

use crate::lab::{Node, PEER, PEER_QPN, Q_KEY, US, lab_with};
use crate::script::{OK, READ, SEND};

/// rxe's manners, but timers as fine as time.
const RXE: Profile = Profile { tick: Duration::ZERO, ..Profile::RXE };
const TIMEOUT: Duration = Duration::from_nanos(4096 << 10);

#[test]
fn profiles_are_found_by_name() {
    for profile in Profile::ALL {
        assert_eq!(Profile::by_name(profile.name), Some(profile));
    }
    assert_eq!(Profile::by_name("mthca"), None);
}

#[test]
fn rxe_retries_for_ever_with_retry_cnt_7() {
    let mut n = lab_with(RXE);
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 10);
    for _ in 0..50 {
        assert_eq!(n.next_deadline(), Some(TIMEOUT));
    }
    assert_eq!(n.psns().len(), 51);
    n.arrive_ack(qp, 100, 1);
    assert_eq!(n.done(), [(1, OK)]);
    // 6 are six.
    let qp = n.rc(|attr| attr.retry_cnt = 6);
    n.post(qp, 2, SEND, 10);
    for _ in 0..7 {
        assert_eq!(n.done(), []);
        n.next_deadline().unwrap();
    }
    assert_eq!(n.done(), [(2, urxe_engine::WcStatus::RetryExcErr)]);
}

#[test]
fn rxes_rnr_timer_25_is_shorter() {
    for (profile, micros) in [(RXE, 61_410), (Profile::STRICT, 61_440)] {
        let mut n = lab_with(profile);
        let qp = n.rc(|_| {});
        n.post(qp, 1, SEND, 10);
        n.arrive_rnr(qp, 100, 25);
        assert_eq!(n.next_deadline(), Some(Duration::from_micros(micros)));
        n.arrive_rnr(qp, 100, 24);
        assert_eq!(n.next_deadline(), Some(Duration::from_micros(40_960)));
    }
}

#[test]
fn rxes_timers_run_out_at_ticks() {
    let mut n = lab_with(Profile::RXE);
    let qp = n.rc(|_| {});
    // 1 ms + 4.194 ms, and 8 ms + 0.01 ms
    n.post(qp, 1, SEND, 10);
    n.next_deadline().unwrap();
    assert_eq!(n.now.as_nanos(), 8_000_000);
    n.arrive_rnr(qp, 100, 1);
    n.next_deadline().unwrap();
    assert_eq!(n.now.as_nanos(), 12_000_000);
}

#[test]
fn rxe_implies_no_nak_but_waits_for_its_timer() {
    let mut n = lab_with(RXE);
    let qp = n.rc(|_| {});
    n.post(qp, 1, READ, 2048);
    n.post(qp, 2, SEND, 10);
    n.sent();
    n.arrive_read(qp, "LAST", 101, &[0; 1024]);
    n.arrive_ack(qp, 102, 2);
    assert!(n.sent().is_empty());
    assert_eq!(n.counters().drops(Drop::AwaitingRetry), 2);
    assert_eq!(n.counters().get(Count::ImpliedNakSeqErr), 0);
    assert_eq!(n.next_deadline(), Some(TIMEOUT));
    assert_eq!(n.psns(), [100, 102]);
}

#[test]
fn rxe_heeds_no_credit_limit() {
    let mut n = lab_with(RXE);
    let qp = n.qp(QpKind::Rc, |_, _| {});
    n.post(qp, 1, SEND, 10);
    n.arrive_credits(qp, 100, 1, 0);
    for wr_id in 2..6 {
        n.post(qp, wr_id, SEND, 10);
    }
    assert_eq!(n.psns(), [100, 101, 102, 103, 104]);
}

#[test]
fn rxe_speaks_only_the_default_p_key() {
    let with = |profile| {
        let mut n = Node::new(US, PEER, |c| {
            c.profile = profile;
            c.pkeys = vec![PKey(0x8123)];
        });
        let qp = n.rc(|_| {});
        n.post(qp, 1, SEND, 10);
        n.sink.sent[0].roce().bth.pkey
    };
    assert_eq!(with(RXE), PKey::DEFAULT);
    assert_eq!(with(Profile::STRICT), PKey(0x8123));
}

#[test]
fn rxe_sends_mig_req_0_and_hardware_1() {
    for (profile, set) in [(RXE, false), (Profile::STRICT, true), (Profile::CONNECTX, true)] {
        let mut n = lab_with(profile);
        let qp = n.rc(|_| {});
        n.post(qp, 1, SEND, 10);
        n.recv(qp, 5, 0, 10);
        n.arrive_request(qp, "RC_SEND_ONLY", 500, Ext::NONE, &[1; 4]);
        assert_eq!(n.sink.sent.len(), 2);
        assert!(n.sink.sent.iter().all(|s| s.roce().bth.mig_req == set), "{}", profile.name);
    }
}

#[test]
fn rxe_sends_ipv6_flow_label_0() {
    let (us, peer): (IpAddr, IpAddr) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
    for (profile, label) in [(RXE, 0), (Profile::STRICT, 0x12345)] {
        let mut n = Node::new(us, peer, |c| c.profile = profile);
        let qp = n.rc(|attr| attr.ah.flow_label = 0x12345);
        n.post(qp, 1, SEND, 10);
        assert_eq!(n.sink.sent[0].path.flow_label, label);
    }
}

#[test]
fn rxes_datagrams_have_a_source_port_of_their_own_qpn() {
    // Linux drivers/infiniband/sw/rxe/rxe_qp.c: hash_32(qpn, 14) above 0xc000. These pairs are
    // those of rxe's own packets.
    let port = |qpn: u32| 0xc000 + u16::try_from(qpn.wrapping_mul(0x61c8_8647) >> 18).unwrap();
    for (qpn, seen) in [(1, 55410), (18, 63494), (28, 60539), (32, 52804)] {
        assert_eq!(port(qpn), seen);
    }
    let sent_from = |profile| {
        let mut n = lab_with(profile);
        let attr = urxe_engine::AhAttr { flow_label: 0x12345, ..n.attr().ah };
        let ah = n.nic.create_ah(n.pd, &attr).unwrap();
        let dest = Some(UdDest { ah, qpn: PEER_QPN, qkey: Q_KEY });
        [(); 2].map(|()| {
            let ud = n.qp(QpKind::Ud, |_, _| {});
            n.send(ud, &SendWr { dest, ..SendWr::new(1, SEND, &[]) });
            n.sink.sent.pop().unwrap().path.src_port
        })
    };
    // The port is the QP's; else it is the address handle's.
    assert_eq!(sent_from(RXE), [port(2), port(3)]);
    assert_eq!(sent_from(Profile::STRICT), [0xe341; 2]);
}

#[test]
fn the_source_port_of_a_connection_comes_from_both_qpns_or_from_the_flow_label() {
    // Linux include/rdma/ib_verbs.h; rxe as well: QPNs 32 and 36 were seen to use 50304.
    for profile in Profile::ALL {
        let mut n = lab_with(profile);
        while n.nic.create_qp(&n.init(QpKind::Rc)).unwrap().value() != 31 {}
        let qp = n.rc(|attr| attr.dest_qp = Qpn::new(36));
        assert_eq!(qp.value(), 32);
        n.post(qp, 1, SEND, 10);
        assert_eq!(n.sink.sent[0].path.src_port, 50304);
        let qp = n.rc(|attr| attr.ah.flow_label = 0x12345);
        n.post(qp, 2, SEND, 10);
        // (0x12345 & 0x3fff) ^ (0x12345 >> 14) | 0xc000
        assert_eq!(n.sink.sent[1].path.src_port, 0xe341);
    }
}

#[test]
fn rxe_asks_for_an_ack_every_64_packets() {
    let mut n = Node::new(US, PEER, |c| {
        c.profile = RXE;
        c.max_window = 1024;
    });
    let qp = n.rc(|attr| attr.path_mtu = Mtu::B256);
    // Open the window wide first.
    n.post(qp, 1, SEND, 64 * 256);
    n.arrive_ack(qp, 163, 1);
    n.post(qp, 2, SEND, 128 * 256);
    n.arrive_ack(qp, 291, 2);
    n.sink.sent.clear();
    n.post(qp, 3, SEND, 200 * 256);
    let asked = n.sink.sent.iter().map(|s| s.roce().bth).filter(|b| b.ack_req);
    let asked: Vec<_> = asked.map(|b| b.psn.value()).collect();
    assert_eq!(asked, [292 + 63, 292 + 127, 292 + 191, 292 + 199]);
}

#[test]
fn a_connectx_sends_a_cnp_with_its_nak() {
    for (profile, cnps) in [(Profile::CONNECTX, 1), (Profile::STRICT, 0), (RXE, 0)] {
        let mut n = lab_with(profile);
        let qp = n.rc(|_| {});
        n.arrive_request(qp, "RC_RDMA_WRITE_MIDDLE", 505, Ext::NONE, &[0; 1024]);
        let (cnp, nak): (Vec<_>, Vec<_>) =
            n.sink.sent.iter().partition(|s| s.roce().bth.opcode == urxe_wire::Opcode::CNP);
        assert_eq!((cnp.len(), nak.len()), (cnps, 1), "{}", profile.name);
        assert_eq!(n.counters().get(Count::CnpSent), cnps as u64);
        // No packet was marked.
        assert_eq!(n.counters().get(Count::EcnMarked), 0);
        if let Some(cnp) = cnp.first() {
            let bth = cnp.roce().bth;
            assert_eq!((bth.dest_qp, bth.becn, bth.psn.value()), (PEER_QPN, true, 0));
            assert!(!bth.ack_req);
        }
    }
}

#[test]
fn rxe_ignores_cnps_and_marks() {
    let mut n = Node::new(US, PEER, |c| {
        c.profile = RXE;
        c.dcqcn = Some(urxe_engine::dcqcn::Params::paper().checked().unwrap());
    });
    let qp = n.rc(|_| {});
    n.arrive_cnp(qp);
    assert_eq!(n.counters().drops(Drop::CnpIgnored), 1);
    n.arrive_marked(qp, 500, 3);
    assert_eq!(n.counters().get(Count::EcnMarked), 1);
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=500 ack msn=1"]);
}
