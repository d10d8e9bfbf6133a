//! Protection domains, memory regions, memory windows.

use std::ops::Range;
use std::sync::Arc;

use urxe_engine::{QpKind, SrqAttr};
use urxe_memory::{Access, Backing, Buffer, MrInfo, MwId, MwType, PdId, Sge};

use crate::context::Handle;
use crate::{AhAttr, Error, qp, srq};

/// A protection domain.
#[derive(Clone, Debug)]
pub struct Pd {
    pub(crate) inner: Arc<PdInner>,
}

#[derive(Debug)]
pub(crate) struct PdInner {
    pub(crate) device: Arc<Handle>,
    pub(crate) id: PdId,
}

impl Drop for PdInner {
    fn drop(&mut self) {
        if let Err(error) = self.device.nic.memory().dealloc_pd(self.id) {
            tracing::error!(%error, "a PD was dropped before what is in it");
        }
    }
}

impl Pd {
    pub(crate) fn new(device: &Arc<Handle>) -> Result<Self, Error> {
        let id = device.nic.memory().alloc_pd()?;
        Ok(Self { inner: Arc::new(PdInner { device: Arc::clone(device), id }) })
    }

    /// Registers `len` bytes of new memory, zeroed. Peers reach it from [`Mr::addr`] on.
    ///
    /// # Errors
    /// Where the rights do not go together or there is no more memory.
    pub fn register(&self, len: usize, access: Access) -> Result<Mr, Error> {
        let buffer = Buffer::zeroed(len)?;
        self.register_buffer(buffer, access)
    }

    /// Registers a buffer, which may be registered more than once.
    ///
    /// # Errors
    /// Where the rights do not go together or there are no more regions.
    pub fn register_buffer(&self, buffer: Arc<Buffer>, access: Access) -> Result<Mr, Error> {
        let iova = buffer.as_ptr().addr() as u64;
        let backing = Backing::buffer(Arc::clone(&buffer));
        let info = self.inner.device.nic.memory().reg_mr(self.inner.id, backing, iova, access)?;
        Ok(Mr { pd: self.clone(), buffer, info })
    }

    /// Makes an unbound memory window.
    ///
    /// # Errors
    /// Where there are no more.
    pub fn alloc_mw(&self, kind: MwType) -> Result<Mw, Error> {
        let (id, rkey) = self.inner.device.nic.memory().alloc_mw(self.inner.id, kind)?;
        Ok(Mw { pd: self.clone(), id, rkey })
    }

    /// Begins to make a QP.
    #[must_use]
    pub fn qp(&self, kind: QpKind) -> qp::QpBuilder<'_> {
        qp::QpBuilder::new(self, kind)
    }

    /// Makes a shared receive queue.
    ///
    /// # Errors
    /// Where a size is out of range or there are no more.
    pub fn create_srq(&self, attr: SrqAttr) -> Result<srq::Srq, Error> {
        srq::Srq::new(self, attr, None)
    }

    /// Makes an address handle.
    ///
    /// # Errors
    /// Where an attribute is out of range or there are no more.
    pub fn create_ah(&self, attr: &AhAttr) -> Result<qp::Ah, Error> {
        qp::Ah::new(self, attr)
    }
}

/// A memory region. Dropping it deregisters it: once that is done no peer touches its memory.
#[derive(Debug)]
pub struct Mr {
    pd: Pd,
    buffer: Arc<Buffer>,
    info: MrInfo,
}

impl Mr {
    /// The address of its first byte, as peers and SGEs name it.
    #[must_use]
    pub fn addr(&self) -> u64 {
        self.buffer.as_ptr().addr() as u64
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.len() == 0
    }

    /// The key for SGEs.
    #[must_use]
    pub const fn lkey(&self) -> u32 {
        self.info.lkey
    }

    /// The key for peers.
    #[must_use]
    pub const fn rkey(&self) -> u32 {
        self.info.rkey
    }

    /// An SGE of a part of it.
    ///
    /// # Panics
    /// Where the part does not fit 32 bits or ends before it starts. A part beyond the end fails
    /// when it is used.
    #[must_use]
    pub fn sge(&self, part: Range<usize>) -> Sge {
        let length = part.end.checked_sub(part.start).and_then(|n| u32::try_from(n).ok());
        let length = length.unwrap_or_else(|| panic!("{part:?} is no part of a region"));
        Sge { addr: self.addr() + part.start as u64, length, lkey: self.lkey() }
    }

    /// Writes into it.
    ///
    /// # Errors
    /// Where the bytes do not fit.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.buffer.write(offset, bytes)?)
    }

    /// Reads out of it.
    ///
    /// # Errors
    /// Where it has not so many bytes.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), Error> {
        Ok(self.buffer.read(offset, into)?)
    }

    /// A copy of a part of it.
    ///
    /// # Errors
    /// Where it has not so many bytes.
    pub fn to_vec(&self, part: Range<usize>) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; part.len()];
        self.read(part.start, &mut bytes)?;
        Ok(bytes)
    }

    /// One byte, seen with all that was placed before it: for programs that wait for a peer's
    /// WRITE by looking at its last byte.
    ///
    /// # Errors
    /// Where it has no such byte.
    pub fn load(&self, offset: usize) -> Result<u8, Error> {
        Ok(self.buffer.load_u8(offset)?)
    }
}

impl Drop for Mr {
    fn drop(&mut self) {
        if let Err(error) = self.pd.inner.device.nic.memory().dereg_mr(self.info.id) {
            tracing::error!(%error, "a region was dropped before its windows");
        }
    }
}

/// A memory window.
#[derive(Debug)]
pub struct Mw {
    pd: Pd,
    pub(crate) id: MwId,
    rkey: u32,
}

impl Mw {
    /// Its number, for [`crate::SendOp::BindMw`].
    #[must_use]
    pub const fn id(&self) -> MwId {
        self.id
    }

    /// The key it was made with; a bind gives it another low byte.
    #[must_use]
    pub const fn rkey(&self) -> u32 {
        self.rkey
    }
}

impl Drop for Mw {
    fn drop(&mut self) {
        if let Err(error) = self.pd.inner.device.nic.memory().dealloc_mw(self.id) {
            tracing::error!(%error, "a window could not be freed");
        }
    }
}
