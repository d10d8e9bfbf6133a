//! What perftest must say: a row for each size, with so many iterations. Its figures are not looked
//! at: on a busy machine it may fail to find out the clock's rate, and then they are 0.

use crate::pair::value;

/// The rows of its table: bytes and iterations.
fn rows(text: &str) -> Vec<(u64, u64)> {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.filter_map(|fields| row(&fields)).collect()
}

fn row(fields: &[&str]) -> Option<(u64, u64)> {
    let [bytes, iterations, _, _, ..] = fields else { return None };
    Some((bytes.parse().ok()?, iterations.parse().ok()?))
}

pub fn judge(command: &[String], said: &[String; 2]) -> Result<(), String> {
    let wanted: u64 = match value(command, "-n") {
        Some(number) => number.parse().map_err(|e| format!("-n {number}: {e}"))?,
        None => 1,
    };
    let rows = rows(&said[1]);
    if rows.is_empty() {
        return Err("no row of results".to_owned());
    }
    if let Some((bytes, iterations)) = rows.iter().find(|(_, iterations)| *iterations < wanted) {
        return Err(format!("{bytes} bytes: {iterations} iterations, wanted {wanted}"));
    }
    let sizes: Vec<u64> = rows.iter().map(|(bytes, _)| *bytes).collect();
    let wanted: Vec<u64> = if command.iter().any(|word| word == "-a") {
        // A datagram is one packet.
        let most = if value(command, "-c") == Some("UD") { 10 } else { 23 };
        (1..=most).map(|power| 1 << power).collect()
    } else {
        value(command, "-s").and_then(|size| size.parse().ok()).into_iter().collect()
    };
    match wanted.iter().find(|size| !sizes.contains(size)) {
        Some(size) => Err(format!("no row for {size} bytes")),
        None => Ok(()),
    }
}
