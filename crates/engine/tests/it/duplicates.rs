//! Requests that come again: nothing is done twice (IBA 9.7.5.1).

use urxe_engine::{Count, Drop, QpState, WcStatus};
use urxe_memory::Access;
use urxe_wire::{Ext, FlushLevel, FlushScope};

use crate::ask::{atomic, bytes_at, flush, reth};
use crate::lab::{BASE, all_rights, lab};

/// IBA C9-105: the latest ACK again; nothing is executed.
#[test]
fn a_send_that_comes_again_is_acknowledged_and_not_done() {
    let mut n = lab();
    let qp = n.rc256();
    n.recv(qp, 7, 0, 64);
    n.recv(qp, 8, 64, 64);
    n.arrive_request(qp, "RC_SEND_ONLY", 500, Ext::NONE, b"once");
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 501, reth(0, 0, 0), &[]);
    n.sent();
    n.arrive_request(qp, "RC_SEND_ONLY", 500, Ext::NONE, b"more");
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=501 ack credits=1 msn=2"]);
    assert_eq!(n.bytes(0, 4), b"once");
    assert_eq!(n.done(), [(7, WcStatus::Success)]);
    assert_eq!(n.count(Count::DuplicateRequest), 1);
}

#[test]
fn a_write_that_comes_again_is_acknowledged_and_not_done() {
    let mut n = lab();
    let qp = n.rc256();
    n.arrive_request(qp, "RC_RDMA_WRITE_FIRST", 500, reth(BASE, n.mr.rkey, 257), &[1; 256]);
    // In the middle of a message too the latest is acknowledged, asked for or not.
    n.arrive_quiet(qp, "RC_RDMA_WRITE_FIRST", 500, reth(BASE, n.mr.rkey, 257), &[2; 256]);
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=500 ack credits=0 msn=0"]);
    n.arrive_request(qp, "RC_RDMA_WRITE_LAST", 501, Ext::NONE, &[1]);
    n.arrive_request(qp, "RC_RDMA_WRITE_LAST", 501, Ext::NONE, &[3]);
    let ack = "RC_ACKNOWLEDGE psn=501 ack credits=0 msn=1";
    assert_eq!(n.sent(), [ack, ack]);
    assert_eq!(n.bytes(0, 257), [1; 257]);
    assert_eq!(n.count(Count::RxWriteRequests), 1);
}

#[test]
fn a_read_that_comes_again_reads_memory_again() {
    let mut n = lab();
    n.fill();
    let qp = n.rc256();
    let ask = reth(BASE + 8, n.mr.rkey, 600);
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, ask, &[]);
    let first = n.sent();
    n.buffer.write(8, &[0xee; 600]).unwrap();
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, ask, &[]);
    assert!(n.sink.sent.iter().all(|p| p.roce().payload.iter().all(|&b| b == 0xee)));
    assert_eq!(n.sent(), first);
    let msn = n.nic.query_qp(qp).unwrap().msn;
    assert_eq!((msn, n.count(Count::RxReadRequests)), (1, 1), "it is counted once");
}

/// The tail of what was asked first, from the packet that was lost on.
#[test]
fn a_read_may_come_again_for_its_tail() {
    let mut n = lab();
    n.fill();
    let qp = n.rc256();
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE, n.mr.rkey, 600), &[]);
    n.sent();
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 501, reth(BASE + 256, n.mr.rkey, 344), &[]);
    let data: Vec<u8> = n.sink.sent.iter().flat_map(|p| p.roce().payload.to_vec()).collect();
    assert_eq!(data, bytes_at(256, 344));
    let lines = [
        "RC_RDMA_READ_RESPONSE_FIRST psn=501 ack credits=0 msn=1 len=256",
        "RC_RDMA_READ_RESPONSE_LAST psn=502 ack credits=0 msn=1 len=88",
    ];
    assert_eq!(n.sent(), lines);
    // The next new request still has PSN 503.
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 503, reth(0, 0, 0), &[]);
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=503 ack credits=0 msn=2"]);
}

/// Of several READs each is known by its own PSNs.
#[test]
fn the_later_of_two_reads_may_come_again() {
    let mut n = lab();
    n.fill();
    let qp = n.rc256();
    let (one, two) = (reth(BASE, n.mr.rkey, 300), reth(BASE + 1024, n.mr.rkey, 300));
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, one, &[]);
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 502, two, &[]);
    n.sent();
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 502, two, &[]);
    let data: Vec<u8> = n.sink.sent.iter().flat_map(|p| p.roce().payload.to_vec()).collect();
    assert_eq!(data, bytes_at(1024, 300));
    assert_eq!(n.sent().len(), 2);
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, one, &[]);
    assert_eq!((n.sent().len(), n.dropped(Drop::BadDuplicate)), (2, 0));
}

#[test]
fn a_read_that_asks_again_for_something_else_is_dropped() {
    let mut n = lab();
    let key = n.mr.rkey;
    let qp = n.rc256();
    let other = n.region(all_rights()).rkey;
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE, key, 600), &[]);
    n.sent();
    for (psn, va, rkey, len) in [
        (500, BASE, key, 601),
        (500, BASE + 1, key, 599),
        (500, BASE, other, 600),
        (501, BASE, key, 344),
        (501, BASE + 256, key, 345),
        (502, BASE + 256, key, 88),
    ] {
        n.arrive_request(qp, "RC_RDMA_READ_REQUEST", psn, reth(va, rkey, len), &[]);
        assert!(n.sent().is_empty(), "{psn} {va:#x} {rkey:#x} {len}");
    }
    assert_eq!((n.dropped(Drop::BadDuplicate), n.state(qp)), (6, QpState::Rts));
}

#[test]
fn a_read_that_comes_again_has_its_rights_checked_again() {
    let mut n = lab();
    let qp = n.rc256();
    let region = n.region(Access::REMOTE_READ);
    let ask = reth(BASE, region.rkey, 8);
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, ask, &[]);
    assert_eq!(n.sent().len(), 1);
    n.nic.memory().dereg_mr(region.id).unwrap();
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, ask, &[]);
    assert!(n.sent().is_empty());
    assert_eq!(n.dropped(Drop::BadDuplicate), 1);
}

/// The peer may have had the first answer and given the key up: the QP goes on.
#[test]
fn a_read_that_comes_again_and_loses_its_memory_amid_the_answer_is_broken_off() {
    let mut n = lab();
    let qp = n.rc256();
    let region = n.region(Access::REMOTE_READ);
    let ask = reth(BASE, region.rkey, 600);
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, ask, &[]);
    assert_eq!(n.sent().len(), 3);
    n.sink.full = true;
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, ask, &[]);
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 503, reth(0, 0, 0), &[]);
    n.nic.memory().dereg_mr(region.id).unwrap();
    n.sink.full = false;
    n.nic.pump(n.now, &mut n.sink);
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=503 ack credits=0 msn=2"]);
    assert_eq!(n.state(qp), QpState::Rts);
    assert_eq!(n.dropped(Drop::BadDuplicate), 1);
}

#[test]
fn an_atomic_that_comes_again_is_answered_from_what_was_saved() {
    let mut n = lab();
    let qp = n.rc256();
    let add = atomic(BASE, n.mr.rkey, 5, 0);
    n.buffer.write(0, &100u64.to_ne_bytes()).unwrap();
    n.arrive_request(qp, "RC_FETCH_ADD", 500, add, &[]);
    n.arrive_request(qp, "RC_COMPARE_SWAP", 501, atomic(BASE, n.mr.rkey, 9, 105), &[]);
    n.arrive_request(qp, "RC_FETCH_ADD", 500, add, &[]);
    n.arrive_request(qp, "RC_COMPARE_SWAP", 501, atomic(BASE, n.mr.rkey, 9, 105), &[]);
    let lines = [
        "RC_ATOMIC_ACKNOWLEDGE psn=500 ack credits=0 msn=1 original=100",
        "RC_ATOMIC_ACKNOWLEDGE psn=501 ack credits=0 msn=2 original=105",
        "RC_ATOMIC_ACKNOWLEDGE psn=500 ack credits=0 msn=2 original=100",
        "RC_ATOMIC_ACKNOWLEDGE psn=501 ack credits=0 msn=2 original=105",
    ];
    assert_eq!(n.sent(), lines);
    assert_eq!(n.bytes(0, 8), 9u64.to_ne_bytes());
    assert_eq!(n.count(Count::RxAtomicRequests), 2);
}

#[test]
fn flush_and_atomic_write_that_come_again_are_answered_and_not_done() {
    let mut n = lab();
    let qp = n.rc256();
    let write = reth(BASE, n.mr.rkey, 8);
    let ask = flush(FlushScope::Range, FlushLevel::GLOBAL, BASE, n.mr.rkey, 8);
    n.arrive_request(qp, "RC_ATOMIC_WRITE", 500, write, &[1; 8]);
    n.arrive_request(qp, "RC_FLUSH", 501, ask, &[]);
    n.arrive_request(qp, "RC_ATOMIC_WRITE", 500, write, &[2; 8]);
    n.arrive_request(qp, "RC_FLUSH", 501, ask, &[]);
    let lines = [
        "RC_RDMA_READ_RESPONSE_ONLY psn=500 ack credits=0 msn=1",
        "RC_RDMA_READ_RESPONSE_ONLY psn=501 ack credits=0 msn=2",
        "RC_RDMA_READ_RESPONSE_ONLY psn=500 ack credits=0 msn=2",
        "RC_RDMA_READ_RESPONSE_ONLY psn=501 ack credits=0 msn=2",
    ];
    assert_eq!(n.sent(), lines);
    assert_eq!(n.bytes(0, 8), [1; 8]);
}

/// As many answers are kept as the peer may have outstanding; an older one is gone for good.
#[test]
fn an_answer_that_is_not_kept_any_more_is_dropped() {
    let mut n = lab();
    let qp = n.rc256_with(|_, attr| attr.max_dest_rd_atomic = 2);
    let key = n.mr.rkey;
    n.arrive_request(qp, "RC_FETCH_ADD", 500, atomic(BASE, key, 1, 0), &[]);
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 501, reth(BASE, key, 8), &[]);
    n.arrive_request(qp, "RC_FETCH_ADD", 502, atomic(BASE, key, 1, 0), &[]);
    n.sent();
    n.arrive_request(qp, "RC_FETCH_ADD", 500, atomic(BASE, key, 1, 0), &[]);
    assert!(n.sent().is_empty());
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 501, reth(BASE, key, 8), &[]);
    n.arrive_request(qp, "RC_FETCH_ADD", 502, atomic(BASE, key, 1, 0), &[]);
    assert_eq!(n.sent().len(), 2);
    n.arrive_request(qp, "RC_ATOMIC_WRITE", 503, reth(BASE + 8, key, 8), &[3; 8]);
    n.sent();
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 501, reth(BASE, key, 8), &[]);
    assert!(n.sent().is_empty());
    assert_eq!(n.dropped(Drop::StaleDuplicate), 2);
    assert_eq!(n.bytes(0, 8), 2u64.to_ne_bytes());
}

/// An answer of another kind is no answer.
#[test]
fn a_psn_that_comes_again_as_another_operation_is_dropped() {
    let mut n = lab();
    let qp = n.rc256();
    let key = n.mr.rkey;
    n.arrive_request(qp, "RC_FETCH_ADD", 500, atomic(BASE, key, 1, 0), &[]);
    n.arrive_request(qp, "RC_ATOMIC_WRITE", 501, reth(BASE, key, 8), &[1; 8]);
    n.sent();
    n.arrive_request(qp, "RC_ATOMIC_WRITE", 500, reth(BASE, key, 8), &[1; 8]);
    n.arrive_request(qp, "RC_FETCH_ADD", 501, atomic(BASE, key, 1, 0), &[]);
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE, key, 8), &[]);
    assert!(n.sent().is_empty());
    assert_eq!(n.dropped(Drop::StaleDuplicate), 3);
}
