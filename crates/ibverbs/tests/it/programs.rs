//! Debian's programs as they are, where they are installed (packages ibverbs-utils and valgrind);
//! with `URXE_REQUIRE_PROGRAMS=1` they must be.

use std::process::{Command, Output, Stdio};

use super::library::directory;

/// Runs a program on the library; `None` where it is not installed and need not be.
fn run(program: &str, args: &[&str], settings: &[(&str, &str)]) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(args).env("LD_LIBRARY_PATH", directory()).envs(settings.iter().copied());
    match command.output() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let required = std::env::var("URXE_REQUIRE_PROGRAMS").is_ok_and(|v| v == "1");
            assert!(!required, "URXE_REQUIRE_PROGRAMS=1, but {program} is not installed");
            eprintln!("skipped: {program} is not installed");
            None
        }
        done => Some(done.unwrap()),
    }
}

#[test]
fn ibv_devices_lists_the_device() {
    let Some(out) = run("ibv_devices", &[], &[]) else { return };
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success() && text.contains("urxe0"), "{text}");
    assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn ibv_devinfo_shows_an_active_port_with_a_gid_of_loopback() {
    let Some(out) = run("ibv_devinfo", &["-v"], &[]) else { return };
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{text}");
    for wanted in ["PORT_ACTIVE (4)", "link_layer:\t\tEthernet", "::ffff:127.0.0.", "RoCE v2"] {
        assert!(text.contains(wanted), "no {wanted} in {text}");
    }
}

#[test]
fn a_setting_that_is_wrong_is_told_on_the_standard_error() {
    let Some(out) = run("ibv_devinfo", &[], &[("URXE_MTU", "1500")]) else { return };
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success());
    assert!(text.contains("MTU=1500: wanted 256, 512, 1024, 2048 or 4096"), "{text}");
}

const VALGRIND: [&str; 6] = [
    "-q",
    "--error-exitcode=99",
    "--fair-sched=yes",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--errors-for-leak-kinds=definite",
];

fn sound(out: &Output) {
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{}: {text}", out.status);
    assert!(!text.contains("=="), "{text}");
}

#[test]
fn valgrind_finds_nothing_in_what_the_library_does_for_programs() {
    let mut args = VALGRIND.to_vec();
    args.extend(["ibv_devinfo", "-v"]);
    let Some(out) = run("valgrind", &args, &[]) else { return };
    sound(&out);
    for game in [&["ibv_rc_pingpong", "-e"][..], &["ibv_ud_pingpong"], &["ibv_xsrq_pingpong"]] {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port = port.to_string();
        let mut args = VALGRIND.to_vec();
        args.extend(game);
        args.extend(["-g", "0", "-n", "5", "-p", &port]);
        let mut command = Command::new("valgrind");
        command.args(&args).env("LD_LIBRARY_PATH", directory());
        let mut server = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        args.push("127.0.0.1");
        let client = loop {
            let client = run("valgrind", &args, &[]).unwrap();
            // It is tried again until the server listens.
            if !String::from_utf8_lossy(&client.stderr).contains("Couldn't connect") {
                break client;
            }
            let ended = server.try_wait().unwrap();
            assert!(ended.is_none(), "the server ended before it listened: {ended:?}");
        };
        sound(&client);
        sound(&server.wait_with_output().unwrap());
    }
}
