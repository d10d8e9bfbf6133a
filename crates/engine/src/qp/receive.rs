//! A packet for this QP: to the completer, the responder, or congestion control.

use std::sync::Arc;

use urxe_wire::{Bth, Direction, Error, Opcode, OpcodeInfo, Operation, PKey, Psn, Qpn, Roce};

use super::{Cx, Inner, Source};
use crate::attr::{QpKind, QpState};
use crate::completer::Verdict;
use crate::cq::Cq;
use crate::path::{Ecn, Received, Transmit};
use crate::reason::{Cause, Count, Drop, Rule, Why};
use crate::responder::{Action, Arrived, Env, Request};
use crate::types::{AsyncEvent, Completion, WcFlags, WcStatus};

impl Inner {
    /// Takes a packet whose BTH names this QP. Answers are queued, not sent.
    pub(crate) fn on_packet<T: Transmit>(
        &mut self,
        cx: &mut Cx<'_, T>,
        received: &Received<'_>,
        bth: &Bth,
    ) -> Result<(), Drop> {
        self.try_packet(cx, received, bth).inspect_err(|&why| {
            cx.nic.counters.dropped(why);
            tracing::debug!(
                qpn = %cx.qp.qpn, opcode = %bth.opcode, psn = %bth.psn, src = %received.src,
                epsn = %self.responder.epsn(), una = %self.completer.una(), rule = why.rule(),
                why = why.name(), "dropped"
            );
        })
    }

    fn try_packet<T: Transmit>(
        &mut self,
        cx: &mut Cx<'_, T>,
        received: &Received<'_>,
        bth: &Bth,
    ) -> Result<(), Drop> {
        if !self.state().responds() {
            return Err(Drop::WrongState);
        }
        let pkey_index = self.pkey_index(cx, bth.pkey).ok_or(Drop::BadPKey)?;
        if !self.conn.kind.is_connected() {
            return self.on_datagram(cx, received, pkey_index);
        }
        if let Some(path) = &self.path
            && (path.dst != received.src || path.src != received.dst)
        {
            return Err(Drop::WrongAddress);
        }
        if bth.opcode == Opcode::CNP {
            Roce::parse(received.bytes).map_err(|e| malformed(cx, &e))?;
            return self.on_cnp(cx);
        }
        if bth.opcode.0 & 0xe0 != self.conn.transport() as u8 {
            return Err(Drop::WrongTransport);
        }
        let Some(info) = bth.opcode.info() else {
            return self.on_unknown(cx, bth);
        };
        let packet = Roce::parse(received.bytes).map_err(|e| malformed(cx, &e))?;
        self.note_arrival(cx, received);
        let target = self.conn.kind != QpKind::XrcInit;
        let initiator = self.conn.kind != QpKind::XrcTarget && self.conn.kind != QpKind::Uc;
        match info.direction {
            Direction::Response if initiator => self.on_response(cx, info, &packet),
            Direction::Request if target => self.on_request(cx, info, &packet),
            _ => Err(Drop::WrongTransport),
        }
    }

    /// Which of our P_Keys lets a packet with `pkey` in: the QP's, or QP1's any of the table. Keys
    /// match when partitions do and not both are limited members (IBA 10.9.3).
    fn pkey_index<T>(&self, cx: &Cx<'_, T>, pkey: PKey) -> Option<u16> {
        if self.conn.kind != QpKind::Gsi || self.conn.profile.default_pkey_only {
            return self.conn.pkey.matches(pkey).then_some(self.attr.pkey_index);
        }
        let at = cx.nic.config.pkeys.iter().position(|own| own.matches(pkey))?;
        u16::try_from(at).ok()
    }

    /// What any good packet of a connected QP brings about.
    fn note_arrival<T: Transmit>(&mut self, cx: &mut Cx<'_, T>, received: &Received<'_>) {
        if self.state() == QpState::Rtr && !self.established {
            // IBA 11.6.3.1: the first packet tells that the connection stands.
            self.established = true;
            cx.nic.tell(AsyncEvent::CommEst(cx.qp.qpn));
        }
        if Ecn::from_bits(received.traffic_class) == Ecn::Ce {
            cx.nic.counters.add(Count::EcnMarked, 1);
            self.notify(cx, self.conn.dest_qp, self.path);
        }
    }

    fn on_response<T: Transmit>(
        &mut self,
        cx: &mut Cx<'_, T>,
        info: &OpcodeInfo,
        packet: &Roce<'_>,
    ) -> Result<(), Drop> {
        if !matches!(self.state(), QpState::Rts | QpState::Sqd) {
            return Err(Drop::WrongState);
        }
        let before = self.completer.una();
        let top = self.requester.top();
        let (verdict, grant) =
            self.completer.on_response(&mut self.sq, top, info, packet, &self.conn, &cx.nic.memory);
        if let Some(grant) = grant
            && self.conn.profile.credits
        {
            self.requester.grant(grant.msn, grant.credit.messages());
        }
        let acked = self.completer.una().since(before);
        if acked != 0 {
            self.requester.window.on_ack(acked, self.completer.una());
            self.refill_retries();
            self.rnr_over = None;
        }
        self.retire(cx);
        if acked != 0 {
            self.start_retransmit(cx.now);
        }
        self.apply(cx, verdict)?;
        self.fail_front_stage(cx);
        Ok(())
    }

    fn apply<T: Transmit>(&mut self, cx: &mut Cx<'_, T>, verdict: Verdict) -> Result<(), Drop> {
        match verdict {
            Verdict::Advance => Ok(()),
            Verdict::Ignore(why) => Err(why),
            Verdict::Rewind { to, implied } => {
                let count = if implied { Count::ImpliedNakSeqErr } else { Count::PacketSeqErr };
                cx.nic.counters.add(count, 1);
                if self.rnr.is_some() || self.rnr_over == Some(to) {
                    // It is about what was in flight when the RNR NAK came: all of it will go
                    // again, or has gone after a wait shorter than the way here and back, and it
                    // is no new failure. rxe sends these.
                    return Err(Drop::AwaitingRetry);
                }
                self.again = if implied { Why::ImpliedNak } else { Why::Nak };
                self.go_back(cx, to);
                Ok(())
            }
            Verdict::WaitRnr { to, timer } => {
                cx.nic.counters.add(Count::RnrNakReceived, 1);
                if self.rnr.is_some() {
                    return Err(Drop::AwaitingRetry);
                }
                self.again = Why::RnrOver;
                self.wait_rnr(cx, to, timer);
                Ok(())
            }
            Verdict::Fatal { status, cause } => {
                self.fail_front(cx, status, cause);
                Ok(())
            }
        }
    }

    /// Go-back-N from `to`, which was lost.
    fn go_back<T: Transmit>(&mut self, cx: &mut Cx<'_, T>, to: Psn) {
        if !self.take_retry() {
            cx.nic.counters.add(Count::RetryExceeded, 1);
            self.give_up(cx, to);
            return;
        }
        tracing::debug!(qpn = %cx.qp.qpn, to = %to, top = %self.requester.top(), "go back");
        self.requester.window.on_loss(self.requester.top());
        self.requester.rewind(&self.sq, to);
        self.start_retransmit(cx.now);
    }

    fn wait_rnr<T: Transmit>(&mut self, cx: &mut Cx<'_, T>, to: Psn, timer: urxe_wire::RnrTimer) {
        if !self.take_rnr_retry() {
            cx.nic.counters.add(Count::RnrNakRetryErr, 1);
            let cause = Cause::at(Rule::RnrExhausted, to);
            self.fail_front(cx, WcStatus::RnrRetryExcErr, cause);
            return;
        }
        tracing::debug!(qpn = %cx.qp.qpn, psn = %to, wait = ?timer.duration(), "RNR wait");
        self.requester.rewind(&self.sq, to);
        self.start_rnr(cx.now, timer);
    }

    fn on_request<T: Transmit>(
        &mut self,
        cx: &mut Cx<'_, T>,
        info: &'static OpcodeInfo,
        packet: &Roce<'_>,
    ) -> Result<(), Drop> {
        let request = Request { info, packet };
        let mut no_srq = false;
        if let Some(xrc) = packet.ext.xrceth
            && !self.responder.is_mid_message()
        {
            let named = cx.nic.xrc_srq(xrc.srqn, cx.qp.xrcd);
            // A target is in no PD of its own (Linux drivers/infiniband/core/verbs.c,
            // ib_create_qp): a request reaches what the SRQ that it names may.
            if let Some(srq) = &named {
                self.conn.pd = srq.pd;
            }
            if request.starts() && packet.bth.psn == self.responder.epsn() {
                // A message goes to the SRQ that its first packet names.
                self.xrc = named;
                no_srq = self.xrc.is_none();
            }
        }
        let xrc_srq = self.xrc.clone();
        let srq = xrc_srq.as_deref().or(cx.qp.srq.as_deref());
        let Inner { responder, rq, conn, .. } = self;
        let pd = srq.map_or(conn.pd, |srq| srq.pd);
        let mut source = Source { nic: cx.nic, rq: rq.as_mut(), srq, pd };
        let mut env = Env { conn, memory: &cx.nic.memory, receives: &mut source, no_srq };
        let action = responder.on_request(&request, &mut env);
        if let Some(arrived) = self.responder.take_broken_off() {
            self.deliver(cx, None, &arrived);
        }
        let cq = xrc_srq.as_ref().and_then(|srq| srq.xrc.as_ref()).map(|(_, cq)| cq);
        self.act(cx, &request, action, cq)
    }

    fn act<T: Transmit>(
        &mut self,
        cx: &mut Cx<'_, T>,
        request: &Request<'_>,
        action: Action,
        cq: Option<&Arc<Cq>>,
    ) -> Result<(), Drop> {
        let count = |what| cx.nic.counters.add(what, 1);
        match action {
            Action::Drop(why) => {
                if why == Drop::Gap || why == Drop::BehindRnr {
                    count(Count::OutOfSequence);
                }
                return Err(why);
            }
            Action::Gap => {
                count(Count::OutOfSequence);
                count(Count::NakSeqSent);
                let got = request.packet.bth.psn;
                self.nak = Some(Why::Gap(self.responder.epsn(), got));
                if self.conn.profile.cnp_with_nak {
                    self.notify(cx, self.conn.dest_qp, self.path);
                }
                return Err(Drop::Gap);
            }
            Action::Duplicate => count(Count::DuplicateRequest),
            Action::NotReady => {
                count(Count::OutOfBuffer);
                self.nak = Some(Why::NotReady);
            }
            Action::Done(arrived) => {
                match request.info.operation {
                    _ if !request.starts() => {}
                    Operation::Write => count(Count::RxWriteRequests),
                    Operation::ReadRequest => count(Count::RxReadRequests),
                    Operation::CompareSwap | Operation::FetchAdd => count(Count::RxAtomicRequests),
                    _ => {}
                }
                if let Some(arrived) = arrived {
                    self.deliver(cx, cq, &arrived);
                }
            }
            Action::Fail { blame, arrived, cause, naked } => {
                if naked {
                    count(Count::NakErrorSent);
                    self.nak = Some(Why::Refused(cause));
                }
                if let Some(arrived) = arrived {
                    self.deliver(cx, cq, &arrived);
                }
                self.fail_responder(cx, blame, cause);
            }
        }
        Ok(())
    }

    fn deliver<T>(&mut self, cx: &Cx<'_, T>, cq: Option<&Arc<Cq>>, arrived: &Arrived) {
        let mut flags = WcFlags::empty();
        flags.set(WcFlags::WITH_IMM, arrived.imm.is_some());
        flags.set(WcFlags::WITH_INV, arrived.invalidated.is_some());
        let completion = Completion {
            wr_id: arrived.wr_id,
            status: arrived.status,
            opcode: arrived.opcode,
            byte_len: arrived.byte_len,
            imm: arrived.imm.unwrap_or_default(),
            invalidated: arrived.invalidated.unwrap_or_default(),
            qpn: cx.qp.qpn,
            src_qp: Qpn::default(),
            flags,
            pkey_index: self.attr.pkey_index,
            traffic_class: 0,
            at: cx.now,
            cause: arrived.cause,
        };
        self.complete_recv(cx, cq, completion, arrived.solicited);
    }

    /// A code that no table has: an invalid request, if it is its turn (IBA 9.6.1.1.2).
    fn on_unknown<T: Transmit>(&mut self, cx: &mut Cx<'_, T>, bth: &Bth) -> Result<(), Drop> {
        let serves = matches!(self.conn.kind, QpKind::Rc | QpKind::XrcTarget);
        if !serves || bth.psn != self.responder.epsn() {
            return Err(Drop::UnknownOpcode);
        }
        let cause = Cause::at(Rule::UnknownOpcode(bth.opcode), bth.psn);
        let blame = self.responder.refuse_unknown(bth.psn);
        cx.nic.counters.add(Count::NakErrorSent, 1);
        self.nak = Some(Why::Refused(cause));
        self.fail_responder(cx, blame, cause);
        Ok(())
    }

    /// A CNP slows this QP (IBA A17.9.3).
    fn on_cnp<T>(&mut self, cx: &Cx<'_, T>) -> Result<(), Drop> {
        match &mut self.cc {
            Some(cc) if self.conn.profile.congestion => {
                cc.on_cnp(cx.now);
                cx.nic.counters.add(Count::CnpHandled, 1);
                Ok(())
            }
            _ => Err(Drop::CnpIgnored),
        }
    }

    /// The network marked a packet of `peer`'s: it is told by a CNP, now and then.
    pub(super) fn notify<T: Transmit>(
        &mut self,
        cx: &mut Cx<'_, T>,
        peer: Qpn,
        path: Option<crate::path::Path>,
    ) {
        let Some(path) = path.filter(|_| self.conn.profile.congestion) else {
            return;
        };
        if cx.has_room() && cx.nic.cnp_is_due(cx.now, path.dst, peer) {
            let mut bth = Bth::new(Opcode::CNP, peer, Psn::ZERO);
            bth.becn = true;
            bth.pkey = self.conn.pkey;
            bth.mig_req = self.conn.profile.mig_req;
            let mut ext = urxe_wire::Ext::NONE;
            ext.cnp = Some(urxe_wire::CnpPad::default());
            // The DSCP that ConnectX sends CNPs with by default.
            let path = crate::path::Path { traffic_class: 48 << 2, ..path };
            cx.out.why(Why::Congestion);
            super::send::put(cx, &path, &bth, &ext, crate::path::Payload::None);
            cx.nic.counters.add(Count::CnpSent, 1);
        }
    }
}

fn malformed<T>(cx: &Cx<'_, T>, error: &Error) -> Drop {
    tracing::debug!(qpn = %cx.qp.qpn, %error, "malformed");
    Drop::Malformed
}
