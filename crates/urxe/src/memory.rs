//! Protection domains, memory regions, memory windows.

use std::ops::Range;
use std::sync::Arc;

use urxe_engine::{QpKind, SrqAttr};
use urxe_memory::{Access, Backing, Buffer, MrInfo, MwId, MwInfo, MwType, PdId, Sge};

use crate::handle::Handle;
use crate::{AhAttr, Error, Region, qp, srq};

/// A protection domain: what is made in one does not reach into another. It lives until its last
/// handle and all that was made in it are dropped.
///
/// ```
/// use urxe::{Access, Config, Context};
///
/// let context = Context::open(&Config::default())?;
/// let pd = context.alloc_pd()?;
/// let mr = pd.register(4096, Access::LOCAL_WRITE | Access::REMOTE_READ)?;
/// drop(pd); // the region keeps it
/// mr.write(10, b"for peers to read")?;
/// # Ok::<(), urxe::Error>(())
/// ```
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
        let Ok(device) = self.device.live() else { return };
        if let Err(error) = device.nic.memory().dealloc_pd(self.id) {
            tracing::error!(%error, "a PD could not be destroyed");
        }
    }
}

impl Pd {
    pub(crate) fn new(device: &Arc<Handle>) -> Result<Self, Error> {
        let id = device.live()?.nic.memory().alloc_pd()?;
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
        self.register_at(buffer, iova, access)
    }

    /// Registers a buffer whose first byte peers and SGEs reach at the address `iova`; with
    /// [`Access::ZERO_BASED`] at 0, whatever `iova` is.
    ///
    /// # Errors
    /// Where the rights do not go together, the last address would not exist, or there are no
    /// more regions.
    pub fn register_at(&self, buffer: Arc<Buffer>, iova: u64, access: Access) -> Result<Mr, Error> {
        let backing = Backing::buffer(Arc::clone(&buffer));
        Ok(Mr { region: self.register_backing(backing, iova, access)?, buffer })
    }

    /// Registers any memory: such as what a C program allocated, with `Backing::raw`, which is
    /// unsafe.
    ///
    /// # Errors
    /// As [`Self::register_at`].
    pub fn register_backing(
        &self,
        backing: Backing,
        iova: u64,
        access: Access,
    ) -> Result<Region, Error> {
        let device = self.inner.device.live()?;
        let info = device.nic.memory().reg_mr(self.inner.id, backing, iova, access)?;
        Ok(Region { pd: self.clone(), info })
    }

    /// Makes an unbound memory window.
    ///
    /// # Errors
    /// Where there are no more.
    pub fn alloc_mw(&self, kind: MwType) -> Result<Mw, Error> {
        let device = self.inner.device.live()?;
        let (id, rkey) = device.nic.memory().alloc_mw(self.inner.id, kind)?;
        Ok(Mw { pd: self.clone(), id, rkey })
    }

    /// Objects of two devices have numbers that mean something else to the other.
    pub(crate) fn goes_with(&self, other: &Arc<Handle>, what: &'static str) -> Result<(), Error> {
        let same = Arc::ptr_eq(&self.inner.device, other);
        if same { Ok(()) } else { Err(Error::OtherDevice { what }) }
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
    pub fn create_ah(&self, attr: &AhAttr) -> Result<crate::Ah, Error> {
        crate::Ah::new(self, attr)
    }
}

/// A memory region. Dropping it deregisters it: once that is done no peer touches its memory. While
/// windows are bound to it, it stays for them, and goes when the last of them is dropped, or the QP
/// that bound it.
///
/// ```
/// use urxe::{Access, Buffer, Config, Context, Reregister};
///
/// let context = Context::open(&Config::default())?;
/// let pd = context.alloc_pd()?;
/// // The same memory twice: peers with the one key may write it, with the other only read.
/// let buffer = Buffer::zeroed(4096)?;
/// let writable = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
/// let open = pd.register_buffer(buffer.clone(), writable)?;
/// let mut narrow = pd.register_buffer(buffer, Access::REMOTE_READ)?;
/// open.write(0, b"seen by both")?;
/// assert_eq!(narrow.to_vec(0..4)?, b"seen");
/// assert_ne!(open.rkey(), narrow.rkey());
/// // Rights, memory and PD can change.
/// narrow.reregister(Reregister { access: Some(writable), ..Reregister::default() })?;
/// # Ok::<(), urxe::Error>(())
/// ```
#[derive(Debug)]
pub struct Mr {
    region: Region,
    buffer: Arc<Buffer>,
}

impl Mr {
    /// The address of its first byte, as peers and SGEs name it.
    #[must_use]
    pub const fn addr(&self) -> u64 {
        self.region.info().iova
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
        self.region.info().lkey
    }

    /// The key for peers.
    #[must_use]
    pub const fn rkey(&self) -> u32 {
        self.region.info().rkey
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
        // Beyond the last address there is, it comes to lie below the region, outside of it too.
        Sge { addr: self.addr().wrapping_add(part.start as u64), length, lkey: self.lkey() }
    }

    /// Changes its memory, PD or rights; what is `None` stays. New memory gives it new keys. When
    /// it returns, no access under the old terms is in progress.
    ///
    /// # Errors
    /// Where windows are bound to it, or as [`Pd::register_at`]. Nothing was changed then.
    pub fn reregister(&mut self, change: Reregister<'_>) -> Result<(), Error> {
        let Reregister { pd, memory, access } = change;
        let backing = memory.as_ref().map(|(b, iova)| (Backing::buffer(Arc::clone(b)), *iova));
        self.region.reregister(pd, backing, access)?;
        if let Some((buffer, _)) = memory {
            self.buffer = buffer;
        }
        Ok(())
    }

    /// What it is registered as, and how many windows are bound to it.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn query(&self) -> Result<MrInfo, Error> {
        self.region.query()
    }

    /// The buffer it gives access to.
    #[must_use]
    pub const fn buffer(&self) -> &Arc<Buffer> {
        &self.buffer
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
        // What does not fit is refused before there is memory for it.
        let fits = part.len().min(self.len().saturating_add(1));
        let mut bytes = vec![0; fits];
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

/// What [`Mr::reregister`] changes.
#[derive(Clone, Debug, Default)]
pub struct Reregister<'a> {
    /// The new PD.
    pub pd: Option<&'a Pd>,
    /// The new memory, and the address of its first byte.
    pub memory: Option<(Arc<Buffer>, u64)>,
    /// The new rights.
    pub access: Option<Access>,
}

/// A memory window: a part of a region, opened to peers under a key of its own by a request of a
/// QP.
///
/// ```
/// use urxe::{Access, Config, Context, MwType, QpKind};
///
/// let context = Context::open(&Config::default())?;
/// let (pd, cq) = (context.alloc_pd()?, context.create_cq(16)?);
/// let mr = pd.register(4096, Access::LOCAL_WRITE | Access::MW_BIND)?;
/// let qp = pd.qp(QpKind::Rc).cq(&cq).build()?;
/// qp.connect(&qp.endpoint())?;
/// let window = pd.alloc_mw(MwType::Type2B)?;
/// let rkey = qp.bind_mw(1, &window, &mr, 1024..2048, Access::REMOTE_WRITE)?;
/// cq.wait_one()?;
/// // The peer of `qp` may now write those 1,024 bytes, and only those, with this key.
/// assert_eq!(window.query()?.length, 1024);
/// assert_eq!(window.rkey(), rkey);
/// # Ok::<(), urxe::Error>(())
/// ```
#[derive(Debug)]
pub struct Mw {
    pd: Pd,
    pub(crate) id: MwId,
    /// The key it was made with.
    rkey: u32,
}

impl Mw {
    /// Its number, for [`crate::SendOp::BindMw`].
    #[must_use]
    pub const fn id(&self) -> MwId {
        self.id
    }

    /// Its key now: each bind gives it another low byte.
    #[must_use]
    pub fn rkey(&self) -> u32 {
        self.query().map_or(self.rkey, |info| info.rkey)
    }

    /// Its type, and what it is bound to.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn query(&self) -> Result<MwInfo, Error> {
        Ok(self.pd.inner.device.live()?.nic.memory().query_mw(self.id)?)
    }
}

impl Drop for Mw {
    fn drop(&mut self) {
        let Ok(device) = self.pd.inner.device.live() else { return };
        if let Err(error) = device.nic.memory().dealloc_mw(self.id) {
            tracing::error!(%error, "a window could not be freed");
        }
        device.sweep();
    }
}

#[cfg(test)]
mod tests;
