//! `urxe dissect`: opens the file, chooses what is shown.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Read, StdoutLock};

use super::{Done, Failure, tell};
use crate::capture::{Capture, printable, without_code};
use crate::cli::DissectArgs;
use crate::dissect::{self, Filter, Options, Palette, Stop, Summary};

/// Shows a capture file; finds something if `--strict` is given and a packet was broken.
pub(super) fn run(
    args: &DissectArgs,
    palette: Palette,
    stdout: StdoutLock<'_>,
) -> Result<Done, Failure> {
    let stdin = args.file.as_os_str() == "-";
    let (name, input): (_, Box<dyn Read>) = if stdin {
        ("standard input".to_owned(), Box::new(io::stdin().lock()))
    } else {
        let name = args.file.display().to_string();
        let file = File::open(&args.file).map_err(|e| {
            let (file, why) = (printable(&name), without_code(&e));
            format!("{file}: {why}; give a pcap or pcapng file")
        })?;
        (name, Box::new(file))
    };
    let mut filter = Filter::default();
    for part in &args.filter {
        filter.add(part.clone());
    }
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
    let stopped = Capture::new(&name, input).map_err(Stop::from).and_then(|mut capture| {
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
