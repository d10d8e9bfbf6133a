//! What a program's NICs came to, in words.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::dissect::{Palette, paint};

#[cfg(test)]
mod tests;

/// What the processes' reports say.
pub(super) fn text(reports: &[Value], json: bool, palette: &Palette) -> String {
    if json {
        return reports.iter().map(|report| format!("{report}\n")).collect();
    }
    if reports.is_empty() {
        return "no process of the program opened a device".to_owned();
    }
    let mut out = String::new();
    for report in reports {
        // A String takes everything.
        let _ = one(&mut out, report, palette);
    }
    out
}

fn one(out: &mut String, report: &Value, palette: &Palette) -> std::fmt::Result {
    let word = |name: &str| report[name].as_str().unwrap_or_default();
    let title = format!("{} (process {}) {}", word("program"), report["process"], word("address"));
    writeln!(out, "{}", paint(palette.header, title))?;
    if report["ended"] == false {
        writeln!(out, "  did not close its device nor exit: it was killed, or still runs")?;
        return Ok(());
    }
    for name in ["engine", "port"] {
        counters(out, name, report[name].as_object())?;
    }
    for call in items(&report["refused_calls"]) {
        let (name, why) = (&call["call"], &call["why"]);
        let (name, why) = (name.as_str().unwrap_or_default(), why.as_str().unwrap_or_default());
        let errno = call["errno"].as_i64().and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
        let errno = nix::errno::Errno::from_raw(errno);
        let line = format!("{name} refused, {errno:?}: {why}{}", times(&call["count"]));
        writeln!(out, "  {}", paint(palette.warn, line))?;
    }
    for request in items(&report["failed_requests"]) {
        let why = request["why"].as_str().unwrap_or_default();
        writeln!(out, "  {}", paint(palette.bad, format!("{why}{}", times(&request["count"]))))?;
    }
    match report["other_failures"].as_u64() {
        None | Some(0) => Ok(()),
        Some(n) => writeln!(out, "  and {n} failures of more kinds"),
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn times(count: &Value) -> String {
    match count.as_u64() {
        None | Some(1) => String::new(),
        Some(n) => format!("; as this one, {n} in all"),
    }
}

fn counters(out: &mut String, name: &str, all: Option<&Map<String, Value>>) -> std::fmt::Result {
    let words: Vec<_> = all.into_iter().flatten().map(|(name, n)| format!("{name} {n}")).collect();
    if words.is_empty() { Ok(()) } else { writeln!(out, "  {name:<7}{}", words.join(", ")) }
}
