//! Whether a guest's kernel lives.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::session::Session;
use crate::{LabError, link};

/// How long a connection is waited for. An emulated guest may stand still on a busy machine.
const CONNECT: Duration = Duration::from_secs(30);
/// How often a guest that says nothing is looked at.
pub(crate) const LOOK: Duration = Duration::from_millis(250);

/// What tells whether a guest lives: its QEMU, and its console. A guest is started so that its
/// kernel panics at the first oops, and QEMU ends then.
#[derive(Clone, Debug)]
pub struct Watch {
    guest: u8,
    console: PathBuf,
    qemu: Arc<Mutex<Child>>,
}

/// A guest's kernel died.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("guest kernel died: {0}")]
pub struct Died(pub String);

impl Watch {
    pub(crate) fn new(guest: u8, console: PathBuf, qemu: Child) -> Self {
        Self { guest, console, qemu: Arc::new(Mutex::new(qemu)) }
    }

    /// The file with all that its kernel said.
    #[must_use]
    pub fn console(&self) -> &Path {
        &self.console
    }

    /// How its kernel died: the first line of its oops, or how QEMU ended. Nothing if it lives.
    #[must_use]
    pub fn died(&self) -> Option<Died> {
        let ended = self.child(|qemu| qemu.try_wait().ok().flatten());
        let text = std::fs::read(&self.console).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let oops = first_oops(&text).map(str::to_owned);
        oops.or_else(|| Some(format!("QEMU ended ({})", ended?))).map(Died)
    }

    /// A session with its agent, whose requests end when the guest dies.
    ///
    /// # Errors
    /// Where the agent does not answer.
    pub fn session(&self) -> Result<Session, LabError> {
        match Session::new(connect(self.guest, CONNECT)?, Some(self.clone())) {
            Err(lost) => Err(self.died().map_or(lost, LabError::from)),
            session => session,
        }
    }

    /// Ends the guest.
    pub fn kill(&self) {
        self.child(|qemu| {
            // It may have ended already.
            let _ = qemu.kill();
            let _ = qemu.wait();
        });
    }

    fn child<T>(&self, f: impl FnOnce(&mut Child) -> T) -> T {
        f(&mut self.qemu.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A connection to the agent of guest `number`, from within the lab's namespace.
pub(crate) fn connect(number: u8, patience: Duration) -> Result<TcpStream, LabError> {
    let to = SocketAddr::new(IpAddr::V4(link::agent(number)), link::AGENT_PORT);
    let lost = |error| LabError::Lost { request: format!("connect {to}"), error };
    TcpStream::connect_timeout(&to, patience).map_err(lost)
}

/// The first line of what a kernel says when it dies, without its time.
fn first_oops(console: &str) -> Option<&str> {
    let lines = console.lines().map(|line| match line.strip_prefix('[') {
        Some(rest) => rest.split_once("] ").map_or(line, |(_, text)| text),
        None => line,
    });
    // A guest that gets no time of a busy machine tells of lockups, and lives.
    let mut lines = lines.filter(|line| !line.contains("lockup"));
    lines.find(|line| {
        let starts = ["BUG: ", "BUG ", "Oops", "Kernel panic", "general protection fault"];
        starts.iter().any(|start| line.starts_with(start)) || line.contains("kernel BUG at")
    })
}

/// A stream whose reads end when the guest dies, or has said nothing for too long.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) stream: TcpStream,
    pub(crate) watch: Option<Watch>,
    pub(crate) patience: Duration,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let end = Instant::now() + self.patience;
        loop {
            match self.stream.read(buffer) {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    if let Some(died) = self.watch.as_ref().and_then(Watch::died) {
                        return Err(io::Error::other(died));
                    }
                    if Instant::now() > end {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                read => return read,
            }
        }
    }
}

#[cfg(test)]
mod tests;
