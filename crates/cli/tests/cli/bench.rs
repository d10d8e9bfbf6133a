//! `urxe bench`: tiny runs end to end. How fast anything was is not the tests' business.

use serde_json::Value;

use crate::program::{err, out, refused, run};

/// Runs cases once, as short as can be; a line of JSON each, and the sum.
fn bench(cases: &[&str]) -> Vec<Value> {
    let args = [&["bench", "--json", "--rounds", "1", "--time", "5ms"], cases].concat();
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{cases:?}: {}{}", out(&output), err(&output));
    out(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_else(|| panic!("{of} is no number"))
}

/// Each kind of work once, with all that it is compared with.
#[test]
fn every_kind_of_case_runs_between_two_processes() {
    let cases = [
        "write.4K.mtu1024",
        "read.4K.mtu1024",
        "send.4K.mtu1024",
        "qps.write.64K.x4",
        "rate",
        "latency",
        "goodput.loss.1%",
        "idle.memory",
    ];
    let lines = bench(&cases);
    let (sum, rows) = lines.split_last().unwrap();
    assert_eq!(rows.len(), 11, "{rows:?}");
    for row in rows {
        assert!(number(&row["value"]) > 0.0, "{row}");
        for ratio in row["ratios"].as_array().unwrap() {
            assert!(number(&ratio["ratio"]) > 0.0, "{row}");
            if ratio["to"] != "jain" {
                let expected = number(&row["value"]) / number(&ratio["baseline"]);
                assert!((number(&ratio["ratio"]) / expected - 1.0).abs() < 1e-9, "{row}");
            }
        }
        if row["unit"] == "ns" {
            assert!(number(&row["p50"]) <= number(&row["p99"]), "{row}");
            assert!(number(&row["p99"]) <= number(&row["p99.9"]), "{row}");
        }
    }
    assert_eq!(sum["failed"], 0);
    assert!(sum["missed"].is_array(), "{sum}");
}

#[test]
fn text_is_a_row_for_each_comparison() {
    let output = run(&["bench", "--rounds", "1", "--time", "5ms", "write.4K.mtu1024"]);
    let text = out(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", err(&output));
    let rows = text.lines().filter(|line| line.contains('░') || line.contains('█'));
    assert_eq!(rows.count(), 3, "{text}");
    assert!(text.lines().any(|line| line.starts_with("write.4K.mtu1024 ")), "{text}");
}

#[test]
fn the_list_names_cases_and_targets() {
    let output = run(&["bench", "--list", "goodput"]);
    let wanted = "goodput.loss.0.1%      no-loss ≥ 0.7\ngoodput.loss.1%        no-loss ≥ 0.35\n";
    assert_eq!(out(&output), wanted);
    let output = run(&["bench", "--list", "goodput.loss.1%", "--json"]);
    let line: Value = serde_json::from_str(&out(&output)).unwrap();
    let ratios = serde_json::json!([{ "to": "no-loss", "target": { "at_least": 0.35 } }]);
    assert_eq!(line, serde_json::json!({ "case": "goodput.loss.1%", "ratios": ratios }));
}

#[test]
fn what_cannot_be_run_is_refused_in_a_line() {
    let text = refused(&["bench", "wirte"]);
    assert!(text.contains("no case has `wirte` in its name"), "{text}");
    for setting in ["addr=1.2.3.4", "window", "loss=1%"] {
        let text = refused(&["bench", "--set", setting, "rate"]);
        assert!(text.contains("window, buffer, icrc, gso, profile, seed"), "{text}");
    }
    let text = refused(&["bench", "--set", "window=3", "rate"]);
    assert!(text.contains("wanted 4 to 4194304"), "{text}");
    for time in ["0ms", "1us", "999999ns"] {
        let output = run(&["bench", "rate", "--time", time]);
        assert_eq!(output.status.code(), Some(2));
        let wanted = format!("`{time}` is too short to measure anything: at least 1ms");
        assert!(err(&output).contains(&wanted), "{}", err(&output));
    }
}

/// The bench's other process ends with the first.
#[test]
fn the_other_process_ends_when_nobody_speaks_to_it() {
    let output = run(&["bench", "--peer"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
}
