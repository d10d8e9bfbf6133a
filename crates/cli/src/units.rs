//! Numbers with units, as the command line writes them.

use std::time::Duration;

#[cfg(test)]
mod tests;

/// The number of a text and the unit behind it, in billionths of a unit.
fn split(text: &str) -> Option<(u128, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || part.len() > 9 || number.ends_with('.') {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let part: u128 = format!("{part:0<9}").parse().ok()?;
    Some((u128::from(whole) * 1_000_000_000 + part, unit.trim()))
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (billionths, unit) = split(text)?;
    let &(_, factor) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    u64::try_from(billionths * u128::from(factor) / 1_000_000_000).ok()
}

/// A time: `500ns`, `5us`, `1.5ms`, `2s`.
///
/// # Errors
/// What to write instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    let units = [("ns", 1), ("us", 1000), ("µs", 1000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let nanos = scaled(text, &units);
    let wanted =
        || format!("`{text}` is no time: write a number and a unit, such as 5us (ns, us, ms, s)");
    nanos.map(Duration::from_nanos).ok_or_else(wanted)
}

/// Bits a second: `10G`, `2.5Gbit`, `100M`.
///
/// # Errors
/// What to write instead.
pub fn rate(text: &str) -> Result<u64, String> {
    let units = [
        ("", 1),
        ("bit", 1),
        ("k", 1000),
        ("kbit", 1000),
        ("M", 1_000_000),
        ("Mbit", 1_000_000),
        ("G", 1_000_000_000),
        ("Gbit", 1_000_000_000),
    ];
    let wanted =
        || format!("`{text}` is no rate: write bits a second, such as 10G or 100M, above 0");
    scaled(text, &units).filter(|&bits| bits != 0).ok_or_else(wanted)
}

/// Bytes: `1500`, `64K`, `1M` (1024 each).
///
/// # Errors
/// What to write instead.
pub fn size(text: &str) -> Result<u64, String> {
    let units = [("", 1), ("K", 1 << 10), ("KiB", 1 << 10), ("M", 1 << 20), ("MiB", 1 << 20)];
    let wanted = || format!("`{text}` is no size: write bytes, such as 1500, 64K or 1M");
    scaled(text, &units).ok_or_else(wanted)
}
