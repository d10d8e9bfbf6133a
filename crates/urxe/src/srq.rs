//! Shared receive queues.

use std::sync::Arc;

use urxe_engine::{RecvWr, SrqAttr, SrqId, SrqInit};
use urxe_memory::Sge;

use crate::events::Affected;
use crate::handle::Handle;
use crate::{Cq, Error, Pd, Xrcd};

/// A shared receive queue. It lives until its last handle is dropped and the last QP that uses it.
///
/// ```
/// use urxe::{Access, Config, Context, QpKind, SendOp, SrqAttr};
///
/// let context = Context::open(&Config::default())?;
/// let (pd, cq) = (context.alloc_pd()?, context.create_cq(16)?);
/// let mr = pd.register(128, Access::LOCAL_WRITE)?;
/// let srq = pd.create_srq(SrqAttr { max_wr: 16, max_sge: 1, limit: 0 })?;
/// let qp = pd.qp(QpKind::Rc).cq(&cq).srq(&srq).build()?;
/// qp.connect(&qp.endpoint())?; // with itself
/// srq.post_recv(7, &[mr.sge(64..128)])?;
/// qp.post_send(1, SendOp::Send { imm: None }, &[mr.sge(0..8)])?;
/// let ids = [cq.wait_one()?.wr_id, cq.wait_one()?.wr_id];
/// assert!(ids == [1, 7] || ids == [7, 1]);
/// # Ok::<(), urxe::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Srq {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pd: Pd,
    id: SrqId,
    /// Kept alive for it.
    _xrc: Option<(Xrcd, Cq)>,
}

impl Srq {
    pub(crate) fn new(pd: &Pd, attr: SrqAttr, xrc: Option<(&Xrcd, &Cq)>) -> Result<Self, Error> {
        if let Some((xrcd, cq)) = xrc {
            pd.goes_with(cq.device(), "CQ")?;
            pd.goes_with(xrcd.device(), "XRC domain")?;
        }
        let ids = xrc.map(|(xrcd, cq)| (xrcd.id(), cq.id()));
        let init = SrqInit { pd: pd.inner.id, attr, xrc: ids };
        let id = pd.inner.device.live()?.nic.create_srq(&init)?;
        let device = &pd.inner.device;
        device.events.own(Affected::Srq(id), device);
        let kept = xrc.map(|(xrcd, cq)| (xrcd.clone(), cq.clone()));
        Ok(Self { inner: Arc::new(Inner { pd: pd.clone(), id, _xrc: kept }) })
    }

    pub(crate) fn id(&self) -> SrqId {
        self.inner.id
    }

    pub(crate) fn device(&self) -> &Arc<Handle> {
        &self.inner.pd.inner.device
    }

    /// Makes one for XRC targets of `xrcd`; what they receive completes to `cq`.
    ///
    /// # Errors
    /// Where a size is out of range or there are no more.
    pub fn xrc(pd: &Pd, attr: SrqAttr, xrcd: &Xrcd, cq: &Cq) -> Result<Self, Error> {
        Self::new(pd, attr, Some((xrcd, cq)))
    }

    /// Its number: what XRC requests name.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.inner.id.0
    }

    /// Posts a receive.
    ///
    /// # Errors
    /// Where it was not taken.
    pub fn post_recv(&self, wr_id: u64, sges: &[Sge]) -> Result<(), Error> {
        Ok(self.device().live()?.nic.post_srq_recv(self.id(), &RecvWr { wr_id, sges })?)
    }

    /// What it is set to.
    ///
    /// # Errors
    /// None in a queue that exists.
    pub fn query(&self) -> Result<SrqAttr, Error> {
        Ok(self.device().live()?.nic.query_srq(self.id())?)
    }

    /// Sets its limit and its size, where given.
    ///
    /// # Errors
    /// Where a value is out of range.
    pub fn modify(&self, limit: Option<u32>, max_wr: Option<u32>) -> Result<(), Error> {
        let device = self.device().live()?;
        device.nic.modify_srq(self.id(), limit, max_wr)?;
        device.tell();
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Ok(device) = self.pd.inner.device.live() else { return };
        if let Err(error) = device.nic.destroy_srq(self.id) {
            tracing::error!(%error, "an SRQ could not be destroyed");
        }
        device.events.forget(&device.nic, Affected::Srq(self.id));
    }
}
