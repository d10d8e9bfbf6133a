//! The QP: the only one who knows requester, responder and completer, and applies what they say.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use urxe_memory::PdId;
use urxe_wire::{Psn, Qpn};

use crate::attr::{QpAttr, QpKind, QpState};
use crate::completer::Completer;
use crate::conn::Conn;
use crate::cq::Cq;
use crate::dcqcn::{Pacer, Rate, ReactionPoint};
use crate::line::Place;
use crate::nic::Nic;
use crate::path::{Path, Transmit};
use crate::reason::{Cause, Count, Rule, Why};
use crate::requester::Requester;
use crate::responder::{Receives, Responder};
use crate::rq::{Ring, Srq, Taken};
use crate::sq::Sq;
use crate::time::{Deadline, Time, TimerKind};
use crate::types::{AsyncEvent, Completion, WcFlags, WcOpcode, WcStatus, XrcdId};

mod datagram;
mod error;
mod modify;
mod post;
mod receive;
mod send;
mod timer;

pub(crate) use modify::flow_path;

/// A queue pair. What never changes is outside the lock.
///
/// With many QPs the next packet finds its QP in no cache, and what it costs is the number of cache
/// lines it touches. So here and in [`Inner`] the fields stand in the order in which a packet needs
/// them; what most packets do not look at comes last.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Qp {
    pub(crate) qpn: Qpn,
    pub(crate) kind: QpKind,
    pub(crate) sig_all: bool,
    /// In the line of QPs that have something to send.
    pub(crate) place: Place,
    pub(crate) send_cq: Option<Arc<Cq>>,
    pub(crate) recv_cq: Option<Arc<Cq>>,
    pub(crate) srq: Option<Arc<Srq>>,
    pub(crate) inner: Mutex<Inner>,
    pub(crate) pd: PdId,
    pub(crate) xrcd: Option<XrcdId>,
}

/// What changes.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Inner {
    pub(crate) destroyed: bool,
    /// Whether the peer has been heard in RTR.
    established: bool,
    /// Whether a request goes before the next packet of a READ's data.
    request_turn: bool,
    /// Whether SQ_DRAINED is still to be told.
    draining: bool,
    /// Whether a CQ of this QP overflowed.
    cq_lost: bool,
    retries_left: u8,
    rnr_retries_left: u8,
    /// Packets left of a turn that a full sink cut short.
    rest_of_turn: u8,
    pub(crate) conn: Conn,
    pub(crate) path: Option<Path>,
    /// The time that the NIC's timer queue holds for this QP: no later than its deadline.
    armed: Option<Time>,
    /// When the oldest unacknowledged PSN is sent again.
    retransmit: Option<Time>,
    /// When an RNR wait is over.
    rnr: Option<Time>,
    /// When congestion control, or the limit, lets the next packet go.
    pace: Option<Time>,
    pub(crate) cc: Option<Box<ReactionPoint>>,
    pub(crate) requester: Requester,
    pub(crate) completer: Completer,
    pub(crate) sq: Sq,
    pub(crate) responder: Responder,
    pub(crate) rq: Option<Ring>,
    pub(crate) attr: QpAttr,
    /// The PSN that was sent again after an RNR wait, until the timer runs out.
    rnr_over: Option<Psn>,
    /// Why packets are being sent again.
    again: Why,
    /// Why the NAK that waits is sent.
    nak: Option<Why>,
    /// The rate that the program allows, and when the next packet may go at it.
    limit: Option<(Rate, Pacer)>,
    /// XRC: the SRQ of the message in progress.
    xrc: Option<Arc<Srq>>,
}

/// What every step needs.
pub(crate) struct Cx<'a, T> {
    pub(crate) nic: &'a Nic,
    pub(crate) qp: &'a Qp,
    pub(crate) now: Time,
    pub(crate) out: &'a mut T,
}

/// Receive WQEs of a QP: its own or the shared ones.
pub(crate) struct Source<'a> {
    nic: &'a Nic,
    rq: Option<&'a mut Ring>,
    srq: Option<&'a Srq>,
    pd: PdId,
}

impl Receives for Source<'_> {
    fn take(&mut self, taken: &mut Taken) -> bool {
        if let Some(srq) = self.srq {
            let (took, below) = srq.take(taken);
            if below {
                self.nic.tell(AsyncEvent::SrqLimitReached(srq.id));
            }
            return took;
        }
        self.rq.as_mut().is_some_and(|rq| rq.take(taken))
    }

    fn credits(&self) -> Option<u32> {
        // IBA 9.7.7.2: a shared queue promises nothing to one peer.
        let rq = self.rq.as_ref().filter(|_| self.srq.is_none())?;
        u32::try_from(rq.len()).ok()
    }

    fn pd(&self) -> PdId {
        self.pd
    }

    fn shared(&self) -> bool {
        self.srq.is_some()
    }
}

/// What a QP is made with.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) qpn: Qpn,
    pub(crate) kind: QpKind,
    pub(crate) pd: PdId,
    pub(crate) send_cq: Option<Arc<Cq>>,
    pub(crate) recv_cq: Option<Arc<Cq>>,
    pub(crate) srq: Option<Arc<Srq>>,
    pub(crate) xrcd: Option<XrcdId>,
    pub(crate) sig_all: bool,
    pub(crate) caps: crate::attr::QpCaps,
}

impl Qp {
    pub(crate) fn new(parts: Parts, profile: Arc<crate::config::Profile>) -> Self {
        let Parts { qpn, kind, pd, send_cq, recv_cq, srq, xrcd, sig_all, caps } = parts;
        let size = |n: u32| n as usize;
        let receives = kind != QpKind::XrcInit && kind != QpKind::XrcTarget && srq.is_none();
        let rq = receives.then(|| Ring::new(size(caps.max_recv_wr), size(caps.max_recv_sge)));
        let attr = QpAttr { caps, ..QpAttr::default() };
        let inner = Inner {
            attr,
            conn: Conn::new(kind, qpn, pd, profile),
            path: None,
            sq: Sq::new(
                size(caps.max_send_wr),
                size(caps.max_send_sge),
                size(caps.max_inline_data),
            ),
            requester: Requester::new(Psn::ZERO, 0, false),
            completer: Completer::new(Psn::ZERO),
            responder: Responder::new(Psn::ZERO, 0, 0),
            rq,
            retransmit: None,
            rnr: None,
            retries_left: 0,
            rnr_retries_left: 0,
            rest_of_turn: 0,
            cc: None,
            limit: None,
            pace: None,
            armed: None,
            rnr_over: None,
            again: Why::Timeout,
            nak: None,
            established: false,
            request_turn: false,
            draining: false,
            cq_lost: false,
            xrc: None,
            destroyed: false,
        };
        let place = Place::default();
        let inner = Mutex::new(inner);
        Self { qpn, kind, pd, send_cq, recv_cq, srq, xrcd, sig_all, place, inner }
    }

    /// The QP's changing part; `None` if it has been destroyed since it was looked up.
    pub(crate) fn lock(&self) -> Option<MutexGuard<'_, Inner>> {
        Some(self.inner.lock()).filter(|inner| !inner.destroyed)
    }

    /// SGEs of the largest receive WQE this QP may get.
    pub(crate) fn recv_sges(&self, inner: &Inner) -> usize {
        match (&self.srq, &inner.rq) {
            (Some(srq), _) => srq.attr().max_sge as usize,
            (None, Some(rq)) => rq.max_sge(),
            // XRC: any SRQ of the domain.
            (None, None) => urxe_memory::MAX_SGE,
        }
    }
}

impl Inner {
    /// The state.
    pub(crate) const fn state(&self) -> QpState {
        self.attr.qp_state
    }

    /// A failed or good completion of the send queue.
    pub(crate) fn complete_send<T>(
        &mut self,
        cx: &Cx<'_, T>,
        wr_id: u64,
        opcode: WcOpcode,
        byte_len: u32,
        end: (WcStatus, Option<Cause>),
    ) {
        let (status, cause) = end;
        match status {
            WcStatus::Success => {}
            WcStatus::WrFlushErr => cx.nic.counters.add(Count::ReqCqeFlushError, 1),
            _ => cx.nic.counters.add(Count::ReqCqeError, 1),
        }
        if let (Some(cause), false) = (cause, status == WcStatus::WrFlushErr) {
            tracing::debug!(qpn = %cx.qp.qpn, wr_id, status = status.text(), %cause, "send failed");
        }
        let Some(cq) = &cx.qp.send_cq else { return };
        let completion = Completion {
            wr_id,
            status,
            opcode,
            byte_len,
            imm: [0; 4],
            invalidated: 0,
            qpn: cx.qp.qpn,
            src_qp: Qpn::default(),
            flags: WcFlags::empty(),
            pkey_index: 0,
            traffic_class: 0,
            at: cx.now,
            cause,
        };
        self.cq_lost |= !cx.nic.complete(cq, completion, false);
    }

    /// A completion of the receive queue; XRC completes to its SRQ's CQ.
    pub(crate) fn complete_recv<T>(
        &mut self,
        cx: &Cx<'_, T>,
        cq: Option<&Arc<Cq>>,
        completion: Completion,
        solicited: bool,
    ) {
        match completion.status {
            WcStatus::Success => {}
            WcStatus::WrFlushErr => cx.nic.counters.add(Count::RespCqeFlushError, 1),
            _ => cx.nic.counters.add(Count::RespCqeError, 1),
        }
        let Some(cq) = cq.or(cx.qp.recv_cq.as_ref()) else { return };
        self.cq_lost |= !cx.nic.complete(cq, completion, solicited);
    }

    /// The next time this QP has something to do by itself, and what.
    pub(crate) fn deadline(&self) -> Option<(Time, TimerKind)> {
        let mut first: Option<(Time, TimerKind)> = None;
        let mut take = |at: Option<Time>, why| {
            if let Some(at) = at
                && first.is_none_or(|(t, _)| at < t)
            {
                first = Some((at, why));
            }
        };
        take(self.rnr, TimerKind::Rnr);
        take(self.retransmit, TimerKind::Retransmit);
        if let Some(cc) = &self.cc {
            take(cc.deadline(), TimerKind::RateIncrease);
        }
        take(self.pace, TimerKind::Pace);
        first
    }

    /// Tells the NIC's timer queue, if it must know.
    pub(crate) fn arm<T>(&mut self, cx: &Cx<'_, T>) {
        let deadline = self.deadline().map(|(at, _)| at);
        let known = match (self.armed, deadline) {
            // An entry that comes too early is looked at then; that saves moving it at each ACK.
            (Some(armed), Some(at)) => armed <= at,
            (None, None) => true,
            _ => false,
        };
        if !known {
            self.armed = deadline;
            cx.nic.set_timer(cx.qp.qpn, deadline);
        }
    }

    pub(crate) fn next_deadline(&self, qpn: Qpn) -> Option<Deadline> {
        self.deadline().map(|(at, why)| Deadline { at, qpn, why })
    }

    /// Puts right an entry of the timer queue that is older than what this QP waits for.
    pub(crate) fn rearm_from(&mut self, nic: &Nic, qpn: Qpn, at: Option<Time>) {
        self.armed = at;
        nic.set_timer(qpn, at);
    }

    /// The timer queue gave its entry up.
    pub(crate) const fn disarmed(&mut self) {
        self.armed = None;
    }
}

/// Something came up for a QP: it lines up unless it stands there.
pub(crate) fn schedule<T>(cx: &Cx<'_, T>) {
    cx.qp.place.line_up(&cx.nic.line, cx.qp.qpn);
}

/// The cause of all that is flushed.
pub(crate) const FLUSHED: Cause = Cause::new(Rule::Flushed);

impl<T: Transmit> Cx<'_, T> {
    /// Whether a packet may go out.
    pub(crate) fn has_room(&self) -> bool {
        self.out.room() != 0
    }
}
