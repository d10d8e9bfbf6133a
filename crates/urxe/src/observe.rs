//! Looking on: each packet that leaves and arrives, and what became of it.

use std::fmt;
use std::io::Write;
use std::time::{Duration, Instant};

use urxe_engine::{Drop, Why};
use urxe_net::Flow;
use urxe_wire::{Bth, Repr, Verdict};

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

/// One line: which way, between whom, opcode, QPN, PSN, length, and why it left or was dropped.
impl fmt::Display for Passage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.sent { "out" } else { "in " };
        let (src, dst) = (self.flow.src, self.flow.dst);
        write!(f, "{way} {:.6}  {src} → {dst}  ", self.time.as_secs_f64())?;
        match Bth::parse(self.bytes) {
            Ok((bth, _)) => {
                let (opcode, qpn, psn) = (bth.opcode, bth.dest_qp, bth.psn.value());
                match opcode.name() {
                    Some(name) => write!(f, "{name}")?,
                    None => write!(f, "opcode {:#04x}", opcode.0)?,
                }
                write!(f, "  qp {:#x}  psn {psn}  {} B", qpn.value(), self.bytes.len())?;
            }
            Err(_) => write!(f, "{} B, too short for a BTH", self.bytes.len())?,
        }
        match (self.why, self.fate) {
            (Some(why), _) => write!(f, "  {why}"),
            (None, Ok(())) => Ok(()),
            (None, Err(_)) if !self.verdict.is_ok() => write!(f, "  dropped: wrong ICRC"),
            (None, Err(why)) if why.rule().is_empty() => write!(f, "  dropped: {why}"),
            (None, Err(why)) => write!(f, "  dropped: {why} ({})", why.rule()),
        }
    }
}

/// Looks on. Called in the thread that sends or receives, for each packet, so it should be quick;
/// it must not call back into the device.
pub trait Observer: Send + Sync + fmt::Debug {
    /// A packet passes.
    fn packet(&self, passage: &Passage<'_>);
}

/// Shows each packet on the standard error.
#[derive(Debug)]
pub(crate) struct ToStderr;

impl Observer for ToStderr {
    fn packet(&self, passage: &Passage<'_>) {
        let line = format!("[{}] {passage}\n", std::process::id());
        // If nobody reads any more, the traffic goes on.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests;
