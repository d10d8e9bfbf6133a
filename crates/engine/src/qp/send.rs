//! Sending: answers first, then requests, a quantum at a time.

use urxe_memory::{BindMw, Gather};
use urxe_wire::{MAX_HEADER_LEN, Syndrome, emit_headers};

use super::modify::own_port;
use super::{Cx, Inner, Source};
use crate::attr::QpState;
use crate::line::End;
use crate::path::{Path, Payload, Transmit};
use crate::reason::{Cause, Count, Rule, Why};
use crate::requester::{Emit, Next};
use crate::responder::{Env, Outgoing, ReplyPacket};
use crate::sq::{Local, Stage};
use crate::time::Time;
use crate::types::{AsyncEvent, WcStatus};
use crate::wr::SendOp;

/// What came of one step.
enum Step {
    /// Something was sent or done.
    Went,
    /// Nothing can be sent now.
    Rest,
}

impl Inner {
    /// Sends up to `quantum` packets, or the rest of a turn that was cut short. `None` if nothing
    /// more can be sent now, else where in the line it goes on.
    pub(crate) fn run<T: Transmit>(&mut self, cx: &mut Cx<'_, T>, quantum: u8) -> Option<End> {
        let mut left = match core::mem::take(&mut self.rest_of_turn) {
            0 => quantum,
            rest => rest,
        };
        let more = loop {
            if left == 0 {
                break Some(End::Back);
            }
            if !cx.has_room() {
                // The rest of its turn is due to it: where a sink takes a few packets at a time, it
                // may be the same QP that is cut short each time.
                self.rest_of_turn = left;
                break Some(End::Front);
            }
            left -= 1;
            if matches!(self.step(cx), Step::Rest) {
                break None;
            }
        };
        self.settle(cx);
        more
    }

    /// One packet. Answers go first, but the data of READs takes turns with our own requests: a
    /// peer that always reads must not keep us from sending.
    fn step<T: Transmit>(&mut self, cx: &mut Cx<'_, T>) -> Step {
        let replies = self.responder.has_replies();
        let data = self.responder.sends_data();
        if !replies || data && self.request_turn {
            let step = self.send_request(cx);
            if !replies || matches!(step, Step::Went) {
                self.request_turn = false;
                return step;
            }
        }
        if data && self.must_wait(cx.now) {
            return Step::Rest;
        }
        self.request_turn = true;
        self.send_reply(cx)
    }

    /// What follows each step: a lost completion, a drained queue, a timer.
    pub(crate) fn settle<T>(&mut self, cx: &mut Cx<'_, T>) {
        if core::mem::take(&mut self.cq_lost) && self.state() != QpState::Err {
            // IBA 11.6.3: it cannot tell by a completion any more.
            cx.nic.tell(AsyncEvent::QpFatal(cx.qp.qpn));
            self.enter_error(cx, false);
        }
        self.tell_drained(cx);
        self.arm(cx);
    }

    fn send_reply<T: Transmit>(&mut self, cx: &mut Cx<'_, T>) -> Step {
        let Some(path) = self.path else {
            return Step::Rest;
        };
        let Inner { responder, rq, conn, .. } = self;
        let srq = cx.qp.srq.as_deref();
        let mut source = Source { nic: cx.nic, rq: rq.as_mut(), srq, pd: conn.pd };
        let env = Env { conn, memory: &cx.nic.memory, receives: &mut source, no_srq: false };
        match responder.next_reply(&env) {
            None => return Step::Rest,
            Some(Outgoing::Packet(packet)) => self.put_reply(cx, &path, &packet),
            Some(Outgoing::Dropped(why)) => cx.nic.counters.dropped(why),
            Some(Outgoing::Lost { blame, cause }) => {
                cx.nic.counters.add(Count::NakErrorSent, 1);
                self.nak = Some(Why::Refused(cause));
                self.fail_responder(cx, blame, cause);
            }
        }
        Step::Went
    }

    fn put_reply<T: Transmit>(&mut self, cx: &mut Cx<'_, T>, path: &Path, packet: &ReplyPacket) {
        let gather = packet.payload.as_ref().and_then(|pinned| {
            let len = usize::try_from(pinned.len()).ok()?;
            pinned.slice(0, len).ok()
        });
        let payload = gather.as_ref().map_or(Payload::None, Payload::Memory);
        let refuses = packet.ext.aeth.is_some_and(|a| !matches!(a.syndrome, Syndrome::Ack(_)));
        if refuses && let Some(why) = self.nak.take() {
            cx.out.why(why);
        }
        put(cx, path, &packet.bth, &packet.ext, payload);
        if let Some(gather) = &gather {
            self.count_data(cx.now, gather.len());
        }
    }

    fn send_request<T: Transmit>(&mut self, cx: &mut Cx<'_, T>) -> Step {
        if !self.may_send(cx.now) {
            return Step::Rest;
        }
        let next = self.requester.next(&self.sq, &self.conn, self.completer.una());
        match next {
            Next::Blocked(why) => {
                tracing::trace!(qpn = %cx.qp.qpn, ?why, "nothing to send");
                Step::Rest
            }
            Next::Local(index) => {
                self.do_local(cx, index);
                Step::Went
            }
            Next::Refuse(index, opcode) => {
                let cause = Cause::new(Rule::NotAllowed(opcode));
                self.fail_wqe(cx, index, WcStatus::LocQpOpErr, cause)
            }
            Next::Packet(emit) => self.send_packet(cx, &emit),
        }
    }

    /// IBA 10.3.1: in SQD what was begun goes on, nothing new begins.
    fn may_send(&mut self, now: Time) -> bool {
        let begun =
            self.sq.get(self.requester.position()).is_some_and(|w| w.stage == Stage::Started);
        let state_allows = match self.state() {
            QpState::Rts => true,
            QpState::Sqd => begun,
            _ => false,
        };
        let waits = self.sq.get(self.requester.position()).is_some();
        state_allows && self.rnr.is_none() && waits && !self.must_wait(now)
    }

    /// Whether congestion control or the rate limit holds data back, and if so, until when.
    fn must_wait(&mut self, now: Time) -> bool {
        let cc = self.cc.as_ref().map(|cc| cc.may_send_at(now));
        let limit = self.limit.as_ref().map(|(_, pacer)| pacer.may_send_at(now));
        self.pace = cc.max(limit).filter(|&at| at > now);
        self.pace.is_some()
    }

    /// A packet with `len` bytes of payload went out: what congestion control and the rate limit
    /// count is that with Ethernet, IP, UDP, BTH and ICRC.
    fn count_data(&mut self, now: Time, len: usize) {
        let bytes = len as u64 + 60;
        if let Some(cc) = &mut self.cc {
            cc.on_sent(now, bytes);
        }
        if let Some((rate, pacer)) = &mut self.limit {
            pacer.on_sent(now, bytes, *rate);
        }
    }

    fn send_packet<T: Transmit>(&mut self, cx: &mut Cx<'_, T>, emit: &Emit) -> Step {
        match self.transmit(cx, emit) {
            Ok(()) => {}
            Err((status, cause)) => return self.fail_wqe(cx, emit.index, status, cause),
        }
        let again = self.requester.sent(&mut self.sq, &self.conn, emit, self.completer.una());
        if again {
            cx.nic.counters.add(Count::Retransmitted, 1);
        }
        if self.conn.reliable() {
            if self.retransmit.is_none() {
                self.start_retransmit(cx.now);
            }
        } else {
            self.retire(cx);
        }
        self.count_data(cx.now, emit.len);
        Step::Went
    }

    fn transmit<T: Transmit>(
        &self,
        cx: &mut Cx<'_, T>,
        emit: &Emit,
    ) -> Result<(), (WcStatus, Cause)> {
        let Some(wqe) = self.sq.get(emit.index) else {
            return Ok(());
        };
        if wqe.dest.as_ref().is_some_and(|(ah, ..)| ah.pd != self.conn.pd) {
            // Linux drivers/infiniband/sw/rxe/rxe_av.c, rxe_get_av: told by the completion.
            return Err((WcStatus::LocQpOpErr, Cause::at(Rule::AhOfOtherPd, emit.bth.psn)));
        }
        let path = match (&wqe.dest, self.path) {
            (Some((ah, ..)), _) if self.conn.profile.datagram_port_of_own_qpn => {
                Path { src_port: own_port(self.conn.qpn), ..ah.path }
            }
            (Some((ah, ..)), _) => ah.path,
            (None, Some(path)) => path,
            (None, None) => return Ok(()),
        };
        let mut bth = emit.bth;
        if let Some((_, qpn, _)) = &wqe.dest {
            bth.dest_qp = *qpn;
        }
        let gather: Gather;
        let payload = match self.sq.local(wqe) {
            _ if emit.len == 0 => Payload::None,
            Local::Inline(bytes) => {
                let at = usize::try_from(emit.at).unwrap_or(bytes.len());
                Payload::Bytes(bytes.get(at..at + emit.len).unwrap_or_default())
            }
            Local::Sges(sges) => {
                let part = cx.nic.memory.gather(self.conn.pd, sges, emit.at, emit.len);
                let local = |e| (WcStatus::LocProtErr, Cause::at(Rule::LocalKey(e), bth.psn));
                gather = part.map_err(local)?;
                Payload::Memory(&gather)
            }
        };
        if self.conn.reliable() && emit.bth.psn.is_before(self.requester.top()) {
            cx.out.why(self.again);
        }
        put(cx, &path, &bth, &emit.ext, payload);
        Ok(())
    }

    /// Does a local operation, in its turn.
    fn do_local<T: Transmit>(&mut self, cx: &mut Cx<'_, T>, index: u64) {
        let Some(op) = self.sq.get(index).map(|w| w.op) else {
            return;
        };
        let (pd, qpn) = (self.conn.pd, self.conn.qpn.value());
        let done = match op {
            SendOp::LocalInvalidate { rkey } => {
                let gone = cx.nic.memory.invalidate(pd, qpn, rkey, false);
                gone.map_err(|e| (WcStatus::LocQpOpErr, Cause::new(Rule::LocalKey(e))))
            }
            SendOp::BindMw { mw, rkey, lkey, addr, length, access } => {
                let bind = BindMw { mw, pd, qpn, lkey, new_rkey: rkey, addr, len: length, access };
                let bound = cx.nic.memory.bind_mw(&bind).map(|_| ());
                bound.map_err(|e| (WcStatus::MwBindErr, Cause::new(Rule::Bind(e))))
            }
            _ => Ok(()),
        };
        match done {
            Ok(()) => {
                if let Some(wqe) = self.sq.get_mut(index) {
                    wqe.stage = Stage::Done;
                }
                self.retire(cx);
            }
            Err((status, cause)) => {
                self.fail_wqe(cx, index, status, cause);
            }
        }
    }

    /// Takes note that a WQE cannot be done. It is told of when all before it are done.
    fn fail_wqe<T: Transmit>(
        &mut self,
        cx: &mut Cx<'_, T>,
        index: u64,
        status: WcStatus,
        cause: Cause,
    ) -> Step {
        self.sq.fail(index, status, cause);
        if index == self.sq.first() {
            self.fail_front_stage(cx);
        }
        Step::Rest
    }

    /// Completes what is done, oldest first.
    pub(crate) fn retire<T>(&mut self, cx: &mut Cx<'_, T>) {
        while self.sq.front().is_some_and(|w| w.stage == Stage::Done) {
            let Some(wqe) = self.sq.pop() else { break };
            if wqe.awaits_response() {
                self.requester.answered();
            }
            if cx.qp.sig_all || wqe.flags.contains(crate::wr::SendFlags::SIGNALED) {
                let byte_len = match wqe.op {
                    SendOp::Read { .. } => wqe.length,
                    SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. } => 8,
                    _ => 0,
                };
                let end = (WcStatus::Success, None);
                self.complete_send(cx, wqe.wr_id, wqe.wc_opcode(), byte_len, end);
            }
        }
        self.requester.advanced(&self.sq, &self.conn, self.completer.una());
    }

    /// IBA 11.6.3: an event when all that was begun in SQD has ended.
    fn tell_drained<T>(&mut self, cx: &Cx<'_, T>) {
        if !self.draining || self.state() != QpState::Sqd || !self.is_drained() {
            return;
        }
        self.draining = false;
        cx.nic.tell(AsyncEvent::SqDrained(cx.qp.qpn));
    }

    /// Whether nothing that was begun is unfinished.
    pub(crate) fn is_drained(&self) -> bool {
        self.sq.front().is_none_or(|w| w.stage == Stage::Posted)
    }

    /// Whether the peer owes an answer: something was sent since the last rewind and is not
    /// acknowledged.
    pub(crate) fn in_flight(&self) -> bool {
        self.conn.reliable() && self.completer.una() != self.requester.reached(&self.sq)
    }
}

/// Hands a packet to the sink and counts it.
pub(crate) fn put<T: Transmit>(
    cx: &mut Cx<'_, T>,
    path: &Path,
    bth: &urxe_wire::Bth,
    ext: &urxe_wire::Ext,
    payload: Payload<'_>,
) {
    let mut header = [0; MAX_HEADER_LEN];
    // A header that its own opcode does not have is a defect of ours.
    let len = emit_headers(bth, ext, &mut header);
    let len = len.unwrap_or_else(|e| unreachable!("{} cannot be written: {e}", bth.opcode));
    let pad = usize::from(bth.pad);
    let bytes = (len + payload.len() + pad) as u64;
    tracing::trace!(
        qpn = %cx.qp.qpn, opcode = %bth.opcode, psn = %bth.psn, dest_qp = %bth.dest_qp,
        len = payload.len(), "sent"
    );
    cx.nic.counters.add(Count::TxPackets, 1);
    cx.nic.counters.add(Count::TxBytes, bytes);
    cx.out.packet(path, &header[..len], payload, pad);
}
