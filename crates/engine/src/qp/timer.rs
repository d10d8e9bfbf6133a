//! Timers of a QP: the local ACK timeout, the RNR wait, retries.

use urxe_wire::Psn;

use super::{Cx, Inner};
use crate::path::Transmit;
use crate::reason::{Cause, Count, Rule, Why};
use crate::time::Time;
use crate::types::WcStatus;

impl Inner {
    /// Starts, or starts over, the wait for an answer to the oldest PSN.
    pub(super) fn start_retransmit(&mut self, now: Time) {
        self.retransmit = if self.in_flight() && self.rnr.is_none() {
            self.attr.timeout.duration().map(|wait| self.tick(now + wait))
        } else {
            None
        };
    }

    /// The next time at which a timer of this profile can run out.
    fn tick(&self, at: Time) -> Time {
        let tick = u64::try_from(self.conn.profile.tick.as_nanos()).unwrap_or(0);
        match at.as_nanos().checked_next_multiple_of(tick.max(1)) {
            Some(nanos) => Time::from_nanos(nanos),
            None => at,
        }
    }

    /// Starts an RNR wait.
    pub(super) fn start_rnr(&mut self, now: Time, timer: urxe_wire::RnrTimer) {
        self.rnr = Some(self.tick(now + self.conn.profile.rnr_wait(timer)));
        self.retransmit = None;
    }

    /// Progress: all retries are there again.
    pub(super) const fn refill_retries(&mut self) {
        self.retries_left = self.attr.retry_cnt;
        self.rnr_retries_left = self.attr.rnr_retry;
    }

    pub(super) const fn stop_timers(&mut self) {
        self.retransmit = None;
        self.rnr = None;
        self.pace = None;
    }

    /// Takes one retry; false if none is left (IBA 9.7.6.1.3).
    pub(super) fn take_retry(&mut self) -> bool {
        if self.conn.profile.infinite_retry_at_7 && self.attr.retry_cnt == 7 {
            return true;
        }
        let left = self.retries_left != 0;
        self.retries_left = self.retries_left.saturating_sub(1);
        left
    }

    /// Takes one RNR retry; 7 never runs out (IBA 9.7.5.2.8).
    pub(super) const fn take_rnr_retry(&mut self) -> bool {
        if self.attr.rnr_retry == 7 {
            return true;
        }
        let left = self.rnr_retries_left != 0;
        self.rnr_retries_left = self.rnr_retries_left.saturating_sub(1);
        left
    }

    /// Does what is due at `cx.now`.
    pub(crate) fn expire<T: Transmit>(&mut self, cx: &mut Cx<'_, T>) {
        let now = cx.now;
        if self.rnr.is_some_and(|at| at <= now) {
            self.rnr = None;
            self.rnr_over = Some(self.completer.una());
            self.start_retransmit(now);
        }
        if self.retransmit.is_some_and(|at| at <= now) {
            self.on_timeout(cx);
        }
        if self.pace.is_some_and(|at| at <= now) {
            self.pace = None;
        }
        if let Some(cc) = &mut self.cc
            && cc.deadline().is_some_and(|at| at <= now)
        {
            cc.on_timer(now);
        }
    }

    /// All retries were in vain; the packet `psn` was not answered.
    pub(super) fn give_up<T: Transmit>(&mut self, cx: &mut Cx<'_, T>, psn: Psn) {
        let narrow = self.path.as_ref().is_some_and(|path| cx.out.is_narrow(path.dst));
        let rule = if narrow { Rule::PathTooNarrow } else { Rule::RetryExhausted };
        self.fail_front(cx, WcStatus::RetryExcErr, Cause::at(rule, psn));
    }

    fn on_timeout<T: Transmit>(&mut self, cx: &mut Cx<'_, T>) {
        cx.nic.counters.add(Count::LocalAckTimeoutErr, 1);
        let una = self.completer.una();
        let left = self.retries_left;
        tracing::debug!(qpn = %cx.qp.qpn, psn = %una, left, "local ACK timeout");
        if !self.take_retry() {
            cx.nic.counters.add(Count::RetryExceeded, 1);
            self.give_up(cx, una);
            return;
        }
        self.again = Why::Timeout;
        self.completer.forget_implied();
        self.rnr_over = None;
        self.requester.window.on_timeout(self.requester.top());
        self.requester.rewind(&self.sq, una);
        self.start_retransmit(cx.now);
    }
}
