use serde_json::json;

use super::*;

#[test]
fn a_report_tells_counters_and_failures_with_their_reasons() {
    let report = json!({
        "process": 7, "program": "ib_send_bw", "address": "127.0.0.2", "ended": true,
        "engine": {"rx_packets": 3}, "port": {}, "other_failures": 0,
        "refused_calls": [{"call": "ibv_reg_mr", "errno": 22, "why": "too long", "count": 2}],
        "failed_requests": [{"qpn": 17, "status": 12, "why": "no answer came", "count": 1}],
    });
    let wanted = "ib_send_bw (process 7) 127.0.0.2\n  engine rx_packets 3\n  \
                  ibv_reg_mr refused, EINVAL: too long; as this one, 2 in all\n  no answer came\n";
    assert_eq!(text(std::slice::from_ref(&report), false, &Palette::PLAIN), wanted);
    assert_eq!(text(std::slice::from_ref(&report), true, &Palette::PLAIN), format!("{report}\n"));
}

#[test]
fn a_process_that_was_killed_and_a_program_without_devices_are_told_of() {
    let report = json!({"process": 7, "program": "x", "address": "::1", "ended": false});
    assert!(text(&[report], false, &Palette::PLAIN).contains("it was killed"));
    assert!(text(&[], false, &Palette::PLAIN).contains("no process"));
}
