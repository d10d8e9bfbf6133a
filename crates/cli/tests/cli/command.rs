//! The `urxe` command as a program: exit codes, messages, streams, pipes.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::made::{ethernet, golden, packet, pcap, sealed};
use crate::program::{err, file, out, run, urxe};
use urxe_wire::Ext;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/captures/rping.pcap");

fn dissect(path: &Path, more: &[&str]) -> Output {
    let mut args = vec!["dissect", path.to_str().unwrap()];
    args.extend(more);
    run(&args)
}

fn fed(args: &[&str], input: &[u8]) -> Output {
    let mut child = urxe(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_good_file_goes_to_stdout_and_the_footer_to_stderr() {
    let output = run(&["dissect", GOLDEN]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(out(&output).lines().count(), 29);
    assert_eq!(err(&output), "29 frames, 29 RoCEv2 packets, all ICRCs right\n");
}

#[test]
fn stdin_is_a_file_too() {
    let output = fed(&["dissect", "-", "--filter", "opcode=*READ*"], &golden("rping"));
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(out(&output).lines().count(), 4);
    let output = fed(&["dissect", "-"], b"no capture");
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).starts_with("error: standard input: no capture file: begins with 6e 6f"));
}

/// A capture that is still running shows each packet as it comes, not when a buffer is full.
#[test]
fn a_pipe_is_shown_as_it_comes() {
    let mut child =
        urxe(&["dissect", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let one = ethernet(&[sealed(packet("RC_SEND_ONLY", 1, Ext::NONE, b"live"))]);
    stdin.write_all(&one).unwrap();
    // The input stays open: this would wait for ever if the line were held back.
    let mut line = [0; 20];
    child.stdout.take().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(&line[..], b"  1  0.000000  10.0.");
    drop(stdin);
    child.wait().unwrap();
}

#[test]
fn files_that_cannot_be_read_end_with_2_and_one_line() {
    let cases: [(&str, &[u8], &str); 4] = [
        ("empty.pcap", b"", "the file is empty, wanted a pcap or pcapng capture"),
        ("text.txt", b"hello, world", "no capture file: begins with 68 65 6c 6c at byte 0"),
        ("zipped.pcap.gz", &[0x1f, 0x8b, 8, 0], "try: gunzip -c FILE | urxe dissect -"),
        ("short.pcap", &golden("rping")[..20], "cut off in the pcap header at byte 0"),
    ];
    for (name, bytes, wanted) in cases {
        let output = dissect(&file(name, bytes), &[]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert_eq!(out(&output), "");
        let text = err(&output);
        assert!(text.starts_with("error: ") && text.contains(name), "{text}");
        assert!(text.contains(wanted), "{text}");
        assert_eq!(text.lines().count(), 1);
    }
    let output = run(&["dissect", "no/such/file.pcap"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        err(&output),
        "error: no/such/file.pcap: No such file or directory; give a pcap or pcapng file\n"
    );
    let output = run(&["dissect", env!("CARGO_MANIFEST_DIR")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("reading failed at byte 0: Is a directory"), "{}", err(&output));
}

#[test]
fn a_cut_file_shows_what_came_before() {
    let whole = golden("rping");
    let output = dissect(&file("cut.pcap", &whole[..whole.len() - 10]), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(out(&output).lines().count(), 28);
    let text = err(&output);
    let (footer, error) = text.split_once('\n').unwrap();
    assert_eq!(footer, "28 frames, 28 RoCEv2 packets, all ICRCs right");
    assert!(error.contains("cut off in a pcap record at byte"), "{error}");
    assert!(error.contains(": got 312 of 322 bytes; what came before is good"), "{error}");
}

#[test]
fn strict_makes_a_fault_an_exit_code() {
    let good = sealed(packet("RC_SEND_ONLY", 1, Ext::NONE, b"abcd"));
    let (mut bad_icrc, mut broken) = (good.clone(), good.clone());
    bad_icrc[54] ^= 1;
    broken[42] = 0x1f;
    let codes = |name: &str, frame: &[u8]| {
        let path = file(name, &ethernet(&[good.clone(), frame.to_vec()]));
        [&[][..], &["--strict"]].map(|more| dissect(&path, more).status.code())
    };
    assert_eq!(codes("good.pcap", &good), [Some(0), Some(0)]);
    assert_eq!(codes("icrc.pcap", &bad_icrc), [Some(0), Some(1)]);
    assert_eq!(codes("broken.pcap", &broken), [Some(0), Some(1)]);
    // A snap length is no fault.
    let len = u32::try_from(good.len()).unwrap();
    let path = file("snap.pcap", &pcap(true, true, 1, &[(&good[..60], len)]));
    assert_eq!(dissect(&path, &["--strict"]).status.code(), Some(0));
}

#[test]
fn bad_filters_are_told_with_the_right_forms() {
    let cases = [
        ("qp", "`qp` has no `=`"),
        ("port=1", "`port` is no key, wanted qp, psn or opcode"),
        ("opcode=RC_SEND_FRIST", "the nearest is RC_SEND_FIRST"),
        ("psn=2000000000", "wanted a number from 0 to 16777215"),
    ];
    for (terms, wanted) in cases {
        let output = run(&["dissect", GOLDEN, "--filter", terms]);
        assert_eq!(output.status.code(), Some(2), "{terms}");
        let text = err(&output);
        assert!(text.contains(wanted) && text.contains("forms: qp=0x11, psn=100"), "{text}");
        assert_eq!(out(&output), "");
    }
}

#[test]
fn bad_usage_ends_with_2() {
    for args in [&["dissect"][..], &["dissect", GOLDEN, "--json", "-v"], &["disect"], &[]] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
    let help = run(&["dissect", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(out(&help).contains("Exit status: 0 done; 1 with --strict"));
}

#[test]
fn repeated_filters_are_one() {
    let args =
        ["dissect", GOLDEN, "--filter", "qp=0x14,opcode=*READ*", "--filter", "opcode=*WRITE*"];
    assert_eq!(out(&run(&args)).lines().count(), 6);
}

#[test]
fn colour_is_for_terminals_and_those_who_ask() {
    let coloured = |command: &mut Command| out(&command.output().unwrap()).contains('\u{1b}');
    assert!(!coloured(&mut urxe(&["dissect", GOLDEN])));
    assert!(!coloured(&mut urxe(&["dissect", GOLDEN, "--color", "never"])));
    assert!(coloured(&mut urxe(&["dissect", GOLDEN, "--color", "always"])));
    assert!(coloured(&mut urxe(&["--color=always", "dissect", GOLDEN])));
    assert!(coloured(urxe(&["dissect", GOLDEN]).env("CLICOLOR_FORCE", "1")));
    let both = &mut urxe(&["dissect", GOLDEN]);
    assert!(!coloured(both.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1")));
    let json = run(&["dissect", GOLDEN, "--json", "--color", "always"]);
    assert!(!out(&json).contains('\u{1b}'));
}

/// `urxe dissect … | head -1` says nothing of the pipe that head closed.
#[test]
fn a_closed_pipe_ends_quietly() {
    let many = golden("loss_send");
    let path = file("many.pcap", &many);
    let mut child = urxe(&["dissect", path.to_str().unwrap(), "-v"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 10]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(err(&output), "");
}

#[test]
fn a_name_that_cannot_be_opened_is_escaped() {
    let output = run(&["dissect", "no\u{1b}]0;such\u{7}"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("no\\u{1b}]0;such\\u{7}: "), "{}", err(&output));
}

#[test]
fn json_is_one_object_a_line_with_the_promised_keys() {
    let output = run(&["dissect", GOLDEN, "--json"]);
    let text = out(&output);
    let all: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(all.len(), 29);
    let keys = [
        "frame",
        "time",
        "src",
        "dst",
        "opcode",
        "dest_qp",
        "psn",
        "ack_req",
        "syndrome",
        "msn",
        "payload_len",
        "icrc",
    ];
    for object in &all {
        assert!(keys.iter().all(|key| object.get(key).is_some()), "{object}");
        assert_eq!(object["icrc"], "ok");
    }
    let ack = &all[4];
    assert_eq!((&ack["opcode"], &ack["syndrome"]), (&"RC_ACKNOWLEDGE".into(), &31.into()));
    assert_eq!(
        (&ack["msn"], &ack["dest_qp"], &ack["psn"]),
        (&1.into(), &20.into(), &5571470.into())
    );
    assert!(text.lines().nth(4).unwrap().contains("\"time\":1795974327.964965000,"));
}
