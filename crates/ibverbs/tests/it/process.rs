//! Tests that need a process of their own.

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::time::Duration;

/// Runs one test of this program in a process of its own, as another role.
pub(crate) fn as_another_process(test: &str, role: &str) -> ExitStatus {
    as_another_process_with(test, role, &[])
}

/// The same, with settings.
pub(crate) fn as_another_process_with(
    test: &str,
    role: &str,
    settings: &[(&str, PathBuf)],
) -> ExitStatus {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env("URXE_TEST_ROLE", role);
    child.envs(settings.iter().map(|(name, value)| (name, value)));
    let mut child = child.spawn().unwrap();
    let id = libc::pid_t::try_from(child.id()).unwrap();
    let (tell, told) = mpsc::channel();
    let waits = std::thread::spawn(move || tell.send(child.wait().unwrap()));
    told.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| {
        // SAFETY: a child of ours that nobody has waited for yet.
        unsafe { libc::kill(id, libc::SIGKILL) };
        let ended = waits.join();
        panic!("{test} as {role} hangs: {ended:?}");
    })
}

pub(crate) fn role() -> Option<String> {
    env::var("URXE_TEST_ROLE").ok()
}

/// Runs `f` in a forked child, which ends with it; gives its wait status: 0 where nothing panicked.
pub(crate) fn in_child(f: impl FnOnce()) -> i32 {
    // SAFETY: the child ends without going back to the test.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // If it hangs, it ends with its parent, which is not waited for for ever.
        // SAFETY: a plain call.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        let fine = catch_unwind(AssertUnwindSafe(f));
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(fine.is_err())) };
    }
    let mut status = 0;
    // SAFETY: a child of ours; the status is ours to write.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}
