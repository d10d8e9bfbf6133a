//! Completions of receive queues.

use urxe_engine::{Completion, WcFlags, WcOpcode, WcStatus};

use super::{Invariant, Oracle, RecvPhase, Verdict};
use crate::plan::{Queue, What};

/// Set in the work request number of a receive.
pub(crate) const RECV: u64 = 1 << 32;

impl Oracle {
    /// A completion of a receive at one side of a pair.
    pub(crate) fn received(&mut self, conn: usize, side: usize, c: &Completion) -> Verdict {
        let id = self.take_recv(conn, side, c)?;
        if c.status != WcStatus::Success {
            let s = &mut self.sides[conn][side];
            match c.status {
                WcStatus::WrFlushErr => s.flushed = true,
                status => s.rx_failed = s.rx_failed.or(Some(status)),
            }
            return Ok(());
        }
        if let Queue::Own(..) = self.plan.recvs[id].queue {
            self.sides[conn][side].rq_good += 1;
        }
        if !self.plan.conns[conn].reliable() {
            return self.received_unreliable(conn, side, id, c);
        }
        let peer = &self.sides[conn][1 - side];
        let arrived = self.sides[conn][side].arrived;
        let Some(&message) = peer.messages.get(arrived) else {
            let what = format!(
                "pair {conn} side {side} got message {arrived}, of {} bytes; {} were sent",
                c.byte_len,
                peer.messages.len()
            );
            return self.fail(Invariant::Received, what);
        };
        self.sides[conn][side].arrived += 1;
        self.check_message(message, id, c)
    }

    /// Finds the receive that completed, and whether it was its turn.
    fn take_recv(
        &mut self,
        conn: usize,
        side: usize,
        c: &Completion,
    ) -> Result<usize, super::Violation> {
        let id = usize::try_from(c.wr_id & !RECV).unwrap_or(usize::MAX);
        let phase = self.recvs.get(id).copied();
        let who = format!("receive {id} of pair {conn} side {side}");
        match phase {
            Some(RecvPhase::Posted) => {}
            Some(RecvPhase::Done(before)) => {
                let what = format!("{who} completed a second time: {before:?}, now {:?}", c.status);
                return self.fail(Invariant::ExactlyOnce, what);
            }
            _ => {
                let what = format!("{who} completed; it was not posted");
                return self.fail(Invariant::ExactlyOnce, what);
            }
        }
        self.recvs[id] = RecvPhase::Done(c.status);
        let from_srq = self.plan.conns[conn].srq[side];
        match self.plan.recvs[id].queue {
            Queue::Own(of, at) if (of, at) == (conn, side) => {
                let s = &mut self.sides[conn][side];
                let next = s.rq.get(s.rq_done).copied();
                s.rq_done += 1;
                if next != Some(id) {
                    let what = format!("{who} completed before receive {next:?}, posted first");
                    return self.fail(Invariant::Order, what);
                }
                let ended = s.flushed || s.rx_failed.is_some();
                if ended && c.status != WcStatus::WrFlushErr {
                    let what = format!("{who} completed with {:?} in a failed queue", c.status);
                    return self.fail(Invariant::Status, what);
                }
            }
            Queue::Shared(srq) if from_srq == Some(srq) => {}
            other => {
                let what = format!("{who} completed; it belongs to {other:?}");
                return self.fail(Invariant::ExactlyOnce, what);
            }
        }
        Ok(id)
    }

    /// A reliable message and what its receive says of it.
    fn check_message(&mut self, message: usize, recv: usize, c: &Completion) -> Verdict {
        let who = self.plan.describe(message);
        let op = self.op(message).clone();
        if op.ends != crate::plan::Ends::Well {
            return self.fail(Invariant::Received, format!("{who}, was received"));
        }
        let (opcode, imm, window) = match op.what {
            What::Send { imm, invalidate } => (WcOpcode::Recv, imm, invalidate),
            _ => (WcOpcode::RecvRdmaWithImm, true, None),
        };
        let mut flags = WcFlags::empty();
        flags.set(WcFlags::WITH_IMM, imm);
        flags.set(WcFlags::WITH_INV, window.is_some());
        let got = (c.opcode, c.byte_len, c.flags);
        let wanted = (opcode, op.len(), flags);
        if got != wanted {
            let what = format!("{who}: its receive says {got:?}, wanted {wanted:?}");
            return self.fail(Invariant::Received, what);
        }
        let number = u32::try_from(message).unwrap_or(u32::MAX).to_be_bytes();
        if imm && c.imm != number {
            let what = format!("{who}: immediate data {:x?}, wanted {number:x?}", c.imm);
            return self.fail(Invariant::Received, what);
        }
        if let Some(window) = window
            && c.invalidated != self.window_keys[window]
        {
            let (got, want) = (c.invalidated, self.window_keys[window]);
            let what = format!("{who}: invalidated key {got:#x}, wanted {want:#x}");
            return self.fail(Invariant::Received, what);
        }
        let data = self.data(message);
        match op.what {
            What::Write { remote, .. } => {
                // What it wrote before must be there, but the model learns it when the sender does.
                self.must_hold(Invariant::Placed, &who, &[remote.span], 0, &data)
            }
            _ => {
                let local = self.plan.recvs[recv].local.clone();
                self.must_hold(Invariant::Received, &who, &local, 0, &data)?;
                self.scatter(&local, 0, &data);
                Ok(())
            }
        }
    }
}
