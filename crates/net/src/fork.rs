//! Forks: a child has its parent's memory and descriptors, and none of its threads.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCH: Once = Once::new();

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// How many forks lie between the process that asked first and this one. What was made at another
/// count is the parent's: its locks may be held by threads that are not here, and reading its
/// sockets would take the parent's packets.
///
/// Forks that the C library does not see (a bare `clone`) are not counted.
#[must_use]
pub fn generation() -> u32 {
    WATCH.call_once(|| {
        // SAFETY: the handler lives as long as the program, and does what a child of a program
        // with threads may do: it changes one atomic.
        let rc = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        if rc != 0 {
            tracing::warn!(rc, "pthread_atfork: a fork of this process will not be noticed");
        }
    });
    FORKS.load(Ordering::Relaxed)
}

/// As [`generation`], for those who have asked before: one load.
#[must_use]
pub fn generation_now() -> u32 {
    FORKS.load(Ordering::Relaxed)
}
