use std::net::Ipv4Addr;

use urxe_wire::Verdict;

use super::*;
use crate::{IcrcMode, PortStats};

fn flow(port: u16) -> Flow {
    let (src, dst) = (Ipv4Addr::new(127, 0, 0, 1).into(), Ipv4Addr::new(127, 0, 0, 2).into());
    Flow { src, dst, src_port: port, traffic_class: 0, hop_limit: 64, flow_label: 0 }
}

fn judge(flow: &Flow, nth: u16, bytes: &[u8], mode: IcrcMode) -> Verdict {
    Segment { flow: *flow, headers: &[], bytes, nth, record: None }.judge(mode)
}

fn push(batch: &mut TxBatch, port: u16, len: usize) {
    batch.push(flow(port), &[7; 12], |out| out.resize(out.len() + len, 1), 0);
}

#[test]
fn a_run_ends_at_another_flow_a_longer_packet_and_after_a_shorter_one() {
    let mut b = TxBatch::new(16, 4200);
    for (port, len) in [(1, 100), (1, 100), (1, 60), (1, 100), (2, 100), (2, 104)] {
        push(&mut b, port, len);
    }
    let mut runs = Vec::new();
    let mut from = 0;
    while from < b.len() {
        runs.push(b.run(from, 64, 65_000));
        from += runs[runs.len() - 1];
    }
    assert_eq!(runs, [3, 1, 1, 1]);
}

#[test]
fn a_run_is_no_longer_than_the_host_takes() {
    let mut b = TxBatch::new(16, 4200);
    for _ in 0..10 {
        push(&mut b, 1, 984);
    }
    assert_eq!(b.run(0, 4, 65_000), 4, "packets");
    assert_eq!(b.run(0, 64, 3500), 3, "bytes");
    assert_eq!(b.run(8, 64, 65_000), 2, "what is left");
}

#[test]
fn room_counts_packets_and_bytes_and_comes_back() {
    let mut b = TxBatch::new(4, 1000);
    assert_eq!(b.room(), 4);
    for _ in 0..3 {
        push(&mut b, 1, 900);
    }
    assert_eq!(b.room(), 1);
    push(&mut b, 1, 10);
    assert_eq!(b.room(), 0);
    b.advance(1);
    assert_eq!(b.len(), 3);
    b.advance(3);
    assert!(b.is_empty());
    assert_eq!(b.room(), 4);
}

#[test]
fn what_is_sealed_as_segment_n_is_right_as_segment_n_and_solved_for_otherwise() {
    let mut b = TxBatch::new(4, 1000);
    push(&mut b, 5, 100);
    b.seal(0, 5, 3);
    let bytes = b.bytes(b.packets[0].range.clone());
    assert_eq!(judge(&flow(5), 3, bytes, IcrcMode::Strict), Verdict::Ok);
    assert!(!judge(&flow(5), 2, bytes, IcrcMode::Strict).is_ok());
    assert_eq!(judge(&flow(5), 2, bytes, IcrcMode::Solve), Verdict::OkSolvedId(3));
    assert!(!judge(&flow(6), 3, bytes, IcrcMode::Solve).is_ok(), "another port");
    assert_eq!(judge(&flow(6), 3, bytes, IcrcMode::Off), Verdict::Ok);
}

/// A host gathers what comes in a row: segments that another host numbered, or packets that all
/// have identification 0, as sockets without segmentation send them.
#[test]
fn in_a_run_both_the_place_and_0_are_expected_identifications() {
    for (ids, solved) in [([0, 1, 2], 0), ([0, 0, 0], 0), ([7, 7, 7], 3)] {
        let mut b = TxBatch::new(4, 1000);
        let mut rx = RxBatch::new(1);
        let mut run = Vec::new();
        for (i, id) in ids.into_iter().enumerate() {
            push(&mut b, 5, 100);
            b.seal(i, 5, id);
            run.extend_from_slice(b.bytes(b.packets[i].range.clone()));
        }
        let (len, stride) = (run.len(), run.len() / 3);
        rx.bytes[..len].copy_from_slice(&run);
        let flow = flow(5);
        rx.arrivals.push(Arrival { flow, start: 0, len, stride, headers: 0, nth: 0, record: None });
        for mode in [IcrcMode::Strict, IcrcMode::Solve] {
            let stats = PortStats::default();
            let mut right = 0;
            rx.for_each(mode, &stats, |p| right += u64::from(p.verdict.is_ok()));
            let stats = stats.snapshot();
            if mode == IcrcMode::Strict {
                assert_eq!((right, stats.rx_icrc_bad), (3 - solved, solved), "{ids:?}");
            } else {
                assert_eq!((right, stats.rx_icrc_solved), (3, solved), "{ids:?}");
            }
        }
    }
}
