//! `urxe demo` on other links than loopback's UDP sockets with the usual MTU, and as anyone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::demo::data;
use crate::program::{err, in_namespace, one_line, out, plain, run, tool, with_loopback_mtu};

/// A directory of this test.
fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("demo-{name}"))
}

/// Looks at a demo that has run: all passed, both sent, and no packet is fuller than the MTU.
fn passed(output: &Output, dir: &Path, mtu: u64) -> Value {
    let text = out(output);
    let (code, errors) = (output.status.code(), err(output));
    assert_eq!(code, Some(0), "{}: {text}{errors}", dir.display());
    assert!(text.ends_with("11 passed, 0 failed\n"), "{}: {text}", dir.display());
    let data = data(&fs::read_to_string(dir.join("demo.html")).unwrap());
    let packets = data["packets"].as_array().unwrap();
    for who in ["alice", "bob"] {
        let sent = packets.iter().filter(|p| p["from"] == who).count();
        assert!(sent > 20, "{}: {who} sent {sent} of {}", dir.display(), packets.len());
    }
    let fullest = packets.iter().filter_map(|p| p["len"].as_u64()).max();
    assert_eq!(fullest, Some(mtu), "{}", dir.display());
    assert_eq!(data["mtu"], mtu);
    data
}

/// Runs it with these flags, in a namespace whose loopback has this MTU if one is given.
fn demo(name: &str, link_mtu: Option<u32>, flags: &[&str]) -> Option<(Output, PathBuf)> {
    let dir = directory(name);
    let args = [&["demo", "--packets", "1", "--out", dir.to_str().unwrap()], flags].concat();
    let output = match link_mtu {
        None => run(&args),
        Some(mtu) => with_loopback_mtu(mtu, &args)?,
    };
    Some((output, dir))
}

#[test]
fn with_every_mtu() {
    for mtu in [256, 512, 1024, 2048, 4096] {
        let text = mtu.to_string();
        let (output, dir) = demo(&text, None, &["--mtu", &text]).unwrap();
        passed(&output, &dir, mtu);
    }
}

/// What the link carries counts where nothing is asked for.
#[test]
fn on_a_link_with_a_small_mtu() {
    for (link, mtu) in [(400, 256), (600, 512), (1500, 1024), (9000, 1024)] {
        let Some((output, dir)) = demo(&format!("link-{link}"), Some(link), &[]) else { return };
        passed(&output, &dir, mtu);
    }
}

/// All four devices have one address, and packets are told apart all the same.
#[test]
fn on_one_address() {
    for (name, address) in [("v6", "::1"), ("v4", "127.0.0.1"), ("v4-other", "127.9.8.7")] {
        let Some((output, dir)) = demo(name, Some(65536), &["--addr", address]) else { return };
        let data = passed(&output, &dir, 1024);
        let both = serde_json::json!({ "alice": address, "bob": address });
        assert_eq!(data["steps"][0]["addresses"], both);
        assert!(out(&output).contains(&format!("alice and bob share {address}")));
    }
}

#[test]
fn on_packet_sockets() {
    let Some((output, dir)) = demo("raw", Some(65536), &["--port", "raw:lo"]) else { return };
    let data = passed(&output, &dir, 1024);
    let addresses = &data["steps"][0]["addresses"];
    assert_eq!(*addresses, serde_json::json!({ "alice": "127.0.0.1", "bob": "127.0.0.2" }));
}

/// Where four devices have no room, that is said in a line before anything starts.
#[test]
fn where_there_is_no_room_for_four_devices() {
    let refused = |flags: &[&str]| {
        let set_up = "ip link set lo up && ip link add d0 type veth peer name d1 && \
                      ip address add 192.0.2.1/24 dev d0";
        let output = in_namespace(set_up, &[&["demo"], flags].concat())?;
        assert_eq!(out(&output), "", "{flags:?}");
        Some(one_line(&output, &flags.join(" ")))
    };
    for (flags, wanted) in [
        (&["--port", "raw:d0"][..], "give --port raw:lo, or leave --port out"),
        (&["--port", "raw:lo", "--addr", "127.0.0.9"], "leave out --addr 127.0.0.9"),
        (&["--addr", "::1", "--shared", "off"], "leave out --shared off, or --addr ::1"),
        (&["--port", "raw:nosuch0"], "there is no interface nosuch0"),
    ] {
        let Some(line) = refused(flags) else { return };
        assert!(line.contains(wanted), "{flags:?}: {line}");
    }
}

/// A full disk is told of, not taken for success.
#[test]
fn a_file_that_cannot_be_written() {
    let dir = directory("full");
    fs::create_dir_all(&dir).unwrap();
    for name in ["demo.pcapng", "demo.html"] {
        let path = dir.join(name);
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let output = run(&["demo", "--out", dir.to_str().unwrap()]);
        let line = one_line(&output, name);
        assert!(line.contains(&format!("{name}: No space left on device; give")), "{line}");
        fs::remove_file(&path).unwrap();
    }
}

/// A user without any rights runs it, in a directory of his own; Wireshark finds no packet of it
/// malformed.
#[test]
fn as_a_user_without_rights() {
    // Others may not look into the build directory.
    let dir = std::env::temp_dir().join(format!("urxe-demo-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    let program = dir.join("urxe");
    fs::copy(env!("CARGO_BIN_EXE_urxe"), &program).unwrap();
    let root = nix::unistd::geteuid().is_root();
    let mut command = Command::new(if root { Path::new("setpriv") } else { &program });
    if root {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]);
        command.args(["--inh-caps=-all", "--no-new-privs"]).arg(&program);
    }
    plain(&mut command);
    let output = command.arg("demo").current_dir(&dir).output().unwrap();
    passed(&output, &dir, 1024);
    let well_formed = tool("tshark", "URXE_REQUIRE_TSHARK").map(|mut tshark| {
        let fields = ["-T", "fields", "-e", "infiniband.bth.opcode", "-e", "_ws.malformed"];
        let output = tshark.arg("-r").arg(dir.join("demo.pcapng")).args(fields).output().unwrap();
        out(&output)
    });
    let page = data(&fs::read_to_string(dir.join("demo.html")).unwrap());
    fs::remove_dir_all(&dir).unwrap();
    let Some(text) = well_formed else { return };
    assert_eq!(text.lines().count(), page["packets"].as_array().unwrap().len());
    for line in text.lines() {
        assert!(line.trim_end().parse::<u8>().is_ok(), "opcode and nothing malformed: {line}");
    }
}
