//! The completer: what a response means for the requests that wait.

use urxe_memory::Memory;
use urxe_wire::{
    Aeth, Credit, NakCode, Opcode, OpcodeInfo, Operation, Position, Psn, RnrTimer, Roce, Syndrome,
};

use crate::conn::Conn;
use crate::reason::{Cause, Drop, Rule};
use crate::sq::{Local, Sq, Stage};
use crate::types::WcStatus;
use crate::wr::SendOp;

/// The half of a QP that reads responses.
#[derive(Debug)]
pub(crate) struct Completer {
    /// Oldest PSN that is not acknowledged.
    una: Psn,
    /// First WQE that is not done.
    cursor: u64,
    /// The PSN an implied NAK has last sent the requester back to; once is enough.
    implied: Option<Psn>,
}

/// What the QP shall do. All up to [`Completer::una`] is acknowledged in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Go on.
    Advance,
    /// Go back to this PSN: the peer, or a hole in its responses, says that it was lost.
    Rewind { to: Psn, implied: bool },
    /// Wait for the peer's receive queue, then go back to this PSN.
    WaitRnr { to: Psn, timer: RnrTimer },
    /// The oldest WQE failed.
    Fatal { status: WcStatus, cause: Cause },
    /// Nothing.
    Ignore(Drop),
}

/// What the peer said of its receive queue: requests completed, and how many more are welcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) msn: Psn,
    pub(crate) credit: Credit,
}

impl Completer {
    pub(crate) const fn new(psn: Psn) -> Self {
        Self { una: psn, cursor: 0, implied: None }
    }

    /// The oldest PSN that is not acknowledged.
    pub(crate) const fn una(&self) -> Psn {
        self.una
    }

    /// The timer ran out: an implied NAK counts again.
    pub(crate) const fn forget_implied(&mut self) {
        self.implied = None;
    }

    /// Judges a response. `top` is one past the greatest PSN sent.
    pub(crate) fn on_response(
        &mut self,
        sq: &mut Sq,
        top: Psn,
        info: &OpcodeInfo,
        packet: &Roce<'_>,
        conn: &Conn,
        memory: &Memory,
    ) -> (Verdict, Option<Grant>) {
        let psn = packet.bth.psn;
        self.cursor = self.cursor.max(sq.first());
        let grant = packet.ext.aeth.and_then(|aeth| match aeth.syndrome {
            Syndrome::Ack(credit) => Some(Grant { msn: aeth.msn, credit }),
            _ => None,
        });
        if psn.since(self.una) >= top.since(self.una) {
            // IBA 9.7.6.1: an ACK of the past and one of what was never sent.
            let known = psn.is_before(self.una);
            let why = if known { Drop::DuplicateResponse } else { Drop::GhostAck };
            // The latest ACK again may still bring credit.
            let again = psn.next() == self.una;
            return (Verdict::Ignore(why), grant.filter(|_| again));
        }
        let verdict = match (info.operation, packet.ext.aeth) {
            (Operation::Acknowledge, Some(aeth)) => self.on_ack(sq, psn, aeth, conn),
            (Operation::ReadResponse, _) => self.on_read(sq, info, packet, conn, memory),
            (Operation::AtomicAcknowledge, _) => self.on_atomic(sq, info, packet, conn, memory),
            _ => Verdict::Ignore(Drop::ReservedSyndrome),
        };
        (verdict, grant)
    }

    fn on_ack(&mut self, sq: &mut Sq, psn: Psn, aeth: Aeth, conn: &Conn) -> Verdict {
        let limit = match aeth.syndrome {
            Syndrome::Ack(_) => psn.next(),
            _ => psn,
        };
        if matches!(aeth.syndrome, Syndrome::Reserved(_)) {
            return Verdict::Ignore(Drop::ReservedSyndrome);
        }
        if !self.acknowledge(sq, limit) {
            return self.imply(conn);
        }
        let fatal = |status, rule| Verdict::Fatal { status, cause: Cause::at(rule, psn) };
        match aeth.syndrome {
            Syndrome::Ack(_) => Verdict::Advance,
            Syndrome::RnrNak(timer) => Verdict::WaitRnr { to: psn, timer },
            Syndrome::Nak(NakCode::PsnSequence) => Verdict::Rewind { to: psn, implied: false },
            Syndrome::Nak(NakCode::InvalidRequest) => {
                fatal(WcStatus::RemInvReqErr, Rule::NakInvalidRequest)
            }
            Syndrome::Nak(NakCode::RemoteAccess) => {
                fatal(WcStatus::RemAccessErr, Rule::NakRemoteAccess)
            }
            Syndrome::Nak(NakCode::RemoteOperational) => {
                fatal(WcStatus::RemOpErr, Rule::NakRemoteOperational)
            }
            Syndrome::Nak(NakCode::InvalidRdRequest) | Syndrome::Reserved(_) => {
                Verdict::Ignore(Drop::ReservedSyndrome)
            }
        }
    }

    /// Takes all before `limit` as acknowledged. Stops, and says so with false, at a request that
    /// a mere ACK does not answer.
    fn acknowledge(&mut self, sq: &mut Sq, limit: Psn) -> bool {
        while let Some(wqe) = sq.get_mut(self.cursor) {
            match wqe.stage {
                Stage::Done => {
                    self.cursor += 1;
                    continue;
                }
                Stage::Started if self.una.is_before(limit) => {}
                _ => return true,
            }
            if wqe.awaits_response() {
                return false;
            }
            let end = wqe.end_psn();
            if end.is_after(limit) {
                self.una = limit;
                return true;
            }
            self.una = end;
            wqe.stage = Stage::Done;
        }
        true
    }

    /// A response tells that the one at `una` was lost (mlx5's implied_nak_seq_err).
    fn imply(&mut self, conn: &Conn) -> Verdict {
        if !conn.profile.implied_nak || self.implied == Some(self.una) {
            return Verdict::Ignore(Drop::AwaitingRetry);
        }
        self.implied = Some(self.una);
        Verdict::Rewind { to: self.una, implied: true }
    }

    /// Brings the completer to the request that `psn` answers: all before it is acknowledged.
    fn reach(
        &mut self,
        sq: &mut Sq,
        opcode: Opcode,
        psn: Psn,
        conn: &Conn,
        answers: impl Fn(&SendOp) -> bool,
    ) -> Result<u64, Verdict> {
        let bad = Rule::ResponseOpcode(opcode);
        let bad = Verdict::Fatal { status: WcStatus::BadRespErr, cause: Cause::at(bad, psn) };
        let Some(index) = sq.find(self.cursor, psn) else {
            return Err(Verdict::Ignore(Drop::GhostAck));
        };
        let Some((first, fits)) = sq.get(index).map(|w| (w.first_psn, answers(&w.op))) else {
            return Err(Verdict::Ignore(Drop::GhostAck));
        };
        // What is before it is done, even if the response is bad.
        if !self.acknowledge(sq, first) || fits && self.una != psn {
            return Err(self.imply(conn));
        }
        if fits { Ok(index) } else { Err(bad) }
    }

    fn on_read(
        &mut self,
        sq: &mut Sq,
        info: &OpcodeInfo,
        packet: &Roce<'_>,
        conn: &Conn,
        memory: &Memory,
    ) -> Verdict {
        let psn = packet.bth.psn;
        let reads = |op: &SendOp| {
            matches!(op, SendOp::Read { .. } | SendOp::Flush { .. } | SendOp::AtomicWrite { .. })
        };
        let wqe = match self.reach(sq, info.opcode, psn, conn, reads) {
            Ok(index) => sq.get(index),
            Err(verdict) => return verdict,
        };
        let Some(wqe) = wqe else {
            return Verdict::Ignore(Drop::GhostAck);
        };
        let fatal = |status, rule| Verdict::Fatal { status, cause: Cause::at(rule, psn) };
        let nth = psn.since(wqe.first_psn);
        let ends = matches!(info.position, Position::Last | Position::Only);
        let is_last = nth + 1 == wqe.psns;
        let is_read = matches!(wqe.op, SendOp::Read { .. });
        let starts = matches!(info.position, Position::First | Position::Only);
        // The first one starts; a later one may, as the answer to a READ that was resumed.
        let misplaced = ends != is_last || nth == 0 && !starts;
        if misplaced || !is_read && info.position != Position::Only || refuses(packet) {
            return fatal(WcStatus::BadRespErr, Rule::ResponseOpcode(info.opcode));
        }
        let at = u64::from(nth) * u64::from(conn.mtu);
        let wanted = match (is_read, is_last) {
            (false, _) => 0,
            (true, false) => conn.mtu,
            (true, true) => wqe.length - nth * conn.mtu,
        };
        let got = u32::try_from(packet.payload.len()).unwrap_or(u32::MAX);
        if got != wanted {
            return fatal(WcStatus::BadRespErr, Rule::ResponseLength(got, wanted));
        }
        if let Local::Sges(sges) = sq.local(wqe)
            && let Err(e) = memory.scatter(conn.pd, sges, at, packet.payload)
        {
            return fatal(WcStatus::LocProtErr, Rule::LocalKey(e));
        }
        self.answered(sq, psn)
    }

    fn on_atomic(
        &mut self,
        sq: &mut Sq,
        info: &OpcodeInfo,
        packet: &Roce<'_>,
        conn: &Conn,
        memory: &Memory,
    ) -> Verdict {
        let psn = packet.bth.psn;
        let atomics =
            |op: &SendOp| matches!(op, SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. });
        let wqe = match self.reach(sq, info.opcode, psn, conn, atomics) {
            Ok(index) => sq.get(index),
            Err(verdict) => return verdict,
        };
        let Some(wqe) = wqe else {
            return Verdict::Ignore(Drop::GhostAck);
        };
        if refuses(packet) {
            let cause = Cause::at(Rule::ResponseOpcode(info.opcode), psn);
            return Verdict::Fatal { status: WcStatus::BadRespErr, cause };
        }
        let original = packet.ext.atomic_ack.unwrap_or_default().original;
        if let Local::Sges(sges) = sq.local(wqe)
            && let Err(e) = memory.scatter(conn.pd, sges, 0, &original.to_ne_bytes())
        {
            let cause = Cause::at(Rule::LocalKey(e), psn);
            return Verdict::Fatal { status: WcStatus::LocProtErr, cause };
        }
        self.answered(sq, psn)
    }

    /// The response at `psn` is taken.
    fn answered(&mut self, sq: &mut Sq, psn: Psn) -> Verdict {
        self.una = psn.next();
        if let Some(wqe) = sq.get_mut(self.cursor)
            && wqe.end_psn() == self.una
        {
            wqe.stage = Stage::Done;
        }
        Verdict::Advance
    }
}

/// Whether a response that carries data has a syndrome that says otherwise.
fn refuses(packet: &Roce<'_>) -> bool {
    packet.ext.aeth.is_some_and(|aeth| !matches!(aeth.syndrome, Syndrome::Ack(_)))
}
