//! `--filter`: which packets to show.

use std::{fmt, str::FromStr};

use urxe_wire::{Opcode, Psn, Qpn};

/// The forms that a term of a filter may have, for messages.
pub(crate) const FORMS: &str =
    "qp=0x11, psn=100, psn=100..200, opcode=RC_SEND_FIRST, opcode=*READ*";

/// Which packets to show: those that, for each key that is named at all, match one of its values.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    qps: Vec<Qpn>,
    psns: Vec<(Psn, Psn)>,
    /// All opcodes that some pattern matches; `None` if there was no pattern.
    opcodes: Option<Vec<Opcode>>,
}

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError(String);

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; forms: {FORMS}; join terms with `,`", self.0)
    }
}

impl std::error::Error for FilterError {}

/// What of a packet a filter looks at.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its opcode.
    pub opcode: Opcode,
    /// The destination QPN.
    pub dest_qp: Qpn,
    /// A datagram's source QPN.
    pub src_qp: Option<Qpn>,
    /// Its PSN.
    pub psn: Psn,
}

impl Filter {
    /// Whether it lets every packet through.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.qps.is_empty() && self.psns.is_empty() && self.opcodes.is_none()
    }

    /// Adds the terms of `other`, as if both had been one text.
    pub fn add(&mut self, other: Self) {
        self.qps.extend(other.qps);
        self.psns.extend(other.psns);
        if let Some(more) = other.opcodes {
            self.opcodes.get_or_insert_default().extend(more);
        }
    }

    /// Whether `packet` is to be shown.
    #[must_use]
    pub fn matches(&self, packet: &Subject) -> bool {
        self.matches_numbers(packet.dest_qp, packet.src_qp, packet.psn)
            && self.opcodes.as_ref().is_none_or(|all| all.contains(&packet.opcode))
    }

    /// Whether a packet that was never seen, so that its opcode is unknown, is to be shown.
    #[must_use]
    pub fn matches_unseen(&self, dest_qp: Qpn, src_qp: Option<Qpn>, psn: Psn) -> bool {
        self.opcodes.is_none() && self.matches_numbers(dest_qp, src_qp, psn)
    }

    fn matches_numbers(&self, dest_qp: Qpn, src_qp: Option<Qpn>, psn: Psn) -> bool {
        let of = |qp: &Qpn| *qp == dest_qp || Some(*qp) == src_qp;
        (self.qps.is_empty() || self.qps.iter().any(of))
            && (self.psns.is_empty() || self.psns.iter().any(|r| within(psn, *r)))
    }
}

/// Whether `psn` is between both ends, which count; the range may go over 2^24.
fn within(psn: Psn, (first, last): (Psn, Psn)) -> bool {
    psn.since(first) <= last.since(first)
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let mut filter = Self::default();
        for term in text.split(',').map(str::trim) {
            let Some((key, value)) = term.split_once('=') else {
                return Err(FilterError(format!("`{term}` has no `=`")));
            };
            let (key, value) = (key.trim(), value.trim());
            match key.to_ascii_lowercase().as_str() {
                "qp" => filter.qps.push(Qpn::new(number(key, value)?)),
                "psn" => filter.psns.push(psn_range(key, value)?),
                "opcode" => filter.opcodes.get_or_insert_default().extend(opcodes(value)?),
                _ => {
                    let what = format!("`{key}` is no key, wanted qp, psn or opcode");
                    return Err(FilterError(what));
                }
            }
        }
        Ok(filter)
    }
}

/// A 24-bit number, decimal or hexadecimal.
fn number(key: &str, text: &str) -> Result<u32, FilterError> {
    match unsigned(text) {
        Some(value) if value <= 0x00ff_ffff => Ok(value),
        _ => {
            let what = format!("{key} is `{text}`, wanted a number from 0 to 16777215 (0xffffff)");
            Err(FilterError(what))
        }
    }
}

/// A number without a sign, hexadecimal after `0x` or `0X`.
fn unsigned(text: &str) -> Option<u32> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hex.map_or((text, 10), |digits| (digits, 16));
    // The standard library takes a plus sign.
    if digits.starts_with('+') { None } else { u32::from_str_radix(digits, radix).ok() }
}

fn psn_range(key: &str, text: &str) -> Result<(Psn, Psn), FilterError> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let last = last.strip_prefix('=').unwrap_or(last);
    Ok((Psn::new(number(key, first)?), Psn::new(number(key, last)?)))
}

/// The opcodes that a name, a pattern or a code stands for.
fn opcodes(text: &str) -> Result<Vec<Opcode>, FilterError> {
    if let Some(code) = unsigned(text).and_then(|code| u8::try_from(code).ok()) {
        return Ok(vec![Opcode(code)]);
    }
    let pattern = text.to_ascii_uppercase();
    let named = |op: &Opcode| op.name().is_some_and(|name| glob(pattern.as_bytes(), name));
    let found: Vec<_> = (0..=u8::MAX).map(Opcode).filter(named).collect();
    if found.is_empty() {
        let near = nearest(&pattern);
        let what = format!("no opcode is called `{text}`, the nearest is {near}");
        return Err(FilterError(what));
    }
    Ok(found)
}

/// Whether `name` matches `pattern`, in which `*` stands for any text and `?` for one letter.
fn glob(pattern: &[u8], name: &str) -> bool {
    let name = name.as_bytes();
    let (mut p, mut n) = (0, 0);
    // Where to go on if a match fails: after the last star, one letter further in the name.
    let mut retry = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((after_star, from)) = retry else { return false };
                retry = Some((after_star, from + 1));
                (p, n) = (after_star, from + 1);
            }
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

/// The name with the fewest letters to change, so that a typing error is soon mended.
fn nearest(wrong: &str) -> &'static str {
    let names = (0..=u8::MAX).filter_map(|code| Opcode(code).name());
    names.min_by_key(|name| distance(wrong.as_bytes(), name.as_bytes())).unwrap_or("RC_SEND_ONLY")
}

/// How many letters must be put in, taken out or replaced to make `b` of `a`.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
