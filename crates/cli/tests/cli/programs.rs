//! `urxe run` and `urxe env`, with shells as the program: what needs no RDMA.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;

use crate::program::{err, out, refused, urxe};

/// A directory in which a file has the library's name.
pub(crate) fn library() -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("a-library");
    fs::create_dir_all(&directory).unwrap();
    // Never written to: a shell that is starting may be looking at it. The loader passes over what
    // no program asks for.
    let name = directory.join("libibverbs.so.1");
    let _ = fs::OpenOptions::new().create(true).append(true).open(name).unwrap();
    directory
}

fn run(flags: &[&str], program: &[&str]) -> std::process::Command {
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
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
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
}

#[test]
fn env_prints_exports_that_a_shell_takes() {
    let library = library();
    let mut command = urxe(&["env", "--library", library.to_str().unwrap(), "--loss", "1%"]);
    let text = out(&command.env_remove("LD_LIBRARY_PATH").output().unwrap());
    let shell = format!("{text}\necho $LD_LIBRARY_PATH:$URXE_LOSS");
    let output = std::process::Command::new("sh").args(["-c", &shell]).output().unwrap();
    let wanted = format!("{}:1%\n", library.canonicalize().unwrap().display());
    assert_eq!(out(&output), wanted, "{text}");
}

/// Where the host lets us make no namespaces, that is said.
#[test]
fn files_of_a_device_are_served_or_it_is_said_why_not() {
    let look = "test -c /dev/infiniband/uverbs0 && echo x > /dev/infiniband/uverbs0 && \
                cat /sys/class/infiniband/urxe0/ports/1/gid_attrs/types/0 && echo $URXE_WC_SL && \
                test -c /dev/null && test -d /sys/class/net/lo/ && id -u";
    let output = run(&["--devfs"], &["sh", "-c", look]).output().unwrap();
    let me = std::process::Command::new("id").arg("-u").output().unwrap();
    if output.status.code() == Some(2) {
        assert!(err(&output).contains("it takes root, or user namespaces"), "{}", err(&output));
    } else {
        assert_eq!(out(&output), format!("RoCE v2\n10\n{}", out(&me)), "{}", err(&output));
    }
    assert!(!std::path::Path::new("/dev/infiniband/uverbs0").exists(), "seen outside");
}
