//! urxe against the kernel's rxe: every case in both roles, over IPv4 and IPv6, on both ports.
//!
//! Needs root, QEMU and Debian's packages, so it runs only if it is asked to:
//!
//!     URXE_LAB=1 cargo test -p urxe-tests --test interop [-- [--bless] [WORD...]]
//!
//! With words, only cases and columns whose names hold all of them; `--bless` writes
//! docs/interop.md. `URXE_REQUIRE_LAB=1` asks too, and makes a skip a failure.
#![allow(clippy::unwrap_used, reason = "a case fails so")]
#![allow(clippy::cast_possible_truncation, reason = "the numbers of tests are small")]
#![allow(unreachable_pub, reason = "a test program has no API")]

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use rxe_lab::{Lab, LabError, Options, Session, space};
use urxe_cli::cli::Cli;

mod bench;
mod cases;
mod departures;
mod node;
mod ours;
mod report;
mod theirs;

use bench::{Bench, Column};
use cases::{CASES, Case};
use departures::Met;
use ours::Setting;
use report::Outcome;

/// Tells this program to be the `urxe` command, in the lab's namespace.
const BE_URXE: &str = "URXE_INTEROP_BE_URXE";

/// Whether a variable asks for something.
fn asks(name: &str) -> bool {
    std::env::var(name).is_ok_and(|value| value == "1")
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    // Where nobody listens there is nothing better to do.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn main() -> ExitCode {
    if asks(BE_URXE) {
        return urxe_cli::run(&Cli::parse());
    }
    let required = asks("URXE_REQUIRE_LAB");
    if !required && !asks("URXE_LAB") {
        say("interop: skipped: it boots kernels for some minutes; ask for it with URXE_LAB=1");
        return ExitCode::SUCCESS;
    }
    let started =
        if space::is_inside() { Lab::start(&Options::default()) } else { Err(space::enter_new()) };
    match started {
        Ok(lab) => run(&lab),
        Err(LabError::CannotRun(why)) if !required => {
            say(&format!("interop: skipped: {why}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("interop: no lab: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Where packets of cases go.
fn captures() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interop");
    // What is there is of an older run.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn run(lab: &Lab) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    let folder = captures();
    // Failures are told in order, by us.
    std::panic::set_hook(Box::new(|_| {}));
    let mut outcomes = Vec::new();
    for column in Column::all() {
        for (number, case) in CASES.iter().enumerate() {
            let name = name(case, column);
            if !words.iter().all(|word| name.contains(*word)) {
                continue;
            }
            let pcap = folder.join(format!("{number}-{column}.pcapng").replace([' ', '→'], "-"));
            let start = Instant::now();
            let result = attempt(case, column, &pcap, lab);
            let seconds = start.elapsed().as_secs_f64();
            match &result {
                Ok(met) => {
                    let note = if met.is_empty() { String::new() } else { format!("  {met:?}") };
                    say(&format!("ok      {seconds:6.1} s  {name}{note}"));
                    let _ = std::fs::remove_file(&pcap);
                }
                Err(why) => {
                    say(&format!("FAILED  {seconds:6.1} s  {name}\n  {why}\n  {}", pcap.display()));
                }
            }
            outcomes.push(Outcome { case: number, column, result });
        }
    }
    if arguments.iter().any(|word| word == "--bless") {
        bless(lab, &outcomes);
    }
    let failed: Vec<_> = outcomes.iter().filter(|outcome| outcome.result.is_err()).collect();
    for outcome in &failed {
        say(&format!("failed: {}", name(&CASES[outcome.case], outcome.column)));
    }
    say(&format!("{} passed, {} failed", outcomes.len() - failed.len(), failed.len()));
    // A filter that lets nothing through proves nothing.
    ExitCode::from(u8::from(!failed.is_empty() || outcomes.is_empty()))
}

fn name(case: &Case, column: Column) -> String {
    format!("{} {}: {column}", case.group, case.name)
}

/// Writes the page of what was seen.
fn bless(lab: &Lab, outcomes: &[Outcome]) {
    let (_, date) = lab.guest(1).session().unwrap().exec("date -u +%F").unwrap();
    let page = report::page(outcomes, &lab.kernel().version, date.trim());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/interop.md");
    std::fs::write(&path, page).unwrap();
    say(&format!("written: {}", path.display()));
}

/// Runs a case; gives what it panicked with.
fn attempt(case: &Case, column: Column, pcap: &Path, lab: &Lab) -> Result<Met, String> {
    let setting = Setting {
        address: column.host(),
        port: column.port(),
        pcap: Some(pcap.to_owned()),
        observer: None,
    };
    let session = || -> Session { lab.guest(1).session().unwrap() };
    let tried = catch_unwind(AssertUnwindSafe(|| {
        let mut bench = Bench::new(column, &setting, [session(), session()]);
        (case.run)(&mut bench);
        bench.met
    }));
    tried.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "a panic without words".to_owned())
    })
}
