//! Making and destroying QPs, CQs, SRQs, AHs and XRC domains.

use std::sync::Arc;

use arrayvec::ArrayVec;
use urxe_memory::{Config, Memory, PdId};
use urxe_wire::Qpn;

use super::{INDEX_BITS, Nic, VerbsError};
use crate::ah::Ah;
use crate::attr::{AhAttr, AttrMask, Limits, Needs, QpAttr, QpCaps, QpKind, QpState};
use crate::config::NicConfig;
use crate::cq::Cq;
use crate::dcqcn::NotificationPoint;
use crate::line::Line;
use crate::qp::{Parts, Qp, flow_path};
use crate::reason::Counters;
use crate::rq::{Srq, SrqAttr};
use crate::table::{Kept, Table};
use crate::timers::Timers;
use crate::types::{AhId, CqId, QpId, SrqId, XrcdId};

/// What a QP is made with (`struct ibv_qp_init_attr_ex`).
#[derive(Clone, Copy, Debug)]
pub struct QpInit {
    /// Its kind.
    pub kind: QpKind,
    /// Its protection domain.
    pub pd: PdId,
    /// Where sends complete. Not for `XrcTarget`.
    pub send_cq: Option<CqId>,
    /// Where receives complete. Not for the XRC kinds.
    pub recv_cq: Option<CqId>,
    /// Receive WQEs come from here instead of an own queue.
    pub srq: Option<SrqId>,
    /// XRC: the domain of `XrcTarget`.
    pub xrcd: Option<XrcdId>,
    /// Queue sizes.
    pub caps: QpCaps,
    /// Every send makes a completion.
    pub sig_all: bool,
}

/// What an SRQ is made with.
#[derive(Clone, Copy, Debug)]
pub struct SrqInit {
    /// Its protection domain.
    pub pd: PdId,
    /// Sizes and limit.
    pub attr: SrqAttr,
    /// XRC: its domain, and where messages complete.
    pub xrc: Option<(XrcdId, CqId)>,
}

/// What a CQ is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CqInfo {
    /// Completions it holds at most.
    pub capacity: usize,
    /// Completions that wait.
    pub waiting: usize,
    /// Whether a completion was lost.
    pub overflowed: bool,
}

/// What a QP is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpInfo {
    /// Its kind.
    pub kind: QpKind,
    /// Its attributes now.
    pub attr: QpAttr,
    /// Messages it has completed as responder, 24 bits.
    pub msn: u32,
    /// Oldest PSN not acknowledged.
    pub una: urxe_wire::Psn,
    /// PSNs that may be in flight.
    pub window: u32,
}

/// Peers whose last CNP is remembered; beyond that the oldest is forgotten.
const CNP_DESTINATIONS: usize = 1024;

fn range(field: &'static str, got: u32, least: u32, most: u32) -> Result<(), VerbsError> {
    if (least..=most).contains(&got) {
        return Ok(());
    }
    let (got, least, most) = (got.into(), least.into(), most.into());
    Err(VerbsError::Range { field, got, least, most })
}

impl Nic {
    /// A NIC of this configuration. QP1 does not exist until [`Self::create_qp`] makes it.
    ///
    /// # Errors
    /// Where a table is empty or too long, or a limit is out of range.
    pub fn new(config: NicConfig) -> Result<Self, VerbsError> {
        let caps = &config.caps;
        let len = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        range("addresses", len(config.addresses.len()), 1, 255)?;
        range("pkeys", len(config.pkeys.len()), 1, 0xffff)?;
        range("slot", config.slot.into(), 0, 63)?;
        range("max_window", config.max_window, 4, 1 << 22)?;
        // Two indices are the management QPs', and the last is in slot 63 the multicast QPN.
        range("caps.max_qp", caps.max_qp, 1, (1 << INDEX_BITS) - 3)?;
        range("caps.max_sge", caps.max_sge, 1, len(urxe_memory::MAX_SGE))?;
        range("caps.max_inline", caps.max_inline, 0, 4096)?;
        range("caps.max_wr", caps.max_wr, 1, 1 << 20)?;
        range("caps.max_srq", caps.max_srq, 0, 0x00ff_fffe)?;
        let memory = Memory::new(Config {
            key_seed: config.seed,
            max_pd: caps.max_pd,
            max_mr: caps.max_mr,
            max_mw: caps.max_mw,
        });
        let limits = Limits {
            ports: 1,
            pkeys: u16::try_from(config.pkeys.len()).unwrap_or(u16::MAX),
            gids: u16::try_from(config.addresses.len()).unwrap_or(u16::MAX),
            active_mtu: config.active_mtu,
            max_rd_atomic: caps.max_rd_atomic,
            max_dest_rd_atomic: caps.max_rd_atomic,
        };
        let size = |n: u32| n as usize;
        Ok(Self {
            memory,
            limits,
            counters: Counters::default(),
            profile: Arc::new(config.profile),
            // QPNs 0 and 1 are the management QPs'.
            qps: Table::new(size(caps.max_qp), 2),
            gsi: parking_lot::RwLock::default(),
            cqs: Table::new(size(caps.max_cq), 0),
            srqs: Table::new(size(caps.max_srq), 1),
            ahs: Table::new(size(caps.max_ah), 0),
            xrcds: Table::new(1 << 16, 0),
            groups: parking_lot::RwLock::default(),
            timers: parking_lot::Mutex::new(Timers::new()),
            line: Line::default(),
            events: parking_lot::Mutex::default(),
            notifications: parking_lot::Mutex::new(NotificationPoint::new(
                config.min_time_between_cnps,
                CNP_DESTINATIONS,
            )),
            config,
        })
    }

    /// Makes a CQ of `capacity` completions.
    ///
    /// # Errors
    /// Where the capacity is out of range or the NIC has no more CQs.
    pub fn create_cq(&self, capacity: u32) -> Result<CqId, VerbsError> {
        range("cqe", capacity, 1, self.config.caps.max_cqe)?;
        let make = |index| Cq::new(CqId(as_u32(index)), capacity as usize);
        let cq = self.cqs.insert(make);
        cq.map(|cq| cq.id).ok_or(limit("CQs", self.config.caps.max_cq))
    }

    /// Destroys a CQ that no QP uses; completions in it are gone.
    ///
    /// # Errors
    /// Where it does not exist or is in use.
    pub fn destroy_cq(&self, id: CqId) -> Result<(), VerbsError> {
        self.cqs.remove(id.0 as usize).map(drop).map_err(|kept| refused("CQ", id.0, kept))
    }

    /// Makes an SRQ.
    ///
    /// # Errors
    /// Where a size is out of range, the PD, domain or CQ does not exist, or there are no more.
    pub fn create_srq(&self, init: &SrqInit) -> Result<SrqId, VerbsError> {
        range("srq max_wr", init.attr.max_wr, 1, self.config.caps.max_wr)?;
        range("srq max_sge", init.attr.max_sge, 1, self.config.caps.max_sge)?;
        range("srq limit", init.attr.limit, 0, init.attr.max_wr)?;
        let mut holds = Holds::new(self);
        holds.pd(init.pd)?;
        let xrc = match init.xrc {
            None => None,
            Some((xrcd, cq)) => {
                holds.xrcd(xrcd)?;
                Some((xrcd, holds.cq(cq)?))
            }
        };
        // The limit is armed by a later modify, as verbs has it.
        let attr = SrqAttr { limit: 0, ..init.attr };
        let make = |index| Srq::new(SrqId(as_u32(index)), init.pd, xrc, attr);
        let srq = self.srqs.insert(make).ok_or(limit("SRQs", self.config.caps.max_srq))?;
        holds.keep();
        Ok(srq.id)
    }

    /// Destroys an SRQ that no QP uses.
    ///
    /// # Errors
    /// Where it does not exist or is in use.
    pub fn destroy_srq(&self, id: SrqId) -> Result<(), VerbsError> {
        let removed = self.srqs.remove(id.0 as usize);
        let srq = removed.map_err(|kept| refused("SRQ", id.0, kept))?;
        if let Some((xrcd, cq)) = &srq.xrc {
            self.xrcds.release(xrcd.0 as usize);
            self.cqs.release(cq.id.0 as usize);
        }
        Ok(self.memory.release_pd(srq.pd)?)
    }

    /// Makes an address handle.
    ///
    /// # Errors
    /// Where an attribute is out of range, the PD does not exist, or there are no more.
    pub fn create_ah(&self, pd: PdId, attr: &AhAttr) -> Result<AhId, VerbsError> {
        attr.check(QpKind::Ud, &self.limits)?;
        let own = Qpn::default();
        let path = flow_path(&self.config, attr, own, own);
        let missing = VerbsError::NotFound { what: "GID", id: attr.sgid_index.into() };
        let path = path.ok_or(missing)?;
        let mut holds = Holds::new(self);
        holds.pd(pd)?;
        let mut id = AhId(0);
        let ah = self.ahs.insert(|index| {
            id = AhId(as_u32(index));
            Ah { pd, path }
        });
        ah.ok_or(limit("AHs", self.config.caps.max_ah))?;
        holds.keep();
        Ok(id)
    }

    /// Destroys an address handle. Requests posted with it keep their path.
    ///
    /// # Errors
    /// Where it does not exist.
    pub fn destroy_ah(&self, id: AhId) -> Result<(), VerbsError> {
        let removed = self.ahs.remove(id.0 as usize);
        let ah = removed.map_err(|kept| refused("AH", id.0, kept))?;
        Ok(self.memory.release_pd(ah.pd)?)
    }

    /// Makes an XRC domain.
    ///
    /// # Errors
    /// Where there are no more.
    pub fn alloc_xrcd(&self) -> Result<XrcdId, VerbsError> {
        let mut id = XrcdId(0);
        let made = self.xrcds.insert(|index| id = XrcdId(as_u32(index)));
        made.map(|_| id).ok_or(limit("XRC domains", 1 << 16))
    }

    /// Destroys an XRC domain that no SRQ or QP uses.
    ///
    /// # Errors
    /// Where it does not exist or is in use.
    pub fn dealloc_xrcd(&self, id: XrcdId) -> Result<(), VerbsError> {
        let removed = self.xrcds.remove(id.0 as usize);
        removed.map(drop).map_err(|kept| refused("XRC domain", id.0, kept))
    }

    /// Makes a QP, in RESET. Its QPN is the answer.
    ///
    /// # Errors
    /// Where a size is out of range, an object does not exist or does not go with the kind, or
    /// there are no more.
    pub fn create_qp(&self, init: &QpInit) -> Result<QpId, VerbsError> {
        let caps = self.check_caps(init)?;
        let mut holds = Holds::new(self);
        holds.pd(init.pd)?;
        let send_cq = init.send_cq.map(|id| holds.cq(id)).transpose()?;
        let recv_cq = init.recv_cq.map(|id| holds.cq(id)).transpose()?;
        let srq = init.srq.map(|id| holds.srq(id)).transpose()?;
        if let Some(xrcd) = init.xrcd {
            holds.xrcd(xrcd)?;
        }
        check_kind(init, srq.as_deref())?;
        let slot = u32::from(self.config.slot) << INDEX_BITS;
        let profile = &self.profile;
        let make = |qpn| {
            let (kind, pd, xrcd, sig_all) = (init.kind, init.pd, init.xrcd, init.sig_all);
            let parts = Parts { qpn, kind, pd, send_cq, recv_cq, srq, xrcd, sig_all, caps };
            Qp::new(parts, Arc::clone(profile))
        };
        let made = if init.kind == QpKind::Gsi {
            self.make_gsi(make)
        } else {
            self.qps.insert(|index| make(Qpn::new(slot | as_u32(index))))
        };
        let qp = made.ok_or(limit("QPs", self.config.caps.max_qp))?;
        holds.keep();
        self.reserve(qp.qpn);
        Ok(qp.qpn)
    }

    fn make_gsi(&self, make: impl FnOnce(Qpn) -> Qp) -> Option<Arc<Qp>> {
        let gsi = &mut *self.gsi.write();
        if gsi.is_some() {
            return None;
        }
        *gsi = Some(Arc::new(make(Qpn::GSI)));
        gsi.clone()
    }

    fn check_caps(&self, init: &QpInit) -> Result<QpCaps, VerbsError> {
        let (max, caps) = (&self.config.caps, init.caps);
        range("max_send_wr", caps.max_send_wr, 0, max.max_wr)?;
        range("max_recv_wr", caps.max_recv_wr, 0, max.max_wr)?;
        range("max_send_sge", caps.max_send_sge, 0, max.max_sge)?;
        range("max_recv_sge", caps.max_recv_sge, 0, max.max_sge)?;
        range("max_inline_data", caps.max_inline_data, 0, max.max_inline)?;
        Ok(caps)
    }

    /// Destroys a QP; its work requests vanish without a completion, completions made stay.
    ///
    /// # Errors
    /// Where it does not exist or is attached to a multicast group.
    pub fn destroy_qp(&self, id: QpId) -> Result<(), VerbsError> {
        let missing = VerbsError::NotFound { what: "QP", id: id.value() };
        let qp = self.find_qp(id).ok_or(missing)?;
        // Held until the QP is gone, so that it is not attached meanwhile.
        let groups = self.groups.read();
        let users = groups.values().filter(|qps| qps.contains(&id)).count();
        if users != 0 {
            return Err(VerbsError::Busy { what: "QP", id: id.value(), users });
        }
        // From here on it arms no timer, so that the next QP of this number finds none armed.
        qp.lock().ok_or(missing)?.destroyed = true;
        self.set_timer(id, None);
        self.memory.unbind_qp(id.value());
        if id == Qpn::GSI {
            *self.gsi.write() = None;
        } else {
            let removed = self.qps.remove(self.index(id).ok_or(missing)?);
            removed.map_err(|kept| refused("QP", id.value(), kept))?;
        }
        drop(groups);
        for cq in [&qp.send_cq, &qp.recv_cq].into_iter().flatten() {
            self.cqs.release(cq.id.0 as usize);
        }
        if let Some(srq) = &qp.srq {
            self.srqs.release(srq.id.0 as usize);
        }
        if let Some(xrcd) = qp.xrcd {
            self.xrcds.release(xrcd.0 as usize);
        }
        Ok(self.memory.release_pd(qp.pd)?)
    }

    pub(crate) fn cq(&self, id: CqId) -> Result<Arc<Cq>, VerbsError> {
        self.cqs.get(id.0 as usize).ok_or(VerbsError::NotFound { what: "CQ", id: id.0 })
    }

    pub(crate) fn srq(&self, id: SrqId) -> Result<Arc<Srq>, VerbsError> {
        self.srqs.get(id.0 as usize).ok_or(VerbsError::NotFound { what: "SRQ", id: id.0 })
    }

    /// A QP's attributes and position.
    ///
    /// # Errors
    /// Where it does not exist.
    pub fn query_qp(&self, id: QpId) -> Result<QpInfo, VerbsError> {
        let missing = VerbsError::NotFound { what: "QP", id: id.value() };
        let qp = self.find_qp(id).ok_or(missing)?;
        let inner = qp.lock().ok_or(missing)?;
        Ok(QpInfo {
            kind: qp.kind,
            attr: inner.query(),
            msn: inner.responder.msn().value(),
            una: inner.completer.una(),
            window: inner.requester.window.size(),
        })
    }

    /// Whether any QP of the NIC waits for a timer.
    #[must_use]
    pub fn timers_armed(&self) -> bool {
        self.qps.all().iter().any(|qp| qp.lock().is_some_and(|q| q.deadline().is_some()))
    }

    /// Takes a QP to RTS in one go, with the attributes that each step needs.
    ///
    /// # Errors
    /// As [`Self::modify_qp`].
    pub fn connect_qp(&self, id: QpId, attr: &QpAttr) -> Result<(), VerbsError> {
        let kind = self.query_qp(id)?.kind;
        for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
            let from = self.query_qp(id)?.attr.qp_state;
            if from == state {
                continue;
            }
            let needs = Needs::of(kind, from, state).unwrap_or_default();
            // A datagram QP that was in INIT already gets its Q_Key on the way.
            let mask = AttrMask::STATE | needs.required | (needs.optional & AttrMask::QKEY);
            self.modify_qp(id, &QpAttr { qp_state: state, ..*attr }, mask)?;
        }
        Ok(())
    }
}

/// What an object that is being made needs of others; let go again unless it comes to be.
struct Holds<'a> {
    nic: &'a Nic,
    pd: Option<PdId>,
    cqs: ArrayVec<CqId, 2>,
    srq: Option<SrqId>,
    xrcd: Option<XrcdId>,
}

impl<'a> Holds<'a> {
    fn new(nic: &'a Nic) -> Self {
        Self { nic, pd: None, cqs: ArrayVec::new(), srq: None, xrcd: None }
    }

    fn pd(&mut self, id: PdId) -> Result<(), VerbsError> {
        self.nic.memory.hold_pd(id)?;
        self.pd = Some(id);
        Ok(())
    }

    fn cq(&mut self, id: CqId) -> Result<Arc<Cq>, VerbsError> {
        let missing = VerbsError::NotFound { what: "CQ", id: id.0 };
        let cq = self.nic.cqs.hold(id.0 as usize).ok_or(missing)?;
        self.cqs.push(id);
        Ok(cq)
    }

    fn srq(&mut self, id: SrqId) -> Result<Arc<Srq>, VerbsError> {
        let missing = VerbsError::NotFound { what: "SRQ", id: id.0 };
        let srq = self.nic.srqs.hold(id.0 as usize).ok_or(missing)?;
        self.srq = Some(id);
        Ok(srq)
    }

    fn xrcd(&mut self, id: XrcdId) -> Result<(), VerbsError> {
        let missing = VerbsError::NotFound { what: "XRC domain", id: id.0 };
        self.nic.xrcds.hold(id.0 as usize).ok_or(missing)?;
        self.xrcd = Some(id);
        Ok(())
    }

    /// The object is made: it lets go when it is destroyed.
    fn keep(mut self) {
        (self.pd, self.srq, self.xrcd) = (None, None, None);
        self.cqs.clear();
    }
}

impl Drop for Holds<'_> {
    fn drop(&mut self) {
        if let Some(pd) = self.pd {
            let held = self.nic.memory.release_pd(pd);
            debug_assert!(held.is_ok(), "{held:?}");
        }
        for cq in &self.cqs {
            self.nic.cqs.release(cq.0 as usize);
        }
        if let Some(srq) = self.srq {
            self.nic.srqs.release(srq.0 as usize);
        }
        if let Some(xrcd) = self.xrcd {
            self.nic.xrcds.release(xrcd.0 as usize);
        }
    }
}

fn refused(what: &'static str, id: u32, kept: Kept) -> VerbsError {
    match kept {
        Kept::Missing => VerbsError::NotFound { what, id },
        Kept::Used(users) => VerbsError::Busy { what, id, users },
    }
}

fn limit(what: &'static str, max: u32) -> VerbsError {
    VerbsError::Limit { what, max }
}

fn as_u32(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Which parts go with which kind (IBA 11.2.4; A14 for XRC).
fn check_kind(init: &QpInit, srq: Option<&Srq>) -> Result<(), VerbsError> {
    let kind = init.kind;
    let wrong = |problem| Err(VerbsError::Kind { kind, problem });
    let sends = kind != QpKind::XrcTarget;
    let receives = !matches!(kind, QpKind::XrcInit | QpKind::XrcTarget);
    if sends && init.send_cq.is_none() {
        return wrong("needs a CQ for its sends");
    }
    if receives && init.recv_cq.is_none() {
        return wrong("needs a CQ for its receives");
    }
    if !receives && srq.is_some() {
        return wrong("takes no SRQ: its requests name one");
    }
    if (kind == QpKind::XrcTarget) != init.xrcd.is_some() {
        return wrong("must name an XRC domain if, and only if, it is XRC_RECV");
    }
    if srq.is_some_and(|s| s.xrc.is_some()) {
        return wrong("cannot use an XRC SRQ; it takes a plain one");
    }
    Ok(())
}
