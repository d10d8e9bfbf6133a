//! `urxe sim` as a program: what it says, and what it ends with.

use std::path::PathBuf;
use std::process::{Command, Output};

use nix::sys::signal::Signal::SIGTERM;

use crate::program::{Running, urxe};

fn sim(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urxe"));
    command.arg("sim").args(args).current_dir(env!("CARGO_TARGET_TMPDIR")).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(args: &[&str]) -> String {
    let output = sim(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn seeds_that_pass_end_with_0_and_the_sum() {
    let output = sim(&["--seeds", "5", "--loss", "5%", "--corrupt", "0.05"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(out(&output).lines().last(), Some("5 seeds, 0 failures"));
}

#[test]
fn jobs_change_nothing() {
    let json = |jobs| out(&sim(&["--seeds", "6", "--dup", "5%", "--json", "--jobs", jobs]));
    let lines = json("1");
    assert_eq!(lines, json("3"));
    let objects: Vec<serde_json::Value> =
        lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(objects.len(), 7);
    assert_eq!((&objects[3]["seed"], &objects[3]["ok"]), (&3.into(), &true.into()));
    assert_eq!((&objects[6]["seeds"], &objects[6]["failures"]), (&6.into(), &0.into()));
}

/// Who reads along has each seed once it is done, in order, long before the last.
#[test]
fn a_line_is_there_as_soon_as_its_seed_is_done() {
    let args = ["sim", "--seeds", "1000000000", "--json", "--jobs", "3"];
    let mut running = Running::start(&mut urxe(&args));
    for seed in 0..20 {
        let line: serde_json::Value = serde_json::from_str(&running.line()).unwrap();
        assert_eq!(line["seed"], seed, "{line}");
    }
    running.signal(SIGTERM);
    assert_eq!(running.end().0, Some(143));
}

/// Several jobs count past the last seed, and there is none behind it.
#[test]
fn the_last_seed_there_is() {
    let output = sim(&["--seeds", "1", "--first-seed", "18446744073709551614", "--jobs", "3"]);
    assert_eq!(out(&output).lines().last(), Some("1 seeds, 0 failures"));
}

/// Meanwhile a queue pair that shares no link with it asks again every millisecond.
#[test]
fn the_slowest_network_comes_to_rest() {
    let slow = ["--topology", "star", "--rate", "8400k", "--loss", "5%"];
    let output = sim(&[&slow[..], &["--seeds", "1", "--first-seed", "55"]].concat());
    assert_eq!(out(&output).lines().last(), Some("1 seeds, 0 failures"));
}

/// rxe retries for ever with `retry_cnt` 7: cut off from its peer it never comes to rest.
const ENDLESS: &[&str] = &[
    "--nodes",
    "2",
    "--qps",
    "1",
    "--ops",
    "4",
    "--profile",
    "rxe",
    "--no-trouble",
    "--partition",
    "5000s",
];

#[test]
fn a_failure_is_shrunk_shown_and_can_be_run_again() {
    let fails = |seed: &u64| {
        let seed = seed.to_string();
        let args = [ENDLESS, &["--seeds", "1", "--first-seed", &seed]].concat();
        let output = sim(&args);
        (output.status.code() == Some(1)).then(|| out(&output))
    };
    let report = (0..20).find_map(|seed| fails(&seed)).unwrap();
    assert!(report.contains("failed: a run comes to rest: it did not within"), "{report}");
    assert!(report.contains("it takes 1 of "), "{report}");
    assert_eq!(report.lines().last(), Some("1 seeds, 1 failures"));
    let line = |start: &str| {
        let found = report.lines().find_map(|l| l.trim().strip_prefix(start));
        found.unwrap_or_else(|| panic!("no {start} in {report}")).to_owned()
    };
    // The command as it stands finds the same failure.
    let replay = line("replay: urxe sim ");
    assert!(replay.contains(" --only-ops "), "{replay}");
    let again = sim(&replay.split(' ').collect::<Vec<_>>());
    assert_eq!(again.status.code(), Some(1));
    // All but the sums at the end, which are the whole run's.
    let shown = |text: &str| text.split("\n  replay: ").next().unwrap().to_owned();
    assert_eq!(shown(&out(&again)), shown(&report));
    // The capture is one that dissect reads.
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(line("its packets: "));
    let dissect = Command::new(env!("CARGO_BIN_EXE_urxe"))
        .args(["dissect", "--strict", file.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(dissect.status.code(), Some(0));
    assert!(!dissect.stdout.is_empty());
}

#[test]
fn a_capture_of_a_good_run_is_written_if_asked_for() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("good.pcap");
    let name = file.to_str().unwrap();
    assert_eq!(sim(&["--seeds", "1", "--pcap", name]).status.code(), Some(0));
    let bytes = std::fs::read(&file).unwrap();
    assert_eq!(bytes[..4], 0xa1b2_3c4d_u32.to_le_bytes());
    assert!(bytes.len() > 1000);
}

#[test]
fn options_that_do_not_fit_are_refused_with_what_to_write() {
    for (args, wanted) in [
        (&["--loss", "5"][..], "did you mean 5%?"),
        (&["--only-ops", "3"], "add --seeds 1"),
        (&["--ecn", "20K"], "add --rate"),
        (&["--delay", "5"], "write a number and a unit, such as 5us"),
        (&["--delay", "1001ms"], "could take 1.00105s"),
        (&["--jitter", "1000s"], "it can take 1s at most: lower them"),
        (&["--hold", "9999999s"], "--delay, --jitter, --hold, and --queue at --rate together"),
        (&["--rate", "1kbit"], "1s at most"),
        (&["--fault", "delay=2s"], "held back by 1s at most"),
        (&["--burst", "1%"], "write two or three shares"),
        (&["--mtu", "1500"], "256, 512, 1024, 2048 or 4096"),
        (&["--profile", "mlx4"], "strict, rxe or connectx"),
        (&["--fault", "lose"], "drop, dup, corrupt or delay=TIME"),
        (&["--fault", "drop:opcode=SEND"], "such as RC_SEND_ONLY"),
        (&["--fault", "drop:psn=16777216"], "0 to 16777215"),
        (&["--seeds", "0"], "1.."),
        (&["--seeds", "2", "--first-seed", "18446744073709551615"], "too many"),
    ] {
        let said = refused(args);
        assert!(said.contains(wanted), "{args:?}: {said}");
    }
}
