//! Remote accesses: copies, atomics, slices.

use super::*;

const ALL: Access = Access::REMOTE;

#[test]
fn copies_stay_within_what_was_pinned() {
    let b = bench();
    let pinned = b.remote(b.mr.rkey, IOVA + 8, 16, ALL).unwrap();
    assert_eq!((pinned.len(), pinned.is_empty()), (16, false));
    pinned.write(4, &[1; 12]).unwrap();
    let (key, start, length) = (b.mr.rkey, IOVA + 8, 16);
    let range = |offset: u64, len| {
        let addr = start.wrapping_add(offset);
        KeyError::Range { key, addr, len, start, length }
    };
    assert_eq!(pinned.write(4, &[2; 13]), Err(range(4, 13)));
    assert_eq!(pinned.write(17, &[]), Err(range(17, 0)));
    assert_eq!(pinned.write(u64::MAX, &[2]), Err(range(u64::MAX, 1)));
    assert_eq!(pinned.read(15, &mut [0; 2]), Err(range(15, 2)));
    assert_eq!(pinned.slice(9, 8).map(drop), Err(range(9, 8)));
    assert_eq!(pinned.slice(u64::MAX, 2).map(drop), Err(range(u64::MAX, 2)));
    assert_eq!(pinned.fetch_add(9, 1), Err(range(9, 8)));
    assert_eq!(pinned.write(16, &[]), Ok(()));
    let mut want = [0; 64];
    want[12..24].fill(1);
    assert_eq!(bytes(&b.buffer), want);
    let mut got = [9; 6];
    pinned.read(2, &mut got).unwrap();
    assert_eq!(got, [0, 0, 1, 1, 1, 1]);
}

#[test]
fn a_slice_is_a_payload() {
    let b = bench();
    b.buffer.write(8, b"0123456789").unwrap();
    let pinned = b.remote(b.mr.rkey, IOVA + 8, 10, Access::REMOTE_READ).unwrap();
    let gather = pinned.slice(2, 5).unwrap();
    drop(pinned);
    let mut got = [0; 5];
    assert_eq!(gather.copy_to(&mut got), 5);
    assert_eq!(&got, b"23456");
    assert_eq!(gather.len(), 5);
}

#[test]
fn an_empty_slice_pins_nothing() {
    let b = bench();
    let pinned = b.remote(b.mr.rkey, IOVA, 8, Access::REMOTE_READ).unwrap();
    let gather = pinned.slice(8, 0).unwrap();
    assert_eq!(gather.pieces().count(), 0);
    drop(pinned);
    assert_eq!(b.memory.try_dereg_mr(b.mr.id), Ok(()));
}

#[test]
fn memory_pinned_for_reading_is_not_written() {
    let b = bench();
    let have = Access::REMOTE_READ | Access::FLUSH_GLOBAL;
    let pinned = b.remote(b.mr.rkey, IOVA, 8, have).unwrap();
    let rights = KeyError::Rights { key: b.mr.rkey, need: Access::REMOTE_WRITE, have };
    assert_eq!(pinned.write(0, b"x"), Err(rights));
    assert_eq!(pinned.fetch_add(0, 1), Err(rights));
    assert_eq!(pinned.cmp_swap(0, 0, 1), Err(rights));
    assert_eq!(pinned.write_u64(0, 1), Err(rights));
    assert_eq!(bytes(&b.buffer), [0; 64]);
}

#[test]
fn atomics_return_what_was() {
    let b = bench();
    let pinned = b.remote(b.mr.rkey, IOVA + 8, 16, Access::REMOTE_ATOMIC).unwrap();
    assert_eq!(pinned.fetch_add(8, 5), Ok(0));
    assert_eq!(pinned.fetch_add(8, u64::MAX), Ok(5));
    assert_eq!(pinned.cmp_swap(8, 5, 9), Ok(4), "not equal: no swap");
    assert_eq!(pinned.cmp_swap(8, 4, 0x0102_0304_0506_0708), Ok(4));
    let word = 0x0102_0304_0506_0708_u64;
    let mut want = [0; 64];
    want[16..24].copy_from_slice(&word.to_ne_bytes());
    assert_eq!(bytes(&b.buffer), want);
    assert_eq!(pinned.write_u64(0, u64::MAX), Ok(()));
    want[8..16].fill(0xff);
    assert_eq!(bytes(&b.buffer), want);
    assert_eq!(b.buffer.fetch_add(8, 2), Ok(u64::MAX), "one among the program's atomics");
    assert_eq!(pinned.fetch_add(0, 0), Ok(1));
}

#[test]
fn atomics_are_aligned_for_the_peer_and_in_memory() {
    let b = bench();
    let pinned = b.remote(b.mr.rkey, IOVA, 64, Access::REMOTE_ATOMIC).unwrap();
    for offset in 1..8 {
        let wrong = KeyError::Misaligned { key: b.mr.rkey, addr: IOVA + offset };
        assert_eq!(pinned.fetch_add(offset, 1), Err(wrong));
        assert_eq!(pinned.cmp_swap(offset, 0, 1), Err(wrong));
        assert_eq!(pinned.write_u64(offset, 1), Err(wrong));
    }
    // An iova that is out of step with the memory: neither address is aligned in both.
    let backing = Backing::part(Arc::clone(&b.buffer), 4, 32).unwrap();
    let mr = b.memory.reg_mr(b.pd, backing, IOVA, full()).unwrap();
    for addr in [IOVA, IOVA + 4] {
        let pinned = b.remote(mr.rkey, addr, 8, Access::REMOTE_ATOMIC).unwrap();
        let wrong = KeyError::Misaligned { key: mr.rkey, addr };
        assert_eq!(pinned.fetch_add(0, 1), Err(wrong));
    }
    assert_eq!(bytes(&b.buffer), [0; 64]);
}

#[test]
fn a_flush_of_a_whole_region_pins_it() {
    let b = bench();
    let need = Access::FLUSH_GLOBAL;
    assert_eq!(b.memory.remote_all(b.pd, QPN, b.mr.rkey, need).unwrap().len(), LEN);
    let b = bench_with(full() - need);
    assert!(b.memory.remote_all(b.pd, QPN, b.mr.rkey, need).is_err());
}
