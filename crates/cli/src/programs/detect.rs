//! Which programs need files of a device at fixed paths.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

/// Programs whose children load UCX, though they do not.
const LAUNCHERS: [&str; 4] = ["mpirun", "mpiexec", "orterun", "prterun"];
/// UCX's libraries, as a program's dynamic section names them.
const UCX: [&[u8]; 3] = [b"libucp.so", b"libuct.so", b"libucs.so"];

/// Whether the program needs them, and the host has none.
pub(super) fn needs_devfs(program: &OsStr) -> bool {
    if Path::new("/dev/infiniband/uverbs0").exists() {
        return false;
    }
    let Some(path) = path_of(program) else { return false };
    // Debian's launchers are links to links, with the version in the last name.
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    LAUNCHERS.iter().any(|launcher| name.starts_with(launcher))
        || start_of(&path).is_ok_and(|bytes| uses_ucx(&bytes))
}

/// Bytes of a program that are looked at: in the largest ones the names of libraries stand before.
const MOST: u64 = 64 << 20;

/// What a program file begins with; nothing of what is no file, which might have no end or keep us
/// waiting.
fn start_of(path: &Path) -> io::Result<Vec<u8>> {
    let flags = (OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        file.take(MOST).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn uses_ucx(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
        && UCX.iter().any(|name| bytes.windows(name.len()).any(|at| at == *name))
}

/// The file that is run, as the host looks for it.
fn path_of(program: &OsStr) -> Option<PathBuf> {
    if program.to_string_lossy().contains('/') {
        return Some(program.into());
    }
    env::split_paths(&env::var_os("PATH")?).map(|at| at.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_linked_to_ucx_needs_them() {
        assert!(uses_ucx(b"\x7fELF...\0libm.so.6\0libucp.so.0\0"));
        assert!(!uses_ucx(b"\x7fELF...\0libibverbs.so.1\0"));
        assert!(!uses_ucx(b"#!/bin/sh\n# libucp.so\n"));
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        let fifo = env::temp_dir().join(format!("urxe-fifo-{}", std::process::id()));
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // Nobody writes to the one, and the other has no end.
        for path in [&*fifo, Path::new("/dev/zero"), Path::new("/dev/ptmx")] {
            assert_eq!(start_of(path).unwrap_or_default(), b"", "{}", path.display());
        }
        fs::remove_file(&fifo).unwrap();
        assert!(start_of(&env::current_exe().unwrap()).unwrap().starts_with(b"\x7fELF"));
        assert!(start_of(Path::new("/")).unwrap_or_default().is_empty());
    }
}
