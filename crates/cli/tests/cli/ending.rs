//! SIGINT and SIGTERM: each command ends with a line about it and 128 + the signal.

use std::fs;
use std::io::Write;
use std::path::Path;

use nix::sys::signal::Signal::{self, SIGINT, SIGTERM};

use crate::made::{ethernet, packet, sealed};
use crate::program::{Running, file, out, run, urxe};
use urxe_wire::Ext;

/// What a command that is under way ends with once a signal comes; its output and errors.
fn ended(command: Running, signal: Signal) -> (String, String) {
    command.catches_signals().signal(signal);
    let (code, text, errors) = command.end();
    assert_eq!(code, Some(128 + signal as i32), "{text}{errors}");
    (text, errors)
}

/// The number in `before N after`.
fn number(text: &str, before: &str, after: &str) -> u64 {
    let inner = text.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    inner.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn the_demo_writes_no_half_of_a_page() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo-ended");
    // A datagram that never comes is waited for: it is still under way.
    let args = ["demo", "--loss", "100%", "--out", dir.to_str().unwrap()];
    let (_, errors) = ended(Running::start(&mut urxe(&args)), SIGINT);
    let done = number(&errors, "ended by SIGINT after ", " of 11 steps; no file is written\n");
    assert!(done < 11);
    assert!(!dir.exists());
}

#[test]
fn a_pingpong_that_waits_for_its_client() {
    let server = Running::start(&mut urxe(&["pingpong", "rc", "--tcp-port", "0"]));
    let (_, errors) = ended(server, SIGTERM);
    assert!(errors.ends_with("\nended by SIGTERM\n"), "{errors}");
}

#[test]
fn a_pingpong_whose_server_says_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let args = ["pingpong", "rc", "127.0.0.1", "--timeout", "999", "--tcp-port", &port];
    let client = Running::start(&mut urxe(&args));
    let _silent = listener.accept().unwrap();
    let (_, errors) = ended(client, SIGINT);
    assert_eq!(errors, "ended by SIGINT\n");
}

/// Two processes in the middle of a game: each packet that was seen is in the capture.
#[test]
fn a_game_ends_and_its_capture_is_whole() {
    for events in [&[][..], &["--events"]] {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ended.pcapng");
        let common = ["-n", "4294967295", "--timeout", "999"];
        let mut server = urxe(&["pingpong", "rc", "--tcp-port", "0"]);
        let server = Running::start(server.args(common).args(events));
        let port = listening(&server);
        let mut client = urxe(&["pingpong", "rc", "127.0.0.1", "--tcp-port", &port]);
        let client = client.args(common).args(events).arg("--trace").arg("--pcap").arg(&path);
        let mut client = Running::start(client);
        assert!(client.line().contains("local address") && client.line().contains("remote"));
        let (_, errors) = ended(client, SIGTERM);
        let (trace, word) = errors.trim_end().rsplit_once('\n').unwrap_or(("", &errors));
        number(word.trim_end(), "ended by SIGTERM after ", " of 4294967295 exchanges");
        let dissected = run(&["dissect", "--json", "--strict", path.to_str().unwrap()]);
        assert_eq!(dissected.status.code(), Some(0));
        assert_eq!(out(&dissected).lines().count(), trace.lines().count(), "{events:?}");
        let (_, errors) = ended(server, SIGINT);
        let word = errors.lines().last().unwrap();
        number(word, "ended by SIGINT after ", " of 4294967295 exchanges");
    }
}

/// The TCP port that a process listens on.
pub(crate) fn listening(server: &Running) -> String {
    let table = format!("/proc/{}/net/tcp6", server.id());
    let mine = |line: &&str| {
        let inode = line.split_whitespace().nth(9).unwrap_or_default();
        let wanted = format!("socket:[{inode}]");
        let fds = fs::read_dir(format!("/proc/{}/fd", server.id())).into_iter().flatten().flatten();
        line.contains(" 0A ")
            && fds.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|to| to == Path::new(&wanted))
    };
    loop {
        let text = fs::read_to_string(&table).unwrap();
        if let Some(line) = text.lines().find(mine) {
            let hex = line.split_whitespace().nth(1).and_then(|a| a.rsplit_once(':')).unwrap().1;
            return u16::from_str_radix(hex, 16).unwrap().to_string();
        }
        std::thread::yield_now();
    }
}

/// Nobody connects, or nobody answers, for as long as it may take.
#[test]
fn both_sides_of_a_connection_that_does_not_come() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ended-cm.pcapng");
    let asks = ["connect", "127.250.250.250:1", "--answer-in", "1s"];
    for side in [&["listen", "0"][..], &asks] {
        let mut cm = urxe(&["cm"]);
        let mut cm = Running::start(cm.args(side).args(["--json", "--pcap"]).arg(&path));
        let connects = side[0] == "connect";
        // It says which device it has, then that it asks; when it asks again, the first has left.
        for _ in 0..if connects { 3 } else { 1 } {
            assert!(!cm.line().is_empty());
        }
        let (_, errors) = ended(cm, SIGINT);
        assert_eq!(errors, "ended by SIGINT\n");
        let dissected = run(&["dissect", "--json", "--strict", path.to_str().unwrap()]);
        assert_eq!(dissected.status.code(), Some(0));
        assert_eq!(out(&dissected).contains("UD_SEND_ONLY"), connects);
    }
}

/// What was read until then is shown and summed up.
#[test]
fn captures_that_are_still_running() {
    let one = ethernet(&[sealed(packet("RC_SEND_ONLY", 1, Ext::NONE, b"live"))]);
    let mut dissect = Running::start(&mut urxe(&["dissect", "-"]));
    dissect.stdin.as_mut().unwrap().write_all(&one).unwrap();
    assert!(dissect.line().contains("RC_SEND_ONLY"));
    let (_, errors) = ended(dissect, SIGINT);
    assert_eq!(errors, "1 frame, 1 RoCEv2 packet, its ICRC right\nended by SIGINT\n");
    for command in ["dissect", "lint"] {
        let (text, errors) = ended(Running::start(&mut urxe(&[command, "-"])), SIGTERM);
        assert_eq!((text.as_str(), errors.as_str()), ("", "ended by SIGTERM\n"), "{command}");
    }
}

#[test]
fn what_has_nothing_to_close_ends_where_it_is() {
    let args = ["sim", "--seeds", "1000000000", "--json"];
    let (_, errors) = ended(Running::start(&mut urxe(&args)), SIGINT);
    number(&errors, "ended by SIGINT after ", " of 1000000000 seeds, 0 of which failed\n");
    let args = ["bench", "--in-process", "--time", "600s"];
    let (_, errors) = ended(Running::start(&mut urxe(&args)), SIGTERM);
    assert_eq!(errors, "ended by SIGTERM\n");
}

/// Its other process ends, too.
#[test]
fn a_bench_ends_in_both_processes() {
    let bench = Running::start(&mut urxe(&["bench", "latency", "--json", "--time", "600s"]));
    let path = format!("/proc/{0}/task/{0}/children", bench.id());
    let child = loop {
        let children = fs::read_to_string(&path).unwrap();
        if let Some(child) = children.split_whitespace().next() {
            break format!("/proc/{child}");
        }
        std::thread::yield_now();
    };
    let (_, errors) = ended(bench, SIGINT);
    assert_eq!(errors, "ended by SIGINT\n");
    while Path::new(&child).exists() {
        std::thread::yield_now();
    }
}

/// Who cannot come to an end, as nobody takes what it writes, ends at the second signal.
#[test]
fn a_second_signal_ends_at_once() {
    let many = vec![sealed(packet("RC_SEND_ONLY", 1, Ext::NONE, b"many")); 20_000];
    let path = file("unread.pcap", &ethernet(&many));
    let mut dissect = Running::start(&mut urxe(&["dissect", "-v", path.to_str().unwrap()]));
    // It has begun to write.
    assert!(!dissect.line().is_empty());
    dissect.signal(SIGINT);
    dissect.signal(SIGTERM);
    let status = dissect.wait();
    assert!(matches!(status, Some(130 | 143)), "{status:?}");
}
