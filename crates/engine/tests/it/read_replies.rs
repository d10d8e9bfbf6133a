//! READ responses: how they are cut, numbered, ordered, and broken off.

use urxe_engine::{AsyncEvent, Count, QpState};
use urxe_memory::{Access, Rereg};
use urxe_wire::{Ext, FlushLevel, FlushScope};

use crate::ask::{atomic, bytes_at, flush, reth};
use crate::lab::{BASE, lab};

/// ceil(length / MTU) PSNs, at least one; AETH but in the middle; all full but the last.
#[test]
fn a_response_is_cut_at_the_path_mtu() {
    let lines = |len: u32| -> Vec<String> {
        let mut n = lab();
        n.fill();
        let qp = n.rc256();
        n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE + 3, n.mr.rkey, len), &[]);
        let data: Vec<u8> = n.sink.sent.iter().flat_map(|p| p.roce().payload.to_vec()).collect();
        assert_eq!(data, bytes_at(3, len as usize), "{len}");
        // The next request's PSN is behind the last response's.
        let next = 500 + len.div_ceil(256).max(1);
        let lines = n.sent();
        n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", next, reth(0, 0, 0), &[]);
        assert_eq!(n.sent(), [format!("RC_ACKNOWLEDGE psn={next} ack credits=0 msn=2")]);
        lines
    };
    let only = |len| format!("RC_RDMA_READ_RESPONSE_ONLY psn=500 ack credits=0 msn=1 len={len}");
    assert_eq!(lines(0), ["RC_RDMA_READ_RESPONSE_ONLY psn=500 ack credits=0 msn=1"]);
    assert_eq!(lines(1), [only(1)]);
    assert_eq!(lines(256), [only(256)]);
    let first = "RC_RDMA_READ_RESPONSE_FIRST psn=500 ack credits=0 msn=1 len=256";
    let last = "RC_RDMA_READ_RESPONSE_LAST psn=501 ack credits=0 msn=1 len=1";
    assert_eq!(lines(257), [first, last]);
    let middle = "RC_RDMA_READ_RESPONSE_MIDDLE psn=501 len=256";
    let last = "RC_RDMA_READ_RESPONSE_LAST psn=502 ack credits=0 msn=1 len=256";
    assert_eq!(lines(768), [first, middle, last]);
}

#[test]
fn response_psns_go_round() {
    let mut n = lab();
    let qp = n.rc256_with(|_, attr| attr.rq_psn = urxe_wire::Psn::MAX);
    let ask = reth(BASE, n.mr.rkey, 300);
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 0xff_ffff, ask, &[]);
    let lines = [
        "RC_RDMA_READ_RESPONSE_FIRST psn=16777215 ack credits=0 msn=1 len=256",
        "RC_RDMA_READ_RESPONSE_LAST psn=0 ack credits=0 msn=1 len=44",
    ];
    assert_eq!(n.sent(), lines);
    // The tail, from behind the end of PSNs.
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 0, reth(BASE + 256, n.mr.rkey, 44), &[]);
    assert_eq!(n.sent(), ["RC_RDMA_READ_RESPONSE_ONLY psn=0 ack credits=0 msn=1 len=44"]);
}

#[test]
fn a_response_is_padded_to_words() {
    let mut n = lab();
    let qp = n.rc256();
    for (psn, len) in (500..).zip([1, 2, 3, 4, 5]) {
        n.arrive_request(qp, "RC_RDMA_READ_REQUEST", psn, reth(BASE, n.mr.rkey, len), &[]);
    }
    let pads: Vec<u8> = n.sink.sent.iter().map(|p| p.roce().bth.pad).collect();
    assert_eq!(pads, [3, 2, 1, 0, 3]);
}

/// Answers go out in the order of requests: an ACK never overtakes a READ's response. MSN rises
/// when the READ is accepted (IBA C9-148), so that an ACK behind it counts both.
#[test]
fn answers_keep_the_order_of_requests() {
    let mut n = lab();
    let qp = n.rc256();
    let key = n.mr.rkey;
    n.sink.full = true;
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE, key, 300), &[]);
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 502, reth(BASE, key, 1), b"x");
    n.arrive_request(qp, "RC_FETCH_ADD", 503, atomic(BASE + 8, key, 1, 0), &[]);
    let ask = flush(FlushScope::Range, FlushLevel::GLOBAL, BASE, key, 8);
    n.arrive_request(qp, "RC_FLUSH", 504, ask, &[]);
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 505, reth(BASE, key, 1), b"y");
    n.arrive_request(qp, "RC_SEND_ONLY", 506, Ext::NONE, b"z");
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 508, reth(BASE, key, 1), b"y");
    assert!(n.sent().is_empty() && n.nic.has_work());
    n.sink.full = false;
    n.pump();
    let lines = [
        "RC_RDMA_READ_RESPONSE_FIRST psn=500 ack credits=0 msn=1 len=256",
        "RC_RDMA_READ_RESPONSE_LAST psn=501 ack credits=0 msn=1 len=44",
        "RC_ACKNOWLEDGE psn=502 ack credits=0 msn=2",
        "RC_ATOMIC_ACKNOWLEDGE psn=503 ack credits=0 msn=3 original=0",
        "RC_RDMA_READ_RESPONSE_ONLY psn=504 ack credits=0 msn=4",
        "RC_ACKNOWLEDGE psn=505 ack credits=0 msn=5",
        "RC_ACKNOWLEDGE psn=506 rnr-nak 640µs msn=5",
    ];
    assert_eq!(n.sent(), lines);
    assert!(!n.nic.has_work());
}

/// One ACK stands for all before it.
#[test]
fn acks_that_wait_become_one() {
    let mut n = lab();
    let qp = n.rc256();
    for psn in 500..510 {
        n.accept(qp, "RC_RDMA_WRITE_ONLY", psn, reth(0, 0, 0), &[]);
    }
    n.pump();
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=509 ack credits=0 msn=10"]);
}

#[test]
fn no_ack_is_sent_that_is_not_asked_for() {
    let mut n = lab();
    let qp = n.rc256();
    n.arrive_quiet(qp, "RC_RDMA_WRITE_ONLY", 500, reth(0, 0, 0), &[]);
    n.arrive_quiet(qp, "RC_RDMA_WRITE_ONLY", 501, reth(0, 0, 0), &[]);
    assert!(n.sent().is_empty());
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 502, reth(0, 0, 0), &[]);
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=502 ack credits=0 msn=3"]);
    // A response is an answer of its own.
    n.arrive_quiet(qp, "RC_RDMA_READ_REQUEST", 503, reth(0, 0, 0), &[]);
    assert_eq!(n.sent(), ["RC_RDMA_READ_RESPONSE_ONLY psn=503 ack credits=0 msn=4"]);
}

/// A response that filled the sink goes on where it stopped, and reads memory then.
#[test]
fn a_response_goes_on_when_the_sink_has_room() {
    let mut n = lab();
    let qp = n.rc256();
    let len = 256 * 100;
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE, n.mr.rkey, len), &[]);
    assert_eq!(n.sink.sent.len(), 100, "quantum after quantum");
    n.sent();
    n.sink.room = Some(40);
    let next = 600;
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", next, reth(BASE, n.mr.rkey, len), &[]);
    assert_eq!(n.sent().len(), 40);
    assert!(n.nic.has_work());
    n.buffer.write(256 * 99, &[0xaa; 256]).unwrap();
    n.sink.room = Some(60);
    n.pump();
    let last = n.sink.sent.last().unwrap();
    assert_eq!(last.roce().payload, [0xaa; 256]);
    let lines = n.sent();
    assert_eq!(lines.len(), 60);
    assert_eq!(lines[0], "RC_RDMA_READ_RESPONSE_MIDDLE psn=640 len=256");
}

/// The memory of a READ is gone while its response is sent: NAK, error, silence.
#[test]
fn deregistering_breaks_a_response_off() {
    for rereg in [false, true] {
        let mut n = lab();
        let qp = n.rc256();
        let region = n.region(Access::REMOTE_READ);
        n.sink.room = Some(2);
        n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE, region.rkey, 1024), &[]);
        n.accept(qp, "RC_RDMA_WRITE_ONLY", 504, reth(0, 0, 0), &[]);
        assert_eq!(n.sent().len(), 2);
        let memory = n.nic.memory();
        if rereg {
            let none = Rereg { access: Some(Access::LOCAL_WRITE), ..Rereg::default() };
            memory.rereg_mr(region.id, none).unwrap();
        } else {
            memory.dereg_mr(region.id).unwrap();
        }
        n.sink.room = None;
        n.pump();
        let got = n.outcome(qp);
        assert_eq!(got.sent, ["RC_ACKNOWLEDGE psn=502 nak RemoteAccess msn=2"]);
        assert_eq!(got.state, QpState::Err);
        assert_eq!(got.events, [AsyncEvent::QpAccessErr(qp)]);
        assert_eq!(n.count(Count::NakErrorSent), 1);
    }
}

/// A READ asked for again while its response waits is answered once, from the new start on.
#[test]
fn a_response_that_waits_is_overtaken_by_the_same_read() {
    let mut n = lab();
    let qp = n.rc256();
    let ask = reth(BASE, n.mr.rkey, 600);
    n.sink.room = Some(1);
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, ask, &[]);
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, ask, &[]);
    n.sink.room = None;
    n.pump();
    let lines = [
        "RC_RDMA_READ_RESPONSE_FIRST psn=500 ack credits=0 msn=1 len=256",
        "RC_RDMA_READ_RESPONSE_FIRST psn=500 ack credits=0 msn=1 len=256",
        "RC_RDMA_READ_RESPONSE_MIDDLE psn=501 len=256",
        "RC_RDMA_READ_RESPONSE_LAST psn=502 ack credits=0 msn=1 len=88",
    ];
    assert_eq!(n.sent(), lines);
}

/// Two READs of the same bytes are two READs.
#[test]
fn another_read_of_the_same_bytes_is_not_overtaken() {
    let mut n = lab();
    let qp = n.rc256();
    let ask = reth(BASE, n.mr.rkey, 300);
    n.accept(qp, "RC_RDMA_READ_REQUEST", 500, ask, &[]);
    n.pump();
    n.sent();
    n.accept(qp, "RC_RDMA_READ_REQUEST", 502, ask, &[]);
    n.accept(qp, "RC_RDMA_READ_REQUEST", 500, ask, &[]);
    n.pump();
    let psns: Vec<u32> = n.sink.sent.iter().map(|p| p.roce().bth.psn.value()).collect();
    assert_eq!(psns, [502, 503, 500, 501]);
}

/// Duplicates too are owed no more than `max_dest_rd_atomic` answers at a time.
#[test]
fn duplicates_get_no_more_answers_than_first_requests() {
    let mut n = lab();
    let qp = n.rc256_with(|_, attr| attr.max_dest_rd_atomic = 2);
    let key = n.mr.rkey;
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE, key, 8), &[]);
    n.arrive_request(qp, "RC_FETCH_ADD", 501, atomic(BASE, key, 1, 0), &[]);
    n.sent();
    for _ in 0..3 {
        n.accept(qp, "RC_FETCH_ADD", 501, atomic(BASE, key, 1, 0), &[]);
        n.accept(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE, key, 8), &[]);
    }
    n.pump();
    assert_eq!(n.sent().len(), 2, "each once");
    assert_eq!(n.count(Count::DuplicateRequest), 6);
}

/// A duplicate's answer takes no slot of a new request's: the peer may have had the first answer.
#[test]
fn a_duplicate_does_not_count_against_new_requests() {
    let mut n = lab();
    let qp = n.rc256_with(|_, attr| attr.max_dest_rd_atomic = 2);
    let add = atomic(BASE, n.mr.rkey, 1, 0);
    n.arrive_request(qp, "RC_FETCH_ADD", 500, add, &[]);
    n.sent();
    n.accept(qp, "RC_FETCH_ADD", 501, add, &[]);
    n.accept(qp, "RC_FETCH_ADD", 500, add, &[]);
    n.accept(qp, "RC_FETCH_ADD", 502, add, &[]);
    n.pump();
    let psns: Vec<u32> = n.sink.sent.iter().map(|p| p.roce().bth.psn.value()).collect();
    assert_eq!((psns, n.state(qp)), (vec![501, 500, 502], QpState::Rts));
}
