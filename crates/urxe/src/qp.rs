//! Queue pairs.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::ops::Range;

use parking_lot::Mutex;
use urxe_engine::{
    AhAttr, AttrMask, PostError, QpAttr, QpCaps, QpId, QpInfo, QpInit, QpKind, QpState, RecvWr,
    SendOp, SendWr, Time,
};
use urxe_memory::{Access, Sge};
use urxe_net::PortError;
use urxe_wire::{AckTimeout, Psn, QKey, Qpn, RnrTimer};

use crate::device::Device;
use crate::events::Affected;
use crate::handle::Handle;
use crate::sink::Sink;
use crate::{Cq, Endpoint, Error, Mr, Mw, Pd, Srq, Xrcd};

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
        let receives = !matches!(self.kind, QpKind::XrcInit | QpKind::XrcTarget);
        let sends = self.kind != QpKind::XrcTarget;
        let (send_cq, recv_cq) =
            (self.send_cq.filter(|_| sends), self.recv_cq.filter(|_| receives));
        for cq in [send_cq, recv_cq].into_iter().flatten() {
            self.pd.goes_with(cq.device(), "CQ")?;
        }
        if let Some(srq) = self.srq {
            self.pd.goes_with(srq.device(), "SRQ")?;
        }
        if let Some(xrcd) = self.xrcd {
            self.pd.goes_with(xrcd.device(), "XRC domain")?;
        }
        let id = self.pd.inner.device.live()?.nic.create_qp(&QpInit {
            kind: self.kind,
            pd: self.pd.inner.id,
            send_cq: send_cq.map(Cq::id),
            recv_cq: recv_cq.map(Cq::id),
            srq: self.srq.map(Srq::id),
            xrcd: self.xrcd.map(Xrcd::id),
            caps: self.caps,
            sig_all: self.sig_all,
        })?;
        let device = &self.pd.inner.device;
        device.events.own(Affected::Qp(id), device);
        let needs = KeptAlive {
            _cqs: (send_cq.cloned(), recv_cq.cloned()),
            srq: self.srq.cloned(),
            _xrcd: self.xrcd.cloned(),
        };
        let groups = Mutex::default();
        Ok(Qp { pd: self.pd.clone(), id, attr: self.attr, groups, needs })
    }
}

/// What a QP keeps alive.
#[derive(Debug)]
struct KeptAlive {
    _cqs: (Option<Cq>, Option<Cq>),
    srq: Option<Srq>,
    _xrcd: Option<Xrcd>,
}

/// A queue pair. Dropping it destroys it, with the work in it; completions that it made stay. It
/// keeps its CQs, SRQ, XRC domain and PD alive.
///
/// ```
/// use urxe::{Config, Context, QpKind, QpState};
///
/// let context = Context::open(&Config::default())?;
/// let (pd, cq) = (context.alloc_pd()?, context.create_cq(16)?);
/// let qp = pd.qp(QpKind::Rc).cq(&cq).attr(|attr| attr.retry_cnt = 3).build()?;
/// let other = pd.qp(QpKind::Rc).cq(&cq).build()?;
/// qp.connect(&other.endpoint())?;
/// other.connect(&qp.endpoint())?;
/// let info = qp.query()?;
/// assert_eq!((info.attr.qp_state, info.attr.retry_cnt), (QpState::Rts, 3));
/// # Ok::<(), urxe::Error>(())
/// ```
#[derive(Debug)]
pub struct Qp {
    pd: Pd,
    id: QpId,
    /// What [`Self::connect`] sets.
    attr: QpAttr,
    /// Multicast groups it is in.
    groups: Mutex<BTreeSet<IpAddr>>,
    needs: KeptAlive,
}

impl Qp {
    pub(crate) fn live(&self) -> Result<&Device, Error> {
        self.pd.inner.device.live()
    }

    /// What [`Self::connect`] would set.
    pub(crate) const fn wanted(&self) -> &QpAttr {
        &self.attr
    }

    /// Whether its receives come from a shared queue.
    pub(crate) const fn has_srq(&self) -> bool {
        self.needs.srq.is_some()
    }

    /// A connection's QP is of its kind and device.
    pub(crate) fn goes_with(&self, device: &Handle, kind: QpKind) -> Result<(), Error> {
        if !self.pd.inner.device.is_same(device) {
            return Err(Error::OtherDevice { what: "QP" });
        }
        let got = self.query()?.kind;
        if got == kind { Ok(()) } else { Err(Error::OtherKind { got, wanted: kind }) }
    }

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
    /// ```
    /// use urxe::{Config, Context, QKey, QpKind};
    ///
    /// let context = Context::open(&Config::default())?;
    /// let (pd, cq) = (context.alloc_pd()?, context.create_cq(16)?);
    /// for kind in [QpKind::Rc, QpKind::Uc, QpKind::Ud] {
    ///     let qp = pd.qp(kind).cq(&cq).build()?;
    ///     qp.init()?;
    ///     qp.post_recv(1, &[])?;
    /// }
    /// let datagrams = pd.qp(QpKind::Ud).cq(&cq).build()?;
    /// datagrams.init()?;
    /// datagrams.ready(QKey(0x1234))?;
    /// assert_eq!(datagrams.query()?.attr.qkey, QKey(0x1234));
    /// # Ok::<(), urxe::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where the QP is neither in RESET nor in INIT, where it stays.
    pub fn init(&self) -> Result<(), Error> {
        let attr = QpAttr { qp_state: QpState::Init, ..self.attr };
        let needs = urxe_engine::attr::Needs::of(self.query()?.kind, QpState::Reset, QpState::Init);
        self.modify(&attr, AttrMask::STATE | needs.unwrap_or_default().required)
    }

    /// INIT, RTR and RTS towards `peer`. A UD QP needs no peer: see [`Self::ready`].
    ///
    /// # Errors
    /// Where an attribute is out of range or the QP is neither in RESET nor in INIT, or the path to
    /// the peer does not carry packets of this size.
    pub fn connect(&self, peer: &Endpoint) -> Result<(), Error> {
        let ah = AhAttr { dst: peer.address, ..self.attr.ah };
        let attr = QpAttr { dest_qp: peer.qpn, rq_psn: peer.psn, ah, ..self.attr };
        let device = self.live()?;
        PortError::check_version(device.address(), ah.dst)?;
        device.check_path(ah.dst, attr.path_mtu)?;
        self.bring_up(&attr)
    }

    /// INIT, RTR and RTS of a UD QP whose datagrams carry `qkey`.
    ///
    /// # Errors
    /// Where the QP is not in RESET.
    pub fn ready(&self, qkey: QKey) -> Result<(), Error> {
        let attr = QpAttr { qkey, ..self.attr };
        self.bring_up(&attr)
    }

    fn bring_up(&self, attr: &QpAttr) -> Result<(), Error> {
        let device = self.live()?;
        device.nic.connect_qp(self.id, attr)?;
        device.posted();
        Ok(())
    }

    /// Back to RESET: work in it is gone, without completions.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn reset(&self) -> Result<(), Error> {
        let attr = QpAttr { qp_state: QpState::Reset, ..self.attr };
        self.modify(&attr, AttrMask::STATE)
    }

    /// To ERR: work in it completes as flushed.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn fail(&self) -> Result<(), Error> {
        let attr = QpAttr { qp_state: QpState::Err, ..self.attr };
        self.modify(&attr, AttrMask::STATE)
    }

    /// Changes the attributes that `mask` names (`ibv_modify_qp`).
    ///
    /// # Errors
    /// Where the transition or a value is not allowed, or the path to the peer does not carry
    /// packets of this size; nothing changes then.
    pub fn modify(&self, attr: &QpAttr, mask: AttrMask) -> Result<(), Error> {
        let device = self.live()?;
        if mask.contains(AttrMask::AV) {
            PortError::check_version(device.address(), attr.ah.dst)?;
        }
        if mask.contains(AttrMask::AV | AttrMask::PATH_MTU) {
            device.check_path(attr.ah.dst, attr.path_mtu)?;
        }
        // What was posted or is owed leaves first: after the change it may not be allowed to.
        device.go_on();
        device.nic.modify_qp(self.id, attr, mask)?;
        device.with_sink(|sink| device.nic.pump(device.now(), sink));
        device.posted();
        Ok(())
    }

    /// Takes out of its CQs the completions that wait of it. A QP that was reset starts anew then,
    /// as one of a C program does.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn forget_completions(&self) -> Result<(), Error> {
        Ok(self.live()?.nic.forget_completions(self.id)?)
    }

    /// What it is set to, and where it stands.
    ///
    /// # Errors
    /// None in a QP that exists.
    pub fn query(&self) -> Result<QpInfo, Error> {
        Ok(self.live()?.nic.query_qp(self.id)?)
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
        let device = self.live()?;
        let now = device.now();
        if device.may_wait(now) {
            device.nic.post_send(now, self.id, wr, &mut Sink::closed(device))?;
            device.pass_on();
            return Ok(());
        }
        device.with_sink(|sink| device.nic.post_send(now, self.id, wr, sink))?;
        device.posted();
        Ok(())
    }

    /// Posts what `f` posts, and sends what that makes together.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn batch<R>(&self, f: impl FnOnce(&mut Batch<'_, '_>) -> R) -> Result<R, Error> {
        let device = self.live()?;
        let now = device.now();
        if device.may_wait(now) {
            let sink = &mut Sink::closed(device);
            let result = f(&mut Batch { device, id: self.id, now, sink });
            device.pass_on();
            return Ok(result);
        }
        let result = device.with_sink(|sink| f(&mut Batch { device, id: self.id, now, sink }));
        device.posted();
        Ok(result)
    }

    /// Posts a receive.
    ///
    /// # Errors
    /// Where it was not taken.
    pub fn post_recv(&self, wr_id: u64, sges: &[Sge]) -> Result<(), Error> {
        let device = self.live()?;
        device.nic.post_recv(device.now(), self.id, &RecvWr { wr_id, sges })?;
        device.tell();
        Ok(())
    }

    /// Posts a bind of `mw` to a part of `mr`; a window of type 2 must not be bound then, and only
    /// this QP may use it. Gives the window's key, which is good once the request has completed.
    ///
    /// # Errors
    /// Where it was not taken. What is wrong with the bind itself, its completion tells.
    ///
    /// # Panics
    /// Where the part ends before it starts.
    pub fn bind_mw(
        &self,
        wr_id: u64,
        mw: &Mw,
        mr: &Mr,
        part: Range<usize>,
        access: Access,
    ) -> Result<u32, Error> {
        let old = mw.query()?;
        let rkey = (old.rkey & !0xff) | (old.rkey.wrapping_add(1) & 0xff);
        let length = part.end.checked_sub(part.start);
        let length = length.unwrap_or_else(|| panic!("{part:?} is no part of a region")) as u64;
        let (mw, lkey, addr) = (mw.id(), mr.lkey(), mr.addr() + part.start as u64);
        let op = SendOp::BindMw { mw, rkey: Some(rkey), lkey, addr, length, access };
        self.post_send(wr_id, op, &[])?;
        Ok(rkey)
    }

    /// Joins a multicast group (UD).
    ///
    /// # Errors
    /// Where the QP is not UD, the address is no group, or the host refuses.
    pub fn attach_mcast(&self, group: IpAddr) -> Result<(), Error> {
        let device = self.live()?;
        let groups = &mut *self.groups.lock();
        if !groups.contains(&group) {
            device.join(self.id, group)?;
            groups.insert(group);
        }
        Ok(())
    }

    /// Leaves a multicast group; with its last QP the port leaves it.
    ///
    /// # Errors
    /// Where the QP is not in it.
    pub fn detach_mcast(&self, group: IpAddr) -> Result<(), Error> {
        let device = self.live()?;
        let groups = &mut *self.groups.lock();
        if !groups.contains(&group) {
            return Err(Error::NotInGroup { qpn: self.id.value(), group });
        }
        device.leave(self.id, group)?;
        groups.remove(&group);
        Ok(())
    }

    /// Where its packets start counting.
    #[must_use]
    pub const fn sq_psn(&self) -> Psn {
        self.attr.sq_psn
    }
}

/// Requests that are posted one after the other and sent together; see [`Qp::batch`].
pub struct Batch<'a, 's> {
    device: &'a Device,
    id: QpId,
    now: Time,
    sink: &'a mut Sink<'s>,
}

impl fmt::Debug for Batch<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("id", &self.id)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl Batch<'_, '_> {
    /// Posts a request with all its particulars.
    ///
    /// # Errors
    /// Where it was not taken; nothing of it was done.
    pub fn post(&mut self, wr: &SendWr<'_>) -> Result<(), Error> {
        Ok(self.device.nic.post_send(self.now, self.id, wr, self.sink)?)
    }

    /// Checks that so many requests would all be taken if nobody posts others meanwhile.
    ///
    /// # Errors
    /// Why the first that would not be is not.
    pub fn check<'w>(
        &self,
        requests: impl ExactSizeIterator<Item = SendWr<'w>>,
    ) -> Result<(), Error> {
        let (room, most) = self.device.nic.send_room(self.id)?;
        if requests.len() > room {
            let capacity = u32::try_from(most).unwrap_or(u32::MAX);
            return Err(PostError::Full { capacity }.into());
        }
        let mut requests = requests;
        requests.try_for_each(|wr| Ok(self.device.nic.check_send(self.id, &wr)?))
    }
}

impl Drop for Qp {
    fn drop(&mut self) {
        let Ok(device) = self.pd.inner.device.live() else { return };
        // The ACK of the last message, say, for which its sender waits; or a NAK, which a thread
        // that has just taken the packet in is about to send.
        device.go_on();
        device.with_sink(|sink| device.nic.last_turn(self.id, device.now(), sink));
        for group in std::mem::take(&mut *self.groups.lock()) {
            if let Err(error) = device.leave(self.id, group) {
                tracing::error!(%error, "a QP could not leave a group");
            }
        }
        if let Err(error) = device.nic.destroy_qp(self.id) {
            tracing::error!(%error, "a QP could not be destroyed");
        }
        device.events.forget(&device.nic, Affected::Qp(self.id));
        // Windows that only this QP could use are bound no longer.
        device.sweep();
    }
}
