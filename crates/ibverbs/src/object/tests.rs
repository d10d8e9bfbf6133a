use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use super::*;

/// Says when it ends.
#[derive(Debug)]
struct Mark {
    number: usize,
}

kind!(Mark, "mark", u64);

const MARKS: usize = 400;
static ENDED: [AtomicBool; MARKS] = [const { AtomicBool::new(false) }; MARKS];

impl Drop for Mark {
    fn drop(&mut self) {
        ENDED[self.number].store(true, Ordering::SeqCst);
    }
}

fn make(number: usize) -> &'static Object<Mark> {
    Mark::pool().make(|_| Ok((0, Mark { number }))).unwrap()
}

#[test]
fn an_object_that_a_search_looks_at_lives_until_the_search_is_through() {
    // Elsewhere one is destroyed while a search looks at it: it can begin, and not end.
    let seen_dead = AtomicUsize::new(0);
    for (number, ended) in ENDED.iter().enumerate() {
        let object = make(number);
        let (looking, look) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                look.recv().unwrap();
                Mark::pool().destroy(object).unwrap();
            });
            let found = Mark::pool().first(|other| {
                (other.own().number == number).then(|| {
                    looking.send(()).unwrap();
                    for _ in 0..20 {
                        std::thread::yield_now();
                        let dead = ended.load(Ordering::SeqCst);
                        seen_dead.fetch_add(dead.into(), Ordering::SeqCst);
                    }
                })
            });
            assert_eq!(found, Some(()));
        });
        assert!(ended.load(Ordering::SeqCst));
    }
    assert_eq!(seen_dead.into_inner(), 0);
}

/// One that nothing ends but its pool.
#[derive(Debug)]
struct Plain;

kind!(Plain, "plain object", u64);

#[test]
fn an_object_that_a_search_holds_is_busy_and_others_end() {
    let pool = Plain::pool();
    let [one, two] = [(); 2].map(|()| pool.make(|_| Ok((0, Plain))).unwrap());
    let held = pool.first(|object| ptr::eq(object, one).then(|| object.hold())).unwrap();
    assert_eq!(pool.destroy(one).map_err(|fail| fail.errno), Err(libc::EBUSY));
    let ends = pool.begin_end_all(|_| true);
    assert_eq!(ends.len(), 1);
    for refused in [pool.get(two.public()).err(), pool.destroy(two).err()] {
        assert_eq!(refused.map(|fail| fail.errno), Some(libc::EINVAL));
    }
    drop(ends);
    drop(held);
    assert_eq!(pool.begin_end_all(|_| true).len(), 1);
    assert!(pool.first(|_| Some(())).is_none());
}
