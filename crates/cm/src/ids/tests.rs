use std::collections::BTreeSet;

use super::{BITS, HALF, HALF_MASK, Ids, MASK, low32, mix};

#[test]
fn no_id_comes_twice_and_all_are_of_the_slot() {
    let mut ids = Ids::new(5, 7);
    let seen: BTreeSet<u32> = (0..100_000).map(|_| ids.next().0).collect();
    assert_eq!(seen.len(), 100_000);
    assert!(seen.iter().all(|id| id >> BITS == 5));
}

/// Undoes the rounds, last one first.
fn gather(ids: &Ids, id: u32) -> u32 {
    let (mut left, mut right) = (id >> HALF & HALF_MASK, id & HALF_MASK);
    for key in ids.keys.iter().rev() {
        let mixed = low32(mix(key ^ u64::from(left))) & HALF_MASK;
        (left, right) = (right ^ mixed, left);
    }
    left << HALF | right
}

#[test]
fn spreading_can_be_undone() {
    let ids = Ids::new(0, 99);
    for n in (0..=MASK).step_by(997).chain([1, MASK - 1, MASK]) {
        let id = ids.spread(n);
        assert!(id <= MASK);
        assert_eq!(gather(&ids, id), n);
    }
}

#[test]
fn zero_is_no_id() {
    for seed in 0..100 {
        let mut ids = Ids::new(0, seed);
        ids.next = gather(&ids, 0);
        assert_eq!(ids.spread(ids.next), 0);
        assert_ne!(ids.next().0, 0);
    }
}

#[test]
fn another_seed_gives_other_ids() {
    assert_ne!(Ids::new(0, 1).next(), Ids::new(0, 2).next());
    assert_eq!(Ids::new(3, 1).next(), Ids::new(3, 1).next());
}
