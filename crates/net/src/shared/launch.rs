//! How a broker comes to be: a child of a child of the process that needs it.
//!
//! The process may be any program, with threads, so its child may do only what a signal handler
//! may: no allocation, no lock, no buffered output. All that can fail is done before, by the
//! parent, which then tells of it. No program file is needed. Of the first child no `wait` of the
//! program and no signal tells; the broker, its child, is an orphan at once, and belongs to whoever
//! adopts those: PID 1, or a subreaper. Where the program itself is that, it has to wait for the
//! broker, and gets SIGCHLD at its end.
//!
//! The broker has a copy of the program's private memory as it was, less what is under
//! `MADV_DONTFORK`: pages stay in memory until the broker ends, though the program unmaps them. It
//! does not unmap them itself, for it cannot tell which of them its own calls stand on: the
//! thread's block, the libraries' data.

use std::ffi::c_void;
use std::hash::BuildHasher;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use socket2::Socket;

use super::message::Token;
use super::{SLOTS, serve};

/// What a broker has.
pub(super) struct Parts {
    pub(super) address: IpAddr,
    /// Bound to the broker's name, and listening.
    pub(super) listener: OwnedFd,
    /// By slot.
    pub(super) sockets: [OwnedFd; SLOTS],
    /// Of their names, by slot.
    pub(super) tokens: Tokens,
    /// Where the sockets wait for a broker that comes after this one; see [`vault`].
    pub(super) vault: OwnedFd,
}

pub(super) type Tokens = [Token; SLOTS];

/// Tokens that nobody can guess.
pub(super) fn new_tokens() -> Tokens {
    let keys = std::hash::RandomState::new();
    std::array::from_fn(|slot| keys.hash_one(slot))
}

/// The receiving end of a pair of sockets in which a message with all sockets of a group waits,
/// and the tokens of their names. Whoever holds it keeps the group whole, at the price of one
/// descriptor.
pub(super) fn vault(sockets: &[OwnedFd; SLOTS], tokens: &Tokens) -> Result<OwnedFd, Errno> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::os::fd::AsFd;
    let flags = SocketFlags::CLOEXEC;
    let (inner, outer) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let tokens = tokens.map(Token::to_ne_bytes);
    super::pass::send(inner.as_fd(), tokens.as_flattened(), &sockets.each_ref().map(AsFd::as_fd))?;
    Ok(outer)
}

/// The child's stack: it runs on one of its own, so that the parent's can be let go.
struct Stack {
    base: *mut c_void,
}

/// Several times what the broker and its calls use, without optimisation.
const STACK: usize = 512 << 10;
/// Not to be touched, below and above: the greatest page there is.
const GUARD: usize = 64 << 10;

impl Stack {
    fn new() -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let len = STACK + 2 * GUARD;
        // SAFETY: asks for new memory, wherever there is room.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let stack = Self { base };
        let (inner, access) = (base.wrapping_byte_add(GUARD), libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: the middle of the memory above, which nothing uses yet.
        if unsafe { libc::mprotect(inner, STACK, access) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(stack)
    }

    fn top(&self) -> *mut c_void {
        self.base.wrapping_byte_add(GUARD + STACK)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the memory is ours, and in this process nothing runs on it.
        unsafe { libc::munmap(self.base, STACK + 2 * GUARD) };
    }
}

/// Starts a broker. This process keeps nothing of `parts`.
pub(super) fn launch(parts: &Parts) -> io::Result<()> {
    let stack = Stack::new()?;
    let arg = std::ptr::from_ref(parts).cast_mut().cast();
    let signals = block_signals();
    // SAFETY: `entry` gets what it wants: its parent's memory, copied, has the parts until the
    // child ends. The stack is the child's alone.
    let child = unsafe { libc::clone(entry, stack.top(), 0, arg) };
    let failed = (child < 0).then(io::Error::last_os_error);
    unblock_signals(&signals);
    if let Some(error) = failed {
        return Err(error);
    }
    match wait_for(child)? {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// The status that a child of ours exits with, at once.
fn wait_for(child: libc::pid_t) -> io::Result<i32> {
    let mut status = 0;
    loop {
        // SAFETY: `status` lives through the call.
        let rc = unsafe { libc::waitpid(child, &raw mut status, libc::__WALL) };
        if rc == child {
            let killed = io::ErrorKind::BrokenPipe;
            let exited = libc::WIFEXITED(status);
            return exited.then(|| libc::WEXITSTATUS(status)).ok_or(killed.into());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// No handler of the program may run in the child.
fn block_signals() -> libc::sigset_t {
    // SAFETY: a set of zeros is a valid, empty one.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    let mut old = all;
    // SAFETY: `all` is writable.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: both sets live through the call.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old) };
    old
}

fn unblock_signals(old: &libc::sigset_t) {
    let set = std::ptr::from_ref(old);
    // SAFETY: the set lives through the call, and no old one is wanted.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, set, std::ptr::null_mut()) };
}

/// The child: makes a child of its own, whose parent it does not stay.
extern "C" fn entry(arg: *mut c_void) -> i32 {
    // SAFETY: `launch` gives the parts, which no one changes.
    let parts = unsafe { &*arg.cast::<Parts>() };
    // Before the parent goes on: what it closes then must be closed.
    close_all_but(parts);
    // SAFETY: as fork() without its handlers: the child goes on with a copy of this stack.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    if child < 0 {
        // It only reads `errno`.
        return io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN);
    }
    if child == 0 {
        become_broker(parts);
    }
    0
}

fn become_broker(parts: &Parts) -> ! {
    // SAFETY: takes nothing.
    unsafe { libc::setsid() };
    set_signals();
    // SAFETY: a C string.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"urxe-broker".as_ptr()) };
    // SAFETY: a C string.
    unsafe { libc::chdir(c"/".as_ptr()) };
    let own = |fd: &OwnedFd| {
        // SAFETY: open, and this process has but this copy of the number.
        unsafe { OwnedFd::from_raw_fd(fd.as_raw_fd()) }
    };
    let parts = Parts {
        address: parts.address,
        listener: own(&parts.listener),
        tokens: parts.tokens,
        sockets: std::array::from_fn(|slot| own(&parts.sockets[slot])),
        vault: own(&parts.vault),
    };
    serve::serve(parts);
    // SAFETY: ends the process without the program's exit handlers.
    unsafe { libc::_exit(0) }
}

/// Only what is meant for this process ends it: SIGTERM, and its own errors.
fn set_signals() {
    let fatal = [libc::SIGTERM, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];
    for signal in 1..=64 {
        let left = fatal.contains(&signal) || signal == libc::SIGABRT || signal == libc::SIGCHLD;
        let what = if left { libc::SIG_DFL } else { libc::SIG_IGN };
        // SAFETY: no handler is set. Where a signal cannot be ignored, the call fails.
        unsafe { libc::signal(signal, what) };
    }
    // SAFETY: a set of zeros is a valid, empty one.
    let none: libc::sigset_t = unsafe { std::mem::zeroed() };
    unblock_signals(&none);
}

/// Closes what the program had open, files as well as connections.
fn close_all_but(parts: &Parts) {
    let mut kept = [0; SLOTS + 2];
    for (place, fd) in kept.iter_mut().zip(&parts.sockets) {
        *place = fd.as_raw_fd();
    }
    (kept[SLOTS], kept[SLOTS + 1]) = (parts.listener.as_raw_fd(), parts.vault.as_raw_fd());
    kept.sort_unstable();
    let mut from = 0;
    for fd in kept {
        close_range(from, fd - 1);
        from = fd + 1;
    }
    close_range(from, RawFd::MAX);
    // 0 to 2 are nobody's, or ours: what opens next must not be taken for the standard error.
    loop {
        // SAFETY: a C string.
        let fd = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
        if fd > 2 {
            // SAFETY: ours, and of no use.
            unsafe { libc::close(fd) };
        }
        if !(0..=2).contains(&fd) {
            return;
        }
    }
}

/// Closes the descriptors `from` to `to`.
fn close_range(from: RawFd, to: RawFd) {
    if from > to {
        return;
    }
    // SAFETY: nothing of this process uses them: it is a copy, and goes on with others.
    if unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) } == 0 {
        return;
    }
    // Before Linux 5.9, one by one.
    // SAFETY: takes no pointers.
    let most = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    for fd in from..=to.min(RawFd::try_from(most).unwrap_or(1 << 20)) {
        // SAFETY: as above.
        unsafe { libc::close(fd) };
    }
}

/// The sockets, as the broker holds them.
pub(super) fn owned(sockets: [Socket; SLOTS]) -> [OwnedFd; SLOTS] {
    // SAFETY: the descriptor is given up by the socket, and nobody else's.
    sockets.map(|socket| unsafe { OwnedFd::from_raw_fd(socket.into_raw_fd()) })
}
