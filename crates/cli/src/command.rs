//! From the command line to what is done, and to the exit status.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};

use crate::cli::{Cli, Color, Command};
use crate::dissect::{self, Palette};
use crate::ending::{self, Ended};
use crate::{bench, cm, demo, devinfo, doctor, log, pingpong, ports, programs, sim};

mod dissecting;
mod input;
mod linting;

/// Something that was looked for was found: `--strict` and a broken packet, a problem.
const FOUND: u8 = 1;
/// Bad usage, as clap has it, or something that cannot be had.
const FAILED: u8 = 2;

/// Why a command could not do what it is for.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// What a command ended with, where it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// All is well.
    Well,
    /// It found what its help says it exits with 1 for.
    Found,
    /// A program that it ran ended with this status.
    Exit(u8),
}

impl Done {
    /// [`Self::Found`] if so.
    pub(crate) const fn found(it_is: bool) -> Self {
        if it_is { Self::Found } else { Self::Well }
    }
}

/// Does what the command line asks for.
#[must_use]
pub fn run(cli: &Cli) -> ExitCode {
    colour_choice(cli.color).write_global();
    if let Err(why) = log::start() {
        return fail(&why);
    }
    // A program that is run gets the signals itself, and the peer of a bench ends with the bench.
    let passes_on =
        matches!(&cli.command, Command::Run(_) | Command::Env(_) | Command::TryDevfs(_));
    let is_peer = matches!(&cli.command, Command::Bench(args) if args.peer);
    if !passes_on
        && !is_peer
        && let Err(why) = ending::watch()
    {
        return fail(&format!("signals cannot be watched for: {why}"));
    }
    let ended = ended(cli);
    if let Some(signal) = ending::signal() {
        let why = ended.as_ref().err().and_then(|why| why.downcast_ref::<Ended>());
        return ExitCode::from(ending::say(signal, why));
    }
    match ended {
        Ok(Done::Well) => ExitCode::SUCCESS,
        Ok(Done::Found) => ExitCode::from(FOUND),
        Ok(Done::Exit(status)) => ExitCode::from(status),
        Err(why) if is_closed_pipe(&why) => ExitCode::SUCCESS,
        Err(why) => fail(&why.to_string()),
    }
}

fn ended(cli: &Cli) -> Result<Done, Failure> {
    let mut out = io::stdout().lock();
    let colours = palette(&out);
    match &cli.command {
        Command::Demo(args) => demo::run(args, &colours, &mut out).map(|n| Done::found(n != 0)),
        Command::Devinfo(args) => devinfo::run(args, &colours, &mut out),
        Command::Ports(args) => ports::run(args, &colours, &mut out),
        Command::Doctor(args) => doctor::run(args, &colours, &mut out),
        Command::Pingpong(args) => pingpong::run(args, &mut out).map(|()| Done::Well),
        Command::Cm(args) => cm::run(args, &colours, &mut out),
        Command::Bench(args) => bench::run(args, &colours, &mut out),
        Command::Run(args) => programs::run(args),
        Command::Env(args) => programs::env(args, &mut out).map(|()| Done::Well),
        Command::TryDevfs(args) => programs::try_devfs(args),
        Command::Sim(args) => sim::run(args, &colours, &mut out)
            .map(|failed| Done::found(failed != 0))
            .map_err(Failure::from),
        Command::Dissect(args) => dissecting::run(args, colours, out),
        Command::Lint(args) => linting::run(args, colours, out),
    }
}

const fn colour_choice(color: Color) -> ColorChoice {
    match color {
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
        Color::Auto => ColorChoice::Auto,
    }
}

/// Colours for what goes to `stream`, as `--color` and the environment have it.
pub(crate) fn palette(stream: &impl anstream::stream::RawStream) -> Palette {
    match AutoStream::choice(stream) {
        ColorChoice::Never => Palette::PLAIN,
        _ => Palette::COLOURED,
    }
}

/// Who reads has had enough, as `head` has: that is no failure.
fn is_closed_pipe(why: &Failure) -> bool {
    let io = why.downcast_ref::<io::Error>().map(io::Error::kind);
    let json = why.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    io.or(json) == Some(ErrorKind::BrokenPipe)
}

/// Writes to the standard error; if that is closed, nobody is there to be told.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn fail(what: &str) -> ExitCode {
    let errors = palette(&io::stderr());
    tell(&format!("{} {what}", dissect::paint(errors.bad, "error:")));
    ExitCode::from(FAILED)
}
