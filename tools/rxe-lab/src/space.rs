//! The network namespace that a lab lives in.
//!
//! It has no name: it is there as long as a process is in it, so that nothing is left when a run
//! ends, however it does. A program enters one by starting itself again.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::LabError;

/// Says that this process has been started in the namespace, and by whom.
const INSIDE: &str = "URXE_LAB_INSIDE";

/// Whether this process is inside, by [`enter_new`] or [`enter_of`].
#[must_use]
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Starts this program anew, with the same arguments, in a new namespace, once all that a lab needs
/// from outside is there; comes back only with an error.
pub fn enter_new() -> LabError {
    if let Err(error) = crate::prepare() {
        return error;
    }
    let mut command = Command::new("unshare");
    command.arg("--net").arg("--");
    again(&mut command, std::env::args_os().skip(1))
}

/// The same in the namespace of process `pid`.
pub fn enter_of(pid: u32) -> LabError {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/proc/{pid}/ns/net")).arg("--");
    again(&mut command, std::env::args_os().skip(1))
}

fn again(command: &mut Command, arguments: impl Iterator<Item = OsString>) -> LabError {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return LabError::file("/proc/self/exe")(error),
    };
    let error = command.arg(program).args(arguments).env(INSIDE, "1").exec();
    LabError::CannotRun(format!("no network namespace can be entered: {error}"))
}

/// Whether this machine lets us have what a lab needs.
///
/// # Errors
/// [`LabError::CannotRun`], with what is missing and how to get it.
pub fn possible() -> Result<(), LabError> {
    let cannot = |why: &str| Err(LabError::CannotRun(why.to_owned()));
    let status = read(Path::new("/proc/self/status"))?;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let rights = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    // CAP_NET_ADMIN and CAP_SYS_ADMIN (linux/capability.h).
    if rights & (1 << 12) == 0 || rights & (1 << 21) == 0 {
        return cannot("it needs root, to make network namespaces and taps");
    }
    if !Path::new("/dev/net/tun").exists() {
        return cannot("there is no /dev/net/tun, through which guests have a network");
    }
    for program in ["qemu-system-x86_64", "ip", "gcc", "readelf", "xz", "dpkg", "setpriv"] {
        if let Err(missing) = crate::command::text(Command::new(program).arg("--version"))
            && matches!(missing, LabError::CannotRun(_))
        {
            return Err(missing);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, LabError> {
    std::fs::read_to_string(path).map_err(|error: io::Error| LabError::file(path)(error))
}
