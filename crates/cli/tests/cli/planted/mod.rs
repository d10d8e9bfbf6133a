//! `urxe lint` finds each kind of fault: every rule has a fault that is planted in a healthy
//! capture of the kernel's rxe, and nothing else is found, at the frame where it is.

mod connections;
mod exchanges;
mod packets;
mod tape;

use std::collections::BTreeSet;

use urxe_lint::{Rule, Severity};

use crate::program::{err, file, out, run};
use tape::Tape;

/// A fault, what it is planted in, and what is found.
#[derive(Clone, Copy)]
struct Plant {
    /// The rule that it breaks.
    rule: Rule,
    /// The healthy capture.
    healthy: fn() -> Tape,
    /// Plants it.
    fault: fn(&mut Tape),
    /// Where it is found.
    frame: usize,
    /// Notes that must come with it, such as that a packet passed twice.
    also: &'static [(Rule, usize)],
}

/// Rule, frame and severity of what is found.
type Found = Vec<(String, u64, String)>;

/// What `urxe lint` says of a capture, and its exit status.
fn judged(name: &str, tape: &Tape) -> (Found, Option<i32>) {
    judged_as("strict", name, tape)
}

fn judged_as(profile: &str, name: &str, tape: &Tape) -> (Found, Option<i32>) {
    let path = file(&format!("planted-{profile}-{name}.pcap"), &tape.pcap());
    let path = path.to_str().unwrap();
    let output = run(&["lint", "--json", "--all", "--profile", profile, path]);
    let found = out(&output).lines().map(found_in).collect();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{name}: {}", err(&output));
    (found, output.status.code())
}

fn found_in(line: &str) -> (String, u64, String) {
    let json: serde_json::Value = serde_json::from_str(line).unwrap();
    let text = |key: &str| json[key].as_str().unwrap().to_owned();
    (text("rule"), json["frame"].as_u64().unwrap(), text("severity"))
}

fn all() -> impl Iterator<Item = &'static Plant> {
    packets::PLANTS.iter().chain(connections::PLANTS).chain(exchanges::PLANTS)
}

#[test]
fn each_planted_fault_is_found_and_nothing_else() {
    let mut wrong = Vec::new();
    for plant in all() {
        let name = plant.rule.id();
        let (healthy, code) = judged(name, &(plant.healthy)());
        // What was lost in it is noted.
        if healthy.iter().any(|(_, _, severity)| severity != "note") || code != Some(0) {
            wrong.push(format!("{name}: found without a fault: {healthy:?}, status {code:?}"));
        }
        let mut tape = (plant.healthy)();
        (plant.fault)(&mut tape);
        let (mut found, code) = judged(name, &tape);
        let mut wanted: Vec<_> = plant
            .also
            .iter()
            .map(|(rule, frame)| (rule.id().to_owned(), *frame as u64, "note".to_owned()))
            .collect();
        let severity = plant.rule.severity();
        wanted.push((name.to_owned(), plant.frame as u64, severity.to_string()));
        found.sort();
        wanted.sort();
        let status = i32::from(severity == Severity::Violation);
        if found != wanted || code != Some(status) {
            wrong.push(format!("{name}: got {found:?}, status {code:?}; wanted {wanted:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} plants\n{}", wrong.len(), all().count(), wrong.join("\n"));
}

#[test]
fn what_came_late_behind_the_capture_is_no_violation() {
    let (found, code) = judged("late", &connections::late());
    assert_eq!(found, [("nak-ignored".to_owned(), 46, "note".to_owned())]);
    assert_eq!(code, Some(0));
}

#[test]
fn a_capture_may_begin_in_disorder() {
    let (found, code) = judged("disordered", &connections::disordered());
    let wrong: Vec<_> = found.iter().filter(|(_, _, severity)| severity != "note").collect();
    assert_eq!((wrong, code), (vec![], Some(0)), "{found:?}");
}

/// rxe acknowledges a duplicate by its last SEND or WRITE, but its MSN counts the READs behind it.
#[test]
fn the_profile_of_rxe_knows_how_it_acknowledges_duplicates() {
    for (answered, rule, frame) in [(true, "ack-backward", 56), (false, "msn", 55)] {
        let tape = connections::duplicate_before_a_read(answered);
        let note = |rule: &str, frame| (rule.to_owned(), frame, "note".to_owned());
        let again = note("duplicate", frame - 1);
        let (found, code) = judged("known", &tape);
        let wanted = [again.clone(), (rule.to_owned(), frame, "violation".to_owned())];
        assert_eq!((&found[..], code), (&wanted[..], Some(1)), "strict");
        let (found, code) = judged_as("rxe", "known", &tape);
        let mut wanted = vec![again];
        if answered {
            wanted.push(note(rule, frame));
        }
        assert_eq!((found, code), (wanted, Some(0)), "rxe");
    }
}

#[test]
fn every_rule_has_a_planted_fault() {
    let planted: BTreeSet<Rule> = all().map(|plant| plant.rule).collect();
    let bare: Vec<_> = Rule::ALL.iter().filter(|rule| !planted.contains(rule)).collect();
    assert!(bare.is_empty(), "rules that no planted fault breaks: {bare:?}");
}
