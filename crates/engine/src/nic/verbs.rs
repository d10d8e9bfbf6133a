//! Verbs on objects that exist: post, poll, modify, attach.

use std::net::IpAddr;

use urxe_wire::Qpn;

use super::{CqInfo, Nic, VerbsError};
use crate::attr::{AttrMask, QpAttr, QpKind};
use crate::cq::{Arm, ResizeError};
use crate::path::Transmit;
use crate::qp::{Cx, Qp, schedule};
use crate::rq::{SrqAttr, TooFew};
use crate::time::Time;
use crate::types::{AsyncEvent, Completion, CqId, Event, QpId, SrqId};
use crate::wr::{PostError, RecvWr, SendWr};

/// A sink for calls that send nothing.
struct NoSink;

impl Transmit for NoSink {
    fn room(&self) -> usize {
        0
    }

    fn packet(&mut self, _: &crate::Path, _: &[u8], _: crate::Payload<'_>, _: usize) {
        unreachable!("a sink without room was handed a packet");
    }
}

impl Nic {
    /// Posts a send work request and sends what may go.
    ///
    /// # Errors
    /// Where the request was not taken; nothing of it was done.
    pub fn post_send(
        &self,
        now: Time,
        id: QpId,
        wr: &SendWr<'_>,
        out: &mut impl Transmit,
    ) -> Result<(), PostError> {
        let qp = self.find_qp(id).ok_or(PostError::NoSuchQueue(id.value()))?;
        let mut cx = Cx { nic: self, qp: &qp, now, out };
        {
            let mut inner = qp.lock().ok_or(PostError::NoSuchQueue(id.value()))?;
            inner.post_send(&mut cx, wr)?;
            inner.settle(&mut cx);
        }
        schedule(&cx);
        self.pump(now, out);
        Ok(())
    }

    /// Checks a send work request as [`Self::post_send`] would, but for the room it needs.
    ///
    /// # Errors
    /// Where the request would not be taken.
    pub fn check_send(&self, id: QpId, wr: &SendWr<'_>) -> Result<(), PostError> {
        let qp = self.find_qp(id).ok_or(PostError::NoSuchQueue(id.value()))?;
        let inner = qp.lock().ok_or(PostError::NoSuchQueue(id.value()))?;
        inner.check_send(self, qp.kind, wr).map(drop)
    }

    /// How many send work requests a QP takes now, and how many it holds at most.
    ///
    /// # Errors
    /// Where it does not exist.
    pub fn send_room(&self, id: QpId) -> Result<(usize, usize), PostError> {
        let qp = self.find_qp(id).ok_or(PostError::NoSuchQueue(id.value()))?;
        let inner = qp.lock().ok_or(PostError::NoSuchQueue(id.value()))?;
        Ok(inner.sq.room())
    }

    /// Posts a receive work request.
    ///
    /// # Errors
    /// Where the request was not taken.
    pub fn post_recv(&self, now: Time, id: QpId, wr: &RecvWr<'_>) -> Result<(), PostError> {
        let qp = self.find_qp(id).ok_or(PostError::NoSuchQueue(id.value()))?;
        let mut cx = Cx { nic: self, qp: &qp, now, out: &mut NoSink };
        let mut inner = qp.lock().ok_or(PostError::NoSuchQueue(id.value()))?;
        inner.post_recv(&mut cx, wr)?;
        inner.settle(&mut cx);
        Ok(())
    }

    /// Posts a receive work request to an SRQ.
    ///
    /// # Errors
    /// Where the request was not taken.
    pub fn post_srq_recv(&self, id: SrqId, wr: &RecvWr<'_>) -> Result<(), PostError> {
        self.srqs.get(id.0 as usize).ok_or(PostError::NoSuchQueue(id.0))?.post(wr)
    }

    /// Moves up to `max` completions to the end of `out`, oldest first; gives how many.
    ///
    /// # Errors
    /// Where the CQ does not exist.
    pub fn poll_cq(
        &self,
        id: CqId,
        out: &mut Vec<Completion>,
        max: usize,
    ) -> Result<usize, VerbsError> {
        Ok(self.cq(id)?.poll(out, max))
    }

    /// Hands up to `max` completions to `take`, oldest first; gives how many. The CQ is locked
    /// meanwhile.
    ///
    /// # Errors
    /// Where the CQ does not exist.
    pub fn poll_with(
        &self,
        id: CqId,
        max: usize,
        take: impl FnMut(Completion),
    ) -> Result<usize, VerbsError> {
        Ok(self.cq(id)?.poll_with(max, take))
    }

    /// Takes the oldest completion.
    ///
    /// # Errors
    /// Where the CQ does not exist.
    pub fn poll_one(&self, id: CqId) -> Result<Option<Completion>, VerbsError> {
        Ok(self.cq(id)?.pop())
    }

    /// Asks for one [`crate::Event::Completion`] with the next completion that `arm` means.
    /// Completions that wait already do not count.
    ///
    /// # Errors
    /// Where the CQ does not exist.
    pub fn arm_cq(&self, id: CqId, arm: Arm) -> Result<(), VerbsError> {
        self.cq(id)?.arm(arm);
        Ok(())
    }

    /// As [`Self::arm_cq`], but completions that wait already count, too, unless an event has told
    /// of them. So does ConnectX, which compares what it has written with what the program says it
    /// has polled (Linux drivers/infiniband/hw/mlx5/cq.c, `mlx5_ib_arm_cq`), and a program that
    /// relies on it does not poll again after arming.
    ///
    /// # Errors
    /// Where the CQ does not exist.
    pub fn arm_cq_for_all(&self, id: CqId, arm: Arm) -> Result<(), VerbsError> {
        if self.cq(id)?.arm_for_all(arm) {
            self.events.lock().push_back(Event::Completion(id));
        }
        Ok(())
    }

    /// Changes how many completions a CQ holds.
    ///
    /// # Errors
    /// Where it does not exist, more completions wait, or the size is out of range.
    pub fn resize_cq(&self, id: CqId, capacity: u32) -> Result<(), VerbsError> {
        let (wanted, max) = (capacity as usize, self.config.caps.max_cqe as usize);
        if wanted == 0 || wanted > max {
            return Err(ResizeError::Range { wanted, max }.into());
        }
        Ok(self.cq(id)?.resize(wanted)?)
    }

    /// What a CQ holds.
    ///
    /// # Errors
    /// Where it does not exist.
    pub fn query_cq(&self, id: CqId) -> Result<CqInfo, VerbsError> {
        let cq = self.cq(id)?;
        let (capacity, waiting, overflowed) = (cq.capacity(), cq.len(), cq.overflowed());
        Ok(CqInfo { capacity, waiting, overflowed })
    }

    /// Changes the attributes of a QP that `mask` names. A QP that comes to RTS, or leaves SQD,
    /// sends at the next [`Self::pump`].
    ///
    /// # Errors
    /// Where the transition or a value is not allowed; nothing changes then.
    pub fn modify_qp(&self, id: QpId, attr: &QpAttr, mask: AttrMask) -> Result<(), VerbsError> {
        let missing = VerbsError::NotFound { what: "QP", id: id.value() };
        let qp = self.find_qp(id).ok_or(missing)?;
        // A change sends nothing by itself, so that time does not matter.
        let mut cx = Cx { nic: self, qp: &qp, now: Time::ZERO, out: &mut NoSink };
        let mut inner = qp.lock().ok_or(missing)?;
        inner.modify(&mut cx, attr, mask, &self.limits)?;
        inner.settle(&mut cx);
        schedule(&cx);
        Ok(())
    }

    /// Takes the completions that wait of a QP out of its CQs, as the libraries of real NICs do
    /// when a QP goes to RESET. Those of an XRC target are its SRQs' and stay.
    ///
    /// # Errors
    /// Where the QP does not exist.
    pub fn forget_completions(&self, id: QpId) -> Result<(), VerbsError> {
        let missing = VerbsError::NotFound { what: "QP", id: id.value() };
        let qp = self.find_qp(id).ok_or(missing)?;
        for cq in [&qp.send_cq, &qp.recv_cq].into_iter().flatten() {
            cq.forget(id);
        }
        Ok(())
    }

    /// What an SRQ is set to.
    ///
    /// # Errors
    /// Where it does not exist.
    pub fn query_srq(&self, id: SrqId) -> Result<SrqAttr, VerbsError> {
        Ok(self.srq(id)?.attr())
    }

    /// Sets an SRQ's limit (`limit`) and size (`max_wr`), where given.
    ///
    /// # Errors
    /// Where it does not exist, a value is out of range, or the size is below what waits or below
    /// the limit.
    pub fn modify_srq(
        &self,
        id: SrqId,
        limit: Option<u32>,
        max_wr: Option<u32>,
    ) -> Result<(), VerbsError> {
        let srq = self.srq(id)?;
        let out_of = |field, got: u32, least: u32, most: u32| VerbsError::Range {
            field,
            got: got.into(),
            least: least.into(),
            most: most.into(),
        };
        let most = self.config.caps.max_wr;
        if let Some(max_wr) = max_wr
            && (max_wr == 0 || max_wr > most)
        {
            return Err(out_of("srq max_wr", max_wr, 1, most));
        }
        let passed = srq.modify(limit, max_wr).map_err(|why| match why {
            TooFew::ForLimit(size) => out_of("srq limit", limit.unwrap_or(0), 0, size),
            TooFew::ForUse(least) => out_of("srq max_wr", max_wr.unwrap_or(0), least, most),
        })?;
        if passed {
            self.tell(AsyncEvent::SrqLimitReached(id));
        }
        Ok(())
    }

    /// Lets a UD QP get what is sent to a group.
    ///
    /// # Errors
    /// Where the QP does not exist or is not UD, the address is no group, or it has as many QPs
    /// as it may. Attaching twice is no error.
    pub fn attach_mcast(&self, id: QpId, group: IpAddr) -> Result<(), VerbsError> {
        let groups = &mut *self.groups.write();
        let qp = self.multicast_qp(id, group)?;
        let listeners = groups.entry(group).or_default();
        if listeners.contains(&qp) {
            return Ok(());
        }
        let max = self.config.caps.max_mcast_qp_attach;
        if listeners.len() >= max as usize {
            return Err(VerbsError::Limit { what: "QPs in the group", max });
        }
        listeners.push(qp);
        Ok(())
    }

    /// Takes a QP out of a group.
    ///
    /// # Errors
    /// Where the QP does not exist or is not in the group.
    pub fn detach_mcast(&self, id: QpId, group: IpAddr) -> Result<(), VerbsError> {
        let groups = &mut *self.groups.write();
        self.multicast_qp(id, group)?;
        let missing = VerbsError::NotFound { what: "QP in the group", id: id.value() };
        let listeners = groups.get_mut(&group).ok_or(missing)?;
        let before = listeners.len();
        listeners.retain(|&qpn| qpn != id);
        if listeners.len() == before {
            return Err(missing);
        }
        if listeners.is_empty() {
            groups.remove(&group);
        }
        Ok(())
    }

    fn multicast_qp(&self, id: QpId, group: IpAddr) -> Result<Qpn, VerbsError> {
        let missing = VerbsError::NotFound { what: "QP", id: id.value() };
        let qp: std::sync::Arc<Qp> = self.find_qp(id).ok_or(missing)?;
        if !group.is_multicast() {
            return Err(VerbsError::NotMulticast(group));
        }
        if qp.kind != QpKind::Ud {
            let problem = "cannot be attached to a multicast group; UD can";
            return Err(VerbsError::Kind { kind: qp.kind, problem });
        }
        Ok(qp.qpn)
    }
}
