//! The checks of a request, in their order (IBA 9.7.4.1): of two faults the earlier is answered.

use urxe_engine::{AsyncEvent, QpId, QpState, WcStatus};
use urxe_memory::{Access, Backing, Buffer};
use urxe_wire::Ext;

use crate::ask::{Outcome, atomic, imm, reth};
use crate::lab::{BASE, Node, all_rights, lab};

/// The peer is told that its request is invalid, and the QP is in error.
fn invalid(qp: QpId, psn: u32, msn: u32) -> Outcome {
    let sent = vec![format!("RC_ACKNOWLEDGE psn={psn} nak InvalidRequest msn={msn}")];
    Outcome { sent, state: QpState::Err, events: vec![AsyncEvent::QpReqErr(qp)] }
}

fn no_access(qp: QpId, psn: u32, msn: u32) -> Outcome {
    let sent = vec![format!("RC_ACKNOWLEDGE psn={psn} nak RemoteAccess msn={msn}")];
    Outcome { sent, state: QpState::Err, events: vec![AsyncEvent::QpAccessErr(qp)] }
}

/// The peer is told something after which the connection goes on.
fn goes_on(line: &str) -> Outcome {
    Outcome { sent: vec![line.into()], state: QpState::Rts, events: vec![] }
}

/// The headers of a request to this node; of one with this key.
type Ask = fn(&Node) -> Ext;
type AskOf = fn(&Node, u32) -> Ext;

const BAD_KEY: u32 = 0x00de_ad0000;

#[test]
fn psn_comes_before_opcode_sequence() {
    let mut n = lab();
    let qp = n.rc256();
    n.arrive_request(qp, "RC_SEND_MIDDLE", 501, Ext::NONE, b"x");
    assert_eq!(n.outcome(qp), goes_on("RC_ACKNOWLEDGE psn=500 nak PsnSequence msn=0"));
    n.arrive_request(qp, "RC_SEND_MIDDLE", 500, Ext::NONE, b"x");
    assert_eq!(n.outcome(qp), invalid(qp, 500, 0));
}

/// What may stand behind what (IBA 9.7.4.1).
#[test]
fn opcode_sequence() {
    let begins: [(&str, Ask); 3] = [
        ("", |_| Ext::NONE),
        ("RC_SEND_FIRST", |_| Ext::NONE),
        ("RC_RDMA_WRITE_FIRST", |n| reth(BASE, n.mr.rkey, 600)),
    ];
    let next: [(&str, Ask, usize, [bool; 3]); 12] = [
        ("RC_SEND_FIRST", |_| Ext::NONE, 256, [true, false, false]),
        ("RC_SEND_ONLY", |_| Ext::NONE, 8, [true, false, false]),
        ("RC_SEND_MIDDLE", |_| Ext::NONE, 256, [false, true, false]),
        ("RC_SEND_LAST", |_| Ext::NONE, 8, [false, true, false]),
        ("RC_SEND_LAST_WITH_IMMEDIATE", |_| imm(Ext::NONE), 8, [false, true, false]),
        ("RC_RDMA_WRITE_FIRST", |n| reth(BASE, n.mr.rkey, 600), 256, [true, false, false]),
        ("RC_RDMA_WRITE_ONLY", |n| reth(BASE, n.mr.rkey, 8), 8, [true, false, false]),
        ("RC_RDMA_WRITE_MIDDLE", |_| Ext::NONE, 256, [false, false, true]),
        ("RC_RDMA_WRITE_LAST", |_| Ext::NONE, 344, [false, false, false]),
        ("RC_RDMA_READ_REQUEST", |n| reth(BASE, n.mr.rkey, 8), 0, [true, false, false]),
        ("RC_FETCH_ADD", |n| atomic(BASE, n.mr.rkey, 1, 0), 0, [true, false, false]),
        ("RC_COMPARE_SWAP", |n| atomic(BASE, n.mr.rkey, 1, 0), 0, [true, false, false]),
    ];
    for (name, ext, len, fits) in next {
        for ((begin, begin_ext), fits) in begins.into_iter().zip(fits) {
            let mut n = lab();
            let qp = n.rc256();
            n.recv(qp, 1, 4096, 4096);
            let mut psn = 500;
            if !begin.is_empty() {
                n.arrive_request(qp, begin, psn, begin_ext(&n), &[1; 256]);
                psn += 1;
            }
            assert!(n.sent().is_empty());
            let ext = ext(&n);
            n.arrive_request(qp, name, psn, ext, &vec![2; len]);
            if fits {
                assert_eq!(n.state(qp), QpState::Rts, "{begin} {name}");
            } else {
                assert_eq!(n.outcome(qp), invalid(qp, psn, 0), "{begin} {name}");
            }
        }
    }
}

#[test]
fn opcode_sequence_comes_before_resources() {
    let mut n = lab();
    let qp = n.rc256();
    n.arrive_request(qp, "RC_RDMA_WRITE_FIRST", 500, reth(BASE, n.mr.rkey, 600), &[1; 256]);
    // No receive WQE is there either.
    n.arrive_request(qp, "RC_SEND_ONLY", 501, Ext::NONE, b"x");
    assert_eq!(n.outcome(qp), invalid(qp, 501, 0));
}

#[test]
fn what_the_qp_does_not_allow_comes_before_resources() {
    let mut n = lab();
    let qp = n.rc256_with(|_, attr| attr.access = Access::empty());
    let ext = imm(reth(BASE, n.mr.rkey, 1));
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", 500, ext, b"x");
    assert_eq!(n.outcome(qp), invalid(qp, 500, 0));
    assert!(n.done().is_empty());
}

/// Each operation needs its own right of the QP, whatever the region allows.
#[test]
fn operations_that_the_qp_does_not_allow() {
    use urxe_wire::{FlushLevel as L, FlushScope as S};
    let write: Ask = |n| reth(BASE, n.mr.rkey, 8);
    let add: Ask = |n| atomic(BASE, n.mr.rkey, 1, 0);
    let global: Ask = |n| crate::ask::flush(S::Range, L::GLOBAL, BASE, n.mr.rkey, 8);
    let persist: Ask = |n| crate::ask::flush(S::MemoryRegion, L::PERSISTENT, BASE, n.mr.rkey, 8);
    for (name, ext, len, right) in [
        ("RC_RDMA_WRITE_ONLY", write, 8, Access::REMOTE_WRITE),
        ("RC_ATOMIC_WRITE", write, 8, Access::REMOTE_WRITE),
        ("RC_RDMA_READ_REQUEST", write, 0, Access::REMOTE_READ),
        ("RC_FETCH_ADD", add, 0, Access::REMOTE_ATOMIC),
        ("RC_COMPARE_SWAP", add, 0, Access::REMOTE_ATOMIC),
        ("RC_FLUSH", global, 0, Access::FLUSH_GLOBAL),
        ("RC_FLUSH", persist, 0, Access::FLUSH_PERSISTENT),
    ] {
        for allowed in [true, false] {
            let mut n = lab();
            let access = if allowed { right } else { all_rights().difference(right) };
            let qp = n.rc256_with(|_, attr| attr.access = access);
            let ext = ext(&n);
            n.arrive_request(qp, name, 500, ext, &[0; 8][..len]);
            let got = n.outcome(qp);
            assert_eq!(got == invalid(qp, 500, 0), !allowed, "{name} {got:?}");
            assert_eq!(got.state == QpState::Rts, allowed, "{name} {got:?}");
        }
    }
}

#[test]
fn resources_come_before_length() {
    let mut n = lab();
    let qp = n.rc256();
    n.arrive_request(qp, "RC_SEND_ONLY", 500, Ext::NONE, &[0; 260]);
    assert_eq!(n.outcome(qp), goes_on("RC_ACKNOWLEDGE psn=500 rnr-nak 640µs msn=0"));
    n.recv(qp, 1, 0, 512);
    n.arrive_request(qp, "RC_SEND_ONLY", 500, Ext::NONE, &[0; 260]);
    assert_eq!(n.outcome(qp), invalid(qp, 500, 0));
    // The receive WQE was taken and is flushed.
    assert_eq!(n.done(), [(1, WcStatus::WrFlushErr)]);
}

#[test]
fn resources_come_before_key() {
    let mut n = lab();
    let qp = n.rc256();
    let ext = imm(reth(BASE, BAD_KEY, 1));
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", 500, ext, b"x");
    assert_eq!(n.outcome(qp), goes_on("RC_ACKNOWLEDGE psn=500 rnr-nak 640µs msn=0"));
    n.recv(qp, 1, 0, 512);
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", 500, ext, b"x");
    assert_eq!(n.outcome(qp), no_access(qp, 500, 0));
    assert_eq!(n.done(), [(1, WcStatus::LocAccessErr)]);
}

/// More READs, atomics and the like at a time than `max_dest_rd_atomic` (IBA 9.7.4.1).
#[test]
fn answer_slots_come_before_key() {
    use urxe_wire::{FlushLevel, FlushScope};
    let flush = crate::ask::flush(FlushScope::Range, FlushLevel::GLOBAL, BASE, BAD_KEY, 8);
    for (name, ext, len) in [
        ("RC_RDMA_READ_REQUEST", reth(BASE, BAD_KEY, 8), 0),
        ("RC_FETCH_ADD", atomic(BASE, BAD_KEY, 1, 0), 0),
        ("RC_ATOMIC_WRITE", reth(BASE, BAD_KEY, 8), 8),
        ("RC_FLUSH", flush, 0),
    ] {
        let mut n = lab();
        let qp = n.rc256_with(|_, attr| attr.max_dest_rd_atomic = 2);
        let good = reth(BASE, n.mr.rkey, 8);
        n.accept(qp, "RC_RDMA_READ_REQUEST", 500, good, &[]);
        n.accept(qp, "RC_RDMA_READ_REQUEST", 501, good, &[]);
        n.accept(qp, name, 502, ext, &[0; 8][..len]);
        n.pump();
        let got = n.outcome(qp);
        assert_eq!(got.sent.len(), 3, "{name}: the two READs are answered: {got:?}");
        assert_eq!(got.sent[2], "RC_ACKNOWLEDGE psn=502 nak InvalidRequest msn=2", "{name}");
    }
}

#[test]
fn a_qp_without_answer_slots_takes_no_read() {
    let mut n = lab();
    let qp = n.rc256_with(|_, attr| attr.max_dest_rd_atomic = 0);
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE, n.mr.rkey, 8), &[]);
    assert_eq!(n.outcome(qp), invalid(qp, 500, 0));
}

#[test]
fn length_comes_before_key() {
    let mut n = lab();
    let qp = n.rc256();
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 500, reth(BASE, BAD_KEY, 9), &[0; 8]);
    assert_eq!(n.outcome(qp), invalid(qp, 500, 0));
}

/// A whole WRITE is checked at its first packet, before any byte of it is placed.
#[test]
fn key_range_and_rights_are_checked_before_a_byte_is_placed() {
    let key = |n: &Node, access| n.region(access).rkey;
    let all = all_rights();
    let cases: [(&str, AskOf, Access); 6] = [
        ("unknown key", |_, _| reth(BASE, BAD_KEY, 600), all),
        ("stale key", |_, key| reth(BASE, key ^ 1, 600), all),
        ("before the region", |_, key| reth(BASE - 1, key, 600), all),
        ("past its end", |_, key| reth(BASE + 0x1_0000 - 599, key, 600), all),
        ("round the end of all addresses", |_, key| reth(u64::MAX - 8, key, 600), all),
        ("no right", |_, key| reth(BASE, key, 600), all.difference(Access::REMOTE_WRITE)),
    ];
    for (what, ext, access) in cases {
        let mut n = lab();
        let qp = n.rc256();
        let ext = ext(&n, key(&n, access));
        n.arrive_request(qp, "RC_RDMA_WRITE_FIRST", 500, ext, &[1; 256]);
        assert_eq!(n.outcome(qp), no_access(qp, 500, 0), "{what}");
        assert!(n.bytes(0, 0x1_0000).iter().all(|&b| b == 0), "{what}");
    }
}

#[test]
fn a_key_of_another_pd_is_refused() {
    let mut n = lab();
    let qp = n.rc256();
    let memory = n.nic.memory();
    let other = memory.alloc_pd().unwrap();
    let backing = Backing::buffer(Buffer::zeroed(64).unwrap());
    let rkey = memory.reg_mr(other, backing, BASE, all_rights()).unwrap().rkey;
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE, rkey, 8), &[]);
    assert_eq!(n.outcome(qp), no_access(qp, 500, 0));
}
