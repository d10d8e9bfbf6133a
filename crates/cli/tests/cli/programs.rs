//! `urxe run` and `urxe env`, with shells as the program: what needs no RDMA.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::program::{err, out, refused, urxe};

/// A directory in which files have the libraries' names.
pub(crate) fn library() -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("a-library");
    fs::create_dir_all(&directory).unwrap();
    // Never written to: a shell that is starting may be looking at it. The loader passes over what
    // no program asks for.
    for name in ["libibverbs.so.1", "librdmacm.so.1"] {
        let name = directory.join(name);
        let _ = fs::OpenOptions::new().create(true).append(true).open(name).unwrap();
    }
    directory
}

fn run(flags: &[&str], program: &[&str]) -> Command {
    let library = library();
    let mut command = urxe(&["run", "--library", library.to_str().unwrap()]);
    command.args(flags).arg("--").args(program);
    command
}

#[test]
fn the_program_gets_the_library_and_the_settings() {
    let show = "echo $LD_LIBRARY_PATH $URXE_MTU $URXE_LOSS $URXE_PCAP $URXE_TRACE; echo \"$@\"";
    let flags = ["--mtu", "1024", "--loss", "1%", "--pcap", "x.pcapng", "--trace"];
    let mut command = run(&flags, &["sh", "-c", show, "sh", "--mtu", "-x"]);
    let output = command.env("LD_LIBRARY_PATH", "/there").output().unwrap();
    let library = library().canonicalize().unwrap();
    let wanted = format!("{}:/there 1024 1% x-%p.pcapng on\n--mtu -x\n", library.to_str().unwrap());
    assert_eq!(out(&output), wanted, "{}", err(&output));
    assert!(output.status.success() && output.stderr.is_empty());
}

#[test]
fn the_program_ends_as_it_would_alone() {
    for flags in [&[][..], &["--report"]] {
        let status = run(flags, &["sh", "-c", "exit 7"]).status().unwrap();
        assert_eq!(status.code(), Some(7), "{flags:?}");
        let status = run(flags, &["sh", "-c", "kill -KILL $$"]).status().unwrap();
        assert_eq!(status.signal(), Some(9), "{flags:?}");
        let output = run(flags, &["no-such-program"]).output().unwrap();
        assert_eq!(output.status.code(), Some(127), "{flags:?}");
        assert!(err(&output).contains("no-such-program"), "{}", err(&output));
        let output = run(flags, &["/dev/null"]).output().unwrap();
        assert_eq!(output.status.code(), Some(126), "{flags:?}");
    }
}

#[test]
fn signals_are_passed_on_while_a_report_is_waited_for() {
    let waits = "trap 'echo told; exit 3' USR1; echo ready; while :; do read x; done";
    let mut command = run(&["--report"], &["sh", "-c", waits]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let kill = format!("kill -USR1 {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    // The shell acts on it once its read ends.
    drop(child.stdin.take());
    assert_eq!(lines.next().unwrap().unwrap(), "told");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(err(&output), "no process of the program opened a device\n");
}

#[test]
fn a_report_tells_what_processes_left() {
    let leaves = "echo '{\"process\":1,\"program\":\"p\",\"address\":\"::1\",\"ended\":false}' > \
                  $(echo $URXE_REPORT | sed s/%p/1/)";
    let output = run(&["--report"], &["sh", "-c", leaves]).output().unwrap();
    let told = "p (process 1) ::1\n  did not close its device nor exit: it was killed, or still \
                runs\n";
    assert_eq!(err(&output), told);
}

#[test]
fn mistakes_are_told_before_the_program_starts() {
    let library = library();
    let with = |flags: &[&str]| {
        let mut all = vec!["run", "--library", library.to_str().unwrap()];
        all.extend(flags);
        all.extend(["--", "true"]);
        refused(&all)
    };
    assert!(with(&["--mtu", "1500"]).contains("wanted 256, 512, 1024, 2048 or 4096"));
    let text = refused(&["run", "--library", "/nowhere", "--", "true"]);
    assert!(text.contains("libibverbs.so.1 is not in /nowhere; build it with"), "{text}");
    let half = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("half-a-library");
    fs::create_dir_all(&half).unwrap();
    fs::write(half.join("libibverbs.so.1"), "").unwrap();
    let text = refused(&["run", "--library", half.to_str().unwrap(), "--", "true"]);
    assert!(text.contains("librdmacm.so.1 is not in ") && text.contains("build it with"), "{text}");
}

#[test]
fn env_prints_exports_that_a_shell_takes() {
    let library = library();
    let mut command = urxe(&["env", "--library", library.to_str().unwrap(), "--loss", "1%"]);
    let text = out(&command.env_remove("LD_LIBRARY_PATH").output().unwrap());
    let shell = format!("{text}\necho $LD_LIBRARY_PATH:$URXE_LOSS");
    let output = Command::new("sh").args(["-c", &shell]).output().unwrap();
    let wanted = format!("{}:1%\n", library.canonicalize().unwrap().display());
    assert_eq!(out(&output), wanted, "{text}");
}

/// Whether the host lets us make mounts of our own, as root or in a user namespace.
fn has_namespaces() -> bool {
    ["-m", "-rm"].iter().any(|flags| {
        let tried = Command::new("unshare").args([flags, "true"]).output();
        tried.is_ok_and(|output| output.status.success())
    })
}

/// What a program sees of a device's files, and who it is.
const LOOK: &str = "test -c /dev/infiniband/uverbs0 && echo x > /dev/infiniband/uverbs0 && \
                    cat /sys/class/infiniband/urxe0/ports/1/gid_attrs/types/0 && echo $URXE_WC_SL && \
                    test -c /dev/null && test -d /sys/class/net/lo/ && id -u";

fn me() -> String {
    out(&Command::new("id").arg("-u").output().unwrap())
}

/// Where the host lets us make no namespaces, that is said.
#[test]
fn files_of_a_device_are_served_or_it_is_said_why_not() {
    for flags in [&["--devfs"][..], &["--devfs", "--report"]] {
        let output = run(flags, &["sh", "-c", LOOK]).output().unwrap();
        if has_namespaces() {
            assert_eq!(out(&output), format!("RoCE v2\n10\n{}", me()), "{}", err(&output));
        } else {
            assert_eq!(output.status.code(), Some(2));
            assert!(err(&output).contains("it takes root, or user namespaces"), "{}", err(&output));
        }
    }
    assert!(!std::path::Path::new("/dev/infiniband/uverbs0").exists(), "seen outside");
}

/// An MPI launcher, as far as its name goes.
fn launcher(script: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("launchers");
    fs::create_dir_all(&directory).unwrap();
    // Made once and never written to again: it may be running.
    let name = directory.join("mpirun-of-tests");
    let new = directory.join(format!("new-{}", std::process::id()));
    if !name.exists() {
        fs::write(&new, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(&new, &name).unwrap();
    }
    name
}

/// A user namespace that is made and then cannot be set up, since /proc is not to be written to:
/// `auto` runs the program as it would without, `on` says why in a line.
#[test]
fn a_namespace_that_is_half_made_runs_no_program() {
    // Root without the right to make mounts, which a user namespace would give.
    let inside = "mount -o remount,ro,bind /proc 2> /dev/null || mount -o remount,ro /proc && \
                  exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin -- \"$@\"";
    let within = |command: Command| {
        let mut all = Command::new("unshare");
        all.args(["-m", "sh", "-c", inside, "sh"]).arg(command.get_program());
        all.args(command.get_args());
        crate::program::plain(&mut all);
        all.output().unwrap()
    };
    let namespace = "readlink /proc/self/ns/user; echo ${URXE_WC_SL-none}";
    let mut plain = Command::new("sh");
    plain.args(["-c", namespace]);
    let outside = within(plain);
    if !outside.status.success() {
        assert!(!has_namespaces() || me() != "0\n", "{}", err(&outside));
        return;
    }
    let program = launcher(namespace);
    let program = program.to_str().unwrap();
    let output = within(run(&[], &[program]));
    assert_eq!(out(&output), out(&outside), "{}", err(&output));
    assert!(output.status.success());
    assert_eq!(err(&output).lines().count(), 1, "{}", err(&output));
    assert!(err(&output).starts_with("no files of a device are served: /proc/self/setgroups:"));
    let output = within(run(&["--devfs"], &[program]));
    assert_eq!((output.status.code(), out(&output)), (Some(2), String::new()));
    assert_eq!(err(&output).lines().count(), 1, "{}", err(&output));
    assert!(err(&output).starts_with("error: /proc/self/setgroups:"), "{}", err(&output));
}
