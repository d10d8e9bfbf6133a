//! After set-up, moving packets and binding windows allocates nothing.
#![expect(unsafe_code, reason = "a counting allocator implements the unsafe GlobalAlloc")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use urxe_memory::{
    Access, Backing, BindMw, Buffer, Config, Gather, KeyError, MAX_SGE, Memory, MwType, Sge,
};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all calls go to the system's allocator unchanged; only a counter is kept beside.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
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

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn the_data_path_allocates_nothing() {
    let memory = Memory::new(Config::default());
    let pd = memory.alloc_pd().unwrap();
    let buffer = Buffer::zeroed(8192).unwrap();
    let access = Access::all() - Access::ZERO_BASED;
    let mr = memory.reg_mr(pd, Backing::buffer(Arc::clone(&buffer)), 0, access).unwrap();
    let sges: Vec<Sge> =
        (0..32).map(|i| Sge { addr: i * 256, length: 128, lkey: mr.lkey }).collect();
    assert_eq!(sges.len(), MAX_SGE);
    let mut packet = [7; 4096];
    let mut reused = Gather::default();
    let used = allocations(|| {
        for _ in 0..10 {
            memory.scatter(pd, &sges, 0, &packet).unwrap();
            let gather = memory.gather(pd, &sges, 0, 4096).unwrap();
            assert_eq!(gather.copy_to(&mut packet), 4096);
            assert_eq!(gather.pieces().count(), 32);
            let mut sum = 0_u64;
            gather.for_each_chunk(|chunk| sum += chunk.len() as u64);
            assert_eq!(sum, 4096);
            memory.gather_into(pd, &sges, 128, 100, &mut reused).unwrap();
            assert_eq!(reused.len(), 100);
            let inline = Gather::inline(&packet[..64]).unwrap();
            assert_eq!(inline.len(), 64);

            let pinned = memory.remote(pd, 1, mr.rkey, 64, 4096, Access::REMOTE).unwrap();
            pinned.write(0, &packet).unwrap();
            pinned.read(0, &mut packet).unwrap();
            pinned.fetch_add(0, 1).unwrap();
            pinned.cmp_swap(8, 0, 1).unwrap();
            assert_eq!(pinned.slice(0, 1024).unwrap().len(), 1024);
            // Refusals allocate nothing either.
            let unknown = memory.gather(pd, &[Sge { lkey: 0xfff, ..sges[0] }], 0, 1);
            assert!(matches!(unknown, Err(KeyError::UnknownKey { .. })));
            assert!(memory.remote(pd, 1, mr.rkey, 8192, 1, Access::REMOTE).is_err());
        }
    });
    assert_eq!(used, 0);
}

#[test]
fn binding_and_invalidating_allocates_nothing() {
    let memory = Memory::new(Config::default());
    let pd = memory.alloc_pd().unwrap();
    let backing = Backing::buffer(Buffer::zeroed(64).unwrap());
    let mr = memory.reg_mr(pd, backing, 0, Access::MW_BIND).unwrap();
    let (mw, rkey) = memory.alloc_mw(pd, MwType::Type2B).unwrap();
    let (lkey, new_rkey, access) = (mr.lkey, Some(rkey), Access::REMOTE_READ);
    let bind = BindMw { mw, pd, qpn: 1, lkey, new_rkey, addr: 0, len: 64, access };
    let used = allocations(|| {
        for _ in 0..10 {
            memory.bind_mw(&bind).unwrap();
            assert!(memory.remote(pd, 1, rkey, 0, 64, access).is_ok());
            memory.invalidate(pd, 1, rkey, true).unwrap();
        }
    });
    assert_eq!(used, 0);
}
