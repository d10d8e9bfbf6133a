//! Checks of the repository itself: what rustc and clippy do not see.
//!
//! `cargo run -p tidy` reads every file that git knows and prints one line per finding;
//! `cargo run -p tidy -- compliance` writes `docs/compliance.md` from the citations in the code.
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::process::ExitCode;

mod citations;
mod compliance;
mod docs;
mod edges;
mod finding;
mod fuzz;
mod items;
mod modules;
mod sizes;
mod snapshots;
mod source;
mod tree;
mod unsafety;
mod words;

use finding::Finding;
use tree::Tree;

const USAGE: &str = "usage: cargo run -p tidy [-- compliance]
  (no argument)  check the repository; exit 1 if there is a finding
  compliance     write docs/compliance.md from the rule ids that the code cites";

/// Each check sees the whole tree and returns what it finds.
const CHECKS: &[fn(&Tree) -> Vec<Finding>] = &[
    edges::check,
    sizes::check,
    modules::check,
    docs::check,
    fuzz::check,
    snapshots::check,
    words::check,
    unsafety::check,
    citations::check,
    compliance::check,
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::stdout().lock();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => check(&mut out),
        ["compliance"] => write_compliance(&mut out),
        ["-h" | "--help"] => writeln!(out, "{USAGE}").map(|()| ExitCode::SUCCESS),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, USAGE)),
    };
    done.unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "tidy: {error}");
        ExitCode::from(2)
    })
}

fn check(out: &mut impl Write) -> io::Result<ExitCode> {
    let tree = Tree::read()?;
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&tree)).collect();
    findings.sort();
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    let noun = if findings.len() == 1 { "finding" } else { "findings" };
    writeln!(out, "tidy: {} files, {} {noun}", tree.len(), findings.len())?;
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write_compliance(out: &mut impl Write) -> io::Result<ExitCode> {
    let tree = Tree::read()?;
    std::fs::write(tree.root().join(compliance::PAGE), compliance::render(&tree))?;
    writeln!(out, "wrote {}", compliance::PAGE)?;
    Ok(ExitCode::SUCCESS)
}
