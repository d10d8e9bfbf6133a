//! urxe against the kernel's rxe: every case in both roles, over IPv4 and IPv6, on both ports.
//!
//! Needs root, QEMU and Debian's packages, so it runs only if it is asked to:
//!
//!     URXE_LAB=1 cargo test -p urxe-tests --test interop [-- [--bless] [WORD...]]
//!
//! With words, only cases and columns whose names hold all of them; `--bless` writes
//! docs/interop.md. `URXE_REQUIRE_LAB=1` asks too, and makes a skip a failure. `--goldens` runs no
//! case: it records two kernels with each other, for tests/captures.
#![allow(clippy::unwrap_used, reason = "a case fails so")]
#![allow(clippy::cast_possible_truncation, reason = "the numbers of tests are small")]
#![allow(unreachable_pub, reason = "a test program has no API")]

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use rxe_lab::{Lab, LabError, Options, space};
use urxe_cli::cli::Cli;

mod bench;
mod cases;
mod departures;
mod goldens;
mod node;
mod ours;
mod report;
mod runner;
mod theirs;

use bench::Column;
use cases::{CASES, Case, DEATH};
use report::Outcome;
use runner::Runner;

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
    let wish = Wish::of(std::env::args().skip(1));
    let options = Options { guests: if wish.goldens { 2 } else { 1 }, ..Options::default() };
    let started = if space::is_inside() { Lab::start(&options) } else { Err(space::enter_new()) };
    match started {
        Ok(lab) if wish.goldens => {
            goldens::record(&lab, &wish.words);
            ExitCode::SUCCESS
        }
        Ok(lab) => run(lab, &wish),
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

/// What the arguments ask for.
struct Wish {
    words: Vec<String>,
    bless: bool,
    goldens: bool,
}

impl Wish {
    fn of(arguments: impl Iterator<Item = String>) -> Self {
        let (flags, words): (Vec<_>, Vec<_>) = arguments.partition(|word| word.starts_with("--"));
        let has = |name: &str| flags.iter().any(|flag| flag == name);
        Self { words, bless: has("--bless"), goldens: has("--goldens") }
    }

    fn wants(&self, name: &str) -> bool {
        self.words.iter().all(|word| name.contains(word))
    }
}

fn run(lab: Lab, wish: &Wish) -> ExitCode {
    // Failures are told in order, by us.
    std::panic::set_hook(Box::new(|_| {}));
    // Some cases can be tried while all of them run.
    let folder = if wish.words.is_empty() { "interop" } else { "interop-some" };
    let mut runner = Runner::new(lab, Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder));
    let mut outcomes = Vec::new();
    for column in Column::all() {
        for (number, case) in CASES.iter().enumerate() {
            let name = name(case, column);
            if !wish.wants(&name) {
                continue;
            }
            let start = Instant::now();
            let result = runner.run(case, column, number);
            let seconds = start.elapsed().as_secs_f64();
            match &result {
                Ok(met) => {
                    let note = if met.is_empty() { String::new() } else { format!("  {met:?}") };
                    say(&format!("ok      {seconds:6.1} s  {name}{note}"));
                }
                Err(why) => say(&format!("FAILED  {seconds:6.1} s  {name}\n  {why}")),
            }
            outcomes.push(Outcome { case: number, column, result });
        }
    }
    let noticed = wish.wants(DEATH.name).then(|| notices_death(&mut runner));
    if wish.bless {
        bless(&runner.lab, &outcomes);
    }
    let all = outcomes.iter().map(|outcome| (outcome.case, outcome.result.is_ok()));
    let names = all.map(|(case, good)| (CASES[case].name, good));
    let all: Vec<_> = names.chain(noticed.map(|good| (DEATH.name, good))).collect();
    for outcome in outcomes.iter().filter(|outcome| outcome.result.is_err()) {
        say(&format!("failed: {}", name(&CASES[outcome.case], outcome.column)));
    }
    let passed = all.iter().filter(|(_, good)| *good).count();
    say(&format!("{passed} passed, {} failed", all.len() - passed));
    // A filter that lets nothing through proves nothing.
    ExitCode::from(u8::from(passed != all.len() || all.is_empty()))
}

/// Whether a guest whose kernel panics is noticed by whoever waits for it, and replaced.
fn notices_death(runner: &mut Runner) -> bool {
    let column = Column::all()[0];
    let result = runner.run(&DEATH, column, CASES.len());
    let sign = "guest kernel died: Kernel panic - not syncing: sysrq triggered crash";
    let noticed = result.as_ref().is_err_and(|why| why.starts_with(sign));
    let session = runner.lab.guest(1).session();
    let answers = session.and_then(|mut session| session.exec("true")).is_ok();
    let good = noticed && answers;
    let (mark, told) =
        if good { ("ok    ", String::new()) } else { ("FAILED", format!("\n  {result:?}")) };
    say(&format!("{mark}           {}{told}", DEATH.name));
    good
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
