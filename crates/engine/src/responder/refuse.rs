//! How a request is turned down: NAKs, completions of receive WQEs, silence.

use urxe_wire::{NakCode, Operation, Syndrome};

use super::{Action, Arrived, Blame, Env, Message, Receives, Refusal, Request, Responder, Silence};
use crate::reason::{Cause, Drop, Rule};
use crate::types::{WcOpcode, WcStatus};

impl Responder {
    /// Answers a refusal on a reliable QP.
    pub(super) fn refuse<R: Receives>(
        &mut self,
        refusal: Refusal,
        request: &Request<'_>,
        env: &Env<'_, R>,
    ) -> Action {
        let psn = request.psn();
        let (nak, blame, status, rule) = match refusal {
            Refusal::NotReady => {
                if self.nak(psn, Syndrome::RnrNak(env.conn.min_rnr_timer)) {
                    self.silent = Some(Silence::Rnr);
                }
                return Action::NotReady;
            }
            Refusal::Invalid(rule) => {
                (Some(NakCode::InvalidRequest), Blame::Request, WcStatus::WrFlushErr, rule)
            }
            Refusal::TooLong(rule) => {
                (Some(NakCode::InvalidRequest), Blame::Local, WcStatus::LocLenErr, rule)
            }
            Refusal::Access(e) => {
                let rule = Rule::RemoteKey(e);
                (Some(NakCode::RemoteAccess), Blame::Access, WcStatus::LocAccessErr, rule)
            }
            Refusal::Local(e) => {
                let rule = Rule::LocalKey(e);
                (Some(NakCode::RemoteOperational), Blame::Local, WcStatus::LocProtErr, rule)
            }
            Refusal::Invalidate(e) => {
                (None, Blame::Local, WcStatus::RemInvReqErr, Rule::RemoteKey(e))
            }
        };
        if let Some(code) = nak {
            self.last_nak(psn, code);
        }
        let cause = Cause::at(rule, psn);
        let told = status != WcStatus::WrFlushErr;
        let arrived = if told { self.fail_taken(request, status, cause) } else { None };
        Action::Fail { blame, arrived, cause, naked: nak.is_some() }
    }

    /// Lets an unreliable message go (IBA 9.8.2.2.3). Its receive WQE serves the next one, unless
    /// it is of a shared queue.
    pub(super) fn give_up(
        &mut self,
        refusal: Refusal,
        request: &Request<'_>,
        shared: bool,
    ) -> Action {
        self.message = Message::Broken;
        let (why, status, rule) = match refusal {
            Refusal::NotReady => return Action::Drop(Drop::NoReceive),
            Refusal::Local(e) => {
                let cause = Cause::at(Rule::LocalKey(e), request.psn());
                let arrived = self.fail_taken(request, WcStatus::LocProtErr, cause);
                return Action::Fail { blame: Blame::Local, arrived, cause, naked: false };
            }
            Refusal::TooLong(rule) => (Drop::TooLong, WcStatus::RemInvReqErr, rule),
            Refusal::Invalid(rule @ Rule::OpcodeSequence(_)) => {
                (Drop::BrokenMessage, WcStatus::RemInvReqErr, rule)
            }
            Refusal::Invalid(rule) => (Drop::NotAllowed, WcStatus::RemInvReqErr, rule),
            Refusal::Access(e) | Refusal::Invalidate(e) => {
                (Drop::NotAllowed, WcStatus::RemAccessErr, Rule::RemoteKey(e))
            }
        };
        if shared {
            self.break_off(request, status, Cause::at(rule, request.psn()));
        }
        Action::Drop(why)
    }

    /// A shared receive WQE does not wait at one QP for its next message: it completes in error,
    /// and the QP goes on (Linux drivers/infiniband/sw/rxe/rxe_resp.c: class E).
    pub(super) fn break_off(&mut self, request: &Request<'_>, status: WcStatus, cause: Cause) {
        self.broken_off = self.fail_taken(request, status, cause);
    }

    /// What a message that was broken off has to tell of its shared receive WQE.
    pub(crate) const fn take_broken_off(&mut self) -> Option<Arrived> {
        self.broken_off.take()
    }

    /// The receive WQE at hand, if any, fails.
    fn fail_taken(
        &mut self,
        request: &Request<'_>,
        status: WcStatus,
        cause: Cause,
    ) -> Option<Arrived> {
        let is_send = request.info.operation == Operation::Send;
        core::mem::take(&mut self.has_taken).then_some(Arrived {
            wr_id: self.taken.wr_id,
            status,
            opcode: if is_send { WcOpcode::Recv } else { WcOpcode::RecvRdmaWithImm },
            byte_len: 0,
            imm: None,
            invalidated: None,
            solicited: true,
            cause: Some(cause),
        })
    }
}
