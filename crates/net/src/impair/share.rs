//! A share of cases, as the command line writes it: `5%`, `0.5 %`, `0.005`.

use std::fmt;
use std::str::FromStr;

#[cfg(test)]
mod tests;

/// A share from 0 to 1, exact to a billionth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Share(u32);

/// Why a text is no share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// Not a number with an optional `%`.
    #[error("`{0}` is no share: write a percentage such as 5% or a fraction such as 0.05")]
    Syntax(String),
    /// More than all.
    #[error("`{0}` is more than all there is: percentages go to 100%, and without % 1 is all")]
    TooMuch(String),
    /// More digits than count.
    #[error("`{0}` is finer than a billionth, the least that counts")]
    TooFine(String),
}

const WHOLE: u32 = 1_000_000_000;

impl Share {
    /// Never.
    pub const NONE: Self = Self(0);
    /// Always.
    pub const WHOLE: Self = Self(WHOLE);

    /// `n` percent, at most 100.
    #[must_use]
    pub const fn percent(n: u32) -> Self {
        Self(if n >= 100 { WHOLE } else { n * (WHOLE / 100) })
    }

    /// In billionths.
    #[must_use]
    pub const fn billionths(self) -> u32 {
        self.0
    }

    /// Whether it is 0.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        let trimmed = text.trim();
        let (number, unit, places) = match trimmed.strip_suffix('%') {
            Some(number) => (number.trim_end(), WHOLE / 100, 7),
            None => (trimmed, WHOLE, 9),
        };
        let fail = |error: fn(String) -> ShareError| error(text.to_owned());
        let (whole, digits) = number.split_once('.').unwrap_or((number, "0"));
        let decimal = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !decimal(whole) || !decimal(digits) {
            return Err(fail(ShareError::Syntax));
        }
        let digits = digits.trim_end_matches('0');
        if digits.len() > places {
            return Err(fail(ShareError::TooFine));
        }
        let part: u32 = format!("{digits:0<places$}").parse().unwrap_or(0);
        let whole = whole.parse().ok().and_then(|n: u32| n.checked_mul(unit));
        let all = whole.and_then(|whole| whole.checked_add(part)).filter(|&all| all <= WHOLE);
        all.map(Self).ok_or_else(|| fail(ShareError::TooMuch))
    }
}

/// `5%`, `0.125%`: parses to the same share.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / (WHOLE / 100), self.0 % (WHOLE / 100));
        let digits = format!("{part:07}");
        match digits.trim_end_matches('0') {
            "" => f.pad(&format!("{whole}%")),
            digits => f.pad(&format!("{whole}.{digits}%")),
        }
    }
}
