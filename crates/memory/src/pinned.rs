//! Memory that a peer's request may use, while it does.

use std::sync::Arc;

use crate::gather::Piece;
use crate::grant::Grant;
use crate::raw::{Area, Fault};
use crate::{Access, Gather, KeyError};

/// Checked and pinned bytes for one remote request. While it exists the region cannot be
/// deregistered; keep it over one packet only.
///
/// Offsets count from the address that the request named.
#[derive(Debug)]
pub struct Pinned {
    /// None only if it has no bytes.
    grant: Option<Arc<Grant>>,
    /// Address of the first byte, in the key's terms.
    addr: u64,
    /// Where the first byte stands in the area.
    origin: u64,
    len: u64,
    /// Rights that were checked.
    granted: Access,
}

impl Pinned {
    pub(crate) const fn new(
        grant: Arc<Grant>,
        addr: u64,
        origin: u64,
        len: u64,
        granted: Access,
    ) -> Self {
        Self { grant: Some(grant), addr, origin, len, granted }
    }

    pub(crate) const fn empty() -> Self {
        Self { grant: None, addr: 0, origin: 0, len: 0, granted: Access::empty() }
    }

    /// Bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies bytes out. Aligned words of 1, 2, 4 or 8 bytes are read at once.
    ///
    /// # Errors
    ///
    /// [`KeyError::Range`] if they are not within what was pinned.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), KeyError> {
        let len = into.len() as u64;
        let Some((grant, at)) = self.within(offset, len)? else { return Ok(()) };
        self.run(grant, offset, len, |area| area.read(at, into))
    }

    /// Copies bytes in, after all that was written before by this thread.
    ///
    /// Whoever sees the last byte sees all: the last naturally aligned word (of 8, 4, 2 or 1 bytes)
    /// is stored last, at once, with release ordering. Programs spin on it.
    ///
    /// # Errors
    ///
    /// [`KeyError::Range`] as for [`read`](Self::read), [`KeyError::Rights`] if neither remote
    /// write nor remote atomic was asked for when it was pinned. Nothing was written then.
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<(), KeyError> {
        let len = from.len() as u64;
        let Some((grant, at)) = self.within(offset, len)? else { return Ok(()) };
        self.check_change(grant)?;
        self.run(grant, offset, len, |area| area.write(at, from))
    }

    /// Compares the word and, if equal, swaps it; returns what it was. An atomic of the CPU, so it
    /// is one among the program's own atomics too (`IBV_ATOMIC_GLOB`). Words are in the CPU's byte
    /// order.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write), and [`KeyError::Misaligned`] unless the word is 8-byte aligned in
    /// memory.
    pub fn cmp_swap(&self, offset: u64, compare: u64, swap: u64) -> Result<u64, KeyError> {
        self.word(offset, |area, at| area.cmp_swap(at, compare, swap))
    }

    /// Adds to the word, wrapping; returns what it was. Otherwise as [`cmp_swap`](Self::cmp_swap).
    ///
    /// # Errors
    ///
    /// As [`cmp_swap`](Self::cmp_swap).
    pub fn fetch_add(&self, offset: u64, add: u64) -> Result<u64, KeyError> {
        self.word(offset, |area, at| area.fetch_add(at, add))
    }

    /// Stores a word at once, after all earlier writes (ATOMIC WRITE).
    ///
    /// # Errors
    ///
    /// As [`cmp_swap`](Self::cmp_swap).
    pub fn write_u64(&self, offset: u64, value: u64) -> Result<(), KeyError> {
        self.word(offset, |area, at| area.write_u64(at, value))
    }

    /// Pins a part of it once more, as the payload of a READ response.
    ///
    /// # Errors
    ///
    /// [`KeyError::Range`] as for [`read`](Self::read).
    pub fn slice(&self, offset: u64, len: usize) -> Result<Gather, KeyError> {
        let mut gather = Gather::default();
        self.slice_into(offset, len, &mut gather)?;
        Ok(gather)
    }

    /// [`slice`](Self::slice) in place of what `into` held: a [`Gather`] is large, and moving one
    /// costs more than filling it. After an error `into` is empty.
    ///
    /// # Errors
    ///
    /// As [`slice`](Self::slice).
    pub fn slice_into(&self, offset: u64, len: usize, into: &mut Gather) -> Result<(), KeyError> {
        into.clear();
        let bytes = len as u64;
        if let Some((grant, at)) = self.within(offset, bytes)?
            && len > 0
        {
            let addr = self.addr.wrapping_add(offset);
            into.push(Piece::new(Arc::clone(grant), addr, at, bytes)?);
        }
        Ok(())
    }

    /// Checks a part; returns where it stands in the area. `None`: it has no bytes.
    fn within(&self, offset: u64, len: u64) -> Result<Option<(&Arc<Grant>, u64)>, KeyError> {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(self.range(offset, len));
        }
        Ok(self.grant.as_ref().map(|grant| (grant, self.origin + offset)))
    }

    fn range(&self, offset: u64, len: u64) -> KeyError {
        let key = self.grant.as_ref().map_or(0, |grant| grant.key);
        let addr = self.addr.wrapping_add(offset);
        KeyError::Range { key, addr, len, start: self.addr, length: self.len }
    }

    fn check_change(&self, grant: &Grant) -> Result<(), KeyError> {
        if self.granted.intersects(Access::REMOTE_CHANGE) {
            return Ok(());
        }
        let (key, need, have) = (grant.key, Access::REMOTE_WRITE, self.granted);
        Err(KeyError::Rights { key, need, have })
    }

    /// An atomic on a word, which must be aligned both for the peer and in memory.
    fn word<T>(
        &self,
        offset: u64,
        access: impl FnOnce(&Area, u64) -> Result<T, Fault>,
    ) -> Result<T, KeyError> {
        let Some((grant, at)) = self.within(offset, 8)? else { return Err(self.range(offset, 8)) };
        self.check_change(grant)?;
        let (key, addr) = (grant.key, self.addr.wrapping_add(offset));
        if !addr.is_multiple_of(8) {
            return Err(KeyError::Misaligned { key, addr });
        }
        self.run(grant, offset, 8, |area| access(area, at))
    }

    fn run<T>(
        &self,
        grant: &Grant,
        offset: u64,
        len: u64,
        access: impl FnOnce(&Area) -> Result<T, Fault>,
    ) -> Result<T, KeyError> {
        let (key, addr) = (grant.key, self.addr.wrapping_add(offset));
        let area = grant.area().ok_or(KeyError::NotBound { key })?;
        access(area).map_err(|fault| match fault {
            Fault::Misaligned => KeyError::Misaligned { key, addr },
            Fault::Bounds => self.range(offset, len),
        })
    }
}
