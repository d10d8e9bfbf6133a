//! Copies at every alignment, buffers, and memory that the test owns.

use super::*;

#[test]
fn tail_is_the_largest_aligned_word_at_the_end() {
    for (end, len, want) in
        [(16, 16, 8), (16, 8, 8), (16, 7, 4), (12, 9, 4), (10, 9, 2), (9, 9, 1), (16, 1, 1)]
    {
        assert_eq!(tail_len(end, len), want, "end {end}, len {len}");
    }
    assert_eq!(tail_len(16, 0), 0);
}

#[test]
fn copies_are_exact_at_every_alignment() {
    let pattern: Vec<u8> = (1..=64).collect();
    for offset in 0..9 {
        for len in 0..=40 {
            let buffer = Buffer::zeroed(64).unwrap();
            buffer.write(offset, &pattern[..len]).unwrap();
            let mut want = [0; 64];
            want[offset..offset + len].copy_from_slice(&pattern[..len]);
            let mut all = [0xff; 64];
            buffer.read(0, &mut all).unwrap();
            assert_eq!(all, want, "write {offset}+{len}");
            let mut part = vec![0xff; len];
            buffer.read(offset, &mut part).unwrap();
            assert_eq!(part, pattern[..len], "read {offset}+{len}");
        }
    }
}

#[test]
fn buffers_are_zeroed_aligned_and_bounded() {
    let buffer = Buffer::zeroed(5000).unwrap();
    assert_eq!((buffer.len(), buffer.is_empty()), (5000, false));
    assert!(buffer.as_ptr().addr().is_multiple_of(4096));
    let mut all = vec![0xff; 5000];
    buffer.read(0, &mut all).unwrap();
    assert!(all.iter().all(|&byte| byte == 0));
    let range = |offset, len| Err(MemoryError::BufferRange { offset, len, have: 5000 });
    assert_eq!(buffer.write(4999, &[1, 2]), range(4999, 2));
    assert_eq!(buffer.read(5000, &mut [0]), range(5000, 1));
    assert_eq!(buffer.read(usize::MAX, &mut [0]), range(u64::MAX, 1));
    assert_eq!(buffer.write(5000, &[]), Ok(()));
    assert_eq!(buffer.write(4999, &[7]), Ok(()));
    assert_eq!(buffer.load_u8(4999), Ok(7));
    assert_eq!(buffer.load_u8(5000), range(5000, 1).map(|()| 0));
    assert_eq!(buffer.fetch_add(4, 1), Err(MemoryError::Misaligned { offset: 4 }));
    assert_eq!(buffer.fetch_add(4993, 1), range(4993, 8).map(|()| 0));
    assert_eq!(buffer.fetch_add(8, 3), Ok(0));
    assert_eq!(buffer.fetch_add(8, 3), Ok(3));
    let said = format!("{buffer:?}");
    assert!(said.starts_with("Buffer(0x") && said.ends_with("+0x1388)"), "{said}");
}

#[test]
fn sizes_that_no_allocator_has_are_refused() {
    for len in [usize::MAX, isize::MAX as usize, isize::MAX as usize - 4096] {
        assert_eq!(Buffer::zeroed(len).map(drop), Err(MemoryError::OutOfMemory { len }));
    }
    let none = Buffer::zeroed(0).unwrap();
    assert!(none.is_empty());
    assert_eq!(none.read(0, &mut []), Ok(()));
    assert!(none.load_u8(0).is_err());
}

/// An area of `len` bytes at `base`.
fn raw(base: *mut u8, len: usize) -> Result<Area, MemoryError> {
    // SAFETY: each test below keeps its memory alive and accesses it by raw pointer only.
    unsafe { Backing::raw(base, len) }.map(|backing| backing.0)
}

#[test]
fn raw_memory_is_copied_within_its_bounds() {
    let mut memory = [0_u64; 4];
    let base = memory.as_mut_ptr().cast::<u8>();
    let area = raw(base.wrapping_add(8), 16).unwrap();
    assert_eq!(area.len(), 16);
    assert_eq!(area.write(0, &[0xff; 16]), Ok(()));
    for (offset, len) in [(0, 17), (16, 1), (9, 8), (u64::MAX, 1), (u64::MAX - 15, 16)] {
        let mut bytes = vec![0; len];
        assert_eq!(area.write(offset, &bytes), Err(Fault::Bounds), "{offset}+{len}");
        assert_eq!(area.read(offset, &mut bytes), Err(Fault::Bounds), "{offset}+{len}");
    }
    assert_eq!(area.fetch_add(8, 1), Ok(u64::MAX));
    assert_eq!(area.fetch_add(9, 1), Err(Fault::Bounds));
    assert_eq!(area.fetch_add(4, 1), Err(Fault::Misaligned));
    assert_eq!(area.again().at(16, 0), Ok(base.wrapping_add(24)));
    let said = format!("{area:?}");
    assert!(said.ends_with("+0x10)"), "{said}");
    drop(area);
    assert_eq!(memory, [0, u64::MAX, 0, 0]);
}

#[test]
fn null_and_wrapping_memory_is_refused() {
    assert_eq!(raw(ptr::null_mut(), 1).map(drop), Err(MemoryError::NullPointer { len: 1 }));
    assert!(raw(ptr::null_mut(), 0).is_ok());
    let high = ptr::without_provenance_mut(usize::MAX - 3);
    let overflow = MemoryError::AddressOverflow { addr: u64::MAX - 3, len: 8 };
    assert_eq!(raw(high, 8).map(drop), Err(overflow));
}

#[test]
fn an_implicit_area_reaches_exposed_memory() {
    let mut memory = [0_u8; 16];
    let addr = memory.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: only the bytes of `memory` are accessed.
    let area = unsafe { Backing::implicit() }.0;
    assert_eq!(area.len(), u64::MAX);
    area.write(addr + 3, b"here").unwrap();
    let mut got = [0; 4];
    area.read(addr + 3, &mut got).unwrap();
    assert_eq!(&got, b"here");
    assert_eq!(area.at(u64::MAX, 1), Err(Fault::Bounds));
    assert_eq!(&memory[2..8], b"\0here\0");
}
