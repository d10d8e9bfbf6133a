//! Which failures have a cause.

use urxe_engine::{AsyncEvent, WcStatus};

use super::{Failure, Invariant, Oracle, Phase, Verdict};
use crate::plan::{Doom, Ends, Queue};

impl Oracle {
    /// Whether a region that this pair uses has been deregistered.
    fn lost_memory(&self, conn: usize) -> bool {
        self.plan.conns[conn].doom == Doom::Dereg && !self.frozen.is_empty()
    }

    fn slipped(&self, conn: usize, side: usize, remote: bool) -> bool {
        self.sides[conn][side].posted.iter().any(|&id| match self.op(id).ends {
            Ends::Well => false,
            Ends::LocalProtection => !remote,
            _ => true,
        })
    }

    /// Whether a QP has, or may have, come in error.
    fn may_be_dead(&self, conn: usize, side: usize) -> bool {
        let s = &self.sides[conn][side];
        s.gone
            || s.stopped
            || s.failed.is_some()
            || s.rx_failed.is_some()
            || self.slipped(conn, 1 - side, true)
            || self.lost_memory(conn)
    }

    /// Whether receives of the queue that this side's messages go to come late.
    fn starved(&self, conn: usize, side: usize) -> bool {
        let to = 1 - side;
        let queue = self.plan.conns[conn].srq[to].map_or(Queue::Own(conn, to), Queue::Shared);
        self.plan.recvs.iter().any(|r| r.queue == queue && !r.at.is_zero())
    }

    fn is_excused(&self, conn: usize, side: usize, failure: &Failure) -> bool {
        let ends = self.op(failure.op).ends;
        let c = &self.plan.conns[conn];
        let lost_memory = self.lost_memory(conn);
        match failure.status {
            WcStatus::RetryExcErr => {
                failure.harm > c.retry.into() || self.may_be_dead(conn, 1 - side)
            }
            WcStatus::RnrRetryExcErr => c.rnr_retry < 7 && self.starved(conn, side),
            WcStatus::RemAccessErr => ends == Ends::Access || lost_memory,
            WcStatus::RemInvReqErr => ends == Ends::Invalid,
            WcStatus::RemOpErr => ends == Ends::Operational || lost_memory,
            WcStatus::LocProtErr => ends == Ends::LocalProtection || lost_memory,
            WcStatus::WrFlushErr => {
                let s = &self.sides[conn][side];
                s.stopped
                    || s.rx_failed.is_some()
                    || self.slipped(conn, 1 - side, true)
                    || self.lost_memory(conn)
            }
            _ => false,
        }
    }

    /// Looks at all failures, once all is known.
    pub(super) fn check_failures(&self) -> Verdict {
        for conn in 0..self.sides.len() {
            for side in 0..2 {
                self.check_send_failure(conn, side)?;
                self.check_recv_failure(conn, side)?;
            }
        }
        Ok(())
    }

    fn check_send_failure(&self, conn: usize, side: usize) -> Verdict {
        let Some(failure) = self.sides[conn][side].failed else {
            return Ok(());
        };
        if self.is_excused(conn, side, &failure) {
            return Ok(());
        }
        let who = self.plan.describe(failure.op);
        let what = format!(
            "{who} failed with {:?} ({}); {} packets of the pair were harmed since it was posted \
             ({} retries), and nothing else explains it",
            failure.status,
            failure.cause.map_or("no cause".to_owned(), |c| c.to_string()),
            failure.harm,
            self.plan.conns[conn].retry
        );
        self.fail(Invariant::Status, what)
    }

    fn check_recv_failure(&self, conn: usize, side: usize) -> Verdict {
        let s = &self.sides[conn][side];
        let next = self.sides[conn][1 - side].messages.get(s.arrived);
        let ends = next.map_or(Ends::Well, |&m| self.op(m).ends);
        let excused = match s.rx_failed {
            None => true,
            Some(WcStatus::LocLenErr) => ends == Ends::Invalid,
            Some(WcStatus::LocProtErr) => ends == Ends::Operational || self.lost_memory(conn),
            Some(WcStatus::LocAccessErr) => self.lost_memory(conn),
            Some(_) => false,
        };
        if excused {
            return Ok(());
        }
        let what = format!(
            "a receive of pair {conn} side {side} failed with {:?}; its message ({}) does not \
             explain it",
            s.rx_failed,
            next.map_or("none".to_owned(), |&m| self.plan.describe(m))
        );
        self.fail(Invariant::Status, what)
    }

    /// An asynchronous event about a QP of a pair.
    pub(crate) fn event(&self, conn: usize, side: usize, event: AsyncEvent) -> Verdict {
        let excused = match event {
            AsyncEvent::QpReqErr(_) | AsyncEvent::QpAccessErr(_) => {
                self.slipped(conn, 1 - side, true) || self.lost_memory(conn)
            }
            AsyncEvent::QpFatal(_) => self.lost_memory(conn) || self.slipped(conn, 1 - side, true),
            _ => true,
        };
        if excused {
            return Ok(());
        }
        let what = format!("pair {conn} side {side} told {event:?}, which nothing explains");
        self.fail(Invariant::Status, what)
    }

    /// A slip that was posted while all was well must not be good; that it is not is seen when it
    /// completes. This sees that it did fail.
    pub(super) fn check_slips(&self) -> Verdict {
        for (id, op) in self.plan.ops.iter().enumerate() {
            if op.ends != Ends::Well && matches!(self.phases[id], Phase::Good) {
                let what = format!("{} did not fail", self.plan.describe(id));
                return self.fail(Invariant::Status, what);
            }
        }
        Ok(())
    }
}
