//! The one place with unsafe code: owned buffers, and raw copies and atomics on registered memory.
//!
//! # Why it is sound
//!
//! An [`Area`] is a base pointer and a length. It exists only inside a `Grant`, it cannot be copied
//! out of the crate, and each of its methods checks its bounds and finishes its access before it
//! returns. The memory is valid while the `Area` exists: owned memory because the `Area` keeps the
//! [`Buffer`] alive, raw memory because the caller of [`Backing::raw`] promised it until
//! `dereg_mr` (or the `rereg_mr` that replaces it) returns, and these return after the last
//! `Grant` with that memory is gone.
//!
//! The program and peers may write the memory at any time, as with a hardware NIC. No `&[u8]` to it
//! is formed. Copies are `memcpy` calls on raw pointers, opaque to the compiler's assumptions about
//! references; whoever races with them gets a mix of old and new bytes, nothing worse. What
//! programs rely on under a race (the last word of a packet, words of 1, 2, 4 or 8 bytes, atomics)
//! goes through atomic operations.
#![expect(unsafe_code, reason = "raw copies into registered memory are this module's purpose")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, fence};

use crate::MemoryError;

/// Alignment of owned buffers: a page.
const PAGE: usize = 4096;

/// Zeroed, page-aligned memory owned by this crate, to be registered with [`Backing::buffer`].
///
/// While it is registered, peers read and write it at any time; therefore it hands out copies and
/// words, never slices.
pub struct Buffer {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a Buffer owns its allocation; nothing about it is tied to a thread.
unsafe impl Send for Buffer {}
// SAFETY: shared access goes through raw copies and atomics that tolerate other writers.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Allocates `len` zero bytes, aligned to 4,096.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfMemory`].
    pub fn zeroed(len: usize) -> Result<Arc<Self>, MemoryError> {
        let fail = MemoryError::OutOfMemory { len };
        let layout = Self::layout(len).ok_or(fail)?;
        // SAFETY: the layout's size is not zero: `layout` asks for one byte at least.
        let base = unsafe { alloc_zeroed(layout) };
        let base = NonNull::new(base).ok_or(fail)?;
        Ok(Arc::new(Self { base, len }))
    }

    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.max(1), PAGE).ok()
    }

    /// Bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of the first byte. Access through it must expect peers to write at any time.
    #[must_use]
    pub const fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Copies bytes out. A peer's write in progress may be seen in part, save in an aligned word:
    /// 1, 2, 4 or 8 bytes are read at once, with acquire ordering.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BufferRange`] if the buffer ends before.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), MemoryError> {
        let at = self.at(offset, into.len())?;
        // SAFETY: `at` checked that the bytes lie within the allocation.
        unsafe { copy_out(at, into) };
        Ok(())
    }

    /// Copies bytes in; whoever sees the last one (with an acquiring load) sees all.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BufferRange`] if the buffer ends before.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), MemoryError> {
        let at = self.at(offset, from.len())?;
        // SAFETY: `at` checked that the bytes lie within the allocation.
        unsafe { copy_in(at, from) };
        Ok(())
    }

    /// Reads one byte with acquire ordering: after the last byte of a peer's packet was seen, all
    /// of the packet is seen.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BufferRange`] if there is no such byte.
    pub fn load_u8(&self, offset: usize) -> Result<u8, MemoryError> {
        let mut byte = [0];
        self.read(offset, &mut byte)?; // one byte is one atomic, acquiring load
        Ok(byte[0])
    }

    /// Adds to an 8-byte word, wrapping; returns what it was. One atomic among those of peers.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BufferRange`], [`MemoryError::Misaligned`].
    pub fn fetch_add(&self, offset: usize, add: u64) -> Result<u64, MemoryError> {
        let at = self.at(offset, 8)?.cast::<u64>();
        if !at.is_aligned() {
            return Err(MemoryError::Misaligned { offset: offset as u64 });
        }
        // SAFETY: aligned and within the allocation, as just checked.
        Ok(unsafe { AtomicU64::from_ptr(at) }.fetch_add(add, SeqCst))
    }

    fn at(&self, offset: usize, len: usize) -> Result<*mut u8, MemoryError> {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            let (offset, len, have) = (offset as u64, len as u64, self.len as u64);
            return Err(MemoryError::BufferRange { offset, len, have });
        }
        Ok(self.base.as_ptr().wrapping_add(offset))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.len) {
            // SAFETY: allocated in `zeroed` with this same layout, and freed only here.
            unsafe { dealloc(self.base.as_ptr(), layout) };
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({:p}+{:#x})", self.base, self.len)
    }
}

/// The memory behind a region.
#[derive(Debug)]
pub struct Backing(pub(crate) Area);

impl Backing {
    /// All of an owned buffer.
    #[must_use]
    pub fn buffer(buffer: Arc<Buffer>) -> Self {
        Self(Area {
            base: buffer.as_ptr(),
            len: buffer.len() as u64,
            owner: Some(buffer),
            void: false,
        })
    }

    /// A part of an owned buffer.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BufferRange`] if the buffer ends before.
    pub fn part(buffer: Arc<Buffer>, offset: usize, len: usize) -> Result<Self, MemoryError> {
        let base = buffer.at(offset, len)?;
        Ok(Self(Area { base, len: len as u64, owner: Some(buffer), void: false }))
    }

    /// Memory that the caller owns.
    ///
    /// # Errors
    ///
    /// [`MemoryError::NullPointer`], [`MemoryError::AddressOverflow`].
    ///
    /// # Safety
    ///
    /// From registration until `dereg_mr`, or a `rereg_mr` that replaces the memory, has returned,
    /// the bytes must stay mapped, readable and (if the region has `LOCAL_WRITE`) writable, and no
    /// Rust reference to them may be alive while a peer or the NIC may access them, save to
    /// atomics. Dropping the [`Memory`](crate::Memory) instead does not end the duty.
    pub unsafe fn raw(base: *mut u8, len: usize) -> Result<Self, MemoryError> {
        let (addr, len) = (base.addr() as u64, len as u64);
        if base.is_null() && len > 0 {
            return Err(MemoryError::NullPointer { len });
        }
        if addr.checked_add(len).is_none() {
            return Err(MemoryError::AddressOverflow { addr, len });
        }
        Ok(Self(Area { base, len, owner: None, void: false }))
    }

    /// The whole address space of the process (an implicit on-demand region): with an iova of 0, an
    /// address is a pointer of the program.
    ///
    /// # Safety
    ///
    /// As for [`raw`](Self::raw), for each byte that a holder of the key accesses: an access to an
    /// address that is not mapped ends the process.
    #[must_use]
    pub unsafe fn implicit() -> Self {
        let base = ptr::with_exposed_provenance_mut(0);
        Self(Area { base, len: u64::MAX, owner: None, void: false })
    }

    /// No memory: it reads as zeros at every address, and forgets what is written to it.
    #[must_use]
    pub const fn null() -> Self {
        Self(Area { base: ptr::null_mut(), len: u64::MAX, owner: None, void: true })
    }

    /// Bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.0.len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.len == 0
    }
}

/// Why an access to an [`Area`] was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Bounds,
    Misaligned,
}

/// Registered bytes. Valid for access for as long as it exists; see the module's head.
pub(crate) struct Area {
    base: *mut u8,
    len: u64,
    owner: Option<Arc<Buffer>>,
    /// Whether there is no memory: see [`Backing::null`].
    void: bool,
}

// SAFETY: the memory is process-wide; the contract of `Backing` does not tie it to a thread.
unsafe impl Send for Area {}
// SAFETY: as for `Buffer`: only raw copies and atomics that tolerate other writers.
unsafe impl Sync for Area {}

impl Area {
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// The same bytes again, for a region that keeps its memory when its rights change. The caller
    /// keeps to the contract for both: neither outlives the region's registration.
    pub(crate) fn again(&self) -> Self {
        Self { owner: self.owner.clone(), base: self.base, len: self.len, void: self.void }
    }

    /// Whether there is no memory behind it.
    pub(crate) const fn is_void(&self) -> bool {
        self.void
    }

    /// Where `len` bytes at `offset` stand, if the area has them. A void one has no such place.
    pub(crate) fn at(&self, offset: u64, len: usize) -> Result<*mut u8, Fault> {
        let end = offset.checked_add(len as u64).ok_or(Fault::Bounds)?;
        let start = usize::try_from(offset).map_err(|_| Fault::Bounds)?;
        if end > self.len {
            return Err(Fault::Bounds);
        }
        if self.base.is_null() {
            // The whole address space: its pointers were exposed by the program that made them.
            return Ok(ptr::with_exposed_provenance_mut(start));
        }
        Ok(self.base.wrapping_add(start))
    }

    /// Copies out.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Fault> {
        let at = self.at(offset, into.len())?;
        if self.void {
            into.fill(0);
            return Ok(());
        }
        // SAFETY: within the area, which is valid while it exists.
        unsafe { copy_out(at, into) };
        Ok(())
    }

    /// Copies in; the last word is released.
    pub(crate) fn write(&self, offset: u64, from: &[u8]) -> Result<(), Fault> {
        let at = self.at(offset, from.len())?;
        if self.void {
            return Ok(());
        }
        // SAFETY: within the area, which is valid while it exists.
        unsafe { copy_in(at, from) };
        Ok(())
    }

    /// Stores `swap` if the word is `compare`; returns what it was.
    pub(crate) fn cmp_swap(&self, offset: u64, compare: u64, swap: u64) -> Result<u64, Fault> {
        self.word(offset, |word| {
            let old = word.compare_exchange(compare, swap, SeqCst, SeqCst);
            old.unwrap_or_else(|other| other)
        })
    }

    /// Adds, wrapping; returns what the word was.
    pub(crate) fn fetch_add(&self, offset: u64, add: u64) -> Result<u64, Fault> {
        self.word(offset, |word| word.fetch_add(add, SeqCst))
    }

    /// Stores a word at once, after all earlier writes.
    pub(crate) fn write_u64(&self, offset: u64, value: u64) -> Result<(), Fault> {
        self.word(offset, |word| word.store(value, SeqCst))
    }

    /// The word as an atomic. An `&AtomicU64` claims nothing about who else changes the word, so
    /// unlike `&u64` it may stand for registered memory.
    fn word<T>(&self, offset: u64, access: impl FnOnce(&AtomicU64) -> T) -> Result<T, Fault> {
        let at = self.at(offset, 8)?.cast::<u64>();
        if !at.is_aligned() {
            return Err(Fault::Misaligned);
        }
        if self.void {
            return Ok(access(&AtomicU64::new(0)));
        }
        // SAFETY: aligned, within the area, and the borrow ends before the area does.
        Ok(access(unsafe { AtomicU64::from_ptr(at) }))
    }
}

impl fmt::Debug for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Area({:p}+{:#x})", self.base, self.len)
    }
}

/// Bytes at the end of a copy that ends at address `end` which one naturally aligned store can
/// write.
const fn tail_len(end: usize, len: usize) -> usize {
    let mut tail = 8;
    while tail > len || (tail > 1 && !end.is_multiple_of(tail)) {
        tail /= 2;
    }
    tail
}

/// Copies `from` to registered memory at `to`.
///
/// Whoever sees the last byte sees all: what precedes the last naturally aligned word (8 bytes if
/// the end is aligned, else 4, 2 or 1) is copied at full speed in any order, then that word is
/// stored at once with release ordering, which orders all stores before it. A flag of up to 8
/// aligned bytes at the end is therefore never seen in part. The fence keeps this copy's bytes
/// behind those of the packet before. On x86-64 neither costs an instruction.
///
/// # Safety
///
/// `to` must be valid for writes of `from.len()` bytes.
unsafe fn copy_in(to: *mut u8, from: &[u8]) {
    let tail = tail_len(to.addr().wrapping_add(from.len()), from.len());
    let (bulk, last) = from.split_at(from.len() - tail);
    fence(Release);
    // SAFETY: valid by contract; `from` is an ordinary slice, which registered memory is not.
    unsafe { ptr::copy_nonoverlapping(bulk.as_ptr(), to, bulk.len()) };
    let end = to.wrapping_add(bulk.len());
    match *last {
        [] => {}
        [a] => {
            // SAFETY: valid by contract.
            unsafe { AtomicU8::from_ptr(end) }.store(a, Release);
        }
        [a, b] => {
            let value = u16::from_ne_bytes([a, b]);
            // SAFETY: valid by contract, aligned by `tail_len`.
            unsafe { AtomicU16::from_ptr(end.cast()) }.store(value, Release);
        }
        [a, b, c, d] => {
            let value = u32::from_ne_bytes([a, b, c, d]);
            // SAFETY: valid by contract, aligned by `tail_len`.
            unsafe { AtomicU32::from_ptr(end.cast()) }.store(value, Release);
        }
        _ => {
            let mut word = [0; 8];
            word.copy_from_slice(last);
            // SAFETY: valid by contract, aligned by `tail_len`.
            unsafe { AtomicU64::from_ptr(end.cast()) }.store(u64::from_ne_bytes(word), Release);
        }
    }
}

/// Copies registered memory at `from` to `into`.
///
/// Aligned words of 1, 2, 4 or 8 bytes are read at once. The fence keeps what is read later behind
/// this copy: a peer that reads a flag, then the data, gets data no older than the flag.
///
/// # Safety
///
/// `from` must be valid for reads of `into.len()` bytes.
unsafe fn copy_out(from: *mut u8, into: &mut [u8]) {
    match into.len() {
        1 => {
            // SAFETY: valid by contract.
            into[0] = unsafe { AtomicU8::from_ptr(from) }.load(Acquire);
        }
        2 if from.addr().is_multiple_of(2) => {
            // SAFETY: valid by contract, aligned as just checked.
            let value = unsafe { AtomicU16::from_ptr(from.cast()) }.load(Acquire);
            into.copy_from_slice(&value.to_ne_bytes());
        }
        4 if from.addr().is_multiple_of(4) => {
            // SAFETY: valid by contract, aligned as just checked.
            let value = unsafe { AtomicU32::from_ptr(from.cast()) }.load(Acquire);
            into.copy_from_slice(&value.to_ne_bytes());
        }
        8 if from.addr().is_multiple_of(8) => {
            // SAFETY: valid by contract, aligned as just checked.
            let value = unsafe { AtomicU64::from_ptr(from.cast()) }.load(Acquire);
            into.copy_from_slice(&value.to_ne_bytes());
        }
        len => {
            // SAFETY: valid by contract; `into` is an ordinary slice, which registered memory is
            // not.
            unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), len) };
        }
    }
    fence(Acquire);
}

#[cfg(test)]
mod tests;
