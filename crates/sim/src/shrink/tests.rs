use super::*;

fn ids(ids: &[usize]) -> BTreeSet<usize> {
    ids.iter().copied().collect()
}

#[test]
fn what_the_failure_needs_is_kept_and_nothing_else() {
    for needed in [ids(&[3]), ids(&[3, 17]), ids(&[0, 1, 58, 59]), ids(&[5, 20, 21, 40])] {
        let all = (0..60).collect();
        assert_eq!(minimise(all, 1000, |only| needed.is_subset(only)), needed);
    }
}

#[test]
fn it_stops_after_as_many_tries_as_it_may_take() {
    let count = std::cell::Cell::new(0);
    let kept = minimise((0..60).collect(), 10, |only| {
        count.set(count.get() + 1);
        only.contains(&7) && only.contains(&50)
    });
    assert_eq!(count.get(), 10);
    assert!(kept.is_superset(&ids(&[7, 50])) && kept.len() < 60);
}
