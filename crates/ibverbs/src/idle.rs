//! Threads that poll and find nothing.

use std::cell::Cell;

/// So many polls in vain are made at full speed: they take longer than an answer from a peer that
/// runs on a core of its own.
const PATIENCE: u32 = 64;

thread_local! {
    static IN_VAIN: Cell<u32> = const { Cell::new(0) };
}

/// A thread has polled and found something or not. After many polls in vain it gives its core to
/// whoever else wants it: that may be the peer. Says whether it did.
pub(crate) fn polled(found: bool) -> bool {
    let before = IN_VAIN.get();
    if found {
        IN_VAIN.set(0);
        return false;
    }
    if before < PATIENCE {
        IN_VAIN.set(before + 1);
        return false;
    }
    std::thread::yield_now();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_is_given_away_after_many_polls_in_vain_of_one_thread() {
        assert!((0..64).all(|_| !polled(false)));
        assert!(polled(false) && polled(false));
        assert!(!polled(true));
        assert!((0..64).all(|_| !polled(false)));
        std::thread::spawn(|| assert!(!polled(false))).join().unwrap();
        assert!(polled(false));
    }
}
