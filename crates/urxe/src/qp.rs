//! Queue pairs, address handles, XRC domains.

use std::sync::Arc;

use urxe_engine::{
    AhAttr, AhId, AttrMask, QpAttr, QpCaps, QpId, QpInfo, QpInit, QpKind, QpState, RecvWr, SendOp,
    SendWr, XrcdId,
};
use urxe_memory::{Access, Sge};
use urxe_wire::{AckTimeout, Psn, QKey, Qpn, RnrTimer};

use crate::context::Handle;
use crate::{Cq, Endpoint, Error, Pd, Srq};

/// Begins a QP: what is not said is as in an example of a textbook.
#[derive(Debug)]
pub struct QpBuilder<'a> {
    pd: &'a Pd,
    kind: QpKind,
    send_cq: Option<&'a Cq>,
    recv_cq: Option<&'a Cq>,
    srq: Option<&'a Srq>,
    xrcd: Option<&'a Xrcd>,
    caps: QpCaps,
    sig_all: bool,
    attr: QpAttr,
}

impl<'a> QpBuilder<'a> {
    pub(crate) fn new(pd: &'a Pd, kind: QpKind) -> Self {
        let device = &pd.inner.device;
        let code = |n: u8| AckTimeout::new(n).unwrap_or_default();
        let attr = QpAttr {
            path_mtu: device.port.caps().mtu,
            sq_psn: device.next_psn(),
            max_rd_atomic: 16,
            max_dest_rd_atomic: 16,
            min_rnr_timer: RnrTimer::new(12).unwrap_or_default(),
            // 4.096 µs · 2^14 = 67 ms.
            timeout: code(14),
            retry_cnt: 7,
            rnr_retry: 7,
            ..QpAttr::default()
        };
        let caps = QpCaps {
            max_send_wr: 128,
            max_recv_wr: 128,
            max_send_sge: 4,
            max_recv_sge: 4,
            max_inline_data: 64,
        };
        let (send_cq, recv_cq, srq, xrcd) = (None, None, None, None);
        Self { pd, kind, send_cq, recv_cq, srq, xrcd, caps, sig_all: true, attr }
    }

    /// Where sends and receives complete.
    #[must_use]
    pub const fn cq(mut self, cq: &'a Cq) -> Self {
        self.send_cq = Some(cq);
        self.recv_cq = Some(cq);
        self
    }

    /// Where receives complete, if not where sends do.
    #[must_use]
    pub const fn recv_cq(mut self, cq: &'a Cq) -> Self {
        self.recv_cq = Some(cq);
        self
    }

    /// Receives come from a shared queue.
    #[must_use]
    pub const fn srq(mut self, srq: &'a Srq) -> Self {
        self.srq = Some(srq);
        self
    }

    /// The domain of an XRC target.
    #[must_use]
    pub const fn xrcd(mut self, xrcd: &'a Xrcd) -> Self {
        self.xrcd = Some(xrcd);
        self
    }

    /// Sizes of its queues.
    #[must_use]
    pub const fn caps(mut self, caps: QpCaps) -> Self {
        self.caps = caps;
        self
    }

    /// Whether every send makes a completion; true if not said.
    #[must_use]
    pub const fn signal_all(mut self, all: bool) -> Self {
        self.sig_all = all;
        self
    }

    /// What the peer may do to our memory.
    #[must_use]
    pub const fn access(mut self, access: Access) -> Self {
        self.attr.access = access;
        self
    }

    /// Any attribute that [`Qp::connect`] shall set.
    #[must_use]
    pub fn attr(mut self, edit: impl FnOnce(&mut QpAttr)) -> Self {
        edit(&mut self.attr);
        self
    }

    /// Makes the QP, in RESET.
    ///
    /// # Errors
    /// Where a part is missing or does not go with the kind, a size is out of range, or there are
    /// no more.
    pub fn build(self) -> Result<Qp, Error> {
        let device = Arc::clone(&self.pd.inner.device);
        let receives = !matches!(self.kind, QpKind::XrcInit | QpKind::XrcTarget);
        let sends = self.kind != QpKind::XrcTarget;
        let id = device.nic.create_qp(&QpInit {
            kind: self.kind,
            pd: self.pd.inner.id,
            send_cq: self.send_cq.filter(|_| sends).map(|cq| cq.id),
            recv_cq: self.recv_cq.filter(|_| receives).map(|cq| cq.id),
            srq: self.srq.map(|srq| srq.id),
            xrcd: self.xrcd.map(|xrcd| xrcd.id),
            caps: self.caps,
            sig_all: self.sig_all,
        })?;
        Ok(Qp { pd: self.pd.clone(), id, attr: self.attr })
    }
}

/// A queue pair. Dropping it destroys it, with the work in it.
#[derive(Debug)]
pub struct Qp {
    pd: Pd,
    id: QpId,
    /// What [`Self::connect`] sets.
    attr: QpAttr,
}

impl Qp {
    /// Its number.
    #[must_use]
    pub const fn qpn(&self) -> Qpn {
        self.id
    }

    /// What a peer needs to connect with it.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        let address = self.pd.inner.device.address();
        Endpoint { address, qpn: self.id, psn: self.attr.sq_psn }
    }

    /// To INIT, so that receives may be posted before the peer is known.
    ///
    /// # Errors
    /// Where the QP is not in RESET.
    pub fn init(&self) -> Result<(), Error> {
        let attr = QpAttr { qp_state: QpState::Init, ..self.attr };
        let from = AttrMask::STATE | AttrMask::PKEY_INDEX | AttrMask::PORT;
        self.modify(&attr, from | AttrMask::ACCESS_FLAGS)
    }

    /// INIT, RTR and RTS towards `peer`. A UD QP needs no peer: see [`Self::ready`].
    ///
    /// # Errors
    /// Where an attribute is out of range or the QP is neither in RESET nor in INIT.
    pub fn connect(&self, peer: &Endpoint) -> Result<(), Error> {
        let ah = AhAttr { dst: peer.address, ..self.attr.ah };
        let attr = QpAttr { dest_qp: peer.qpn, rq_psn: peer.psn, ah, ..self.attr };
        self.pd.inner.device.nic.connect_qp(self.id, &attr)?;
        Ok(())
    }

    /// INIT, RTR and RTS of a UD QP whose datagrams carry `qkey`.
    ///
    /// # Errors
    /// Where the QP is not in RESET.
    pub fn ready(&self, qkey: QKey) -> Result<(), Error> {
        let attr = QpAttr { qkey, ..self.attr };
        self.pd.inner.device.nic.connect_qp(self.id, &attr)?;
        Ok(())
    }

    /// Changes the attributes that `mask` names (`ibv_modify_qp`).
    ///
    /// # Errors
    /// Where the transition or a value is not allowed; nothing changes then.
    pub fn modify(&self, attr: &QpAttr, mask: AttrMask) -> Result<(), Error> {
        let device = &self.pd.inner.device;
        device.nic.modify_qp(self.id, attr, mask)?;
        device.with_sink(|sink| device.nic.pump(device.now(), sink));
        device.posted();
        Ok(())
    }

    /// What it is set to, and where it stands.
    ///
    /// # Errors
    /// None in a QP that exists.
    pub fn query(&self) -> Result<QpInfo, Error> {
        Ok(self.pd.inner.device.nic.query_qp(self.id)?)
    }

    /// Posts a signaled request.
    ///
    /// # Errors
    /// Where it was not taken; nothing of it was done.
    pub fn post_send(&self, wr_id: u64, op: SendOp, sges: &[Sge]) -> Result<(), Error> {
        self.post(&SendWr::new(wr_id, op, sges))
    }

    /// Posts a request with all its particulars.
    ///
    /// # Errors
    /// Where it was not taken; nothing of it was done.
    pub fn post(&self, wr: &SendWr<'_>) -> Result<(), Error> {
        let device = &self.pd.inner.device;
        device.with_sink(|sink| device.nic.post_send(device.now(), self.id, wr, sink))?;
        device.posted();
        Ok(())
    }

    /// Posts a receive.
    ///
    /// # Errors
    /// Where it was not taken.
    pub fn post_recv(&self, wr_id: u64, sges: &[Sge]) -> Result<(), Error> {
        let device = &self.pd.inner.device;
        device.nic.post_recv(device.now(), self.id, &RecvWr { wr_id, sges })?;
        device.tell();
        Ok(())
    }

    /// Joins a multicast group (UD).
    ///
    /// # Errors
    /// Where the QP is not UD, the address is no group, or the host refuses.
    pub fn attach_mcast(&self, group: std::net::IpAddr) -> Result<(), Error> {
        let device = &self.pd.inner.device;
        device.nic.attach_mcast(self.id, group)?;
        Ok(device.port.join(group)?)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// Where the QP is not in it.
    pub fn detach_mcast(&self, group: std::net::IpAddr) -> Result<(), Error> {
        Ok(self.pd.inner.device.nic.detach_mcast(self.id, group)?)
    }

    /// Where its packets start counting.
    #[must_use]
    pub const fn sq_psn(&self) -> Psn {
        self.attr.sq_psn
    }
}

impl Drop for Qp {
    fn drop(&mut self) {
        if let Err(error) = self.pd.inner.device.nic.destroy_qp(self.id) {
            tracing::error!(%error, "a QP could not be destroyed");
        }
    }
}

/// An address handle: where datagrams go.
#[derive(Debug)]
pub struct Ah {
    pd: Pd,
    id: AhId,
}

impl Ah {
    pub(crate) fn new(pd: &Pd, attr: &AhAttr) -> Result<Self, Error> {
        let id = pd.inner.device.nic.create_ah(pd.inner.id, attr)?;
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
        if let Err(error) = self.pd.inner.device.nic.destroy_ah(self.id) {
            tracing::error!(%error, "an AH could not be destroyed");
        }
    }
}

/// An XRC domain.
#[derive(Debug)]
pub struct Xrcd {
    device: Arc<Handle>,
    pub(crate) id: XrcdId,
}

impl Xrcd {
    pub(crate) fn new(device: &Arc<Handle>) -> Result<Self, Error> {
        let id = device.nic.alloc_xrcd()?;
        Ok(Self { device: Arc::clone(device), id })
    }
}

impl Drop for Xrcd {
    fn drop(&mut self) {
        if let Err(error) = self.device.nic.dealloc_xrcd(self.id) {
            tracing::error!(%error, "an XRC domain was dropped before what is in it");
        }
    }
}
