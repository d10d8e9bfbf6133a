//! The reaction point's parameters, named as mlx5 names them.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use super::Rate;

/// What shapes a [`super::ReactionPoint`]. Names are mlx5's (Linux
/// drivers/infiniband/hw/mlx5/cong.c), the paper's letters stand beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// Every cut sets the target rate to the rate before it. If not, a cut that follows another
    /// with no increase between leaves the target where it was.
    pub clamp_tgt_rate: bool,
    /// An increase by the timer counts for that, too, and not only one by the byte counter.
    pub clamp_tgt_rate_after_time_inc: bool,
    /// Time between increases by the timer (T), 1 µs to 1 s.
    pub rpg_time_reset: Duration,
    /// Bytes between increases by the byte counter (B), 64 or more; 0 for none.
    pub rpg_byte_reset: u64,
    /// Rounds of fast recovery (F), 0 to 31.
    pub rpg_threshold: u32,
    /// What an additive increase adds to the target rate (R_AI), 1 Mbit/s or more.
    pub rpg_ai_rate: Rate,
    /// What a hyper increase adds to the target rate (R_HAI), 1 Mbit/s or more.
    pub rpg_hai_rate: Rate,
    /// A cut takes α · 2^(10 − gd) of the rate: 11 is the paper's α / 2, 10 is α.
    pub rpg_gd: u8,
    /// What a cut leaves of the rate at least, percent, 0 to 100.
    pub rpg_min_dec_fac: u8,
    /// What a cut leaves at least, 1 Mbit/s or more (or the line rate, if that is less).
    pub rpg_min_rate: Rate,
    /// Where the first cut starts from in place of the line rate, if set.
    pub rate_to_set_on_first_cnp: Option<Rate>,
    /// α at the first CNP, in 1024ths, 1 to 1024.
    pub initial_alpha_value: u16,
    /// What stays of α at each update, in 1024ths, 0 to 1023: 1024 · (1 − g).
    pub dce_tcp_g: u16,
    /// Time without a CNP after which α decays, and again after each such time (K), 1 µs to 1 s.
    pub dce_tcp_rtt: Duration,
    /// CNPs that come sooner than this after a cut change nothing, up to 1 s.
    pub rate_reduce_monitor_period: Duration,
}

impl Params {
    /// The paper's (§3.1, and the table of its testbed in §6): T and K 55 µs, B 10 MB, F 5,
    /// R_AI 40 Mbit/s, g 1/256, α 1 at first, and a cut at every CNP. The paper gives neither
    /// R_HAI nor a least rate: ten times R_AI as in QCN (IEEE 802.1Qau), and mlx5's 1 Mbit/s.
    #[must_use]
    pub const fn paper() -> Self {
        Self {
            clamp_tgt_rate: true,
            clamp_tgt_rate_after_time_inc: true,
            rpg_time_reset: Duration::from_micros(55),
            rpg_byte_reset: 10_000_000,
            rpg_threshold: 5,
            rpg_ai_rate: Rate::from_mbps(40),
            rpg_hai_rate: Rate::from_mbps(400),
            rpg_gd: 11,
            rpg_min_dec_fac: 0,
            rpg_min_rate: Rate::from_mbps(1),
            rate_to_set_on_first_cnp: None,
            initial_alpha_value: 1024,
            dce_tcp_g: 1020,
            dce_tcp_rtt: Duration::from_micros(55),
            rate_reduce_monitor_period: Duration::ZERO,
        }
    }

    /// ConnectX's (NVIDIA, "DCQCN CC Parameters"). Its byte counter counts in units of 64 bytes.
    #[must_use]
    pub const fn mlx5() -> Self {
        Self {
            clamp_tgt_rate: false,
            clamp_tgt_rate_after_time_inc: true,
            rpg_time_reset: Duration::from_micros(300),
            rpg_byte_reset: 32_767 * 64,
            rpg_threshold: 1,
            rpg_ai_rate: Rate::from_mbps(5),
            rpg_hai_rate: Rate::from_mbps(50),
            rpg_gd: 11,
            rpg_min_dec_fac: 50,
            rpg_min_rate: Rate::from_mbps(1),
            rate_to_set_on_first_cnp: None,
            initial_alpha_value: 1023,
            dce_tcp_g: 1019,
            dce_tcp_rtt: Duration::from_micros(1),
            rate_reduce_monitor_period: Duration::from_micros(4),
        }
    }

    /// Checks all ranges; what comes back is shared by all QPs.
    ///
    /// # Errors
    /// The first parameter out of its range.
    pub fn checked(self) -> Result<Checked, ParamError> {
        const SECOND: u128 = 1_000_000_000;
        const MBIT: u128 = 1_000_000;
        const MOST: u128 = u64::MAX as u128;
        let rate = |rate: Rate| u128::from(rate.as_bps());
        let first = self.rate_to_set_on_first_cnp.unwrap_or(Rate::from_mbps(1));
        // 0 turns the byte counter off.
        let bytes = if self.rpg_byte_reset == 0 { 64 } else { self.rpg_byte_reset };
        let ranges = [
            ("rpg_time_reset (ns)", self.rpg_time_reset.as_nanos(), 1_000, SECOND),
            ("rpg_byte_reset", bytes.into(), 64, MOST),
            ("rpg_threshold", self.rpg_threshold.into(), 0, 31),
            ("rpg_ai_rate (bit/s)", rate(self.rpg_ai_rate), MBIT, MOST),
            ("rpg_hai_rate (bit/s)", rate(self.rpg_hai_rate), MBIT, MOST),
            ("rpg_gd", self.rpg_gd.into(), 10, 11),
            ("rpg_min_dec_fac (%)", self.rpg_min_dec_fac.into(), 0, 100),
            ("rpg_min_rate (bit/s)", rate(self.rpg_min_rate), MBIT, MOST),
            ("rate_to_set_on_first_cnp (bit/s)", rate(first), MBIT, MOST),
            ("initial_alpha_value", self.initial_alpha_value.into(), 1, 1024),
            ("dce_tcp_g", self.dce_tcp_g.into(), 0, 1023),
            ("dce_tcp_rtt (ns)", self.dce_tcp_rtt.as_nanos(), 1_000, SECOND),
            (
                "rate_reduce_monitor_period (ns)",
                self.rate_reduce_monitor_period.as_nanos(),
                0,
                SECOND,
            ),
        ];
        for (field, got, least, most) in ranges {
            if !(least..=most).contains(&got) {
                return Err(ParamError { field, got, least, most });
            }
        }
        Ok(Checked(Arc::new(self)))
    }
}

/// The paper's, whose behaviour is published.
impl Default for Params {
    fn default() -> Self {
        Self::paper()
    }
}

/// [`Params`] in range, shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked(Arc<Params>);

impl Deref for Checked {
    type Target = Params;

    fn deref(&self) -> &Params {
        &self.0
    }
}

/// A DCQCN parameter is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{field} is {got}, wanted {least} to {most}")]
pub struct ParamError {
    /// The parameter and its unit.
    pub field: &'static str,
    /// What it was.
    pub got: u128,
    /// Least good value.
    pub least: u128,
    /// Greatest good value.
    pub most: u128,
}
