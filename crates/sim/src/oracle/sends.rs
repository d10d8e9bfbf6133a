//! Completions of send queues.

use urxe_engine::{Completion, WcOpcode, WcStatus};

use super::{Failure, Invariant, Oracle, Phase, Verdict};
use crate::plan::{Ends, What};

impl Oracle {
    /// A completion of the send queue of one side of a pair. `harm` counts the pair's packets that
    /// the network harmed so far.
    pub(crate) fn sent(&mut self, conn: usize, side: usize, c: &Completion, harm: u32) -> Verdict {
        let id = usize::try_from(c.wr_id).unwrap_or(usize::MAX);
        let known = id < self.phases.len() && self.op(id).conn == conn && self.op(id).side == side;
        if !known || matches!(self.phases[id], Phase::Waiting | Phase::Skipped) {
            let what = format!("a completion of work request {}, which was not posted", c.wr_id);
            return self.fail(Invariant::ExactlyOnce, what);
        }
        let who = self.plan.describe(id);
        if let Some((_, Some(_))) = self.times.get(&id) {
            let what = format!("{who} completed a second time, with {:?}", c.status);
            return self.fail(Invariant::ExactlyOnce, what);
        }
        if matches!(self.phases[id], Phase::Good) {
            let what = format!("{who} completed after one that was posted later");
            return self.fail(Invariant::Order, what);
        }
        if self.sides[conn][side].gone {
            let what = format!("{who} completed after its QP was reset or destroyed");
            return self.fail(Invariant::ExactlyOnce, what);
        }
        self.pass_unsignaled(conn, side, id, &who)?;
        if c.opcode != opcode_of(&self.op(id).what) {
            let what = format!("{who} completed as {:?}", c.opcode);
            return self.fail(Invariant::ExactlyOnce, what);
        }
        if let Some((_, seen)) = self.times.get_mut(&id) {
            *seen = Some(self.now);
        }
        self.sides[conn][side].settled += 1;
        if c.status == WcStatus::Success {
            self.check_success(id, c, &who)?;
            return self.good_op(id);
        }
        self.phases[id] = Phase::Failed(c.status);
        let harm = harm.saturating_sub(self.harm.get(&id).copied().unwrap_or(0));
        let s = &mut self.sides[conn][side];
        match s.failed {
            None => {
                s.failed = Some(Failure { op: id, status: c.status, cause: c.cause, harm });
            }
            Some(_) if c.status == WcStatus::WrFlushErr => {}
            Some(first) => {
                let what = format!(
                    "{who} failed with {:?} ({}), but the queue had failed before (operation {}, \
                     {:?}): wanted WrFlushErr",
                    c.status,
                    c.cause.map_or("no cause".to_owned(), |c| c.to_string()),
                    first.op,
                    first.status
                );
                return self.fail(Invariant::Status, what);
            }
        }
        Ok(())
    }

    /// Those before `id` that did not complete must be unsignaled; they are done then.
    fn pass_unsignaled(&mut self, conn: usize, side: usize, id: usize, who: &str) -> Verdict {
        loop {
            let s = &self.sides[conn][side];
            let Some(&next) = s.posted.get(s.settled) else {
                return self.fail(Invariant::Order, format!("{who} completed out of order"));
            };
            if next == id {
                return Ok(());
            }
            let missing = self.plan.describe(next);
            if self.op(next).signaled || self.plan.conns[conn].sig_all[side] || s.failed.is_some() {
                let what = format!("{who} completed, but not yet {missing}, posted before it");
                return self.fail(Invariant::Order, what);
            }
            self.sides[conn][side].settled += 1;
            self.good_op(next)?;
        }
    }

    fn check_success(&self, id: usize, c: &Completion, who: &str) -> Verdict {
        let op = self.op(id);
        let side = &self.sides[op.conn][op.side];
        if let Some(first) = side.failed {
            let what = format!("{who} is good, but operation {} before it failed", first.op);
            return self.fail(Invariant::Status, what);
        }
        if op.ends != Ends::Well {
            return self.fail(Invariant::Status, format!("{who}, completed well"));
        }
        if !op.signaled && !self.plan.conns[op.conn].sig_all[op.side] {
            return self.fail(Invariant::ExactlyOnce, format!("{who} is good, and completed"));
        }
        let wanted = match op.what {
            What::Read(_) => op.len(),
            What::Add { .. } | What::Swap { .. } => 8,
            _ => c.byte_len,
        };
        if c.byte_len != wanted {
            let what = format!("{who}: byte_len is {}, wanted {wanted}", c.byte_len);
            return self.fail(Invariant::Fetched, what);
        }
        Ok(())
    }

    /// An operation is done: what it promises must be so.
    pub(super) fn good_op(&mut self, id: usize) -> Verdict {
        self.phases[id] = Phase::Good;
        let op = self.op(id).clone();
        if !self.plan.conns[op.conn].reliable() {
            return Ok(());
        }
        let who = self.plan.describe(id);
        if op.ends != Ends::Well {
            return self.fail(Invariant::Status, format!("{who}, is done"));
        }
        match op.what {
            What::Write { remote, .. } | What::AtomicWrite(remote) => {
                let data = self.data(id);
                self.must_hold(Invariant::Placed, &who, &[remote.span], 0, &data)?;
                self.scatter(&[remote.span], 0, &data);
            }
            What::Read(remote) => {
                let data = self.gather(&[remote.span]);
                self.must_hold(Invariant::Fetched, &who, &op.local, 0, &data)?;
                self.scatter(&op.local, 0, &data);
            }
            What::Add { .. } | What::Swap { .. } => {
                let bytes = self.actual(&op.local);
                let original = u64::from_ne_bytes(bytes.as_slice().try_into().unwrap_or_default());
                self.originals.insert(id, original);
                self.adopt(&op.local);
            }
            What::Send { .. }
            | What::Flush { .. }
            | What::Bind { .. }
            | What::Invalidate { .. } => {}
        }
        Ok(())
    }

    /// The bytes that an operation sends.
    pub(super) fn data(&self, id: usize) -> Vec<u8> {
        match self.inline.get(&id) {
            Some(data) => data.clone(),
            None => self.gather(&self.op(id).local),
        }
    }
}

const fn opcode_of(what: &What) -> WcOpcode {
    match what {
        What::Send { .. } => WcOpcode::Send,
        What::Write { .. } => WcOpcode::RdmaWrite,
        What::Read(_) => WcOpcode::RdmaRead,
        What::Add { .. } => WcOpcode::FetchAdd,
        What::Swap { .. } => WcOpcode::CompSwap,
        What::AtomicWrite(_) => WcOpcode::AtomicWrite,
        What::Flush { .. } => WcOpcode::Flush,
        What::Bind { .. } => WcOpcode::BindMw,
        What::Invalidate { .. } => WcOpcode::LocalInv,
    }
}
