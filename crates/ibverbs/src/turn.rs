//! Turns: what begins in one call and ends in another, perhaps of another thread.

use parking_lot::{Condvar, Mutex};

/// One thread's at a time.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    taken: Mutex<bool>,
    free: Condvar,
}

impl Turn {
    /// Takes the turn; waits while another thread has it.
    pub(crate) fn begin(&self) {
        let mut taken = self.taken.lock();
        while *taken {
            self.free.wait(&mut taken);
        }
        *taken = true;
    }

    /// Gives it back. Nothing happens if nobody had it.
    pub(crate) fn end(&self) {
        *self.taken.lock() = false;
        self.free.notify_one();
    }
}
