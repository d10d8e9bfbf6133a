//! Where SENDs go: receive WQEs that fit and such that do not; keys taken away.

use urxe_engine::{
    AsyncEvent, Count, QpId, QpState, RecvWr, SendOp, SendWr, WcFlags, WcOpcode, WcStatus,
};
use urxe_memory::{Access, Backing, MrInfo, MrOptions, MwType, Sge};
use urxe_wire::Ext;

use crate::ask::{imm, inv, reth};
use crate::lab::{BASE, Node, all_rights, lab};

const FLUSHED: WcStatus = WcStatus::WrFlushErr;

#[test]
fn a_message_is_scattered_over_its_receive() {
    let mut n = lab();
    let qp = n.rc256();
    let sges = [n.sge(1000, 100), n.sge(0, 0), n.sge(0, 300), n.sge(2000, 200)];
    n.nic.post_recv(n.now, qp, &RecvWr { wr_id: 9, sges: &sges }).unwrap();
    let data: Vec<u8> = (0..=255).chain(0..=200).collect();
    n.arrive_request(qp, "RC_SEND_FIRST", 500, Ext::NONE, &data[..256]);
    assert!(n.done().is_empty());
    n.arrive_request(qp, "RC_SEND_LAST_WITH_IMMEDIATE", 501, imm(Ext::NONE), &data[256..]);
    let got = n.completions();
    assert_eq!((got[0].wr_id, got[0].status, got[0].byte_len), (9, WcStatus::Success, 457));
    assert_eq!((got[0].flags, got[0].imm), (WcFlags::WITH_IMM, [1, 2, 3, 4]));
    assert_eq!((got[0].qpn, got[0].cause), (qp, None));
    assert_eq!((n.count(Count::RespCqeError), n.count(Count::RespCqeFlushError)), (0, 0));
    let placed = [n.bytes(1000, 100), n.bytes(0, 300), n.bytes(2000, 57)].concat();
    assert_eq!(placed, data);
    assert_eq!(n.bytes(2057, 200), [0; 200]);
}

/// A message longer than its receive WQE: invalid request to the peer, a length error here.
#[test]
fn a_send_longer_than_its_receive() {
    for (room, ends) in [(255, 500), (256, 501), (300, 501)] {
        let mut n = lab();
        let qp = n.rc256();
        n.recv(qp, 7, 0, room);
        n.recv(qp, 8, 0, 4096);
        n.arrive_quiet(qp, "RC_SEND_FIRST", 500, Ext::NONE, &[1; 256]);
        n.arrive_quiet(qp, "RC_SEND_LAST", 501, Ext::NONE, &[1; 45]);
        let nak = format!("RC_ACKNOWLEDGE psn={ends} nak InvalidRequest msn=0");
        let got = n.outcome(qp);
        assert_eq!((got.sent, got.state), (vec![nak], QpState::Err), "{room}");
        assert!(got.events.is_empty(), "the completion tells");
        let done = n.completions();
        assert_eq!(done[0].cause.unwrap().psn.unwrap().value(), ends);
        let told: Vec<_> = done.iter().map(|c| (c.wr_id, c.status)).collect();
        assert_eq!(told, [(7, WcStatus::LocLenErr), (8, FLUSHED)], "{room}");
        assert_eq!((n.count(Count::RespCqeError), n.count(Count::RespCqeFlushError)), (1, 1));
    }
}

/// A fault of the receiver's own memory: remote operational error to the peer.
#[test]
fn a_receive_whose_memory_is_wrong() {
    let key = |n: &Node| n.mr.lkey;
    let sges: [fn(&Node) -> Sge; 3] = [
        |n| Sge { addr: BASE, length: 64, lkey: n.mr.lkey ^ 1 },
        |n| Sge { addr: BASE + 0x1_0000 - 63, length: 64, lkey: n.mr.lkey },
        |n| Sge { addr: BASE, length: 64, lkey: n.region(Access::REMOTE_READ).lkey },
    ];
    for sge in sges {
        let mut n = lab();
        let qp = n.rc256();
        let bad = [Sge { addr: BASE, length: 8, lkey: key(&n) }, sge(&n)];
        n.nic.post_recv(n.now, qp, &RecvWr { wr_id: 7, sges: &bad }).unwrap();
        n.arrive_request(qp, "RC_SEND_ONLY", 500, Ext::NONE, &[1; 72]);
        let got = n.outcome(qp);
        assert_eq!(got.sent, ["RC_ACKNOWLEDGE psn=500 nak RemoteOperational msn=0"]);
        assert_eq!((got.state, got.events), (QpState::Err, vec![]));
        assert_eq!(n.done(), [(7, WcStatus::LocProtErr)]);
        assert_eq!(n.bytes(0, 8), [0; 8], "nothing is placed");
    }
}

/// A memory whose bytes the message does not reach is not looked at.
#[test]
fn only_memory_that_is_written_is_checked() {
    let mut n = lab();
    let qp = n.rc256();
    let sges = [n.sge(0, 8), Sge { addr: 0, length: 8, lkey: 0xdead_0000 }];
    n.nic.post_recv(n.now, qp, &RecvWr { wr_id: 7, sges: &sges }).unwrap();
    n.arrive_request(qp, "RC_SEND_ONLY", 500, Ext::NONE, &[1; 8]);
    assert_eq!(n.done(), [(7, WcStatus::Success)]);
}

#[test]
fn a_write_with_immediate_is_told_with_its_whole_length() {
    let mut n = lab();
    let qp = n.rc256();
    n.recv(qp, 7, 0, 0);
    n.arrive_quiet(qp, "RC_RDMA_WRITE_FIRST", 500, reth(BASE, n.mr.rkey, 600), &[1; 256]);
    n.arrive_quiet(qp, "RC_RDMA_WRITE_MIDDLE", 501, Ext::NONE, &[2; 256]);
    let last = "RC_RDMA_WRITE_LAST_WITH_IMMEDIATE";
    n.arrive_quiet(qp, last, 502, imm(Ext::NONE), &[3; 88]);
    let got = n.completions();
    assert_eq!((got[0].opcode, got[0].byte_len), (WcOpcode::RecvRdmaWithImm, 600));
    assert_eq!((got[0].flags, got[0].imm), (WcFlags::WITH_IMM, [1, 2, 3, 4]));
    assert_eq!(n.bytes(0, 600), [vec![1; 256], vec![2; 256], vec![3; 88]].concat());
}

/// The region of a WRITE is gone between its packets.
#[test]
fn a_write_whose_region_goes_is_refused_at_the_next_packet() {
    let mut n = lab();
    let qp = n.rc256();
    let region = n.region(all_rights());
    n.arrive_quiet(qp, "RC_RDMA_WRITE_FIRST", 500, reth(BASE, region.rkey, 300), &[1; 256]);
    n.nic.memory().dereg_mr(region.id).unwrap();
    n.arrive_quiet(qp, "RC_RDMA_WRITE_LAST", 501, Ext::NONE, &[2; 44]);
    let got = n.outcome(qp);
    assert_eq!(got.sent, ["RC_ACKNOWLEDGE psn=501 nak RemoteAccess msn=0"]);
    assert_eq!(got.events, [AsyncEvent::QpAccessErr(qp)]);
}

fn invalidatable(n: &Node) -> MrInfo {
    let backing = Backing::buffer(std::sync::Arc::clone(&n.buffer));
    let options = MrOptions { invalidatable: true };
    n.nic.memory().reg_mr_with(n.pd, backing, BASE, all_rights(), options).unwrap()
}

/// IBA 9.4.1.1: SEND with invalidate takes a key away; the completion tells which.
#[test]
fn send_with_invalidate_takes_the_key_away() {
    for split in [false, true] {
        let mut n = lab();
        let qp = n.rc256();
        let region = invalidatable(&n);
        n.recv(qp, 7, 0, 512);
        if split {
            n.arrive_quiet(qp, "RC_SEND_FIRST", 500, Ext::NONE, &[1; 256]);
            n.arrive_request(qp, "RC_SEND_LAST_WITH_INVALIDATE", 501, inv(region.rkey), b"bye");
        } else {
            n.arrive_quiet(qp, "RC_RDMA_WRITE_ONLY", 500, reth(BASE, region.rkey, 4), b"last");
            n.arrive_request(qp, "RC_SEND_ONLY_WITH_INVALIDATE", 501, inv(region.rkey), b"bye");
        }
        let got = n.completions();
        assert_eq!((got[0].status, got[0].flags), (WcStatus::Success, WcFlags::WITH_INV));
        assert_eq!(got[0].invalidated, region.rkey);
        n.sent();
        n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 502, reth(BASE, region.rkey, 4), b"dead");
        assert!(n.sent()[0].starts_with("RC_ACKNOWLEDGE psn=502 nak RemoteAccess"));
    }
}

/// A remote invalidate that fails: the QP is in error, and the peer is not told.
#[test]
fn send_with_invalidate_that_fails_is_silent() {
    let keys: [fn(&mut Node, QpId) -> u32; 5] = [
        |n, _| n.mr.rkey,
        |_, _| 0xdead_0000,
        |n, _| invalidatable(n).rkey ^ 1,
        |n, _| n.nic.memory().alloc_mw(n.pd, MwType::Type2B).unwrap().1,
        |n, _| {
            let region = invalidatable(n);
            n.nic.memory().invalidate(n.pd, 0, region.rkey, false).unwrap();
            region.rkey
        },
    ];
    for key in keys {
        let mut n = lab();
        let qp = n.rc256();
        let key = key(&mut n, qp);
        n.recv(qp, 7, 0, 512);
        n.arrive_request(qp, "RC_SEND_ONLY_WITH_INVALIDATE", 500, inv(key), b"bye");
        let got = n.outcome(qp);
        assert_eq!((got.sent, got.state), (vec![], QpState::Err));
        assert_eq!(n.done(), [(7, WcStatus::RemInvReqErr)]);
        assert_eq!(n.count(Count::NakErrorSent), 0);
    }
}

/// IBA 10.3.1: what a QP in error holds is flushed in order, the message in progress first.
#[test]
fn error_flushes_the_receive_in_progress_and_then_the_queue() {
    let mut n = lab();
    let qp = n.rc256();
    for i in 1..4 {
        n.recv(qp, i, 0, 512);
    }
    let sges = [n.sge(0, 4)];
    n.send(qp, &SendWr::new(50, SendOp::Send { imm: None }, &sges));
    n.arrive_quiet(qp, "RC_SEND_FIRST", 500, Ext::NONE, &[1; 256]);
    n.sent();
    n.arrive_quiet(qp, "RC_RDMA_READ_REQUEST", 501, reth(BASE, n.mr.rkey, 4), &[]);
    assert_eq!(n.done(), [(50, FLUSHED), (1, FLUSHED), (2, FLUSHED), (3, FLUSHED)]);
    // Packets are dropped, receives are flushed at once.
    n.sent();
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 501, reth(0, 0, 0), &[]);
    n.recv(qp, 4, 0, 4);
    assert_eq!((n.sent().len(), n.done()), (0, vec![(4, FLUSHED)]));
}
