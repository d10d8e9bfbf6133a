//! How a QP comes in error, and what is flushed then, in order.

use urxe_wire::Qpn;

use super::{Cx, FLUSHED, Inner};
use crate::attr::{QpKind, QpState};
use crate::reason::Cause;
use crate::responder::Blame;
use crate::types::{AsyncEvent, Completion, WcFlags, WcOpcode, WcStatus};

impl Inner {
    /// The oldest send WQE fails; the QP goes to error, or an unreliable one's send queue does.
    pub(super) fn fail_front<T>(&mut self, cx: &mut Cx<'_, T>, status: WcStatus, cause: Cause) {
        if let Some(wqe) = self.sq.pop() {
            // IBA 10.7.3.1: what fails completes, signaled or not.
            self.complete_send(cx, wqe.wr_id, wqe.wc_opcode(), 0, (status, Some(cause)));
        }
        if self.conn.reliable() {
            self.enter_error(cx, false);
        } else {
            self.enter_sqe(cx);
        }
    }

    /// As [`Self::fail_front`], if the oldest WQE is marked as failed.
    pub(super) fn fail_front_stage<T>(&mut self, cx: &mut Cx<'_, T>) {
        if let Some((status, cause)) = self.sq.failure() {
            self.fail_front(cx, status, cause);
        }
    }

    /// The peer's request, or our memory, broke the connection; answers queued still go out.
    pub(super) fn fail_responder<T>(&mut self, cx: &mut Cx<'_, T>, blame: Blame, cause: Cause) {
        tracing::debug!(qpn = %cx.qp.qpn, %cause, "responder failed");
        match blame {
            Blame::Request => cx.nic.tell(AsyncEvent::QpReqErr(cx.qp.qpn)),
            Blame::Access => cx.nic.tell(AsyncEvent::QpAccessErr(cx.qp.qpn)),
            Blame::Local => {}
        }
        self.enter_error(cx, true);
    }

    /// To ERR. `keep_replies`: what the responder has queued, a NAK above all, still goes out.
    pub(crate) fn enter_error<T>(&mut self, cx: &mut Cx<'_, T>, keep_replies: bool) {
        if self.state() == QpState::Err {
            return;
        }
        self.attr.qp_state = QpState::Err;
        self.attr.cur_qp_state = QpState::Err;
        self.stop_timers();
        self.cc = None;
        self.draining = false;
        if !keep_replies {
            self.responder.silence();
        }
        self.flush_sends(cx);
        self.flush_receives(cx);
        if cx.qp.srq.is_some() || cx.qp.kind == QpKind::XrcTarget {
            // IBA 11.6.3: no WQE of the SRQ will be taken any more.
            cx.nic.tell(AsyncEvent::QpLastWqeReached(cx.qp.qpn));
        }
    }

    /// To SQE: sends are flushed, receives go on (IBA 10.3.1).
    fn enter_sqe<T>(&mut self, cx: &mut Cx<'_, T>) {
        self.attr.qp_state = QpState::Sqe;
        self.attr.cur_qp_state = QpState::Sqe;
        self.stop_timers();
        self.flush_sends(cx);
    }

    pub(super) fn flush_sends<T>(&mut self, cx: &mut Cx<'_, T>) {
        while let Some(wqe) = self.sq.pop() {
            let end = (WcStatus::WrFlushErr, Some(FLUSHED));
            self.complete_send(cx, wqe.wr_id, wqe.wc_opcode(), 0, end);
        }
        self.requester.halt(&self.sq, self.completer.una());
    }

    pub(super) fn flush_receives<T>(&mut self, cx: &mut Cx<'_, T>) {
        let xrc = self.xrc.take();
        if let Some(wr_id) = self.responder.abandon() {
            let cq = xrc.as_ref().and_then(|srq| srq.xrc.as_ref()).map(|(_, cq)| cq);
            self.complete_recv(cx, cq, flushed(cx, wr_id), false);
        }
        while let Some(wr_id) = self.rq.as_mut().and_then(crate::rq::Ring::pop) {
            self.complete_recv(cx, None, flushed(cx, wr_id), false);
        }
    }
}

fn flushed<T>(cx: &Cx<'_, T>, wr_id: u64) -> Completion {
    Completion {
        wr_id,
        status: WcStatus::WrFlushErr,
        opcode: WcOpcode::Recv,
        byte_len: 0,
        imm: [0; 4],
        invalidated: 0,
        qpn: cx.qp.qpn,
        src_qp: Qpn::default(),
        flags: WcFlags::empty(),
        pkey_index: 0,
        traffic_class: 0,
        at: cx.now,
        cause: Some(FLUSHED),
    }
}
