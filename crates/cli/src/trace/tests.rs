use std::time::Duration;

use urxe::{DropReason, Flow, Why};
use urxe_wire::Verdict;

use super::*;

/// RC SEND_ONLY to QP 0x11, PSN 7, of four bytes, and room for the ICRC.
const SEND: [u8; 20] = [4, 0, 0xff, 0xff, 0, 0, 0, 0x11, 0x80, 0, 0, 7, 1, 2, 3, 4, 0, 0, 0, 0];

fn passage(trace: &Trace<Vec<u8>>, sent: bool) -> Passage<'static> {
    let flow = Flow {
        src: [10, 0, 0, 1].into(),
        dst: [10, 0, 0, 2].into(),
        src_port: 49152,
        traffic_class: 0,
        hop_limit: 64,
        flow_label: 0,
    };
    let (at, time, verdict) = (trace.start, Duration::ZERO, Verdict::Ok);
    Passage { at, time, sent, flow, bytes: &SEND, why: None, verdict, fate: Ok(()) }
}

fn text(trace: Trace<Vec<u8>>) -> String {
    String::from_utf8(trace.inner.into_inner().unwrap().1).unwrap()
}

#[test]
fn each_packet_is_a_line_with_its_reason() {
    let trace = Trace::new(Palette::PLAIN, Vec::new());
    let (out, came) = (passage(&trace, true), passage(&trace, false));
    trace.packet(&out);
    trace.packet(&came);
    trace.packet(&Passage { why: Some(Why::Timeout), ..out });
    trace.packet(&Passage { fate: Err(DropReason::NoSuchQp), ..came });
    let bad = Verdict::Bad { got: [0; 4], computed: [1; 4] };
    trace.packet(&Passage { verdict: bad, fate: Err(DropReason::Malformed), ..came });
    insta::assert_snapshot!(text(trace));
}

#[test]
fn times_count_from_the_traces_start_even_before_it() {
    let trace = Trace::new(Palette::PLAIN, Vec::new());
    let early = passage(&trace, true);
    let late = Passage { at: trace.start + Duration::from_micros(1_500_000), ..early };
    let before = Passage { at: trace.start.checked_sub(Duration::from_secs(1)).unwrap(), ..early };
    trace.packet(&late);
    trace.packet(&before);
    let text = text(trace);
    let times: Vec<_> = text.lines().map(|l| l.split_whitespace().nth(2).unwrap()).collect();
    assert_eq!(times, ["1.500000", "0.000000"]);
}

#[derive(Debug, Default)]
struct Counts(std::sync::atomic::AtomicUsize);

impl Observer for Counts {
    fn packet(&self, _: &Passage<'_>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn who_looks_on_beside_another_sees_all_and_so_does_the_other() {
    let (a, b) = (Arc::new(Counts::default()), Arc::new(Counts::default()));
    let trace = Trace::new(Palette::PLAIN, Vec::new());
    both(Some(a.clone()), b.clone()).packet(&passage(&trace, true));
    both(None, b.clone()).packet(&passage(&trace, true));
    let count = |c: &Counts| c.0.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!((count(&a), count(&b)), (1, 2));
}
