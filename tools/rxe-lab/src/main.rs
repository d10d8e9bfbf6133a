//! The lab as a command: `rxe-lab up`, `run`, `down`.
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use rxe_lab::{LabError, Options};

mod serve;

/// Linux guests running rdma_rxe, in a network namespace of their own.
#[derive(Debug, Parser)]
#[command(name = "rxe-lab", version)]
struct Arguments {
    #[command(subcommand)]
    order: Order,
}

#[derive(Debug, Subcommand)]
enum Order {
    /// Start guests, and wait until they answer. The first start fetches a kernel and tools.
    Up(Up),
    /// Run a command in a guest; its output and status become ours. For urxe's side of the link
    /// use `rxe-lab here`.
    Run {
        /// Which guest, from 1.
        guest: u8,
        /// The command, for the guest's shell.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Run a command of this machine in the lab's namespace, as 10.88.0.1 and fd88::1 on br0.
    Here {
        /// The command.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// End the guests, and their link with them.
    Down,
    /// Holds a lab until it is ended; `up` starts it.
    #[command(hide = true)]
    Serve(Up),
}

#[derive(Clone, Copy, Debug, Args)]
struct Up {
    /// How many guests: guest N is 10.88.0.1N and fd88::(10 + N, in hexadecimal).
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    guests: u8,
    /// The link's MTU, bytes.
    #[arg(long, default_value_t = 9000, value_parser = clap::value_parser!(u16).range(1280..=9000))]
    mtu: u16,
    /// Memory of each guest, MiB.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(256..))]
    memory: u32,
    /// Processors of each guest.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    processors: u8,
}

impl Up {
    const fn options(self) -> Options {
        let Self { guests, mtu, memory, processors } = self;
        Options { guests, mtu, memory, processors }
    }
}

fn main() -> ExitCode {
    let done = match Arguments::parse().order {
        Order::Up(up) => serve::up(up),
        Order::Serve(up) => Err(serve::serve(&up.options())),
        Order::Run { guest, command } => serve::run(guest, &command),
        Order::Here { command } => serve::here(&command),
        Order::Down => serve::down(),
    };
    done.unwrap_or_else(|error| {
        let what = if matches!(error, LabError::CannotRun(_)) { "cannot run here: " } else { "" };
        // Nothing helps where not even this can be written.
        let _ = writeln!(io::stderr(), "rxe-lab: {what}{error}");
        ExitCode::FAILURE
    })
}
