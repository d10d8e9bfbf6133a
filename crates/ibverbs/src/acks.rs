//! Events that were delivered and not yet acknowledged: an object is not destroyed before.

use std::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd};

use parking_lot::{Condvar, Mutex};

use crate::call::Fail;
use crate::context::Opening;

/// Counts of one object's events of one kind.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    counts: Mutex<Counts>,
    all: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    delivered: u32,
    acknowledged: u32,
}

impl Acks {
    /// The program got one.
    pub(crate) fn delivered(&self) {
        self.counts.lock().delivered += 1;
    }

    /// The program is done with some; gives how many it was done with ever.
    pub(crate) fn acknowledge(&self, count: u32) -> u32 {
        let counts = &mut *self.counts.lock();
        counts.acknowledged = counts.acknowledged.wrapping_add(count);
        self.all.notify_all();
        counts.acknowledged
    }

    /// Waits until the program is done with all that it got; those of a parent's, before a fork,
    /// are the parent's to be done with.
    pub(crate) fn wait(&self, opening: &Opening) {
        if opening.is_ours() {
            self.wait_here();
        }
    }

    /// The same, of an object that is known to be this process's.
    pub(crate) fn wait_here(&self) {
        let mut counts = self.counts.lock();
        while counts.acknowledged != counts.delivered {
            self.all.wait(&mut counts);
        }
    }
}

/// Fails where a read from the descriptor would not wait.
pub(crate) fn may_wait(fd: BorrowedFd<'_>) -> Result<(), Fail> {
    // SAFETY: the descriptor is open.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    if flags & libc::O_NONBLOCK != 0 {
        return Err(Fail::not_yet(libc::EAGAIN, "no event waits"));
    }
    Ok(())
}

/// Waits until a descriptor is readable, as a read from it would, or fails as that would.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>) -> Result<(), Fail> {
    may_wait(fd)?;
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    const FOR_EVER: c_int = -1;
    // SAFETY: one entry, ours.
    while unsafe { libc::poll(&raw mut poll, 1, FOR_EVER) } < 0 {
        let interrupted = Fail::host("poll");
        if interrupted.errno != libc::EINTR || !reads_go_on() {
            return Err(interrupted);
        }
    }
    Ok(())
}

/// Whether a read would go on after any signal that the program handles. A poll never does, and
/// does not say which signal it was; few programs have handlers of both kinds.
pub(crate) fn reads_go_on() -> bool {
    // Those that a thread brings upon itself interrupt no wait.
    let own = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];
    (1..=libc::SIGRTMAX()).filter(|signal| !own.contains(signal)).all(|signal| {
        // SAFETY: plain data, overwritten by the call.
        let mut now = unsafe { std::mem::zeroed::<libc::sigaction>() };
        // SAFETY: it only asks; signals that the C library keeps for itself are an error.
        let known = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) } == 0;
        let handled = ![libc::SIG_DFL, libc::SIG_IGN].contains(&now.sa_sigaction);
        !(known && handled) || now.sa_flags & libc::SA_RESTART != 0
    })
}
