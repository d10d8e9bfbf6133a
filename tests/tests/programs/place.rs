//! Where cases run: over loopback, or between two network namespaces.

use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::say;

/// Says that this process has been started in a network namespace of its own.
const INSIDE: &str = "URXE_TESTS_INSIDE";

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Both programs on addresses of 127.0.0.0/8.
    Loopback,
    /// Each in a network namespace, on the ends of a veth pair.
    Namespaces,
}

impl Column {
    pub const ALL: [Self; 2] = [Self::Loopback, Self::Namespaces];
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "loopback",
            Self::Namespaces => "namespaces",
        })
    }
}

/// Which of two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Server,
    Client,
}

pub struct Place {
    pub column: Column,
    /// Lives in the client's namespace, and holds it.
    holder: Option<Child>,
}

const SERVER: &str = "10.77.0.1";
const CLIENT: &str = "10.77.0.2";
/// The server's end of the link; the client's has the same name in its namespace.
pub const LINK: &str = "veth";

/// Ways into a network namespace: as root, or as anyone with a user namespace; best with a process
/// namespace, so that no program outlives us however we end.
const WAYS: [&[&str]; 4] = [
    &["--net", "--pid", "--fork", "--kill-child", "--mount-proc"],
    &["--net", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"],
    &["--net"],
    &["--net", "--user", "--map-root-user"],
];

/// Goes into a network namespace of its own, so that ports and addresses are free there; comes back
/// in it, or where the host lets nobody make one.
pub fn enter() -> Result<(), String> {
    if std::env::var_os(INSIDE).is_some() {
        return ip(None, "link set lo up");
    }
    for flags in WAYS {
        let tried = Command::new("unshare").args(flags).arg("true").output();
        if tried.is_ok_and(|output| output.status.success()) {
            let me = std::env::current_exe().map_err(|e| format!("where this program is: {e}"))?;
            let mut command = Command::new("unshare");
            // The first process of a namespace is deaf to a terminal's keys: let that be a shell.
            command.args(flags).args(["--", "sh", "-c", "\"$0\" \"$@\"; exit $?"]).arg(me);
            command.args(std::env::args_os().skip(1));
            return Err(format!("unshare: {}", command.env(INSIDE, "1").exec()));
        }
    }
    Ok(())
}

/// Runs `ip` here or in the namespace of a process.
fn ip(process: Option<u32>, arguments: &str) -> Result<(), String> {
    let mut command = match process {
        Some(id) => within(id, "ip".as_ref()),
        None => Command::new("ip"),
    };
    command.args(arguments.split_whitespace());
    let output = command.output().map_err(|e| format!("ip: {e}; it is in package iproute2"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("ip {arguments}: {told}")) }
}

fn within(process: u32, program: &OsStr) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/proc/{process}/ns/net")).arg("--").arg(program);
    command
}

impl Place {
    /// All that can be had here.
    pub fn all() -> Result<Vec<Self>, String> {
        let mut all = vec![Self { column: Column::Loopback, holder: None }];
        if std::env::var_os(INSIDE).is_some() {
            all.push(Self::linked()?);
        } else if crate::asks("URXE_REQUIRE_NETNS") {
            return Err("no network namespaces; run as root, or allow user namespaces".to_owned());
        } else {
            say("skipped: namespaces: none can be made; run as root, or allow user namespaces");
        }
        Ok(all)
    }

    fn linked() -> Result<Self, String> {
        let mut command = Command::new("unshare");
        command.args(["--net", "--", "sh", "-c", "echo ready; exec cat"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = command.spawn().map_err(|e| format!("unshare: {e}"))?;
        let out = holder.stdout.take().ok_or("no pipe")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).map_err(|e| format!("the second: {e}"))?;
        let id = holder.id();
        let place = Self { column: Column::Namespaces, holder: Some(holder) };
        ip(None, &format!("link add {LINK} type veth peer name {LINK} netns {id}"))?;
        for (process, address) in [(None, SERVER), (Some(id), CLIENT)] {
            ip(process, "link set lo up")?;
            ip(process, &format!("addr add {address}/24 dev {LINK}"))?;
            ip(process, &format!("link set {LINK} up"))?;
        }
        Ok(place)
    }

    /// Changes the server's end of the link.
    pub fn link(&self, what: &str) -> Result<(), String> {
        ip(None, &format!("link set {LINK} {what}"))
    }

    /// The server's address as clients are told it.
    pub const fn server(&self) -> &'static str {
        match self.column {
            Column::Loopback => "127.0.0.1",
            Column::Namespaces => SERVER,
        }
    }

    /// A program in the namespace of its side.
    fn at(&self, side: Side, program: &OsStr) -> Command {
        match &self.holder {
            Some(holder) if side == Side::Client => within(holder.id(), program),
            _ => Command::new(program),
        }
    }

    /// `urxe run FLAGS -- WORDS` on a side.
    pub fn urxe(&self, side: Side, flags: &[&str], words: &[String]) -> Result<Command, String> {
        let me = std::env::current_exe().map_err(|e| format!("where this program is: {e}"))?;
        let mut command = self.at(side, me.as_os_str());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("URXE_") {
                command.env_remove(name);
            }
        }
        command.env(crate::BE_URXE, "1").arg("run").arg("--library").arg(library()?);
        if self.column == Column::Namespaces {
            command.args(["--addr", if side == Side::Server { SERVER } else { CLIENT }]);
        }
        command.args(flags).arg("--").args(words);
        Ok(command)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(holder) = &mut self.holder {
            // It ends with its input.
            drop(holder.stdin.take());
            let _ = holder.wait();
        }
    }
}

/// A directory with our libraries, and no others, under the names that programs search for.
pub fn library() -> Result<PathBuf, String> {
    let wrong = |e: std::io::Error| format!("a directory for the libraries: {e}");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs-library");
    std::fs::create_dir_all(&directory).map_err(wrong)?;
    // Cargo puts them beside the tests.
    let me = std::env::current_exe().map_err(wrong)?;
    for name in ["libibverbs.so", "librdmacm.so"] {
        let built = me.with_file_name(name);
        let link = directory.join(format!("{name}.1"));
        if std::fs::read_link(&link).ok().as_ref() != Some(&built) {
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(&built, &link).map_err(wrong)?;
        }
        if !built.exists() {
            return Err(format!("{} is not there", built.display()));
        }
    }
    Ok(directory)
}
