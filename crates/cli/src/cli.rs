//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bench::BenchArgs;
use crate::cm::CmArgs;
use crate::demo::DemoArgs;
use crate::devinfo::DevinfoArgs;
use crate::dissect::{Filter, TimeStyle};
use crate::doctor::DoctorArgs;
use crate::lint::LintArgs;
use crate::pingpong::PingpongArgs;
use crate::ports::PortsArgs;
use crate::programs::{EnvArgs, RunArgs, TryDevfsArgs};
use crate::sim::SimArgs;

/// A RoCEv2 network card in user space.
#[derive(Debug, Parser)]
#[command(name = "urxe", version, propagate_version = true)]
pub struct Cli {
    /// When to colour the output
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// When to colour the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// See RDMA happen: two NICs on loopback, every operation, each packet
    Demo(DemoArgs),
    /// Say whether urxe can work here, and what to do if not
    Doctor(DoctorArgs),
    /// List the addresses of this host that a device can have
    Ports(PortsArgs),
    /// Open a device and describe it: addresses, MTU, offloads, limits
    Devinfo(DevinfoArgs),
    /// Play ping-pong as ibv_rc_pingpong, ibv_uc_pingpong and ibv_ud_pingpong do
    Pingpong(PingpongArgs),
    /// Try a connection by hand, each message shown and explained
    Cm(CmArgs),
    /// Measure the data path beside raw UDP and TCP in the same minute
    Bench(BenchArgs),
    /// Run a program that uses libibverbs on an emulated NIC, as it is
    Run(RunArgs),
    /// Print what a shell must export to run such programs itself
    Env(EnvArgs),
    /// Try out whether `run` can serve files of a device
    #[command(hide = true)]
    TryDevfs(TryDevfsArgs),
    /// Run the NIC in virtual time on a bad network, judged by an oracle
    Sim(SimArgs),
    /// Show the RoCEv2 packets of a capture file, one a line
    Dissect(DissectArgs),
    /// Judge the RoCEv2 traffic of a capture file by the protocol's rules
    Lint(LintArgs),
}

/// What to dissect, and how to show it.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 done; 1 with --strict, a packet was broken or its ICRC wrong; \
2 bad usage, a file that cannot be read to its end, or output that cannot be written (a reader that \
goes away, as head does, is no failure).")]
pub struct DissectArgs {
    /// A pcap or pcapng file; `-` is the standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Every field of every header, with its bytes
    #[arg(short, long)]
    pub verbose: bool,
    /// The payload's bytes
    #[arg(short = 'x', long)]
    pub hex: bool,
    /// One JSON object a line
    #[arg(long, conflicts_with_all = ["verbose", "hex"])]
    pub json: bool,
    /// What times count from: the file's first frame, the packet shown before, or 1970 (UTC)
    #[arg(long, value_enum, value_name = "FROM", default_value = "relative")]
    pub time: TimeStyle,
    /// Show these packets only: qp=0x11, psn=100..200, opcode=*READ*; join terms with `,`. Terms of
    /// one key widen each other, those of several keys must all hold
    #[arg(long, value_name = "TERMS")]
    pub filter: Vec<Filter>,
    /// Exit with 1 if a packet was broken or its ICRC wrong
    #[arg(long)]
    pub strict: bool,
}
