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
        let arrived = (told && self.has_taken).then(|| {
            self.has_taken = false;
            self.failed(request, status, cause)
        });
        Action::Fail { blame, arrived, cause, naked: nak.is_some() }
    }

    fn failed(&self, request: &Request<'_>, status: WcStatus, cause: Cause) -> Arrived {
        let is_send = request.info.operation == Operation::Send;
        Arrived {
            wr_id: self.taken.wr_id,
            status,
            opcode: if is_send { WcOpcode::Recv } else { WcOpcode::RecvRdmaWithImm },
            byte_len: 0,
            imm: None,
            invalidated: None,
            solicited: true,
            cause: Some(cause),
        }
    }

    /// Lets an unreliable message go (IBA 9.8.2.2.3). Its receive WQE serves the next one.
    pub(super) fn give_up(&mut self, refusal: Refusal) -> Action {
        self.message = Message::Broken;
        Action::Drop(match refusal {
            Refusal::NotReady => Drop::NoReceive,
            Refusal::TooLong(_) => Drop::TooLong,
            Refusal::Invalid(Rule::OpcodeSequence(_)) => Drop::BrokenMessage,
            Refusal::Local(e) => {
                let cause = Cause::new(Rule::LocalKey(e));
                return Action::Fail {
                    blame: Blame::Local,
                    arrived: self.local_fault(cause),
                    cause,
                    naked: false,
                };
            }
            Refusal::Invalid(_) | Refusal::Access(_) | Refusal::Invalidate(_) => Drop::NotAllowed,
        })
    }

    fn local_fault(&mut self, cause: Cause) -> Option<Arrived> {
        core::mem::take(&mut self.has_taken).then_some(Arrived {
            wr_id: self.taken.wr_id,
            status: WcStatus::LocProtErr,
            opcode: WcOpcode::Recv,
            byte_len: 0,
            imm: None,
            invalidated: None,
            solicited: true,
            cause: Some(cause),
        })
    }
}
