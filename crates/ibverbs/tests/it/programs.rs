//! Debian's programs as they are, where they are installed (package ibverbs-utils); with
//! `URXE_REQUIRE_PROGRAMS=1` they must be.

use std::process::{Command, Output};

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
