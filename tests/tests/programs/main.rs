//! Debian's RDMA programs, unmodified, on urxe's libibverbs.so.1 through `urxe run`: two processes
//! over loopback, and two in network namespaces of their own with a link between them.
//!
//! It takes some minutes, so it runs only if it is asked to:
//!
//!     URXE_PROGRAMS=1 cargo test -p urxe-tests --test programs [-- [--bless] [WORD...]]
//!
//! With words, only cases whose names hold all of them; `--bless` writes docs/programs.md and
//! pyverbs.txt. With `URXE_REQUIRE_PROGRAMS=1` what is not installed is a failure.
#![allow(unreachable_pub, missing_docs, reason = "a test program has no API")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use urxe_cli::cli::Cli;

mod cases;
mod page;
mod pair;
mod perftest;
mod place;
mod process;
mod pyverbs;
mod special;

use cases::Case;
use place::{Column, Place};

/// Tells this program to be the `urxe` command.
const BE_URXE: &str = "URXE_TESTS_BE_URXE";

/// What came of a case in a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    /// Why it was not run.
    Skipped(String),
    Failed(String),
}

/// How a case ends: what it lacks is told as [`Why::Missing`].
pub type Ended = Result<(), Why>;

/// Why a case did not pass.
#[derive(Debug)]
pub enum Why {
    /// What is not there.
    Missing(String),
    Wrong(String),
}

impl From<String> for Why {
    fn from(what: String) -> Self {
        Self::Wrong(what)
    }
}

/// One case in one column.
#[derive(Debug)]
pub struct Outcome {
    pub case: usize,
    pub column: Column,
    pub verdict: Verdict,
}

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
    if !asks("URXE_PROGRAMS") {
        say("programs: skipped: they take some minutes; ask for them with URXE_PROGRAMS=1");
        return ExitCode::SUCCESS;
    }
    match place::enter().and_then(|()| Place::all()) {
        Ok(places) => run(&places),
        Err(why) => {
            say(&format!("programs: cannot run: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// A directory for what programs write; what is there is of an older run.
fn scratch() -> std::io::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn run(places: &[Place]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    let folder = scratch().expect("a directory for what programs write");
    let cases = cases::all();
    let begin = Instant::now();
    let mut outcomes = Vec::new();
    for place in places {
        for (number, case) in cases.iter().enumerate() {
            let name = name(case, place.column);
            if words.iter().all(|word| name.contains(*word)) {
                let verdict = attempt(case, place, &folder, &name);
                outcomes.push(Outcome { case: number, column: place.column, verdict });
            }
        }
    }
    if arguments.iter().any(|word| word == "--bless") {
        bless(&cases, &outcomes, &folder);
    }
    let failed = outcomes.iter().filter(|one| matches!(one.verdict, Verdict::Failed(_)));
    let failed: Vec<_> = failed.map(|one| name(&cases[one.case], one.column)).collect();
    failed.iter().for_each(|name| say(&format!("failed: {name}")));
    let skipped = outcomes.iter().filter(|one| matches!(one.verdict, Verdict::Skipped(_))).count();
    let passed = outcomes.len() - failed.len() - skipped;
    let seconds = begin.elapsed().as_secs();
    if skipped > 0 {
        say(&format!("{skipped} skipped"));
    }
    say(&format!("{passed} passed, {} failed in {seconds} s", failed.len()));
    // A filter that lets nothing through proves nothing.
    ExitCode::from(u8::from(!failed.is_empty() || outcomes.is_empty()))
}

fn name(case: &Case, column: Column) -> String {
    format!("{} {}: {}: {column}", case.program(), case.transport, case.command)
}

fn attempt(case: &Case, place: &Place, folder: &Path, name: &str) -> Verdict {
    let start = Instant::now();
    let ended = case.installed().and_then(|()| case.run(place, folder));
    let seconds = start.elapsed().as_secs_f64();
    let required = asks("URXE_REQUIRE_PROGRAMS");
    match ended {
        Ok(()) => {
            say(&format!("ok      {seconds:6.1} s  {name}"));
            Verdict::Passed
        }
        Err(Why::Missing(why)) if !required => {
            say(&format!("skipped           {name}: {why}"));
            Verdict::Skipped(why)
        }
        Err(Why::Missing(why) | Why::Wrong(why)) => {
            let shown = why.trim_end().replace('\n', "\n  ");
            say(&format!("FAILED  {seconds:6.1} s  {name}\n  {shown}"));
            Verdict::Failed(why)
        }
    }
}

/// Writes the page of what was seen, and what pyverbs' cases came to.
fn bless(cases: &[Case], outcomes: &[Outcome], folder: &Path) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/programs.md");
    std::fs::write(&path, page::page(cases, outcomes)).expect("docs/programs.md can be written");
    say(&format!("written: {}", path.display()));
    if let Some(path) = pyverbs::bless(folder) {
        say(&format!("written: {}", path.display()));
    }
}
