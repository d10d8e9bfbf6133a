//! A program that is waited for, since something is to be said at its end.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use super::{Variables, cannot_run, command, report};
use crate::command::{Done, Failure, palette, tell};

/// Signals that somebody who wants to tell the program something sends to us.
const PASSED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Runs the program, passes signals on, and tells what its NICs came to.
pub(super) fn run(
    words: &[OsString],
    mut variables: Variables,
    json: bool,
) -> Result<Done, Failure> {
    let reports = Reports::make().map_err(|e| format!("a directory for reports: {e}"))?;
    variables.push(("URXE_REPORT".into(), reports.0.join("%p.json").into()));
    let mut signals = Signals::new(PASSED_ON)?;
    let handle = signals.handle();
    let mut child = match command(words, variables).spawn() {
        Ok(child) => child,
        Err(error) => return Ok(cannot_run(&words[0], &error)),
    };
    let program = Pid::from_raw(i32::try_from(child.id())?);
    let passing = std::thread::spawn(move || pass_on(&mut signals, program));
    let status = child.wait()?;
    handle.close();
    // It ends when its handle is closed.
    let _ = passing.join();
    let said = report::text(&reports.read(), json, &palette(&io::stderr()));
    if !said.is_empty() {
        tell(said.trim_end());
    }
    drop(reports);
    Ok(ended(status))
}

fn pass_on(signals: &mut Signals, program: Pid) {
    for signal in signals.forever() {
        // A terminal's keys reach the program, too: both are in the group in front.
        let keys = matches!(signal, SIGINT | SIGQUIT) && in_front();
        if let (false, Ok(signal)) = (keys, Signal::try_from(signal)) {
            // It may have ended just now.
            let _ = kill(program, signal);
        }
    }
}

fn in_front() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|front| front == getpgrp())
}

/// The program's status; where a signal ended it, the same one ends us.
fn ended(status: ExitStatus) -> Done {
    if let Some(signal) = status.signal() {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        return Done::Exit(u8::try_from(128 + signal).unwrap_or(u8::MAX));
    }
    Done::Exit(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

/// A directory that reports come to; gone when dropped.
struct Reports(PathBuf);

impl Reports {
    fn make() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("urxe-run-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    /// In the order in which processes were made.
    fn read(&self) -> Vec<serde_json::Value> {
        let files = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let whole = |path: &Path| path.extension().is_some_and(|extension| extension == "json");
        let texts = files.filter(|f| whole(&f.path())).flat_map(|f| fs::read(f.path()));
        let mut all: Vec<serde_json::Value> =
            texts.filter_map(|text| serde_json::from_slice(&text).ok()).collect();
        all.sort_by_key(|report| report["process"].as_u64());
        all
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
