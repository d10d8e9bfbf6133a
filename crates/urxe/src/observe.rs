//! Looking on: each packet that leaves and arrives, and what became of it.

use std::fmt;
use std::time::{Duration, Instant};

use urxe_engine::{Drop, Why};
use urxe_net::Flow;
use urxe_wire::Verdict;

/// A packet that passed a device.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'a> {
    /// When it was handed to the port, or taken from it, which is before it was acted upon: what
    /// an answer's time is compared with, on one device or between two.
    pub at: Instant,
    /// Since the device was opened.
    pub time: Duration,
    /// Whether it left; else it arrived.
    pub sent: bool,
    /// Where from and where to.
    pub flow: Flow,
    /// BTH to ICRC. The ICRC of a packet that leaves is not computed yet: four zeros.
    pub bytes: &'a [u8],
    /// Why a packet leaves, where that is no new request's nor a plain answer's doing.
    pub why: Option<Why>,
    /// What the ICRC of a packet that arrived says.
    pub verdict: Verdict,
    /// What became of a packet that arrived; `Ok` for one that leaves.
    pub fate: Result<(), Drop>,
}

/// Looks on. Called in the thread that sends or receives, for each packet, so it should be quick;
/// it must not call back into the device.
pub trait Observer: Send + Sync + fmt::Debug {
    /// A packet passes.
    fn packet(&self, passage: &Passage<'_>);
}
