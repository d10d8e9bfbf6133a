//! Unreliable connections: whole messages or nothing, and never an answer (IBA 9.8.2.2).

use urxe_engine::{Drop, QpId, QpState, RecvWr, WcOpcode, WcStatus};
use urxe_memory::{Access, Sge};
use urxe_wire::{Ext, Mtu};

use crate::ask::{imm, reth};
use crate::lab::{BASE, Node, lab};

const OK: WcStatus = WcStatus::Success;

fn uc(n: &mut Node) -> QpId {
    n.qp(urxe_engine::QpKind::Uc, |_, attr| attr.path_mtu = Mtu::B256)
}

#[test]
fn nothing_is_ever_answered() {
    let mut n = lab();
    let qp = uc(&mut n);
    n.recv(qp, 1, 0, 64);
    n.arrive_request(qp, "UC_SEND_ONLY", 500, Ext::NONE, b"hello");
    n.arrive_request(qp, "UC_SEND_ONLY", 501, Ext::NONE, b"no receive");
    n.arrive_request(qp, "UC_SEND_ONLY", 505, Ext::NONE, b"gap");
    n.arrive_request(qp, "UC_RDMA_WRITE_ONLY", 506, reth(BASE, 0xdead, 1), b"x");
    n.arrive_request(qp, "UC_SEND_MIDDLE", 507, Ext::NONE, b"x");
    assert!(n.sink.sent.is_empty() && !n.nic.has_work());
    assert_eq!((n.done(), n.state(qp)), (vec![(1, OK)], QpState::Rts));
    assert_eq!(n.bytes(0, 5), b"hello");
}

/// A gap drops the rest of the message, up to the next first or only packet.
#[test]
fn a_gap_drops_the_rest_of_the_message() {
    let mut n = lab();
    let qp = uc(&mut n);
    n.recv(qp, 1, 0, 1024);
    n.arrive_request(qp, "UC_SEND_FIRST", 500, Ext::NONE, &[1; 256]);
    n.arrive_request(qp, "UC_SEND_MIDDLE", 502, Ext::NONE, &[2; 256]);
    // In order again, but of the broken message.
    n.arrive_request(qp, "UC_SEND_MIDDLE", 503, Ext::NONE, &[3; 256]);
    n.arrive_request(qp, "UC_SEND_LAST", 504, Ext::NONE, &[4; 8]);
    assert_eq!((n.done(), n.dropped(Drop::BrokenMessage)), (vec![], 3));
    // The receive WQE of the broken message serves the next.
    n.arrive_request(qp, "UC_SEND_FIRST", 505, Ext::NONE, &[5; 256]);
    n.arrive_request(qp, "UC_SEND_LAST", 506, Ext::NONE, &[6; 8]);
    let got = n.completions();
    assert_eq!((got.len(), got[0].wr_id, got[0].byte_len), (1, 1, 264));
    assert_eq!(n.bytes(0, 264), [vec![5; 256], vec![6; 8]].concat());
}

#[test]
fn a_message_begins_anywhere() {
    let mut n = lab();
    let qp = uc(&mut n);
    for (wr_id, psn) in [(1, 0x12_3456), (2, 3), (3, 0xff_ffff), (4, 0)] {
        n.recv(qp, wr_id, 0, 64);
        n.arrive_request(qp, "UC_SEND_ONLY", psn, Ext::NONE, b"x");
        assert_eq!(n.done(), [(wr_id, OK)]);
    }
    // One cut off by the next begins anew in the same receive.
    n.recv(qp, 5, 0, 1024);
    n.arrive_request(qp, "UC_SEND_FIRST", 1, Ext::NONE, &[1; 256]);
    n.arrive_request(qp, "UC_SEND_ONLY", 9, Ext::NONE, b"y");
    let got = n.completions();
    assert_eq!((got[0].wr_id, got[0].byte_len, n.bytes(0, 2)), (5, 1, vec![b'y', 1]));
    n.arrive_request(qp, "UC_SEND_LAST", 10, Ext::NONE, b"z");
    assert_eq!(n.dropped(Drop::BrokenMessage), 1);
}

#[test]
fn a_write_lost_in_the_middle_is_not_told_of() {
    let mut n = lab();
    let qp = uc(&mut n);
    n.recv(qp, 1, 0, 0);
    let key = n.mr.rkey;
    n.arrive_request(qp, "UC_RDMA_WRITE_FIRST", 500, reth(BASE, key, 600), &[1; 256]);
    let last = "UC_RDMA_WRITE_LAST_WITH_IMMEDIATE";
    n.arrive_request(qp, last, 502, imm(Ext::NONE), &[3; 88]);
    assert!(n.done().is_empty());
    n.arrive_request(qp, "UC_RDMA_WRITE_FIRST", 503, reth(BASE, key, 300), &[1; 256]);
    n.arrive_request(qp, last, 504, imm(Ext::NONE), &[3; 44]);
    let got = n.completions();
    assert_eq!((got[0].wr_id, got[0].opcode, got[0].byte_len), (1, WcOpcode::RecvRdmaWithImm, 300));
}

/// What a reliable QP would refuse is dropped, each for its reason, and the QP goes on.
#[test]
fn faults_drop_the_message_and_are_counted() {
    let mut n = lab();
    let qp = uc(&mut n);
    let key = n.mr.rkey;
    n.arrive_request(qp, "UC_SEND_FIRST", 500, Ext::NONE, &[1; 256]);
    assert_eq!(n.dropped(Drop::NoReceive), 1);
    n.recv(qp, 1, 0, 64);
    // The rest of a message without a receive WQE does not get one later.
    n.arrive_request(qp, "UC_SEND_LAST", 501, Ext::NONE, b"x");
    assert_eq!(n.dropped(Drop::BrokenMessage), 1);
    n.arrive_request(qp, "UC_SEND_ONLY", 502, Ext::NONE, &[1; 65]);
    assert_eq!(n.dropped(Drop::TooLong), 1);
    n.arrive_request(qp, "UC_SEND_ONLY", 503, Ext::NONE, &[1; 257]);
    n.arrive_request(qp, "UC_RDMA_WRITE_ONLY", 504, reth(BASE, key ^ 1, 4), b"1234");
    n.arrive_request(qp, "UC_RDMA_WRITE_ONLY", 505, reth(BASE, key, 5), b"1234");
    assert_eq!(n.dropped(Drop::NotAllowed), 3);
    n.arrive_request(qp, "UC_SEND_ONLY", 506, Ext::NONE, b"good");
    assert_eq!((n.done(), n.state(qp)), (vec![(1, OK)], QpState::Rts));
    assert_eq!(n.bytes(0, 4), b"good");
    assert!(n.async_events().is_empty());
}

#[test]
fn a_write_needs_the_qps_right() {
    let mut n = lab();
    let qp = n.qp(urxe_engine::QpKind::Uc, |_, attr| attr.access = Access::empty());
    n.arrive_request(qp, "UC_RDMA_WRITE_ONLY", 500, reth(BASE, n.mr.rkey, 4), b"1234");
    assert_eq!((n.dropped(Drop::NotAllowed), n.bytes(0, 4)), (1, vec![0; 4]));
}

/// A fault of the receiver's own memory takes the QP to error; nobody else is told.
#[test]
fn a_receive_whose_memory_is_wrong() {
    let mut n = lab();
    let qp = uc(&mut n);
    let sges = [Sge { addr: BASE, length: 64, lkey: 0xdead_0000 }];
    n.nic.post_recv(n.now, qp, &RecvWr { wr_id: 1, sges: &sges }).unwrap();
    n.recv(qp, 2, 0, 64);
    n.arrive_request(qp, "UC_SEND_ONLY", 500, Ext::NONE, b"x");
    assert_eq!(n.done(), [(1, WcStatus::LocProtErr), (2, WcStatus::WrFlushErr)]);
    assert_eq!((n.state(qp), n.sent().len()), (QpState::Err, 0));
    assert_eq!(n.count(urxe_engine::Count::NakErrorSent), 0);
}

/// An unfinished message's receive WQE is flushed like the rest.
#[test]
fn the_receive_of_a_broken_message_is_flushed_in_error() {
    let mut n = lab();
    let qp = uc(&mut n);
    n.recv(qp, 1, 0, 1024);
    n.recv(qp, 2, 0, 1024);
    n.arrive_request(qp, "UC_SEND_FIRST", 500, Ext::NONE, &[1; 256]);
    n.arrive_request(qp, "UC_SEND_LAST", 505, Ext::NONE, &[1; 2]);
    n.to_error(qp);
    assert_eq!(n.done(), [(1, WcStatus::WrFlushErr), (2, WcStatus::WrFlushErr)]);
}
