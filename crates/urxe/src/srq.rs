//! Shared receive queues.

use urxe_engine::{RecvWr, SrqAttr, SrqId, SrqInit};
use urxe_memory::Sge;

use crate::{Cq, Error, Pd, Xrcd};

/// A shared receive queue.
#[derive(Debug)]
pub struct Srq {
    pd: Pd,
    pub(crate) id: SrqId,
}

impl Srq {
    pub(crate) fn new(pd: &Pd, attr: SrqAttr, xrc: Option<(&Xrcd, &Cq)>) -> Result<Self, Error> {
        let xrc = xrc.map(|(xrcd, cq)| (xrcd.id, cq.id));
        let id = pd.inner.device.nic.create_srq(&SrqInit { pd: pd.inner.id, attr, xrc })?;
        Ok(Self { pd: pd.clone(), id })
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
    pub const fn number(&self) -> u32 {
        self.id.0
    }

    /// Posts a receive.
    ///
    /// # Errors
    /// Where it was not taken.
    pub fn post_recv(&self, wr_id: u64, sges: &[Sge]) -> Result<(), Error> {
        Ok(self.pd.inner.device.nic.post_srq_recv(self.id, &RecvWr { wr_id, sges })?)
    }

    /// What it is set to.
    ///
    /// # Errors
    /// None in a queue that exists.
    pub fn query(&self) -> Result<SrqAttr, Error> {
        Ok(self.pd.inner.device.nic.query_srq(self.id)?)
    }

    /// Sets its limit and its size, where given.
    ///
    /// # Errors
    /// Where a value is out of range.
    pub fn modify(&self, limit: Option<u32>, max_wr: Option<u32>) -> Result<(), Error> {
        let device = &self.pd.inner.device;
        device.nic.modify_srq(self.id, limit, max_wr)?;
        device.tell();
        Ok(())
    }
}

impl Drop for Srq {
    fn drop(&mut self) {
        if let Err(error) = self.pd.inner.device.nic.destroy_srq(self.id) {
            tracing::error!(%error, "an SRQ was dropped before its QPs");
        }
    }
}
