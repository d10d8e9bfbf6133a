use std::time::Duration;

use urxe_wire::Verdict;

use super::{Effort, measure, packet, run};
use crate::dissect::Palette;

#[test]
fn the_packet_that_is_timed_is_a_right_one() {
    for bytes in [64, 1024, 4096] {
        let (packet, prefix) = packet(bytes).unwrap();
        assert_eq!(packet.len(), 12 + bytes + 4);
        assert_eq!(prefix.verify(&packet), Verdict::Ok);
        assert_eq!(prefix.verify_hidden_id(&packet), Verdict::Ok);
    }
}

#[test]
fn all_stages_are_measured() {
    let mut out = Vec::new();
    let effort = Effort { rounds: 1, time: Duration::ZERO };
    run(effort, true, &Palette::PLAIN, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 8 + 6 + 2);
    for line in text.lines() {
        let cost: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(cost["ns"].as_f64().unwrap() > 0.0, "{line}");
    }
}

#[test]
fn a_step_is_done_as_often_as_is_divided_by() {
    let mut done = 0_u32;
    let effort = Effort { rounds: 1, time: Duration::ZERO };
    measure(&mut || done += 1, effort, None);
    assert_eq!(done, super::STEPS);
}
