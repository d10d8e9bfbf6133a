//! What the engine allocates: nothing on a packet's way, and little for a QP at rest.
#![expect(unsafe_code, reason = "a counting allocator implements the unsafe GlobalAlloc")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

mod link;
mod packets;
mod scale;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all calls go to the system's allocator unchanged; only counters are kept beside.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get().wrapping_add(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get().wrapping_sub(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations that `f` makes in this thread.
fn allocations(f: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    f();
    ALLOCATIONS.get() - before
}

/// Bytes that are allocated after `f` and were not before, in this thread.
fn kept_bytes(f: impl FnOnce()) -> usize {
    let before = BYTES.get();
    f();
    BYTES.get().wrapping_sub(before)
}

#[test]
fn the_counters_count() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
    let mut kept = None;
    assert_eq!(kept_bytes(|| kept = Some(std::hint::black_box(Box::new(1_u64)))), 8);
    drop(kept);
}
