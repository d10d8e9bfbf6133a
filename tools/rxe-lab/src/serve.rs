//! The process that holds a lab, and what others ask of it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rxe_lab::{Cache, Lab, LabError, Options, space};

use crate::Up;

const PAUSE: Duration = Duration::from_millis(50);

fn failed(problem: impl Into<String>) -> LabError {
    LabError::Command { command: "rxe-lab".to_owned(), output: problem.into() }
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> LabError {
    let path = path.to_owned();
    move |error| LabError::File { path, error }
}

/// A lab's process, as the file about it says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holder {
    pid: u32,
    /// Tells it from a later process of the same number: when it began, ticks.
    began: String,
}

impl Holder {
    fn path() -> Result<PathBuf, LabError> {
        Ok(Cache::open()?.path("lab"))
    }

    /// The process `pid`, if there is one.
    fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may hold anything.
        let fields = stat.rsplit_once(')')?.1;
        let began = fields.split_whitespace().nth(19)?.to_owned();
        let dead = fields.split_whitespace().next()? == "Z";
        (!dead).then_some(Self { pid, began })
    }

    /// The one that is there now.
    fn now() -> Result<Option<Self>, LabError> {
        let text = std::fs::read_to_string(Self::path()?).unwrap_or_default();
        let written = text.split_once(' ').and_then(|(pid, began)| {
            Some(Self { pid: pid.parse().ok()?, began: began.to_owned() })
        });
        Ok(written.filter(|holder| Self::of(holder.pid).as_ref() == Some(holder)))
    }

    fn needed() -> Result<Self, LabError> {
        Self::now()?.ok_or_else(|| failed("no lab is up; start one with `rxe-lab up`"))
    }
}

/// Starts a process that holds a lab, and waits until the lab is ready.
pub(crate) fn up(up: Up) -> Result<ExitCode, LabError> {
    if let Some(holder) = Holder::now()? {
        return Err(failed(format!("process {} holds one; `rxe-lab down` ends it", holder.pid)));
    }
    rxe_lab::prepare()?;
    let log = Cache::open()?.path("lab.log");
    let said = File::create(&log).map_err(file(&log))?;
    let program = std::env::current_exe().map_err(file(Path::new("/proc/self/exe")))?;
    let mut serve = Command::new(program);
    let numbers = [
        ("--guests", u32::from(up.guests)),
        ("--mtu", u32::from(up.mtu)),
        ("--memory", up.memory),
        ("--processors", u32::from(up.processors)),
    ];
    serve.arg("serve").args(numbers.iter().flat_map(|(k, v)| [(*k).to_owned(), v.to_string()]));
    let errors = said.try_clone().map_err(file(&log))?;
    serve.stdin(Stdio::null()).stdout(said).stderr(errors).process_group(0);
    let mut child = serve.spawn().map_err(file(&log))?;
    loop {
        if Holder::now()?.is_some_and(|holder| holder.pid == child.id()) {
            return Ok(ExitCode::SUCCESS);
        }
        if let Ok(Some(_)) = child.try_wait() {
            let text = std::fs::read_to_string(&log).map_err(file(&log))?;
            let text = text.trim().trim_start_matches("rxe-lab: ");
            return Err(match text.strip_prefix("cannot run here: ") {
                Some(why) => LabError::CannotRun(why.to_owned()),
                None => failed(text),
            });
        }
        std::thread::sleep(PAUSE);
    }
}

/// Holds a lab until a signal ends this process; comes back only with an error.
pub(crate) fn serve(options: &Options) -> LabError {
    if !space::is_inside() {
        return space::enter_new();
    }
    let held = Lab::start(options).and_then(|lab| {
        let path = Holder::path()?;
        let holder = Holder::of(std::process::id()).ok_or_else(|| failed("no /proc"))?;
        let text = format!("{} {}", holder.pid, holder.began);
        let new = path.with_extension("new");
        std::fs::write(&new, text).map_err(file(&new))?;
        std::fs::rename(&new, &path).map_err(file(&path))?;
        Ok(lab)
    });
    match held {
        Ok(_lab) => loop {
            std::thread::park();
        },
        Err(error) => error,
    }
}

/// Runs a command in a guest.
pub(crate) fn run(guest: u8, command: &[String]) -> Result<ExitCode, LabError> {
    let holder = Holder::needed()?;
    if !space::is_inside() {
        return Err(space::enter_of(holder.pid));
    }
    let (status, output) = Lab::session(guest)?.exec(&command.join(" "))?;
    io::stdout().write_all(output.as_bytes()).map_err(file(Path::new("standard output")))?;
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)))
}

/// Becomes a command of this machine in the lab's namespace.
pub(crate) fn here(command: &[String]) -> Result<ExitCode, LabError> {
    let holder = Holder::needed()?;
    let arguments: Vec<OsString> = command.iter().map(Into::into).collect();
    let mut enter = Command::new("nsenter");
    enter.arg(format!("--net=/proc/{}/ns/net", holder.pid)).arg("--").args(arguments);
    Err(LabError::CannotRun(format!("nsenter: {}", enter.exec())))
}

/// Ends the lab's process; its guests and namespace go with it.
pub(crate) fn down() -> Result<ExitCode, LabError> {
    let holder = Holder::needed()?;
    let pid = i32::try_from(holder.pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| failed("its process has no number"))?;
    kill_process(pid, Signal::TERM).map_err(|error| failed(format!("kill: {error}")))?;
    while Holder::of(holder.pid) == Some(holder.clone()) {
        std::thread::sleep(PAUSE);
    }
    let path = Holder::path()?;
    std::fs::remove_file(&path).map_err(file(&path))?;
    let folder = path.with_file_name(format!("run-{}", holder.pid));
    std::fs::remove_dir_all(&folder).map_err(file(&folder))?;
    Ok(ExitCode::SUCCESS)
}
