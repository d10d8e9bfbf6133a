//! What is to be reached, as ratios.

use serde::Serialize;

#[cfg(test)]
mod tests;

/// Names of what a ratio is of.
pub(super) mod names {
    pub(in super::super) const RAW: &str = "raw-udp-gso";
    pub(in super::super) const PLAIN: &str = "raw-udp";
    pub(in super::super) const TCP: &str = "tcp";
    pub(in super::super) const WRITE: &str = "write";
    pub(in super::super) const ONE_QP: &str = "one-qp";
    pub(in super::super) const SPIN: &str = "udp-spinning";
    pub(in super::super) const BLOCK: &str = "udp-blocking";
    pub(in super::super) const NO_LOSS: &str = "no-loss";
    pub(in super::super) const CORE: &str = "core";
    pub(in super::super) const FOUR_K: &str = "4KiB";
    /// No baseline: how even the QPs' shares are.
    pub(in super::super) const JAIN: &str = "jain";
}

/// A bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    pub(super) fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(bound) => ratio >= bound,
            Self::AtMost(bound) => ratio <= bound,
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, "≥ {bound}"),
            Self::AtMost(bound) => write!(f, "≤ {bound}"),
        }
    }
}

/// Case, what the ratio is of, and the bound.
const TARGETS: &[(&str, &str, Bound)] = &[
    ("write.64K.mtu4096", names::RAW, Bound::AtLeast(0.5)),
    ("write.1M.mtu4096", names::RAW, Bound::AtLeast(0.5)),
    ("write.8M.mtu4096", names::RAW, Bound::AtLeast(0.5)),
    ("write.64K.mtu4096", names::TCP, Bound::AtLeast(1.5)),
    ("write.1M.mtu4096", names::TCP, Bound::AtLeast(1.5)),
    ("write.8M.mtu4096", names::TCP, Bound::AtLeast(1.5)),
    ("write.64K.mtu1024", names::RAW, Bound::AtLeast(0.4)),
    ("write.1M.mtu1024", names::RAW, Bound::AtLeast(0.4)),
    ("write.8M.mtu1024", names::RAW, Bound::AtLeast(0.4)),
    ("read.64K.mtu4096", names::WRITE, Bound::AtLeast(0.8)),
    ("read.1M.mtu4096", names::WRITE, Bound::AtLeast(0.8)),
    ("read.8M.mtu4096", names::WRITE, Bound::AtLeast(0.8)),
    ("send.64K.mtu4096", names::WRITE, Bound::AtLeast(0.8)),
    ("send.1M.mtu4096", names::WRITE, Bound::AtLeast(0.8)),
    ("send.8M.mtu4096", names::WRITE, Bound::AtLeast(0.8)),
    ("rate.write.64", names::RAW, Bound::AtLeast(0.1)),
    ("rate.write.64.list", names::RAW, Bound::AtLeast(0.1)),
    ("latency.send.poll", names::SPIN, Bound::AtMost(1.5)),
    ("latency.send.event", names::BLOCK, Bound::AtMost(1.5)),
    ("latency.write.memory", names::BLOCK, Bound::AtMost(1.5)),
    ("goodput.loss.0.1%", names::NO_LOSS, Bound::AtLeast(0.7)),
    ("goodput.loss.1%", names::NO_LOSS, Bound::AtLeast(0.35)),
    ("qps.write.64K.x64", names::ONE_QP, Bound::AtLeast(0.9)),
    ("qps.write.64K.x64", names::JAIN, Bound::AtLeast(0.95)),
    ("idle.cpu", names::CORE, Bound::AtMost(0.01)),
    ("idle.memory", names::FOUR_K, Bound::AtMost(1.0)),
];

/// What the ratio of a case to what `of` names is to be.
pub(super) fn target(case: &str, of: &str) -> Option<Bound> {
    TARGETS.iter().find(|(name, to, _)| *name == case && *to == of).map(|(_, _, bound)| *bound)
}
