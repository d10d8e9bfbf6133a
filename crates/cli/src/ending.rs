//! SIGINT and SIGTERM. The first asks a command to come to its end, with devices closed and files
//! written; a second ends it where it is.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use urxe::{Completion, Context, Cq};

use crate::command::{Failure, tell};

#[cfg(test)]
mod tests;

/// How often a wait for a device looks whether a signal has come.
const SLICE: Duration = Duration::from_millis(50);

/// The signal that came, 0 if none did.
static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);
/// Readable once a signal has come.
static BELL: OnceLock<UnixStream> = OnceLock::new();

/// A command has ended early because a signal came.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("ended by a signal{}", self.so_far())]
pub(crate) struct Ended(String);

impl Ended {
    /// What was done until then: ` after …`.
    pub(crate) fn after(done: impl Into<String>) -> Failure {
        Self(done.into()).into()
    }

    fn so_far(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!(" after {}", self.0) }
    }
}

/// Takes both signals from now on.
pub(crate) fn watch() -> io::Result<()> {
    let (bell, rung) = UnixStream::pair()?;
    let before = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // They act in this order, so that only a second signal finds the flag set.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&before))?;
        flag::register(signal, Arc::clone(&before))?;
        flag::register_usize(signal, Arc::clone(&SIGNAL), usize::try_from(signal).unwrap_or(0))?;
        low_level::pipe::register(signal, rung.try_clone()?)?;
    }
    let _ = BELL.set(bell);
    Ok(())
}

/// The signal that came, if one did.
pub(crate) fn signal() -> Option<u8> {
    match SIGNAL.load(Ordering::SeqCst) {
        0 => None,
        signal => u8::try_from(signal).ok(),
    }
}

/// For work that can stop here.
pub(crate) fn check() -> Result<(), Ended> {
    signal().map_or(Ok(()), |_| Err(Ended::default()))
}

/// Says in a line what ended the command, once, and gives its exit status.
pub(crate) fn say(signal: u8, why: Option<&Ended>) -> u8 {
    static SAID: AtomicBool = AtomicBool::new(false);
    if SAID.swap(true, Ordering::SeqCst) {
        return 128 + signal;
    }
    let name = low_level::signal_name(signal.into()).unwrap_or("a signal");
    tell(&format!("ended by {name}{}", why.map_or_else(String::new, Ended::so_far)));
    128 + signal
}

/// For a command that has nothing to close: a signal ends it wherever it is. `so_far` tells what
/// was done until then.
pub(crate) fn at_once(so_far: impl FnOnce() -> String + Send + 'static) {
    thread::spawn(move || {
        let rung = BELL.get().map(|bell| poll_all(&[(bell.as_fd(), PollFlags::IN)], None));
        if let (Some(Ok(_)), Some(signal)) = (rung, signal()) {
            process::exit(say(signal, Some(&Ended(so_far()))).into());
        }
    });
}

/// For work of a device that waits by itself: a signal ends the command in the middle of it, with
/// the capture written.
pub(crate) fn blocking<R>(context: &Context, work: impl FnOnce() -> R) -> io::Result<R> {
    let (over, done) = UnixStream::pair()?;
    Ok(thread::scope(|scope| {
        scope.spawn(|| {
            // What is dropped at the other end can be read, too.
            if readable(over.as_fd(), None).is_err()
                && let Some(signal) = signal()
            {
                context.flush_capture();
                process::exit(say(signal, None).into());
            }
        });
        let result = work();
        drop(done);
        result
    }))
}

/// Sleeps, unless a signal comes.
pub(crate) fn sleep(time: Duration) -> Result<(), Ended> {
    let until = Instant::now() + time;
    let bell = BELL.get().map(|bell| (bell.as_fd(), PollFlags::IN));
    // Where waiting fails, the time is not waited for.
    let _ = poll_all(bell.as_slice(), Some(until));
    check()
}

/// Waits until `fd` can be read, at most until then; whether it can.
///
/// # Errors
/// [`Ended`] once a signal has come.
pub(crate) fn readable(fd: BorrowedFd<'_>, until: Option<Instant>) -> io::Result<bool> {
    ready(fd, PollFlags::IN, until)
}

/// As [`readable`], to be written.
pub(crate) fn writable(fd: BorrowedFd<'_>, until: Option<Instant>) -> io::Result<bool> {
    ready(fd, PollFlags::OUT, until)
}

fn ready(fd: BorrowedFd<'_>, what: PollFlags, until: Option<Instant>) -> io::Result<bool> {
    let bell = BELL.get().map(|bell| (bell.as_fd(), PollFlags::IN));
    let all: Vec<_> = [(fd, what)].into_iter().chain(bell).collect();
    let ready = poll_all(&all, until)?;
    check().map_err(io::Error::other)?;
    Ok(ready)
}

/// Whether one of them is ready in time.
fn poll_all(all: &[(BorrowedFd<'_>, PollFlags)], until: Option<Instant>) -> io::Result<bool> {
    let mut fds: Vec<_> =
        all.iter().map(|(fd, what)| PollFd::from_borrowed_fd(*fd, *what)).collect();
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(n) => return Ok(n != 0),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Waits for a completion as [`Cq::wait_for`] does; `None` once a signal has come.
pub(crate) fn completion(cq: &Cq, patience: Duration) -> Result<Option<Completion>, urxe::Error> {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match cq.wait_for(left.min(SLICE)) {
            Ok(done) => return Ok(Some(done)),
            Err(urxe::Error::TimedOut { .. }) if signal().is_some() => return Ok(None),
            Err(urxe::Error::TimedOut { .. }) if left > SLICE => {}
            Err(why) => return Err(waited(why, patience)),
        }
    }
}

/// The error of a wait that was done in parts, the last of which timed out: it tells of them all.
pub(crate) fn waited(why: urxe::Error, patience: Duration) -> urxe::Error {
    match why {
        urxe::Error::TimedOut { what, counters, .. } => {
            urxe::Error::TimedOut { what, seconds: patience.as_secs(), counters }
        }
        other => other,
    }
}

/// A file that can be read until a signal comes.
#[derive(Debug)]
pub(crate) struct Readable(pub(crate) File);

impl Read for Readable {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        readable(self.0.as_fd(), None)?;
        self.0.read(buf)
    }
}
