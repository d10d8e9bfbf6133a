//! Address handles and XRC domains.

use std::sync::Arc;

use urxe_engine::{AhAttr, AhId, XrcdId};
use urxe_net::PortError;

use crate::handle::Handle;
use crate::{Error, Pd};

/// An address handle: where datagrams go. Requests posted with it keep their way when it is
/// dropped.
///
/// ```
/// use urxe::{Access, AhAttr, Config, Context, QKey, QpKind, SendOp, SendWr, UdDest};
///
/// let context = Context::open(&Config::default())?;
/// let (pd, cq) = (context.alloc_pd()?, context.create_cq(16)?);
/// let mr = pd.register(128, Access::LOCAL_WRITE)?;
/// let qp = pd.qp(QpKind::Ud).cq(&cq).build()?;
/// qp.ready(QKey(0x1234))?;
/// qp.post_recv(7, &[mr.sge(0..64)])?;
/// let ah = pd.create_ah(&AhAttr { dst: context.address(), ..AhAttr::default() })?;
/// let dest = Some(UdDest { ah: ah.id(), qpn: qp.qpn(), qkey: QKey(0x1234) });
/// let data = [mr.sge(64..72)];
/// qp.post(&SendWr { dest, ..SendWr::new(1, SendOp::Send { imm: None }, &data) })?;
/// let done = [cq.wait_one()?, cq.wait_one()?];
/// // 40 bytes of global routing header stand before the data.
/// assert!(done.iter().any(|got| got.wr_id == 7 && got.byte_len == 48));
/// # Ok::<(), urxe::Error>(())
/// ```
#[derive(Debug)]
pub struct Ah {
    pd: Pd,
    id: AhId,
}

impl Ah {
    pub(crate) fn new(pd: &Pd, attr: &AhAttr) -> Result<Self, Error> {
        let device = pd.inner.device.live()?;
        PortError::check_version(device.address(), attr.dst)?;
        let id = device.nic.create_ah(pd.inner.id, attr)?;
        // Short datagrams fit all the same, so it is no error.
        if let Err(error) = device.check_path(attr.dst, device.port.caps().mtu) {
            tracing::warn!(%error, "longer datagrams to this address are lost");
        }
        Ok(Self { pd: pd.clone(), id })
    }

    /// Its number, for [`crate::UdDest`].
    #[must_use]
    pub const fn id(&self) -> AhId {
        self.id
    }
}

impl Drop for Ah {
    fn drop(&mut self) {
        let Ok(device) = self.pd.inner.device.live() else { return };
        if let Err(error) = device.nic.destroy_ah(self.id) {
            tracing::error!(%error, "an AH could not be destroyed");
        }
    }
}

/// An XRC domain: what XRC targets and their SRQs share. It lives until its last handle is dropped
/// and the last of them.
///
/// ```
/// use urxe::{Access, Config, Context, QpKind, SendOp, SendWr, Srq, SrqAttr};
///
/// let context = Context::open(&Config::default())?;
/// let (pd, cq) = (context.alloc_pd()?, context.create_cq(16)?);
/// let (mr, xrcd) = (pd.register(128, Access::LOCAL_WRITE)?, context.alloc_xrcd()?);
/// let srq = Srq::xrc(&pd, SrqAttr { max_wr: 4, max_sge: 1, limit: 0 }, &xrcd, &cq)?;
/// let target = pd.qp(QpKind::XrcTarget).xrcd(&xrcd).build()?;
/// let source = pd.qp(QpKind::XrcInit).cq(&cq).build()?;
/// source.connect(&target.endpoint())?;
/// target.connect(&source.endpoint())?;
/// srq.post_recv(7, &[mr.sge(64..128)])?;
/// // Each request names the queue that it is for.
/// let data = [mr.sge(0..8)];
/// let wr = SendWr::new(1, SendOp::Send { imm: None }, &data);
/// source.post(&SendWr { remote_srqn: srq.number(), ..wr })?;
/// let done = [cq.wait_one()?.wr_id, cq.wait_one()?.wr_id];
/// assert!(done.contains(&1) && done.contains(&7));
/// # Ok::<(), urxe::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Xrcd {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    device: Arc<Handle>,
    id: XrcdId,
}

impl Xrcd {
    pub(crate) fn new(device: &Arc<Handle>) -> Result<Self, Error> {
        let id = device.live()?.nic.alloc_xrcd()?;
        Ok(Self { inner: Arc::new(Inner { device: Arc::clone(device), id }) })
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.inner.id.0
    }

    pub(crate) fn id(&self) -> XrcdId {
        self.inner.id
    }

    pub(crate) fn device(&self) -> &Arc<Handle> {
        &self.inner.device
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Ok(device) = self.device.live() else { return };
        if let Err(error) = device.nic.dealloc_xrcd(self.id) {
            tracing::error!(%error, "an XRC domain could not be destroyed");
        }
    }
}
