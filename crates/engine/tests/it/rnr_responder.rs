//! Gaps and empty receive queues: what the responder says, and when it is silent.

use std::time::Duration;

use urxe_engine::{Count, Drop, Profile, QpState, WcStatus};
use urxe_wire::{Ext, RnrTimer};

use crate::ask::{imm, reth};
use crate::lab::{BASE, lab, lab_with};

/// One NAK a gap, with the first missing PSN, then silence until it comes (IBA 9.7.5.1).
#[test]
fn a_gap_is_naked_once() {
    let mut n = lab();
    let qp = n.rc256();
    n.recv(qp, 7, 0, 64);
    n.arrive_request(qp, "RC_SEND_ONLY", 502, Ext::NONE, b"late");
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=500 nak PsnSequence msn=0"]);
    n.arrive_request(qp, "RC_SEND_ONLY", 503, Ext::NONE, b"later");
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 501, reth(BASE, n.mr.rkey, 4), &[]);
    assert!(n.sent().is_empty());
    assert_eq!((n.dropped(Drop::Gap), n.count(Count::OutOfSequence)), (3, 3));
    assert_eq!(n.count(Count::NakSeqSent), 1);
    assert!(n.done().is_empty());
    // The missing one ends the silence; the next gap is told of again.
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 500, reth(0, 0, 0), &[]);
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=500 ack credits=1 msn=1"]);
    n.arrive_request(qp, "RC_SEND_ONLY", 502, Ext::NONE, b"late");
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=501 nak PsnSequence msn=1"]);
    n.arrive_request(qp, "RC_SEND_ONLY", 501, Ext::NONE, b"here");
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=501 ack credits=0 msn=2"]);
    assert_eq!(n.done(), [(7, WcStatus::Success)]);
}

#[test]
fn duplicates_are_answered_within_a_gap() {
    let mut n = lab();
    let qp = n.rc256();
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 500, reth(0, 0, 0), &[]);
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 505, reth(0, 0, 0), &[]);
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 500, reth(0, 0, 0), &[]);
    let expected = [
        "RC_ACKNOWLEDGE psn=500 ack credits=0 msn=1",
        "RC_ACKNOWLEDGE psn=501 nak PsnSequence msn=1",
        "RC_ACKNOWLEDGE psn=500 ack credits=0 msn=1",
    ];
    assert_eq!(n.sent(), expected);
}

#[test]
fn a_gap_is_a_gap_across_the_end_of_psns() {
    for (expected, early, late) in [(0xff_ffff, 0xff_fffe, 0), (0, 0xff_ffff, 1)] {
        let mut n = lab();
        let qp = n.rc256_with(|_, attr| attr.rq_psn = urxe_wire::Psn::new(expected));
        for psn in [late, early, expected, late] {
            n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", psn, reth(0, 0, 0), &[]);
        }
        let before = if early == 0xff_fffe { 0xff_fffe } else { 0xff_ffff };
        let lines = [
            format!("RC_ACKNOWLEDGE psn={expected} nak PsnSequence msn=0"),
            format!("RC_ACKNOWLEDGE psn={before} ack credits=0 msn=0"),
            format!("RC_ACKNOWLEDGE psn={expected} ack credits=0 msn=1"),
            format!("RC_ACKNOWLEDGE psn={late} ack credits=0 msn=2"),
        ];
        assert_eq!(n.sent(), lines);
    }
}

/// Half the circle is ahead, half is behind.
#[test]
fn psns_are_compared_in_a_circle() {
    let mut n = lab();
    let qp = n.rc256();
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 500 + 0x7f_ffff, reth(0, 0, 0), &[]);
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 500 + 0x80_0000, reth(0, 0, 0), &[]);
    let lines = [
        "RC_ACKNOWLEDGE psn=500 nak PsnSequence msn=0",
        "RC_ACKNOWLEDGE psn=499 ack credits=0 msn=0",
    ];
    assert_eq!(n.sent(), lines);
}

/// After an RNR NAK too all is met with silence until the expected PSN comes.
#[test]
fn an_rnr_nak_is_followed_by_silence() {
    let mut n = lab();
    let qp = n.rc256();
    n.arrive_request(qp, "RC_SEND_ONLY", 500, Ext::NONE, b"one");
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=500 rnr-nak 640µs msn=0"]);
    n.recv(qp, 1, 0, 64);
    n.arrive_request(qp, "RC_SEND_ONLY", 501, Ext::NONE, b"two");
    n.arrive_request(qp, "RC_SEND_ONLY", 502, Ext::NONE, b"three");
    assert!(n.sent().is_empty());
    assert_eq!((n.dropped(Drop::BehindRnr), n.count(Count::OutOfSequence)), (2, 2));
    assert_eq!(n.count(Count::OutOfBuffer), 1);
    n.arrive_request(qp, "RC_SEND_ONLY", 500, Ext::NONE, b"one");
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=500 ack credits=0 msn=1"]);
    assert_eq!(n.bytes(0, 3), b"one");
    // Each further one that finds nothing gets its own.
    n.arrive_request(qp, "RC_SEND_ONLY", 501, Ext::NONE, b"two");
    n.arrive_request(qp, "RC_SEND_ONLY", 501, Ext::NONE, b"two");
    let again = "RC_ACKNOWLEDGE psn=501 rnr-nak 640µs msn=1";
    assert_eq!(n.sent(), [again, again]);
    assert_eq!(n.state(qp), QpState::Rts);
}

/// rxe NAKs the gap behind an RNR NAK (its profile).
#[test]
fn the_rxe_profile_naks_behind_an_rnr_nak() {
    let mut n = lab_with(Profile::RXE);
    let qp = n.rc256();
    n.arrive_request(qp, "RC_SEND_ONLY", 500, Ext::NONE, b"one");
    n.arrive_request(qp, "RC_SEND_ONLY", 501, Ext::NONE, b"two");
    n.arrive_request(qp, "RC_SEND_ONLY", 502, Ext::NONE, b"three");
    let lines = [
        "RC_ACKNOWLEDGE psn=500 rnr-nak 640µs msn=0",
        "RC_ACKNOWLEDGE psn=500 nak PsnSequence msn=0",
    ];
    assert_eq!(n.sent(), lines);
}

#[test]
fn the_rnr_timer_is_the_qps() {
    for code in 0..32 {
        let timer = RnrTimer::new(code).unwrap();
        let mut n = lab();
        let qp = n.rc256_with(|_, attr| attr.min_rnr_timer = timer);
        n.arrive_request(qp, "RC_SEND_ONLY", 500, Ext::NONE, b"x");
        let wait: Duration = timer.duration();
        assert_eq!(n.sent(), [format!("RC_ACKNOWLEDGE psn=500 rnr-nak {wait:?} msn=0")]);
    }
}

/// A WRITE takes its receive WQE at its last packet, which alone is asked for again.
#[test]
fn a_write_with_immediate_waits_for_a_receive_at_its_end() {
    let mut n = lab();
    let qp = n.rc256();
    n.arrive_request(qp, "RC_RDMA_WRITE_FIRST", 500, reth(BASE, n.mr.rkey, 300), &[1; 256]);
    n.arrive_request(qp, "RC_RDMA_WRITE_LAST_WITH_IMMEDIATE", 501, imm(Ext::NONE), &[2; 44]);
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=501 rnr-nak 640µs msn=0"]);
    n.recv(qp, 5, 0, 0);
    n.arrive_request(qp, "RC_RDMA_WRITE_LAST_WITH_IMMEDIATE", 501, imm(Ext::NONE), &[2; 44]);
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=501 ack credits=0 msn=1"]);
    assert_eq!(n.done(), [(5, WcStatus::Success)]);
    assert_eq!(n.bytes(0, 300), [vec![1; 256], vec![2; 44]].concat());
}

/// Credits are the receive WQEs that wait (IBA 9.7.7.2).
#[test]
fn acks_grant_as_many_messages_as_receives_wait() {
    let mut n = lab();
    let qp = n.rc256();
    for i in 0..6 {
        n.recv(qp, i, 0, 64);
    }
    for psn in 500..503 {
        n.arrive_request(qp, "RC_SEND_ONLY", psn, Ext::NONE, b"x");
    }
    // 5 has no code: the greatest below it is granted.
    let lines = [
        "RC_ACKNOWLEDGE psn=500 ack credits=4 msn=1",
        "RC_ACKNOWLEDGE psn=501 ack credits=4 msn=2",
        "RC_ACKNOWLEDGE psn=502 ack credits=3 msn=3",
    ];
    assert_eq!(n.sent(), lines);
}

/// Answers that wait are bounded: this many on a QP without READs and atomics.
const ROOM: usize = 4;

/// A QP whose sink is full and whose answers fill all their room.
fn full(n: &mut crate::lab::Node) -> (urxe_engine::QpId, u32) {
    let qp = n.rc256_with(|_, attr| attr.max_dest_rd_atomic = 0);
    let mut psn = 500;
    for _ in 0..ROOM / 2 {
        n.accept(qp, "RC_RDMA_WRITE_ONLY", psn + 1, reth(0, 0, 0), &[]);
        n.accept(qp, "RC_RDMA_WRITE_ONLY", psn, reth(0, 0, 0), &[]);
        psn += 1;
    }
    (qp, psn)
}

/// A NAK that found no room is sent for the next packet behind the gap.
#[test]
fn a_nak_without_room_is_not_the_last_word() {
    let mut n = lab();
    let (qp, psn) = full(&mut n);
    n.accept(qp, "RC_RDMA_WRITE_ONLY", psn + 1, reth(0, 0, 0), &[]);
    n.pump();
    assert_eq!(n.sent().len(), ROOM);
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", psn + 2, reth(0, 0, 0), &[]);
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=502 nak PsnSequence msn=2"]);
    // An RNR NAK likewise: what is behind it is a gap.
    let mut n = lab();
    let (qp, psn) = full(&mut n);
    n.accept(qp, "RC_SEND_ONLY", psn, Ext::NONE, b"x");
    n.pump();
    assert_eq!(n.sent().len(), ROOM);
    n.arrive_request(qp, "RC_SEND_ONLY", psn + 1, Ext::NONE, b"x");
    assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=502 nak PsnSequence msn=2"]);
}

/// The NAK that ends the connection takes the place of the latest answer.
#[test]
fn the_last_nak_always_finds_room() {
    let mut n = lab();
    let (qp, psn) = full(&mut n);
    n.accept(qp, "RC_SEND_LAST", psn, Ext::NONE, b"x");
    n.pump();
    let lines = n.sent();
    assert_eq!(lines.len(), ROOM);
    assert_eq!(lines[ROOM - 1], "RC_ACKNOWLEDGE psn=502 nak InvalidRequest msn=2");
    assert_eq!(n.state(qp), QpState::Err);
}

/// What waits to be answered is bounded by what the peer may have outstanding.
#[test]
fn answers_that_wait_are_bounded() {
    for slots in [0, 1, 3] {
        let mut n = lab();
        let qp = n.rc256_with(|_, attr| attr.max_dest_rd_atomic = slots);
        for psn in 500..600 {
            n.accept(qp, "RC_RDMA_WRITE_ONLY", psn + 1, reth(0, 0, 0), &[]);
            n.accept(qp, "RC_RDMA_WRITE_ONLY", psn, reth(0, 0, 0), &[]);
        }
        n.pump();
        assert_eq!(n.sent().len(), 4 * usize::from(slots) + ROOM);
        // All were done, and the next one is acknowledged.
        n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 600, reth(0, 0, 0), &[]);
        assert_eq!(n.sent(), ["RC_ACKNOWLEDGE psn=600 ack credits=0 msn=101"]);
    }
}
