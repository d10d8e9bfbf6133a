//! `urxe` as a program, run by the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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
    let script = format!("ip link set lo mtu {mtu} up && echo in >&2 && exec \"$0\" \"$@\"");
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
