//! `urxe lint`: opens the file, shows how far it is.

use std::io::{self, BufWriter, ErrorKind, IsTerminal, Read, StdoutLock};

use indicatif::{ProgressBar, ProgressStyle};

use super::input::{self, Input};
use super::{Done, Failure, tell};
use crate::capture::{Capture, without_code};
use crate::dissect::{Palette, Stop};
use crate::lint::{self, LintArgs, Summary};

/// Shorter files are read before anybody looks, bytes.
const LONG: u64 = 64 << 20;

/// Judges a capture file; finds something if a rule is broken.
pub(super) fn run(
    args: &LintArgs,
    palette: Palette,
    stdout: StdoutLock<'_>,
) -> Result<Done, Failure> {
    if args.rules {
        return list_rules(args.json, stdout);
    }
    // Clap asks for a file where the rules are not.
    let file = args.file.as_deref().unwrap_or_else(|| "-".as_ref());
    let Input { name, reader, stdin, len } = input::open(file)?;
    let options = lint::View {
        filter: input::joined(&args.filter),
        json: args.json,
        time: args.time,
        violations_only: args.violations,
        palette,
        live: stdin || stdout.is_terminal(),
    };
    // The bar would stand among the findings if both went to one terminal.
    let bar = match len.filter(|len| *len >= LONG) {
        Some(len) if !stdout.is_terminal() => bar(len),
        _ => ProgressBar::hidden(),
    };
    let reader: Box<dyn Read> = Box::new(bar.wrap_read(reader));
    let mut summary = Summary::default();
    let out = &mut BufWriter::new(stdout);
    let stopped = Capture::new(&name, reader).map_err(Stop::from).and_then(|mut capture| {
        lint::lint(&mut capture, args.judge(), &options, out, &mut summary)
    });
    bar.finish_and_clear();
    match stopped {
        Err(Stop::Write(e)) if e.kind() == ErrorKind::BrokenPipe => return Ok(Done::Well),
        Err(Stop::Write(e)) => return Err(format!("cannot write: {}", without_code(&e)).into()),
        Err(Stop::Capture(e)) => {
            if summary.totals.frames != 0 {
                tell(&summary.to_string());
            }
            return Err(e.to_string().into());
        }
        Ok(()) => tell(&summary.to_string()),
    }
    Ok(Done::found(summary.totals.violations() != 0))
}

fn bar(len: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}, {eta} left");
    ProgressBar::new(len).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn list_rules(json: bool, mut out: StdoutLock<'_>) -> Result<Done, Failure> {
    let rules = if json { lint::rules_json() } else { lint::rules() };
    let written = io::Write::write_all(&mut out, rules.as_bytes());
    written.map(|()| Done::Well).map_err(Failure::from)
}
