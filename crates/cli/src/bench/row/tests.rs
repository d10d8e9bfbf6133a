use super::{Round, Row};
use crate::bench::case::{self, Case, Unit};
use crate::bench::targets::{Bound, names};
use crate::bench::work::Sample;

fn case(name: &str) -> Case {
    case::all().into_iter().find(|case| case.name == name).unwrap()
}

fn round(own: f64, more: &[(&'static str, f64)], rivals: &[f64]) -> Round {
    let sample = |value| Sample { value, more: Vec::new() };
    let own = Sample { more: more.to_vec(), ..sample(own) };
    Round { own, rivals: rivals.iter().map(|&value| sample(value)).collect() }
}

/// A machine that is slow in one round is slow for both: the ratio is of one round each.
#[test]
fn ratios_are_of_a_round_each_and_the_median_counts() {
    let rounds = [
        round(10.0, &[("p50", 1.0)], &[20.0, 1.0, 5.0]),
        round(1.0, &[("p50", 9.0)], &[2.0, 1.0, 5.0]),
        round(12.0, &[("p50", 2.0)], &[20.0, 1.0, 5.0]),
    ];
    let row = Row::of(&case("write.64K.mtu4096"), &rounds);
    assert_eq!((row.value.value, row.value.least, row.value.most), (10.0, 1.0, 12.0));
    assert_eq!(row.more["p50"], 2.0);
    let raw = &row.ratios[0];
    assert_eq!((raw.to, raw.baseline), (names::RAW, Some(20.0)));
    assert_eq!((raw.ratio, raw.least, raw.most), (0.5, 0.5, 0.6));
    assert_eq!((raw.target, raw.met), (Some(Bound::AtLeast(0.5)), Some(true)));
    let plain = &row.ratios[1];
    assert_eq!((plain.to, plain.target, plain.met), (names::PLAIN, None, None));
}

#[test]
fn what_is_missed_is_named() {
    let row = Row::of(&case("write.64K.mtu4096"), &[round(4.0, &[], &[10.0, 1.0, 2.0])]);
    let missed: Vec<_> = row.missed().collect();
    assert_eq!(missed, ["write.64K.mtu4096 to raw-udp-gso: 0.400, wanted ≥ 0.5"]);
    let row = Row::of(&case("latency.send.event"), &[round(20.0, &[], &[5.0, 10.0])]);
    let missed: Vec<_> = row.missed().collect();
    assert_eq!(missed, ["latency.send.event to udp-blocking: 2.000, wanted ≤ 1.5"]);
    let row = Row::of(&case("idle.cpu"), &[round(0.002, &[], &[1.0])]);
    assert_eq!(row.missed().count(), 0);
}

#[test]
fn fairness_is_a_ratio_by_itself() {
    let rounds = [round(9.0, &[(names::JAIN, 0.9)], &[10.0, 1.0, 10.0])];
    let row = Row::of(&case("qps.write.64K.x64"), &rounds);
    let jain = row.ratios.last().unwrap();
    assert_eq!((jain.to, jain.baseline, jain.ratio), (names::JAIN, None, 0.9));
    assert_eq!(jain.met, Some(false));
    assert!(row.more.is_empty(), "{:?}", row.more);
}

#[test]
fn figures_are_shown_with_their_unit() {
    assert_eq!(Unit::BytesPerSecond.show(1.234e9), "1.23 GB/s");
    assert_eq!(Unit::BytesPerSecond.show(5e6), "5.0 MB/s");
    assert_eq!(Unit::MessagesPerSecond.show(1.5e6), "1.50 M/s");
    assert_eq!(Unit::MessagesPerSecond.show(1500.0), "1.5 k/s");
    assert_eq!(Unit::RoundTrip.show(6700.0), "6.70 µs");
    assert_eq!(Unit::RoundTrip.show(2.5e6), "2.50 ms");
    assert_eq!(Unit::Core.show(0.0049), "0.49 %");
    assert_eq!(Unit::Bytes.show(2464.0), "2464 B");
}
