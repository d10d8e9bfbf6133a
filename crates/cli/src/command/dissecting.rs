//! `urxe dissect`: chooses what is shown.

use std::io::{BufWriter, ErrorKind, IsTerminal, StdoutLock};

use super::input::{self, Input};
use super::{Done, Failure, tell};
use crate::capture::{Capture, without_code};
use crate::cli::DissectArgs;
use crate::dissect::{self, Options, Palette, Stop, Summary};

/// Shows a capture file; finds something if `--strict` is given and a packet was broken.
pub(super) fn run(
    args: &DissectArgs,
    palette: Palette,
    stdout: StdoutLock<'_>,
) -> Result<Done, Failure> {
    let Input { name, reader, stdin, .. } = input::open(&args.file)?;
    let filter = input::joined(&args.filter);
    let options = Options {
        verbose: args.verbose,
        hex: args.hex,
        json: args.json,
        time: args.time,
        filter,
        palette,
        live: stdin || stdout.is_terminal(),
    };
    let mut summary = Summary::default();
    let stopped = Capture::new(&name, reader).map_err(Stop::from).and_then(|mut capture| {
        dissect::dissect(&mut capture, &options, &mut BufWriter::new(stdout), &mut summary)
    });
    match stopped {
        Err(Stop::Write(e)) if e.kind() == ErrorKind::BrokenPipe => return Ok(Done::Well),
        Err(Stop::Write(e)) => return Err(format!("cannot write: {}", without_code(&e)).into()),
        Err(Stop::Capture(e)) => {
            if summary.frames != 0 {
                tell(&summary.to_string());
            }
            return Err(e.to_string().into());
        }
        Ok(()) => tell(&summary.to_string()),
    }
    Ok(Done::found(args.strict && !summary.is_clean()))
}
