//! The key indexes run out, rest, and come back; the reserved ones never appear.

use super::*;

fn keys(next: u32, mask: u32) -> Keys {
    Keys { next, free: VecDeque::new(), mask }
}

#[test]
fn the_last_index_is_reserved_and_then_there_are_no_more() {
    let mut keys = keys(INDEXES - 3, 0);
    assert_eq!(keys.alloc(), Some(INDEXES - 3));
    assert_eq!(keys.alloc(), Some(INDEXES - 2));
    assert_eq!(keys.alloc(), None);
    assert_eq!(keys.alloc(), None);
    assert_eq!(keys.used(), INDEXES);
    keys.free(7);
    assert_eq!(keys.alloc(), Some(7), "with no fresh index left, none needs to rest");
    assert_eq!(keys.alloc(), None);
}

#[test]
fn reserved_indexes_are_passed_over_under_any_mask() {
    let mut low = keys(0x12, 0x12);
    assert_eq!(low.alloc(), Some(0x13));
    let mut high = keys(0xff_ffed, 0x12);
    assert_eq!(high.alloc(), Some(0xff_ffee));
    assert_eq!(keys(0, 0).alloc(), Some(1));
}

#[test]
fn freed_indexes_rest_before_they_are_used_again() {
    let mut keys = keys(1000, 0);
    let resting = u32::try_from(RESTING).unwrap();
    (1..=resting).for_each(|slot| keys.free(slot));
    assert_eq!(keys.alloc(), Some(1000), "a fresh one comes first");
    keys.free(resting + 1);
    assert_eq!(keys.alloc(), Some(1), "the one that rested longest");
    assert_eq!(keys.alloc(), Some(1001));
}

#[test]
fn counts_stop_at_their_limit() {
    let mut count = Count { what: "things", now: 0, max: 1 };
    assert_eq!(count.check(), Ok(()));
    count.add();
    assert_eq!(count.check(), Err(MemoryError::Limit { what: "things", max: 1 }));
    count.remove();
    assert_eq!((count.check(), count.now()), (Ok(()), 0));
}
