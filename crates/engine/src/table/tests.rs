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
    assert!(t.remove(11).is_none());
    assert!(t.remove(10).is_some());
    assert!(t.get(10).is_none());
    assert!(t.remove(10).is_none());
}
