//! Acknowledgements: what they complete, and which mean nothing.

use urxe_engine::{Count, Drop, SendFlags, WcOpcode};
use urxe_wire::Syndrome;

use crate::lab::{Node, lab};
use crate::script::{ADD, OK, READ, SEND, WRITE};

/// Drops of acknowledgements that mean nothing now.
fn ignored(n: &Node, why: Drop) -> u64 {
    n.counters().drops(why)
}

#[test]
fn one_ack_completes_all_requests_up_to_its_psn_in_order() {
    // IBA 9.7.5.1.2: ACKs are coalesced.
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 3000);
    n.post_with(qp, 2, SEND, 10, SendFlags::empty());
    n.post(qp, 3, WRITE, 0);
    n.post(qp, 4, SEND, 1);
    assert_eq!(n.psns(), [100, 101, 102, 103, 104, 105]);
    // 2 is not signaled; 4 is not acknowledged.
    n.arrive_ack(qp, 104, 3);
    assert_eq!(n.done(), [(1, OK), (3, OK)]);
    n.arrive_ack(qp, 105, 4);
    assert_eq!(n.done(), [(4, OK)]);
    assert!(n.sent().is_empty() && !n.nic.timers_armed());
}

#[test]
fn every_send_completes_if_the_qp_signals_all() {
    let mut n = lab();
    let qp = n.qp(urxe_engine::QpKind::Rc, |init, _| init.sig_all = true);
    n.post_with(qp, 1, SEND, 10, SendFlags::empty());
    n.arrive_ack(qp, 100, 1);
    assert_eq!(n.done(), [(1, OK)]);
}

#[test]
fn an_ack_within_a_message_completes_nothing() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 3000);
    n.arrive_ack(qp, 101, 0);
    assert_eq!(n.done(), []);
    assert_eq!(n.nic.query_qp(qp).unwrap().una.value(), 102);
    n.arrive_ack(qp, 102, 1);
    assert_eq!(n.done(), [(1, OK)]);
}

#[test]
fn a_ghost_ack_outside_the_window_is_ignored() {
    // IBA 9.7.6.1: a response for what was never sent.
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.arrive_ack(qp, 100, 1);
    assert_eq!(ignored(&n, Drop::GhostAck), 1);
    n.post(qp, 1, SEND, 2000);
    let deadline = n.nic.next_deadline();
    n.now = n.now + std::time::Duration::from_micros(10);
    for psn in [102, 103, 5_000_000, 0x80_0000] {
        n.arrive_ack(qp, psn, 1);
    }
    assert_eq!(ignored(&n, Drop::GhostAck), 5);
    assert_eq!((n.done(), n.nic.next_deadline()), (vec![], deadline));
    n.arrive_ack(qp, 101, 1);
    assert_eq!(n.done(), [(1, OK)]);
}

#[test]
fn an_ack_of_the_past_is_ignored_and_restarts_no_timer() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 10);
    n.post(qp, 2, SEND, 10);
    n.arrive_ack(qp, 100, 1);
    assert_eq!(n.done(), [(1, OK)]);
    let deadline = n.nic.next_deadline();
    n.now = n.now + std::time::Duration::from_micros(10);
    let before = ignored(&n, Drop::DuplicateResponse);
    n.arrive_ack(qp, 100, 1);
    n.arrive_ack(qp, 42, 1);
    n.arrive_seq_nak(qp, 99);
    assert_eq!(ignored(&n, Drop::DuplicateResponse) - before, 3);
    assert_eq!((n.done(), n.nic.next_deadline()), (vec![], deadline));
    n.sent();
    n.arrive_ack(qp, 101, 2);
    assert_eq!(n.done(), [(2, OK)]);
}

#[test]
fn a_reserved_syndrome_is_ignored() {
    // IBA 9.7.5.2.1: bits 6–5 are 10, or the NAK code is none.
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 10);
    n.arrive_aeth(qp, 100, Syndrome::from_bits(0x40), 1);
    n.arrive_aeth(qp, 100, Syndrome::from_bits(0x7f), 1);
    n.arrive_nak(qp, 100, urxe_wire::NakCode::InvalidRdRequest, 1);
    assert_eq!(ignored(&n, Drop::ReservedSyndrome), 3);
    assert_eq!(n.done(), []);
    n.arrive_ack(qp, 100, 1);
    assert_eq!(n.done(), [(1, OK)]);
}

#[test]
fn a_read_response_acknowledges_the_requests_before_it() {
    // IBA 9.7.5.1.2
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 10);
    n.post(qp, 2, SEND, 10);
    n.post(qp, 3, READ, 5);
    n.arrive_read(qp, "ONLY", 102, b"fifth");
    assert_eq!(n.done(), [(1, OK), (2, OK), (3, OK)]);
    assert_eq!(n.bytes(0, 5), b"fifth");
    assert!(!n.nic.timers_armed());
}

#[test]
fn an_atomic_response_acknowledges_the_requests_before_it() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 2000);
    n.post(qp, 2, ADD, 8);
    n.arrive_atomic(qp, 102, 0x0102_0304_0506_0708);
    let done = n.completions();
    let told: Vec<_> = done.iter().map(|c| (c.wr_id, c.opcode, c.byte_len)).collect();
    assert_eq!(told, [(1, WcOpcode::Send, 0), (2, WcOpcode::FetchAdd, 8)]);
    // The original comes in the program's byte order (IBA 9.4.5).
    assert_eq!(n.bytes(0, 8), 0x0102_0304_0506_0708_u64.to_ne_bytes());
}

#[test]
fn read_responses_are_placed_where_they_belong() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    let sges = [n.sge(5000, 1000), n.sge(0, 1500)];
    n.send(qp, &urxe_engine::SendWr::new(1, READ, &sges));
    n.arrive_read(qp, "FIRST", 100, &[1; 1024]);
    assert_eq!(n.bytes(5000, 1000), [1; 1000]);
    assert_eq!(n.bytes(0, 25), [&[1; 24][..], &[0]].concat());
    n.arrive_read(qp, "MIDDLE", 101, &[2; 1024]);
    assert_eq!(n.done(), []);
    n.arrive_read(qp, "LAST", 102, &[3; 452]);
    let wanted = [&[1; 24][..], &[2; 1024], &[3; 452], &[0]].concat();
    assert_eq!(n.bytes(0, 1501), wanted);
    let done = n.completions();
    assert_eq!((done[0].opcode, done[0].byte_len), (WcOpcode::RdmaRead, 2500));
}

#[test]
fn an_ack_beyond_an_unanswered_read_is_an_implied_nak() {
    // IBA 9.7.5.1.1: the READ's response was lost.
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, SEND, 10);
    n.post(qp, 2, READ, 2000);
    n.post(qp, 3, SEND, 10);
    n.sent();
    n.arrive_ack(qp, 103, 3);
    // What stands before the READ is acknowledged.
    assert_eq!(n.done(), [(1, OK)]);
    assert_eq!(n.psns(), [101, 103]);
    assert_eq!(n.counters().get(Count::ImpliedNakSeqErr), 1);
    n.arrive_read(qp, "FIRST", 101, &[1; 1024]);
    n.arrive_read(qp, "LAST", 102, &[2; 976]);
    n.arrive_ack(qp, 103, 3);
    assert_eq!(n.done(), [(2, OK), (3, OK)]);
    assert!(!n.nic.timers_armed());
}

#[test]
fn a_read_with_a_hole_is_resumed_once_with_exactly_the_rest() {
    // IBA 9.7.5.1.1, 9.4.4
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, READ, 5000);
    n.sent();
    n.arrive_read(qp, "FIRST", 100, &[1; 1024]);
    // 101 is lost.
    n.arrive_read(qp, "MIDDLE", 102, &[3; 1024]);
    n.arrive_read(qp, "MIDDLE", 103, &[4; 1024]);
    let resumed = "RC_RDMA_READ_REQUEST psn=101 ackreq va=0x9400 rkey=0x4242 dmalen=3976";
    assert_eq!(n.sent(), [resumed]);
    assert_eq!(n.counters().get(Count::ImpliedNakSeqErr), 1);
    assert_eq!(ignored(&n, Drop::AwaitingRetry), 1);
    // Nothing beyond the hole was placed. The resumed response begins anew.
    assert_eq!(n.bytes(1024, 3976), [0; 3976]);
    n.arrive_read(qp, "FIRST", 101, &[2; 1024]);
    n.arrive_read(qp, "MIDDLE", 102, &[3; 1024]);
    n.arrive_read(qp, "MIDDLE", 103, &[4; 1024]);
    n.arrive_read(qp, "LAST", 104, &[5; 904]);
    assert_eq!(n.done(), [(1, OK)]);
    let wanted: Vec<u8> = (0..5000).map(|i| u8::try_from(i / 1024 + 1).unwrap()).collect();
    assert_eq!(n.bytes(0, 5000), wanted);
    // A further hole of another READ counts anew.
    n.post(qp, 2, READ, 2048);
    n.sent();
    n.arrive_read(qp, "LAST", 106, &[6; 1024]);
    assert_eq!(n.psns(), [105]);
    assert_eq!(n.counters().get(Count::ImpliedNakSeqErr), 2);
}

#[test]
fn a_hole_found_again_after_progress_is_asked_for_again() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, READ, 4096);
    n.sent();
    n.arrive_read(qp, "MIDDLE", 101, &[0; 1024]);
    assert_eq!(n.psns(), [100]);
    n.arrive_read(qp, "FIRST", 100, &[0; 1024]);
    n.arrive_read(qp, "LAST", 103, &[0; 1024]);
    assert_eq!(n.psns(), [101]);
    // Lost a second time: only the timer helps, and then a hole counts again.
    n.arrive_read(qp, "LAST", 103, &[0; 1024]);
    assert!(n.sent().is_empty());
    n.next_deadline().unwrap();
    assert_eq!(n.psns(), [101]);
    n.arrive_read(qp, "LAST", 103, &[0; 1024]);
    assert_eq!(n.psns(), [101]);
}
