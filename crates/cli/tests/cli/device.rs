//! Commands that look at devices and the host, and the refusals that all of them share.

use std::net::UdpSocket;
use std::process::{Command, Output};

use serde_json::Value;

use crate::program::{err, one_line, out, plain, refused, run, urxe, with_loopback_mtu};

/// A loopback address of this process, so that runs beside each other do not meet.
fn own(last: u8) -> String {
    let [.., c, d] = std::process::id().to_be_bytes();
    format!("127.{}.{}.{last}", c.clamp(1, 254), d.clamp(1, 254))
}

fn objects(output: &Output) -> Vec<Value> {
    out(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn devinfo_shows_the_device_that_the_flags_ask_for() {
    let own = own(1);
    let output = run(&["devinfo", "--addr", &own, "--profile", "rxe", "--gso", "on"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    insta::assert_snapshot!("devinfo", out(&output).replace(&own, "OWN"));
    let args = ["devinfo", "--json", "--mtu=512", "--window=64", "--dup=1%"];
    let output = run(&args);
    let all = objects(&output);
    let device = all.first().unwrap();
    assert_eq!((&device["path_mtu"], &device["window"]), (&512.into(), &64.into()));
    assert_eq!((&device["faults"], &device["port"]), (&"duplicate=1%".into(), &"udp".into()));
    let address = device["address"].as_str().unwrap();
    assert_eq!(device["gids"][0], format!("::ffff:{address}"));
    assert_eq!(device["limits"]["max_sge"], 32);
}

#[test]
fn variables_are_settings_and_flags_win() {
    let mut command = urxe(&["devinfo", "--json", "--profile", "rxe"]);
    command.env("URXE_MTU", "256").env("URXE_PROFILE", "connectx");
    let all = objects(&command.output().unwrap());
    assert_eq!((&all[0]["path_mtu"], &all[0]["profile"]), (&256.into(), &"rxe".into()));
    let output = urxe(&["devinfo"]).env("URXE_MTU", "300").output().unwrap();
    let wanted = "error: URXE_MTU=300: wanted 256, 512, 1024, 2048 or 4096";
    assert_eq!(one_line(&output, "URXE_MTU"), wanted);
    let output = run(&["devinfo", "--mtu", "300"]);
    let wanted = "error: --mtu=300: wanted 256, 512, 1024, 2048 or 4096";
    assert_eq!(one_line(&output, "--mtu"), wanted);
    let line = one_line(&run(&["devinfo", "--udp6-checksum", "so"]), "--udp6-checksum");
    assert!(line.starts_with("error: --udp6-checksum=so: wanted on or off"), "{line}");
}

#[test]
fn ports_lists_loopback_with_what_it_carries() {
    let all = objects(&run(&["ports", "--json"]));
    let lo = all.iter().find(|row| row["address"] == "127.0.0.1").unwrap();
    assert_eq!((&lo["interface"], &lo["up"]), (&"lo".into(), &true.into()));
    assert_eq!(lo["gid"], "::ffff:127.0.0.1");
    let text = out(&run(&["ports"]));
    assert_eq!(text.lines().count(), all.len() + 1);
    if let Some(output) = with_loopback_mtu(1500, &["ports", "--json"]) {
        let lo = &objects(&output)[0];
        assert_eq!(
            (&lo["mtu"], &lo["path_mtu"], &lo["index"]),
            (&1500.into(), &1024.into(), &1.into())
        );
        assert_eq!((&lo["udp"], &lo["raw"]), (&"free".into(), &"yes".into()));
    }
}

#[test]
fn the_doctor_finds_that_urxe_works_on_this_host() {
    let own = own(2);
    let output = run(&["doctor", "--json", "--addr", &own]);
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));
    let all = objects(&output);
    let names: Vec<_> = all.iter().filter_map(|check| check["check"].as_str()).collect();
    let wanted = [
        "settings",
        "address",
        "UDP port 4791",
        "rdma_rxe",
        "RDMA hardware",
        "MTU",
        "net.core.rmem_max",
        "net.core.wmem_max",
        "IPv6",
        "CAP_NET_RAW",
        "file descriptors",
        "send offload",
        "receive offload",
        "self-test",
    ];
    assert_eq!(names, wanted);
    assert_eq!(all[1]["found"], format!("{own} on lo, udp port: opened"));
    assert!(all[13]["found"].as_str().unwrap().ends_with("all bytes right"), "{}", all[13]);
    assert_eq!((&all[14]["ok"], &all[14]["problems"]), (&true.into(), &0.into()));
}

#[test]
fn the_doctor_names_who_is_in_the_way() {
    let own = own(3);
    let _taken = UdpSocket::bind((own.as_str(), 4791)).unwrap();
    let output = run(&["doctor", "--addr", &own]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let text = out(&output);
    assert!(
        text.contains(&format!("problem  address            UDP port 4791 of {own} is taken")),
        "{text}"
    );
    let us = format!("{own} by {}, process {}", comm(), std::process::id());
    assert!(text.contains(&us), "{us}: {text}");
    assert!(text.contains("urxe cannot work here as it is: 1 problem, "), "{text}");
}

/// What the kernel calls this process.
fn comm() -> String {
    std::fs::read_to_string("/proc/self/comm").unwrap().trim().to_owned()
}

#[test]
fn the_doctor_tells_of_variables_it_cannot_read_and_of_links_too_small() {
    let output = urxe(&["doctor"]).env("URXE_TRACE", "yes").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = out(&output);
    assert!(text.contains("URXE_TRACE=yes: wanted on or off"), "{text}");
    if let Some(output) = with_loopback_mtu(600, &["doctor"]) {
        assert_eq!(output.status.code(), Some(0), "{}", out(&output));
        assert!(out(&output).contains("ip link set lo mtu 1112, or more"), "{}", out(&output));
    }
    if let Some(output) = with_loopback_mtu(300, &["doctor"]) {
        assert_eq!(output.status.code(), Some(1), "{}", out(&output));
        assert!(out(&output).contains("the smallest RoCE path MTU needs 344"), "{}", out(&output));
    }
}

/// A variable that cannot be read is a problem of its own; the device looked at is the one asked
/// for all the same.
#[test]
fn the_doctor_looks_at_the_device_asked_for_though_a_variable_is_bad() {
    let own = own(5);
    let mut command = urxe(&["doctor", "--json", "--addr", &own]);
    let output = command.env("URXE_MTU", "5").env("URXE_WINDOW", "64").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let all = objects(&output);
    assert!(all[0]["found"].as_str().unwrap().contains("URXE_MTU=5"), "{}", all[0]);
    assert_eq!(all[1]["found"], format!("{own} on lo, udp port: opened"));
    assert!(all[13]["found"].as_str().unwrap().contains(&own), "{}", all[13]);
}

#[test]
fn a_trace_is_of_both_ways_and_on_the_standard_error() {
    let output = run(&["doctor", "--trace", "--mtu", "4096"]);
    assert!(!out(&output).contains("RC_SEND"), "{}", out(&output));
    let text = err(&output);
    let lines = |way: &str, opcode: &str| {
        text.lines().filter(|l| l.starts_with(way) && l.contains(opcode)).count()
    };
    // More if some had to be sent again.
    assert!(lines("out", "RC_SEND_MIDDLE") >= 14, "{text}");
    assert!(lines("in ", "RC_SEND_MIDDLE") >= 14, "{text}");
    assert!(lines("in ", "RC_ACKNOWLEDGE") >= 1, "{text}");
    let mut command = urxe(&["doctor"]);
    let by_variable = command.env("URXE_TRACE", "on").output().unwrap();
    assert!(err(&by_variable).contains("RC_SEND_LAST"), "{}", err(&by_variable));
}

#[test]
fn the_log_shows_what_its_variable_asks_for() {
    let logged = |filter: &str| {
        let mut command = urxe(&["devinfo"]);
        err(&command.env("URXE_LOG", filter).output().unwrap())
    };
    assert!(logged("debug").contains("DEBUG urxe_net::udp: port open"));
    assert!(logged("urxe_net=debug").contains("port open"));
    assert_eq!(logged("urxe_engine=trace,warn"), "");
    assert_eq!(err(&run(&["devinfo"])), "");
    let output = urxe(&["devinfo"]).env("URXE_LOG", "a=b=c").output().unwrap();
    let line = one_line(&output, "URXE_LOG");
    assert!(line.contains("URXE_LOG=a=b=c") && line.contains("wanted off, error, warn"), "{line}");
}

#[test]
fn a_port_that_is_taken_and_an_address_that_is_not_ours() {
    let own = own(4);
    let _taken = UdpSocket::bind((own.as_str(), 4791)).unwrap();
    for command in [&["devinfo"][..], &["pingpong", "rc"], &["demo"]] {
        let line = refused(&[command, &["--addr", &own]].concat());
        assert!(line.contains(&format!("UDP port 4791 of {own} is taken")), "{line}");
        assert!(line.contains("stop it, or give another address"), "{line}");
        let line = refused(&[command, &["--addr", "192.0.2.77"]].concat());
        assert!(line.contains("192.0.2.77 is no address of this host; `ip address`"), "{line}");
    }
    let line = refused(&["devinfo", "--port", "raw:nosuch0"]);
    assert!(line.contains("no such interface") && line.contains("`urxe ports` lists"), "{line}");
}

#[test]
fn values_that_cannot_be_read_are_told_with_what_is_wanted() {
    let cases = [
        ("--mtu=1500", "256, 512, 1024, 2048 or 4096"),
        ("--profile=mlx5", "wanted strict, rxe or connectx"),
        ("--icrc=maybe", "wanted strict, solve or off"),
        ("--gso=yes", "wanted on, off or auto"),
        ("--window=3", "wanted 4 to 4194304"),
        ("--port=tcp", "wanted udp, or raw: and an interface"),
        ("--loss=much", "much"),
        ("--rate=fast", "fast"),
        ("--jitter=2", "2"),
        ("--faults=los=1%", "los"),
    ];
    for (flag, wanted) in cases {
        let line = refused(&["devinfo", flag]);
        assert!(line.contains(wanted), "{flag}: {line}");
    }
}

#[test]
fn a_path_mtu_that_the_link_does_not_carry() {
    let args = ["devinfo", "--addr", "127.0.0.1", "--mtu", "4096"];
    if let Some(output) = with_loopback_mtu(1500, &args) {
        let line = one_line(&output, "MTU");
        assert!(line.contains("path MTU 4096 does not fit lo, whose MTU is 1500"), "{line}");
        assert!(line.contains("give --mtu 1024, or raise the interface's MTU"), "{line}");
    }
}

#[test]
fn no_rights_for_a_raw_port() {
    // Root keeps no capability that is outside the bounding set; who has none needs no help.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    let powerless = u64::from_str_radix(effective.trim(), 16).unwrap() == 0;
    let program = env!("CARGO_BIN_EXE_urxe");
    let mut command = if powerless {
        Command::new(program)
    } else {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-all", "--inh-caps=-all", program]);
        command
    };
    command.args(["devinfo", "--port", "raw:lo"]);
    plain(&mut command);
    let line = one_line(&command.output().unwrap(), "raw");
    assert!(line.contains("a raw port on lo needs the right CAP_NET_RAW: run as root"), "{line}");
    assert!(line.contains("or use a udp port, which needs none"), "{line}");
}

#[test]
fn a_capture_that_cannot_be_written() {
    for path in ["/no/such/folder/a.pcapng", "/proc", "/dev/full"] {
        let line = refused(&["devinfo", "--pcap", path]);
        assert!(line.contains(path) && line.contains("give a file that can be written"), "{line}");
    }
}
