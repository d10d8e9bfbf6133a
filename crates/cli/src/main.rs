//! The `urxe` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    urxe_cli::run(&urxe_cli::cli::Cli::parse())
}
