//! From the command line to what is done, and to the exit status.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Read, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};

use crate::capture::{Capture, printable, without_code};
use crate::cli::{Cli, Color, Command, DissectArgs};
use crate::demo::{self, DemoArgs};
use crate::dissect::{self, Filter, Options, Palette, Stop, Summary};
use crate::pingpong::{self, PingpongArgs};
use crate::sim::{self, SimArgs};

/// Something that was looked for was found: `--strict` and a broken packet.
const FOUND: u8 = 1;
/// Bad usage, as clap has it, or a file that cannot be read.
const FAILED: u8 = 2;

/// Does what the command line asks for.
#[must_use]
pub fn run(cli: &Cli) -> ExitCode {
    match &cli.command {
        Command::Demo(args) => run_demo(cli, args),
        Command::Pingpong(args) => run_pingpong(cli, args),
        Command::Sim(args) => run_sim(cli, args),
        Command::Dissect(args) => run_dissect(cli, args),
    }
}

/// Whether to colour what goes to `stream`.
fn coloured(color: Color, stream: &impl anstream::stream::RawStream) -> bool {
    let choice = match color {
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
        Color::Auto => AutoStream::choice(stream),
    };
    choice != ColorChoice::Never
}

fn palette(color: Color, stream: &impl anstream::stream::RawStream) -> Palette {
    if coloured(color, stream) { Palette::COLOURED } else { Palette::PLAIN }
}

fn run_demo(cli: &Cli, args: &DemoArgs) -> ExitCode {
    let errors = palette(cli.color, &io::stderr());
    let mut stdout = io::stdout().lock();
    let colours = palette(cli.color, &stdout);
    match demo::run(args, &colours, &mut stdout) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(FOUND),
        Err(e) if is_broken_pipe(e.as_ref()) => ExitCode::SUCCESS,
        Err(e) => fail(&errors, &e.to_string()),
    }
}

/// Whether the reader of the output has gone, as `head` does when it has seen enough.
fn is_broken_pipe(e: &(dyn std::error::Error + 'static)) -> bool {
    let json = e.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    let kind = e.downcast_ref::<io::Error>().map(io::Error::kind).or(json);
    kind == Some(ErrorKind::BrokenPipe)
}

fn run_pingpong(cli: &Cli, args: &PingpongArgs) -> ExitCode {
    let errors = palette(cli.color, &io::stderr());
    match pingpong::run(args, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => fail(&errors, &e.to_string()),
    }
}

fn run_sim(cli: &Cli, args: &SimArgs) -> ExitCode {
    let errors = palette(cli.color, &io::stderr());
    let mut stdout = io::stdout();
    let colours = palette(cli.color, &stdout);
    match sim::run(args, &colours, &mut stdout) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(FOUND),
        Err(e) => fail(&errors, &e.to_string()),
    }
}

fn run_dissect(cli: &Cli, args: &DissectArgs) -> ExitCode {
    let errors = palette(cli.color, &io::stderr());
    let stdin = args.file.as_os_str() == "-";
    let (name, input): (_, Box<dyn Read>) = if stdin {
        ("standard input".to_owned(), Box::new(io::stdin().lock()))
    } else {
        match File::open(&args.file) {
            Ok(file) => (args.file.display().to_string(), Box::new(file)),
            Err(e) => {
                let file = printable(&args.file.display().to_string());
                let why = without_code(&e);
                return fail(&errors, &format!("{file}: {why}; give a pcap or pcapng file"));
            }
        }
    };
    let stdout = io::stdout().lock();
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
        palette: palette(cli.color, &stdout),
        live: stdin || stdout.is_terminal(),
    };
    let mut summary = Summary::default();
    let stopped = Capture::new(&name, input).map_err(Stop::from).and_then(|mut capture| {
        dissect::dissect(&mut capture, &options, &mut BufWriter::new(stdout), &mut summary)
    });
    match stopped {
        Err(Stop::Write(e)) if e.kind() == ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
        Err(Stop::Write(e)) => {
            return fail(&errors, &format!("cannot write: {}", without_code(&e)));
        }
        Err(Stop::Capture(e)) if summary.frames == 0 => return fail(&errors, &e.to_string()),
        Err(Stop::Capture(e)) => {
            tell(&summary.to_string());
            return fail(&errors, &e.to_string());
        }
        Ok(()) => tell(&summary.to_string()),
    }
    if args.strict && !summary.is_clean() { ExitCode::from(FOUND) } else { ExitCode::SUCCESS }
}

/// Writes to the standard error; if that is closed, nobody is there to be told.
fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn fail(palette: &Palette, what: &str) -> ExitCode {
    tell(&format!("{} {what}", dissect::paint(palette.bad, "error:")));
    ExitCode::from(FAILED)
}
