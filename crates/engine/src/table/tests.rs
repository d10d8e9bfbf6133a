use super::*;

#[test]
fn an_index_is_reused_as_late_as_possible() {
    let t = Table::new(3, 10);
    let index = |t: &Table<usize>| t.insert(|i| i).map(|o| *o);
    assert_eq!(index(&t), Some(10));
    t.remove(10).unwrap();
    assert_eq!(index(&t), Some(11));
    assert_eq!(index(&t), Some(12));
    t.remove(12).unwrap();
    // 10 was freed before 12.
    assert_eq!(index(&t), Some(10));
    assert_eq!(index(&t), Some(12));
    assert_eq!(index(&t), None, "full");
}

#[test]
fn what_is_not_there_is_not_found() {
    let t = Table::new(3, 10);
    t.insert(|i| i).unwrap();
    assert!(t.get(9).is_none());
    assert!(t.get(11).is_none());
    assert_eq!(t.remove(9).unwrap_err(), Kept::Missing);
    assert_eq!(t.remove(11).unwrap_err(), Kept::Missing);
    assert_eq!(*t.remove(10).unwrap(), 10);
    assert!(t.get(10).is_none());
    assert_eq!(t.remove(10).unwrap_err(), Kept::Missing);
    assert!(t.hold(10).is_none());
}

#[test]
fn what_is_held_stays_and_a_mere_look_up_holds_nothing() {
    let t = Table::new(3, 10);
    t.insert(|i| i).unwrap();
    t.hold(10).unwrap();
    t.hold(10).unwrap();
    assert_eq!(t.remove(10).unwrap_err(), Kept::Used(2));
    t.release(10);
    assert_eq!(t.remove(10).unwrap_err(), Kept::Used(1));
    t.release(10);
    let seen = t.get(10).unwrap();
    assert_eq!(*t.remove(10).unwrap(), 10);
    assert_eq!(*seen, 10);
    t.release(10);
    assert_eq!(t.insert(|i| i).map(|o| *o), Some(11));
}

#[test]
fn a_look_up_elsewhere_never_makes_a_removal_fail() {
    let t = Table::new(1, 0);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                drop(t.get(0));
            }
        });
        let removed = (0..2000).all(|_| t.insert(|i| i).is_some() && t.remove(0).is_ok());
        done.store(true, Ordering::Relaxed);
        assert!(removed);
    });
}

#[test]
fn all_are_listed_in_the_order_of_their_indices() {
    let t = Table::new(3, 1);
    (0..3).for_each(|_| assert!(t.insert(|i| i).is_some()));
    t.remove(2).unwrap();
    assert_eq!(t.all().iter().map(|o| **o).collect::<Vec<_>>(), [1, 3]);
}
