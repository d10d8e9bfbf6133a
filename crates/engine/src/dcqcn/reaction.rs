//! The reaction point: a QP's rate, cut by CNPs and coming back by time and bytes sent.

use std::time::Duration;

use super::{Checked, Rate};
use crate::Time;

/// α and its factors as fixed-point fractions of this.
const ONE: u64 = 1 << 30;
/// From one 1024th, the unit of the parameters, to α's.
const PER_1024: u64 = ONE >> 10;
/// A rate this near to the line rate is the line rate (bit/s): halving the distance would take
/// for ever. It is the least step of mlx5's rates.
const RECOVERED: u64 = 1_000_000;

/// When the next packet may leave at a rate, which may change between packets.
///
/// A sender that was late, because its thread was, may catch up [`Pacer::CREDIT`]; one that had
/// nothing to send gains no more than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pacer {
    next: Time,
}

impl Pacer {
    /// How far behind its schedule a sender may be and still make up for it.
    pub const CREDIT: Duration = Duration::from_micros(50);

    /// A schedule that starts at `now`, without credit.
    #[must_use]
    pub const fn new(now: Time) -> Self {
        Self { next: now }
    }

    /// `bytes` were sent at `now`, at `rate` from now on.
    pub fn on_sent(&mut self, now: Time, bytes: u64, rate: Rate) {
        let earliest = Duration::from_nanos(now.as_nanos()).saturating_sub(Self::CREDIT);
        self.next = self.next.max(Time::ZERO + earliest) + rate.time_for(bytes);
    }

    /// When the next packet may leave: `now`, or later.
    #[must_use]
    pub fn may_send_at(&self, now: Time) -> Time {
        self.next.max(now)
    }
}

/// What made the rate increase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Timer,
    Bytes,
}

/// A rate below the line rate.
#[derive(Clone, Debug)]
struct Limited {
    /// R_C, bit/s.
    rate: u64,
    /// R_T, bit/s.
    target: u64,
    reduced_at: Time,
    timer_at: Time,
    /// Sent since the last increase by bytes, or the cut.
    bytes: u64,
    /// Increases by the timer since the cut (T).
    timer_stage: u32,
    /// Increases by bytes since the cut (BC).
    byte_stage: u32,
    pacer: Pacer,
}

/// The rate of one QP (the paper's RP).
///
/// At line rate it holds no timer, and neither paces nor counts. After a cut it has a
/// [`deadline`](Self::deadline) until the line rate is reached again; all calls first catch up
/// with the increases that are due, so that a late [`on_timer`](Self::on_timer) loses nothing.
#[derive(Clone, Debug)]
pub struct ReactionPoint {
    params: Checked,
    line: u64,
    /// In units of 1 / [`ONE`].
    alpha: u64,
    /// When α was last raised or decayed; `None` before the first CNP. It decays by the time
    /// that has gone by when it is next looked at, so that it needs no timer.
    alpha_at: Option<Time>,
    limited: Option<Limited>,
}

impl ReactionPoint {
    /// A QP that sends at `line_rate`.
    #[must_use]
    pub fn new(params: &Checked, line_rate: Rate) -> Self {
        let alpha = u64::from(params.initial_alpha_value) * PER_1024;
        let line = line_rate.as_bps();
        Self { params: params.clone(), line, alpha, alpha_at: None, limited: None }
    }

    /// The rate at which to send (R_C).
    #[must_use]
    pub fn rate(&self) -> Rate {
        Rate::from_bps(self.limited.as_ref().map_or(self.line, |l| l.rate))
    }

    /// Whether the QP may send as fast as it can.
    #[must_use]
    pub const fn at_line_rate(&self) -> bool {
        self.limited.is_none()
    }

    /// When to call [`on_timer`](Self::on_timer); `None` at line rate.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.limited.as_ref().map(|l| l.timer_at)
    }

    /// When the next packet may leave: `now`, or later.
    #[must_use]
    pub fn may_send_at(&self, now: Time) -> Time {
        self.limited.as_ref().map_or(now, |l| l.pacer.may_send_at(now))
    }

    /// A CNP came. Returns whether the rate was cut: not if the last cut is too fresh.
    pub fn on_cnp(&mut self, now: Time) -> bool {
        self.on_timer(now);
        let fresh = |l: &Limited| now < l.reduced_at + self.params.rate_reduce_monitor_period;
        if self.limited.as_ref().is_some_and(fresh) {
            return false;
        }
        self.decay(now);
        self.cut(now);
        // Paper, equation 1: α ← (1 − g) α + g.
        let keep = u64::from(self.params.dce_tcp_g) * PER_1024;
        self.alpha = times(self.alpha, keep) + (ONE - keep);
        self.alpha_at = Some(now);
        true
    }

    /// `bytes` left at `now`.
    pub fn on_sent(&mut self, now: Time, bytes: u64) {
        self.on_timer(now);
        let every = self.params.rpg_byte_reset;
        let Some(l) = &mut self.limited else { return };
        l.pacer.on_sent(now, bytes, Rate::from_bps(l.rate));
        l.bytes = l.bytes.saturating_add(bytes);
        while let Some(l) = &mut self.limited
            && every != 0
            && l.bytes >= every
        {
            l.bytes -= every;
            self.increase(By::Bytes);
        }
    }

    /// Makes the increases that are due at `now`.
    pub fn on_timer(&mut self, now: Time) {
        while let Some(l) = &mut self.limited
            && l.timer_at <= now
        {
            l.timer_at = l.timer_at + self.params.rpg_time_reset;
            self.increase(By::Timer);
        }
    }

    /// Paper, equation 2: α ← (1 − g) α for each K without a CNP.
    fn decay(&mut self, now: Time) {
        let Some(at) = self.alpha_at else { return };
        let period = self.params.dce_tcp_rtt.as_nanos();
        let periods = now.saturating_since(at).as_nanos() / period;
        let keep = u64::from(self.params.dce_tcp_g) * PER_1024;
        self.alpha = times(self.alpha, power(keep, periods));
    }

    /// Paper, equation 1: R_T ← R_C, R_C ← R_C (1 − α / 2).
    fn cut(&mut self, now: Time) {
        let p = &self.params;
        let start = p.rate_to_set_on_first_cnp.map_or(self.line, |r| r.as_bps().min(self.line));
        let old = self.limited.take();
        let rate = old.as_ref().map_or(start, |l| l.rate);
        let target = match &old {
            Some(l) if !clamps(p, l) => l.target,
            _ => rate,
        };
        let taken = times(rate, self.alpha >> (p.rpg_gd - 10));
        let left = percent(rate, p.rpg_min_dec_fac);
        let least = p.rpg_min_rate.as_bps().min(rate);
        self.limited = Some(Limited {
            rate: (rate - taken).max(left).max(least),
            target,
            reduced_at: now,
            timer_at: now + p.rpg_time_reset,
            bytes: 0,
            timer_stage: 0,
            byte_stage: 0,
            pacer: old.map_or(Pacer::new(now), |l| l.pacer),
        });
    }

    /// Paper, equations 3 and 4 and its figure of the RP's states: F rounds of fast recovery by
    /// whichever of timer and bytes is faster, then additive increase, then, when both have gone
    /// F rounds, hyper increase; each halves the way from R_C to R_T.
    fn increase(&mut self, by: By) {
        let Some(l) = &mut self.limited else { return };
        let p = &self.params;
        let stage = match by {
            By::Timer => &mut l.timer_stage,
            By::Bytes => &mut l.byte_stage,
        };
        *stage = stage.saturating_add(1);
        if l.timer_stage.max(l.byte_stage) > p.rpg_threshold {
            let hyper = l.timer_stage.min(l.byte_stage) > p.rpg_threshold;
            let step = if hyper { p.rpg_hai_rate } else { p.rpg_ai_rate };
            l.target = l.target.saturating_add(step.as_bps()).min(self.line);
        }
        // Rounded up, so that it gets there.
        l.rate += (l.target - l.rate).div_ceil(2);
        if self.line - l.rate < RECOVERED {
            self.limited = None;
        }
    }
}

/// Whether a cut sets the target rate to the rate before it.
const fn clamps(p: &super::Params, l: &Limited) -> bool {
    p.clamp_tgt_rate || l.byte_stage > 0 || (p.clamp_tgt_rate_after_time_inc && l.timer_stage > 0)
}

/// `value` times a fraction of at most [`ONE`], rounded down.
fn times(value: u64, fraction: u64) -> u64 {
    let product = u128::from(value) * u128::from(fraction) / u128::from(ONE);
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// `percent` (at most 100) of `value`, rounded down.
fn percent(value: u64, percent: u8) -> u64 {
    u64::try_from(u128::from(value) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

/// A fraction to the power of `n`, by squaring.
fn power(mut fraction: u64, mut n: u128) -> u64 {
    let mut result = ONE;
    while n > 0 {
        if n & 1 == 1 {
            result = times(result, fraction);
        }
        fraction = times(fraction, fraction);
        n >>= 1;
    }
    result
}
