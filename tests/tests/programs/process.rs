//! Programs that run: what they say goes to a file, and none outlives its case.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How long a program may take before it is said to hang: far longer than any needs.
pub const PATIENCE: Duration = Duration::from_secs(150);
/// How often somebody is asked who cannot be waited for.
const AGAIN: Duration = Duration::from_millis(5);

pub struct Running {
    /// As messages call it.
    name: String,
    group: Pid,
    ended: Receiver<ExitStatus>,
    status: Option<ExitStatus>,
    output: PathBuf,
}

/// What a program left.
#[derive(Debug)]
pub struct Done {
    pub text: String,
    status: ExitStatus,
    name: String,
}

impl Done {
    /// It must have ended well.
    pub fn success(self) -> Result<String, String> {
        if self.status.success() {
            return Ok(self.text);
        }
        let how = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or(0)),
        };
        Err(format!("{}: {how}:\n{}", self.name, tail(&self.text)))
    }
}

/// The last lines, for a message.
pub fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(24)..].join("\n")
}

impl Running {
    /// Starts it in a process group of its own; standard output and error go to one file, and what
    /// its NICs count beside it.
    pub fn start(mut command: Command, name: &str, folder: &Path) -> Result<Self, String> {
        let wrong = |e: std::io::Error| format!("{name} does not start: {e}");
        let output = folder.join(format!("{name}.txt"));
        let reports = folder.join(format!("{name}.nics"));
        let _ = fs::remove_dir_all(&reports);
        fs::create_dir_all(&reports).map_err(wrong)?;
        let file = File::create(&output).map_err(wrong)?;
        command.env("URXE_REPORT", reports.join("%p.json")).process_group(0);
        command.stdin(std::process::Stdio::null()).stdout(file.try_clone().map_err(wrong)?);
        let mut child = command.stderr(file).spawn().map_err(wrong)?;
        let group = Pid::from_raw(i32::try_from(child.id()).map_err(|e| e.to_string())?);
        let (tell, ended) = channel();
        std::thread::spawn(move || child.wait().map(|status| tell.send(status)));
        Ok(Self { name: name.to_owned(), group, ended, status: None, output })
    }

    /// What it has said so far.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.output).unwrap_or_default()).into_owned()
    }

    /// What its NICs have been refused, and what failed on them, once it has ended.
    fn refused(&self) -> String {
        let files = fs::read_dir(self.output.with_extension("nics")).into_iter().flatten();
        let texts = files.flatten().filter_map(|file| fs::read_to_string(file.path()).ok());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Waits until something holds.
    pub fn until(&mut self, what: &str, mut is: impl FnMut(&Self) -> bool) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        while !is(self) {
            match self.ended.recv_timeout(AGAIN) {
                Ok(status) => {
                    self.status = Some(status);
                    let (name, said) = (&self.name, tail(&self.said()));
                    return Err(format!("{name} ended before it {what}, {status}:\n{said}"));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < end => {}
                Err(_) => return Err(self.hangs(&format!("before it {what}"))),
            }
        }
        Ok(())
    }

    /// Waits until it listens on a TCP port.
    pub fn listens(&mut self, port: u16) -> Result<(), String> {
        let local = format!(":{port:04X}");
        self.until(&format!("listened on port {port}"), |running| {
            ["tcp", "tcp6"].into_iter().any(|table| {
                let path = format!("/proc/{}/net/{table}", running.group);
                let table = fs::read_to_string(path).unwrap_or_default();
                // sl, local address, remote address, state; 0A is LISTEN.
                table.lines().map(|line| line.split_whitespace().collect()).any(
                    |fields: Vec<&str>| {
                        fields.len() > 3 && fields[1].ends_with(&local) && fields[3] == "0A"
                    },
                )
            })
        })
    }

    /// Waits for its end.
    pub fn end(mut self) -> Result<Done, String> {
        let status = match self.status {
            Some(status) => status,
            None => match self.ended.recv_timeout(PATIENCE) {
                Ok(status) => status,
                Err(_) => return Err(self.hangs("at its end")),
            },
        };
        self.status = Some(status);
        let refused = if status.success() { String::new() } else { self.refused() };
        let text = format!("{}{refused}", self.said());
        Ok(Done { text, status, name: self.name.clone() })
    }

    /// Ends it by a signal. Not SIGINT, which a shell lets programs in the background ignore.
    pub fn terminate(mut self) -> Result<String, String> {
        let _ = killpg(self.group, Signal::SIGTERM);
        match self.ended.recv_timeout(PATIENCE) {
            Ok(status) => {
                self.status = Some(status);
                Ok(self.said())
            }
            Err(_) => Err(self.hangs("after SIGTERM")),
        }
    }

    /// Says so, and ends it.
    fn hangs(&mut self, when: &str) -> String {
        self.stop();
        let (name, said, seconds) = (&self.name, tail(&self.said()), PATIENCE.as_secs());
        let refused = self.refused();
        format!("{name} hangs {when}: nothing in {seconds} s; it said:\n{said}\n{refused}")
    }

    fn stop(&mut self) {
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            if self.status.is_some() {
                break;
            }
            // Its own group, whose leader nobody has waited for.
            let _ = killpg(self.group, signal);
            self.status = self.ended.recv_timeout(Duration::from_secs(5)).ok();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}
