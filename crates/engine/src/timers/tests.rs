use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const fn ns(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

#[test]
fn none_then_one_then_none() {
    let mut timers = Timers::new();
    assert_eq!(timers.next(), None);
    assert_eq!(timers.pop_expired(Time::MAX), None);
    timers.set(3, Some(ns(100)));
    assert_eq!(timers.next(), Some(ns(100)));
    assert_eq!(timers.pop_expired(ns(99)), None, "never early");
    assert_eq!(timers.pop_expired(ns(100)), Some(3), "not late either");
    assert_eq!(timers.next(), None);
    assert_eq!(timers.pop_expired(Time::MAX), None);
}

#[test]
fn cancelling_leaves_nothing() {
    let mut timers = Timers::new();
    for index in [0, 7, 8, 63, 64, 511, 512, 262_143] {
        timers.set(index, Some(ns(5)));
        timers.set(index, None);
        assert_eq!(timers.next(), None, "{index}");
    }
    timers.set(1, Some(ns(9)));
    timers.set(1, Some(ns(4)));
    timers.set(1, Some(ns(7)));
    assert_eq!(timers.pop_expired(Time::MAX), Some(1));
    assert_eq!(timers.pop_expired(Time::MAX), None);
}

#[test]
fn equal_deadlines_come_by_index() {
    let mut timers = Timers::new();
    for index in [70_000, 9, 8, 0, 65] {
        timers.set(index, Some(ns(1)));
    }
    timers.set(1_000, Some(ns(0)));
    let order: Vec<_> = std::iter::from_fn(|| timers.pop_expired(ns(1))).collect();
    assert_eq!(order, [1_000, 0, 8, 9, 65, 70_000]);
}

#[test]
fn growing_keeps_what_was_set() {
    let mut timers = Timers::new();
    timers.set(5, Some(ns(50)));
    for index in [8, 64, 512, 4_096, 262_143] {
        timers.reserve(index);
        assert_eq!(timers.next(), Some(ns(50)), "{index}");
    }
    timers.set(262_143, Some(ns(40)));
    assert_eq!(timers.pop_expired(ns(60)), Some(262_143));
    assert_eq!(timers.pop_expired(ns(60)), Some(5));
}

#[test]
fn room_is_made_by_reserving_and_by_deadlines_only() {
    let mut timers = Timers::new();
    timers.set(1_000_000, None);
    assert_eq!(timers.place.len(), 0);
    timers.reserve((1 << 18) - 1);
    let room = (timers.place.capacity(), timers.heap.capacity());
    assert!(room.0 >= 1 << 18 && room.1 >= 1 << 18);
    for index in 0..1 << 18 {
        timers.set(index, Some(ns(7)));
    }
    timers.reserve(3);
    assert_eq!((timers.place.capacity(), timers.heap.capacity()), room);
    assert_eq!(timers.place.len(), 1 << 18);
    timers.set(1 << 18, Some(ns(1)));
    assert_eq!(timers.pop_expired(ns(1)), Some(1 << 18));
    assert!(timers.heap.capacity() <= 1 << 19, "grows by doubling");
}

/// The same queue as a sorted map.
#[derive(Default)]
struct Model(BTreeMap<usize, Time>);

impl Model {
    fn first(&self) -> Option<(Time, usize)> {
        self.0.iter().map(|(&index, &at)| (at, index)).min()
    }

    fn pop_expired(&mut self, now: Time) -> Option<usize> {
        let (_, index) = self.first().filter(|&(at, _)| at <= now)?;
        self.0.remove(&index);
        Some(index)
    }
}

#[derive(Clone, Debug)]
enum Op {
    Reserve(usize),
    Set(usize, u64),
    Cancel(usize),
    Pop(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let index = || prop_oneof![0..20usize, 0..700usize, 0..5_000usize];
    let time = || prop_oneof![0..50u64, 0..(u64::MAX - 1)];
    prop_oneof![
        1 => index().prop_map(Op::Reserve),
        8 => (index(), time()).prop_map(|(index, at)| Op::Set(index, at)),
        4 => index().prop_map(Op::Cancel),
        4 => time().prop_map(Op::Pop),
    ]
}

/// No node before its parent, each at the place noted for it, no other place noted.
fn is_sound(timers: &Timers) -> bool {
    let (heap, place) = (&timers.heap, &timers.place);
    let ordered = (1..heap.len()).all(|n| heap[(n - 1) / WIDTH] < heap[n]);
    let placed = heap.iter().enumerate().all(|(n, &(_, index))| place[index] == n);
    ordered && placed && place.iter().filter(|&&p| p != NOWHERE).count() == heap.len()
}

proptest! {
    #[test]
    fn behaves_as_a_sorted_map(ops in prop::collection::vec(op(), 1..200)) {
        let (mut timers, mut model) = (Timers::new(), Model::default());
        for op in ops {
            match op {
                Op::Reserve(index) => timers.reserve(index),
                Op::Set(index, at) => {
                    timers.set(index, Some(ns(at)));
                    model.0.insert(index, ns(at));
                }
                Op::Cancel(index) => {
                    timers.set(index, None);
                    model.0.remove(&index);
                }
                Op::Pop(now) => {
                    prop_assert_eq!(timers.pop_expired(ns(now)), model.pop_expired(ns(now)));
                }
            }
            prop_assert_eq!(timers.next(), model.first().map(|(at, _)| at));
            prop_assert!(is_sound(&timers));
        }
        while let Some(index) = model.pop_expired(Time::MAX) {
            prop_assert_eq!(timers.pop_expired(Time::MAX), Some(index));
        }
        prop_assert_eq!(timers.next(), None);
    }
}
