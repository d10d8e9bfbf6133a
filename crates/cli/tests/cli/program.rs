//! `urxe` as a program, run by the tests.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub(crate) fn urxe(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urxe"));
    command.args(args);
    plain(&mut command);
    command
}

pub(crate) fn run(args: &[&str]) -> Output {
    urxe(args).output().unwrap()
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A file of this test run, by a name of its own.
pub(crate) fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// What the environment says of `urxe` is not the tests' business.
pub(crate) fn plain(command: &mut Command) {
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("URXE_") {
            command.env_remove(name);
        }
    }
}

/// What `args` end with: status 2 and one line, which is given.
pub(crate) fn refused(args: &[&str]) -> String {
    one_line(&run(args), &args.join(" "))
}

/// The one line of a command that was refused.
pub(crate) fn one_line(output: &Output, what: &str) -> String {
    let text = err(output);
    assert_eq!(output.status.code(), Some(2), "{what}: {text}");
    assert_eq!(text.lines().count(), 1, "{what}: {text}");
    assert!(text.starts_with("error: "), "{what}: {text}");
    text.trim_end().to_owned()
}

/// What runs `urxe` in a network namespace of its own in which the loopback interface has this
/// MTU; `None` where the host lets us make none, unless `URXE_REQUIRE_NETNS=1` says that it must.
pub(crate) fn with_loopback_mtu(mtu: u32, args: &[&str]) -> Option<Output> {
    in_namespace(&format!("ip link set lo mtu {mtu} up"), args)
}

/// As [`with_loopback_mtu`], after these shell commands.
pub(crate) fn in_namespace(prepared: &str, args: &[&str]) -> Option<Output> {
    let script = format!("{prepared} && echo in >&2 && exec \"$0\" \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["-rn", "sh", "-c", &script, env!("CARGO_BIN_EXE_urxe")]).args(args);
    plain(&mut command);
    let mut output = command.output().ok();
    let inside = output.as_mut().is_some_and(|o| match o.stderr.strip_prefix(b"in\n") {
        Some(rest) => {
            o.stderr = rest.to_vec();
            true
        }
        None => false,
    });
    if inside {
        return output;
    }
    let required = std::env::var("URXE_REQUIRE_NETNS").is_ok_and(|v| v == "1");
    assert!(!required, "URXE_REQUIRE_NETNS=1, but: {output:?}");
    None
}

/// A program that some machines lack; `variable=1` says that this one must have it.
pub(crate) fn tool(name: &str, variable: &str) -> Option<Command> {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|dir| dir.join(name).is_file());
    let required = std::env::var(variable).is_ok_and(|v| v == "1");
    assert!(found || !required, "{variable}=1, but there is no {name} in PATH");
    found.then(|| Command::new(name))
}

/// A command under way. It ends with its test.
pub(crate) struct Running {
    child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: BufReader<ChildStdout>,
    /// Reads on: who writes to a full pipe stops.
    errors: Option<JoinHandle<String>>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut stderr = child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        Self { child, stdin, stdout, errors: Some(errors) }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line of its standard output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// Waits until it catches SIGINT and SIGTERM.
    pub(crate) fn catches_signals(&self) -> &Self {
        const BOTH: u64 = 1 << (2 - 1) | 1 << (15 - 1);
        loop {
            let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
            let of = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
            let caught = of("SigCgt:").and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
            if caught.unwrap() & BOTH == BOTH {
                return self;
            }
            assert!(!of("State:").unwrap().contains('Z'), "it ended before: {status}");
            std::thread::yield_now();
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.id().try_into().unwrap()), signal).unwrap();
    }

    /// Its exit status; what it writes is not read.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Its exit status, and what else it wrote.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).unwrap();
        let status = self.child.wait().unwrap();
        (status.code(), text, self.errors.take().unwrap().join().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
