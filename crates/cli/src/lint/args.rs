//! The command line of `urxe lint`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use urxe_lint::{Options, Profile};

use crate::dissect::{Filter, TimeStyle};

/// Whose known departures are no violations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LintProfile {
    /// Nobody's: the specification
    #[default]
    Strict,
    /// Linux' rdma_rxe: MigReq 0, timers in ticks, another NAK after an RNR NAK
    Rxe,
    /// ConnectX: a CNP with a NAK
    Connectx,
}

/// What to judge, and how to tell.
#[derive(Debug, Args)]
#[command(after_help = "\
A violation is what nothing explains that a capture cannot show: packets lost before or behind the \
point of capture, a capture that begins in the middle or has one direction only. What may be right \
is a note. If the capture itself missed frames (tcpdump says \"dropped by kernel\"), give --lossy.

Examples:
  urxe lint trace.pcapng
  urxe lint --violations --filter qp=0x11 trace.pcap
  tcpdump -U -w - -i eth0 udp port 4791 | urxe lint --json -

Exit status: 0 no violation; 1 a violation; 2 bad usage, a file that cannot be read to its end, or \
output that cannot be written.")]
pub struct LintArgs {
    /// A pcap or pcapng file; `-` is the standard input
    #[arg(value_name = "FILE", required_unless_present = "rules")]
    pub file: Option<PathBuf>,
    /// Whose known departures are notes
    #[arg(long, value_enum, value_name = "NAME", default_value = "strict")]
    pub profile: LintProfile,
    /// The capture missed frames: what a missing frame explains is a note
    #[arg(long)]
    pub lossy: bool,
    /// Show violations only, no notes
    #[arg(long)]
    pub violations: bool,
    /// Show every finding, not just the first eight of a rule on a flow
    #[arg(long)]
    pub all: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
    /// What times count from: the file's first frame, the finding shown before, or 1970 (UTC)
    #[arg(long, value_enum, value_name = "FROM", default_value = "relative")]
    pub time: TimeStyle,
    /// Show findings about these packets only: qp=0x11, psn=100..200, opcode=*READ*; join terms
    /// with `,`. All packets are judged, whatever is shown
    #[arg(long, value_name = "TERMS")]
    pub filter: Vec<Filter>,
    /// List the rules and leave
    #[arg(long, conflicts_with = "file")]
    pub rules: bool,
}

impl LintArgs {
    /// How to judge.
    #[must_use]
    pub const fn judge(&self) -> Options {
        Options {
            profile: match self.profile {
                LintProfile::Strict => Profile::Strict,
                LintProfile::Rxe => Profile::Rxe,
                LintProfile::Connectx => Profile::ConnectX,
            },
            lossy: self.lossy,
            at_most: if self.all { 0 } else { 8 },
        }
    }
}
