//! Atomics, ATOMIC WRITE and FLUSH at the responder.

use urxe_engine::{AsyncEvent, QpState};
use urxe_memory::{Access, Backing, Buffer};
use urxe_wire::{Ext, FlushLevel, FlushScope};

use crate::ask::{atomic, flush, reth};
use crate::lab::{BASE, Node, all_rights, lab};

#[test]
fn fetch_and_add_gives_what_stood_there_and_goes_round() {
    let mut n = lab();
    let qp = n.rc256();
    n.buffer.write(16, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    n.arrive_request(qp, "RC_FETCH_ADD", 500, atomic(BASE + 16, n.mr.rkey, 5, 77), &[]);
    let original = u64::MAX - 1;
    let line = format!("RC_ATOMIC_ACKNOWLEDGE psn=500 ack credits=0 msn=1 original={original}");
    assert_eq!(n.sent(), [line]);
    assert_eq!(n.bytes(16, 8), 3u64.to_ne_bytes());
}

#[test]
fn compare_and_swap_changes_only_what_it_expects() {
    let mut n = lab();
    let qp = n.rc256();
    n.buffer.write(0, &7u64.to_ne_bytes()).unwrap();
    n.arrive_request(qp, "RC_COMPARE_SWAP", 500, atomic(BASE, n.mr.rkey, 1, 8), &[]);
    assert_eq!(n.bytes(0, 8), 7u64.to_ne_bytes());
    n.arrive_request(qp, "RC_COMPARE_SWAP", 501, atomic(BASE, n.mr.rkey, 1, 7), &[]);
    assert_eq!(n.bytes(0, 8), 1u64.to_ne_bytes());
    let lines = [
        "RC_ATOMIC_ACKNOWLEDGE psn=500 ack credits=0 msn=1 original=7",
        "RC_ATOMIC_ACKNOWLEDGE psn=501 ack credits=0 msn=2 original=7",
    ];
    assert_eq!(n.sent(), lines);
}

fn refused(n: &mut Node, name: &str, ext: Ext, nak: &str) {
    let qp = n.rc256();
    let data: &[u8] = if name == "RC_ATOMIC_WRITE" { &[9; 8] } else { &[] };
    n.arrive_request(qp, name, 500, ext, data);
    let got = n.outcome(qp);
    assert_eq!(got.sent, [format!("RC_ACKNOWLEDGE psn=500 nak {nak} msn=0")], "{name}");
    assert_eq!(got.state, QpState::Err);
    let event = match nak {
        "InvalidRequest" => AsyncEvent::QpReqErr(qp),
        _ => AsyncEvent::QpAccessErr(qp),
    };
    assert_eq!(got.events, [event], "{name}");
}

const KINDS: [&str; 3] = ["RC_FETCH_ADD", "RC_COMPARE_SWAP", "RC_ATOMIC_WRITE"];

fn target(name: &str, va: u64, rkey: u32) -> Ext {
    if name == "RC_ATOMIC_WRITE" { reth(va, rkey, 8) } else { atomic(va, rkey, 9, 0) }
}

/// IBA 9.4.5; Linux sw/rxe/rxe_resp.c answers a misaligned atomic as an invalid request.
#[test]
fn a_misaligned_atomic_is_an_invalid_request() {
    for name in KINDS {
        for off in [1, 4, 7] {
            let mut n = lab();
            let ext = target(name, BASE + off, n.mr.rkey);
            refused(&mut n, name, ext, "InvalidRequest");
            assert_eq!(n.bytes(0, 16), [0; 16]);
        }
    }
}

/// An aligned address of a region whose memory begins at an odd place.
#[test]
fn an_atomic_that_cannot_be_aligned_in_memory_is_an_invalid_request() {
    for name in KINDS {
        let mut n = lab();
        let backing = Backing::part(Buffer::zeroed(64).unwrap(), 4, 32).unwrap();
        let region = n.nic.memory().reg_mr(n.pd, backing, BASE, all_rights()).unwrap();
        refused(&mut n, name, target(name, BASE + 8, region.rkey), "InvalidRequest");
    }
}

/// The key is looked at before the alignment.
#[test]
fn an_atomic_checks_key_range_and_right() {
    for name in KINDS {
        let right =
            if name == "RC_ATOMIC_WRITE" { Access::REMOTE_WRITE } else { Access::REMOTE_ATOMIC };
        let mut n = lab();
        refused(&mut n, name, target(name, BASE + 1, 0x00de_ad0000), "RemoteAccess");
        let end = target(name, BASE + 0x1_0000 - 4, n.mr.rkey);
        refused(&mut n, name, end, "RemoteAccess");
        let weak = n.region(all_rights().difference(right)).rkey;
        refused(&mut n, name, target(name, BASE, weak), "RemoteAccess");
    }
}

#[test]
fn atomic_write_places_its_8_bytes() {
    let mut n = lab();
    let qp = n.rc256();
    n.arrive_request(qp, "RC_ATOMIC_WRITE", 500, reth(BASE + 8, n.mr.rkey, 8), b"12345678");
    assert_eq!(n.sent(), ["RC_RDMA_READ_RESPONSE_ONLY psn=500 ack credits=0 msn=1"]);
    assert_eq!(n.bytes(0, 24), *b"\0\0\0\0\0\0\0\x0012345678\0\0\0\0\0\0\0\0");
}

/// A FLUSH needs the rights of its levels, over its range or the whole region.
#[test]
fn flush_needs_the_rights_of_its_levels() {
    use FlushScope::{MemoryRegion, Range};
    let both = FlushLevel::GLOBAL.union(FlushLevel::PERSISTENT);
    let cases = [
        (Range, FlushLevel::GLOBAL, 8, Access::FLUSH_GLOBAL, ""),
        (Range, FlushLevel::PERSISTENT, 8, Access::FLUSH_PERSISTENT, ""),
        (Range, both, 8, Access::FLUSH_GLOBAL | Access::FLUSH_PERSISTENT, ""),
        (Range, both, 8, Access::FLUSH_GLOBAL, "RemoteAccess"),
        (Range, FlushLevel::GLOBAL, 8, Access::FLUSH_PERSISTENT, "RemoteAccess"),
        (Range, FlushLevel::GLOBAL, 0x1_0001, Access::FLUSH_GLOBAL, "RemoteAccess"),
        (MemoryRegion, FlushLevel::GLOBAL, 0x1_0001, Access::FLUSH_GLOBAL, ""),
        (MemoryRegion, FlushLevel::GLOBAL, 0, Access::FLUSH_PERSISTENT, "RemoteAccess"),
        (Range, FlushLevel::from_bits(0), 8, Access::FLUSH_GLOBAL, "InvalidRequest"),
        (MemoryRegion, FlushLevel::from_bits(0), 8, Access::FLUSH_GLOBAL, "InvalidRequest"),
    ];
    for (scope, level, len, rights, nak) in cases {
        let mut n = lab();
        let rkey = n.region(rights).rkey;
        let ext = flush(scope, level, BASE, rkey, len);
        if nak.is_empty() {
            let qp = n.rc256();
            n.arrive_request(qp, "RC_FLUSH", 500, ext, &[]);
            let line = "RC_RDMA_READ_RESPONSE_ONLY psn=500 ack credits=0 msn=1";
            assert_eq!(n.sent(), [line], "{scope:?} {level:?} {len} {rights:?}");
        } else {
            refused(&mut n, "RC_FLUSH", ext, nak);
        }
    }
}
