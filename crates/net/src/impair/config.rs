//! What a link does to packets, as the command line and environment variables write it:
//! `loss=1%,burst=0.1%:8,tx.delay=2ms,rx.rate=1gbit,seed=7`.

use std::str::FromStr;
use std::time::Duration;

use super::{Share, ShareError};

#[cfg(test)]
mod tests;

/// What happens to packets in one direction. The default is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// `loss`: each packet is lost with this chance.
    pub loss: Share,
    /// `burst`: at each packet a run of losses starts with this chance.
    pub burst: Share,
    /// How many packets such a run loses.
    pub burst_length: u32,
    /// `duplicate`, or `dup`: a packet arrives twice with this chance.
    pub duplicate: Share,
    /// `reorder`: a packet is held back with this chance, and those behind it overtake.
    pub reorder: Share,
    /// How long it is held back at most.
    pub reorder_by: Duration,
    /// `corrupt`: one bit that the ICRC covers is turned over with this chance.
    pub corrupt: Share,
    /// `delay` of every packet.
    pub delay: Duration,
    /// `jitter`: up to this much is added to the delay; order is kept.
    pub jitter: Duration,
    /// `rate`, bits per second of IP payload; packets above it queue.
    pub rate: Option<u64>,
    /// `queue`: packets that are held at a time at most, those that the port below has no room for
    /// among them; more are lost.
    pub queue: usize,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            loss: Share::NONE,
            burst: Share::NONE,
            burst_length: 8,
            duplicate: Share::NONE,
            reorder: Share::NONE,
            reorder_by: Duration::from_millis(1),
            corrupt: Share::NONE,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            rate: None,
            queue: 10_000,
        }
    }
}

/// What a port's link does, each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Impairment {
    /// The same seed and the same packets meet the same fate.
    pub seed: u64,
    /// To packets that leave.
    pub tx: Faults,
    /// To packets that arrive.
    pub rx: Faults,
}

/// Why a text is no [`Faults`] or [`Impairment`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultsError {
    /// No `name=value`.
    #[error("`{0}` is no fault: write name=value, several with commas between, as in loss=1%")]
    Syntax(String),
    /// Not a fault's name.
    #[error(
        "there is no fault `{0}`; there are loss, burst, duplicate (or dup), reorder, corrupt, \
         delay, jitter, rate, queue, each with tx. or rx. before it for one direction, and seed"
    )]
    Name(String),
    /// Given before.
    #[error("`{0}` is given twice")]
    Twice(String),
    /// For both directions, and for one of them too.
    #[error("`{0}` is given twice: for both directions, and as `{1}`; give tx.{0} and rx.{0}")]
    Overlap(String, String),
    /// Not a share.
    #[error("{name}: {why}")]
    Share {
        /// Of which fault.
        name: String,
        /// What is wrong with it.
        why: ShareError,
    },
    /// Not a time.
    #[error("{name}: `{value}` is no time: write a number and ns, us, ms or s, at most 1000s")]
    Time {
        /// Of which fault.
        name: String,
        /// What was given.
        value: String,
    },
    /// Not a rate.
    #[error("{name}: `{value}` is no rate: write bits per second, as in 100mbit, 1.5gbit, 8000bit")]
    Rate {
        /// Of which fault.
        name: String,
        /// What was given.
        value: String,
    },
    /// Not a number in range.
    #[error("{name}: `{value}` is no number from {least} to {most}")]
    Number {
        /// Of which fault.
        name: String,
        /// What was given.
        value: String,
        /// The least there may be.
        least: u64,
        /// The most there may be.
        most: u64,
    },
}

impl Faults {
    /// Sets the fault of this name; false if there is none.
    fn set(&mut self, name: &str, value: &str) -> Result<bool, FaultsError> {
        let (value, detail) = match value.split_once(':') {
            Some((value, detail)) if matches!(name, "burst" | "reorder") => (value, Some(detail)),
            _ => (value, None),
        };
        match name {
            "loss" => self.loss = share(name, value)?,
            "duplicate" | "dup" => self.duplicate = share(name, value)?,
            "corrupt" => self.corrupt = share(name, value)?,
            "burst" => {
                self.burst = share(name, value)?;
                if let Some(length) = detail {
                    let length = number(name, length, 1, 1_000_000)?;
                    self.burst_length = u32::try_from(length).unwrap_or(u32::MAX);
                }
            }
            "reorder" => {
                self.reorder = share(name, value)?;
                if let Some(by) = detail {
                    self.reorder_by = time(name, by)?;
                }
            }
            "delay" => self.delay = time(name, value)?,
            "jitter" => self.jitter = time(name, value)?,
            "rate" => self.rate = Some(rate(name, value)?),
            "queue" => {
                let most = number(name, value, 1, 1_000_000)?;
                self.queue = usize::try_from(most).unwrap_or(usize::MAX);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl FromStr for Faults {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Self, FaultsError> {
        let mut faults = Self::default();
        for (name, value) in settings(text)? {
            if !faults.set(name, value)? {
                return Err(FaultsError::Name(name.to_owned()));
            }
        }
        Ok(faults)
    }
}

impl FromStr for Impairment {
    type Err = FaultsError;

    /// As for [`Faults`], for both directions; `tx.` or `rx.` before a name is for one.
    fn from_str(text: &str) -> Result<Self, FaultsError> {
        let mut all = Self::default();
        for (name, value) in settings(text)? {
            let known = match name.split_once('.') {
                Some(("tx", name)) => all.tx.set(name, value)?,
                Some(("rx", name)) => all.rx.set(name, value)?,
                _ if name == "seed" => {
                    all.seed = number(name, value, 0, u64::MAX)?;
                    true
                }
                _ => all.tx.set(name, value)? && all.rx.set(name, value)?,
            };
            if !known {
                return Err(FaultsError::Name(name.to_owned()));
            }
        }
        Ok(all)
    }
}

/// Names and values; of an empty text, none.
fn settings(text: &str) -> Result<Vec<(&str, &str)>, FaultsError> {
    let mut all: Vec<(&str, &str)> = Vec::new();
    for part in text.split(',').filter(|_| !text.trim().is_empty()) {
        let split = part.split_once('=').ok_or_else(|| FaultsError::Syntax(part.to_owned()));
        let (name, value) = split.map(|(name, value)| (name.trim(), value.trim()))?;
        for &(other, _) in &all {
            check_pair(other, name)?;
        }
        all.push((name, value));
    }
    Ok(all)
}

/// Fails where two names are of one fault in one direction.
fn check_pair(one: &str, other: &str) -> Result<(), FaultsError> {
    let parts = |name| {
        let directions = ["tx.", "rx."];
        let one_way = directions.iter().find_map(|d| Some((*d, str::strip_prefix(name, d)?)));
        let (direction, fault) = one_way.unwrap_or(("", name));
        (direction, if fault == "dup" { "duplicate" } else { fault })
    };
    let ((one_way, fault), (other_way, other_fault)) = (parts(one), parts(other));
    if fault != other_fault {
        return Ok(());
    }
    match (one_way, other_way) {
        _ if one_way == other_way => Err(FaultsError::Twice(format!("{one_way}{fault}"))),
        ("", way) | (way, "") => {
            Err(FaultsError::Overlap(fault.to_owned(), format!("{way}{fault}")))
        }
        _ => Ok(()),
    }
}

fn share(name: &str, value: &str) -> Result<Share, FaultsError> {
    value.parse().map_err(|why| FaultsError::Share { name: name.to_owned(), why })
}

fn number(name: &str, value: &str, least: u64, most: u64) -> Result<u64, FaultsError> {
    let number = value.parse().ok().filter(|n| (least..=most).contains(n));
    let (name, value) = (name.to_owned(), value.to_owned());
    number.ok_or(FaultsError::Number { name, value, least, most })
}

fn time(name: &str, value: &str) -> Result<Duration, FaultsError> {
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let longest = 1_000 * 1_000_000_000;
    let nanos = scaled(value, &units).filter(|&n| n <= longest);
    let (name, value) = (name.to_owned(), value.to_owned());
    nanos.map(Duration::from_nanos).ok_or(FaultsError::Time { name, value })
}

fn rate(name: &str, value: &str) -> Result<u64, FaultsError> {
    let units = [("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000), ("bit", 1)];
    let bits = scaled(value, &units).filter(|&bits| bits != 0);
    let (name, value) = (name.to_owned(), value.to_owned());
    bits.ok_or(FaultsError::Rate { name, value })
}

/// A decimal number and a unit, in the smallest unit; `None` if it is none or not a whole one.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, scale) =
        units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))?;
    let number = number.trim_end();
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let decimal = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !decimal(whole) || !decimal(part) {
        return None;
    }
    let below = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let part = part.parse::<u64>().ok()?.checked_mul(scale)?;
    let whole = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    if part % below == 0 { whole.checked_add(part / below) } else { None }
}
