//! The payload of one packet, in pieces.

use std::marker::PhantomData;
use std::sync::Arc;

use arrayvec::ArrayVec;

use crate::KeyError;
use crate::grant::Grant;

/// Most elements of a scatter/gather list.
pub const MAX_SGE: usize = 32;
/// Most bytes of inline data in one packet.
pub const MAX_INLINE: usize = 768;
/// Bytes that [`Gather::for_each_chunk`] copies at a time.
const CHUNK: usize = 1024;

/// Pinned bytes within one region.
#[derive(Debug)]
pub(crate) struct Piece {
    grant: Arc<Grant>,
    /// Where they stand in the area.
    offset: u64,
    len: usize,
}

impl Piece {
    /// `offset` and `len` are within the grant's area; `addr` is for the error if they are not.
    pub(crate) fn new(
        grant: Arc<Grant>,
        addr: u64,
        offset: u64,
        len: u64,
    ) -> Result<Self, KeyError> {
        let (key, start, length) = (grant.key, grant.start, grant.len);
        let range = KeyError::Range { key, addr, len, start, length };
        let bytes = usize::try_from(len).map_err(|_| range)?;
        grant.area().and_then(|area| area.at(offset, bytes).ok()).ok_or(range)?;
        Ok(Self { grant, offset, len: bytes })
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Copies all of `from`, which is not longer than the piece.
    pub(crate) fn write(&self, from: &[u8]) -> Result<(), KeyError> {
        let area = self.grant.area();
        let done = area.and_then(|area| area.write(self.offset, from).ok());
        done.ok_or(KeyError::NotBound { key: self.grant.key })
    }

    /// Copies from `skip` bytes on; returns how many, at most what fits in `into`.
    fn read(&self, skip: usize, into: &mut [u8]) -> usize {
        let len = self.len.saturating_sub(skip).min(into.len());
        let area = self.grant.area();
        let done =
            area.and_then(|area| area.read(self.offset + skip as u64, &mut into[..len]).ok());
        done.map_or(0, |()| len)
    }

    fn as_ptr(&self) -> *const u8 {
        let area = self.grant.area().filter(|area| !area.is_void());
        let at = area.and_then(|area| area.at(self.offset, self.len).ok());
        at.map_or(std::ptr::null(), <*mut u8>::cast_const)
    }
}

#[derive(Debug)]
enum Parts {
    Pinned(ArrayVec<Piece, MAX_SGE>),
    Inline(ArrayVec<u8, MAX_INLINE>),
}

/// The payload of one packet: pinned pieces of registered memory, or inline bytes.
///
/// It owns its pins: it may be kept until the packet has left, and delays the regions'
/// deregistration for so long. Drop it then.
#[derive(Debug)]
pub struct Gather {
    parts: Parts,
    len: usize,
}

impl Default for Gather {
    fn default() -> Self {
        Self { parts: Parts::Pinned(ArrayVec::new_const()), len: 0 }
    }
}

impl Gather {
    /// Adds a piece to an empty or pinned payload.
    pub(crate) fn push(&mut self, piece: Piece) {
        if let Parts::Pinned(pieces) = &mut self.parts {
            self.len += piece.len;
            pieces.push(piece);
        }
    }

    /// Lets go of all that it holds.
    pub fn clear(&mut self) {
        self.len = 0;
        match &mut self.parts {
            Parts::Pinned(pieces) => pieces.clear(),
            Parts::Inline(_) => self.parts = Parts::Pinned(ArrayVec::new_const()),
        }
    }

    /// A payload of bytes that need not be registered: it keeps a copy.
    ///
    /// # Errors
    ///
    /// [`KeyError::InlineTooLong`] above [`MAX_INLINE`] bytes.
    pub fn inline(bytes: &[u8]) -> Result<Self, KeyError> {
        let copy = ArrayVec::try_from(bytes)
            .map_err(|_| KeyError::InlineTooLong { got: bytes.len(), max: MAX_INLINE })?;
        Ok(Self { parts: Parts::Inline(copy), len: bytes.len() })
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

    /// Its pieces, in order, for a gathering system call: at most [`MAX_SGE`], none empty. Those of
    /// [`Backing::null`](crate::Backing::null) are nowhere: their pointer is null.
    pub fn pieces(&self) -> impl Iterator<Item = RawSlice<'_>> {
        let (pinned, inline): (&[Piece], &[u8]) = match &self.parts {
            Parts::Pinned(pieces) => (pieces, &[]),
            Parts::Inline(bytes) => (&[], bytes),
        };
        let pinned = pinned.iter().map(|piece| RawSlice::new(piece.as_ptr(), piece.len));
        let inline = (!inline.is_empty()).then(|| RawSlice::new(inline.as_ptr(), inline.len()));
        pinned.chain(inline)
    }

    /// Copies it to the front of `into`, as far as that reaches; returns how many bytes.
    pub fn copy_to(&self, into: &mut [u8]) -> usize {
        match &self.parts {
            Parts::Inline(bytes) => {
                let len = bytes.len().min(into.len());
                into[..len].copy_from_slice(&bytes[..len]);
                len
            }
            Parts::Pinned(pieces) => {
                pieces.iter().fold(0, |done, piece| done + piece.read(0, &mut into[done..]))
            }
        }
    }

    /// Hands its bytes to `f` in order, in chunks of at most 1,024 that never change meanwhile:
    /// they are copied to the stack first, for registered memory may change at any time.
    pub fn for_each_chunk(&self, mut f: impl FnMut(&[u8])) {
        match &self.parts {
            Parts::Inline(bytes) => bytes.chunks(CHUNK).for_each(f),
            Parts::Pinned(pieces) => {
                let mut chunk = [0; CHUNK];
                for piece in pieces {
                    for skip in (0..piece.len).step_by(CHUNK) {
                        let len = piece.read(skip, &mut chunk);
                        f(&chunk[..len]);
                    }
                }
            }
        }
    }
}

/// Address and length of a piece, as an `iovec` wants them.
///
/// Valid while the [`Gather`] is borrowed, that is until it is moved or dropped.
#[derive(Clone, Copy, Debug)]
pub struct RawSlice<'a> {
    ptr: *const u8,
    len: usize,
    gather: PhantomData<&'a Gather>,
}

impl RawSlice<'_> {
    const fn new(ptr: *const u8, len: usize) -> Self {
        Self { ptr, len, gather: PhantomData }
    }

    /// Address of the first byte. Others may write to the bytes at any time.
    #[must_use]
    pub const fn as_ptr(&self) -> *const u8 {
        self.ptr
    }

    /// Bytes; not 0.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "pieces are never empty")]
    pub const fn len(&self) -> usize {
        self.len
    }
}
