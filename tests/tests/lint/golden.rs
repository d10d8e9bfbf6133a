//! Kernel rxe keeps the rules, and so does what `urxe demo` records.

use std::fs;
use std::path::Path;

use urxe_cli::capture::Capture;
use urxe_cli::lint::{Summary, View, lint};
use urxe_lint::{Frame, Lint, Options, Profile, Rule};

pub(crate) fn judged(file: &[u8], options: Options) -> (String, Summary) {
    let mut capture = Capture::new("test", file).unwrap();
    let (mut out, mut summary) = (Vec::new(), Summary::default());
    lint(&mut capture, options, &View::default(), &mut out, &mut summary).unwrap();
    (String::from_utf8(out).unwrap(), summary)
}

/// Every golden capture, with the notes of each: no violation, and none but the named ones.
#[test]
fn rxe_breaks_no_rule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("captures");
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "pcap") {
            continue;
        }
        files += 1;
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let file = fs::read(&path).unwrap();
        let (text, summary) = judged(&file, Options::default());
        assert_eq!(summary.totals.violations(), 0, "{name}: {text}");
        assert_eq!(summary.totals.packets, summary.totals.frames, "{name}");
        let lost = ["loss_send", "read_resume", "rnr_nak"].contains(&&*name);
        for rule in summary.totals.counts.keys() {
            let loss = matches!(rule, Rule::Loss | Rule::ResponseLoss | Rule::Duplicate);
            assert!(*rule == Rule::MigReq || lost && loss, "{name}: {text}");
        }
        let connected = !["uc_pingpong", "ud_pingpong", "udaddy"].contains(&&*name);
        let three = ["srq", "remote_access", "invalid_request"].contains(&&*name);
        let wanted = if three { 3 } else { u64::from(connected) };
        assert_eq!(summary.totals.connections, wanted, "{name}: all are paired");
        let rxe = Options { profile: Profile::Rxe, ..Options::default() };
        let (text, summary) = judged(&file, rxe);
        assert!(lost || summary.totals.counts.is_empty(), "{name}: {text}");
    }
    assert_eq!(files, 19);
}

/// What a file says of its times may be anything: no difference is taken that there is not.
#[test]
fn times_as_far_apart_as_can_be_are_no_times() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("captures");
    for name in ["rc_pingpong", "rnr_nak", "loss_send", "read_resume"] {
        let file = fs::read(folder.join(name).with_extension("pcap")).unwrap();
        for extremes in [[i64::MIN, i64::MAX], [i64::MAX, i64::MIN]] {
            let mut capture = Capture::new("test", &*file).unwrap();
            let mut judge = Lint::new(Options::default());
            let mut number = 0;
            while let Some(frame) = capture.next_frame().unwrap() {
                number += 1;
                let found = judge.frame(&Frame {
                    number,
                    time: Some(extremes[usize::from(number % 2 == 0u64)]),
                    link: frame.link_type().unwrap(),
                    bytes: frame.bytes,
                    original_len: frame.original_len,
                });
                let timed = [Rule::ResendEarly, Rule::RnrEarly, Rule::Unanswered];
                assert!(!found.iter().any(|f| timed.contains(&f.rule)), "{name}: {found:?}");
            }
            judge.finish();
        }
    }
}
