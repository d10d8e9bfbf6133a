//! Which addresses the program has mapped, so that a registration of others is refused, as where
//! the kernel pins memory.

use std::fs::File;
use std::io::{BufRead, BufReader};

use crate::call::Fail;

/// Checks that all of a range is mapped, readable and, where asked for, writable.
pub(crate) fn check(start: usize, length: usize, write: bool) -> Result<(), Fail> {
    let end = start.checked_add(length);
    let end = end.ok_or_else(|| Fail::invalid(format!("{start:#x} + {length:#x} overflows")))?;
    // Without /proc nothing can be said; the memory is taken to be there.
    let Ok(file) = File::open("/proc/self/maps") else { return Ok(()) };
    let (mut reader, mut line) = (BufReader::with_capacity(1 << 16, file), String::new());
    let mut known = start;
    while known < end {
        line.clear();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            break;
        }
        let Some((from, to, rights)) = parse(&line) else { continue };
        if to <= known {
            continue;
        }
        let good = rights.starts_with('r') && (!write || rights.get(1..2) == Some("w"));
        if from > known || !good {
            break;
        }
        known = to;
    }
    if known >= end {
        return Ok(());
    }
    let what = if write { "mapped for writing" } else { "mapped" };
    Err(Fail::new(libc::EFAULT, format!("the memory at {known:#x} is not {what}")))
}

/// `from-to rights …`
fn parse(line: &str) -> Option<(usize, usize, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (from, to) = range.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some((number(from)?, number(to)?, rest))
}

#[cfg(test)]
mod tests;
