//! `urxe sim`: runs of many seeds, each judged by the oracle; what fails is shrunk and shown.

mod args;
mod report;
mod seeds;

use std::io::{self, Write};

pub use args::{FaultText, Shape, SimArgs};

use crate::dissect::Palette;
use report::Report;

/// Why the simulation did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// `--only-ops` names operations of one seed.
    #[error("--only-ops names operations of one seed; add --seeds 1")]
    OnlyOps,
    /// `--ecn` without a queue to wait in.
    #[error("--ecn marks packets that wait for a rate; add --rate, such as --rate 1G")]
    Ecn,
    /// Seeds end.
    #[error("seeds from {0} on are too many: the last seed is {max}", max = u64::MAX)]
    Seeds(u64),
    /// The capture.
    #[error("cannot write {file}: {why}")]
    Pcap {
        /// Its name.
        file: String,
        /// Why.
        why: io::Error,
    },
    /// The output.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// Runs the seeds and says what came of them; gives how many failed.
///
/// # Errors
/// Where the options do not fit each other, or something cannot be written.
pub fn run(args: &SimArgs, palette: &Palette, out: &mut impl Write) -> Result<u64, SimError> {
    if args.only_ops.is_some() && args.seeds != 1 {
        return Err(SimError::OnlyOps);
    }
    if args.ecn.is_some() && args.rate.is_none() {
        return Err(SimError::Ecn);
    }
    if args.first_seed.checked_add(args.seeds).is_none() {
        return Err(SimError::Seeds(args.first_seed));
    }
    let results = seeds::run_all(args);
    let mut report = Report::new(args, palette, out);
    for result in &results {
        report.seed(result)?;
    }
    report.sum(&results)
}
