//! `urxe sim`: runs of many seeds, each judged by the oracle; what fails is shrunk and shown.

mod args;
mod report;
mod seeds;

use std::io::{self, Write};
use std::time::Duration;

pub use args::{FaultText, Shape, SimArgs};
use urxe_sim::link::LinkConfig;

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
    /// More time than a run has the steps for.
    #[error(
        "a packet could take {took:?} (--delay, --jitter, --hold, and --queue at --rate together), \
         and here it can take {most:?} at most: lower them",
        most = LinkConfig::SLOWEST
    )]
    Slow {
        /// The longest that a packet may take.
        took: Duration,
    },
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
    let took = args.settings().link.slowest();
    if took > LinkConfig::SLOWEST {
        return Err(SimError::Slow { took });
    }
    let mut report = Report::new(args, palette, out);
    let results =
        seeds::run_all(args, |result| if args.json { report.seed(result) } else { Ok(()) })?;
    // Text would stand in the midst of the progress bar.
    for result in results.iter().filter(|_| !args.json) {
        report.seed(result)?;
    }
    report.sum(&results)
}
