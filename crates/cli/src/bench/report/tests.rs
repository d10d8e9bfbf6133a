use super::{Bound, Host, Report, bar};
use crate::bench::case;
use crate::bench::row::{Round, Row};
use crate::bench::targets::names;
use crate::bench::work::Sample;
use crate::dissect::Palette;

const QUIET: Host = Host { cpus: 2, load: Some(0.1), optimised: true };

fn rows() -> Vec<Row> {
    let sample = |value, more: &[_]| Sample { value, more: more.to_vec() };
    let row = |name: &str, own: Sample, rivals: &[f64]| {
        let case = case::all().into_iter().find(|case| case.name == name).unwrap();
        let rivals = rivals.iter().map(|&value| sample(value, &[])).collect();
        Row::of(&case, &[Round { own, rivals }])
    };
    vec![
        row("write.64K.mtu4096", sample(4e9, &[]), &[1e10, 4e8, 2e9]),
        row("qps.write.64K.x64", sample(3.8e9, &[(names::JAIN, 0.99)]), &[1e10, 4e8, 4e9]),
        row(
            "latency.send.poll",
            sample(9000.0, &[("p50", 9000.0), ("p99", 12e3), ("p99.9", 1.5e6)]),
            &[6000.0, 15000.0],
        ),
    ]
}

fn report(json: bool) -> (String, (usize, usize)) {
    let mut out = Vec::new();
    let mut report = Report::new(json, Palette::PLAIN, &mut out);
    report.head().unwrap();
    rows().iter().for_each(|row| report.row(row).unwrap());
    report.failed("idle.cpu", "the peer is gone").unwrap();
    let counts = report.end(&QUIET).unwrap();
    (String::from_utf8(out).unwrap(), counts)
}

#[test]
fn the_table() {
    let (text, counts) = report(false);
    assert_eq!(counts, (1, 1));
    insta::assert_snapshot!(text);
}

/// One object a line, with what the table shows.
#[test]
fn json_has_the_same() {
    let (text, counts) = report(true);
    assert_eq!(counts, (1, 1));
    insta::assert_snapshot!(text);
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn a_bar_is_as_long_as_the_ratio_and_marks_the_bound() {
    assert_eq!(bar(0.0, None), "░".repeat(20));
    assert_eq!(bar(1.0, None), "█".repeat(20));
    assert_eq!(bar(0.5, None), "█".repeat(10) + &"░".repeat(10));
    assert_eq!(bar(0.25, Some(Bound::AtLeast(0.5))), "█████░░░░┃░░░░░░░░░░");
    assert_eq!(bar(3.0, Some(Bound::AtMost(1.5))), "█████████┃██████████");
    for odd in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
        assert_eq!(bar(odd, Some(Bound::AtMost(1.5))).chars().count(), 20);
    }
}

#[test]
fn a_reader_is_warned_of_what_spoils_figures() {
    assert!(QUIET.warnings().is_empty());
    let spoilt = Host { cpus: 1, load: Some(7.3), optimised: false };
    let warnings = spoilt.warnings();
    assert_eq!(warnings.len(), 3);
    assert!(warnings[2].contains("load 7.3, 1 CPUs"), "{warnings:?}");
    assert!(Host { load: None, ..QUIET }.warnings().is_empty());
}
