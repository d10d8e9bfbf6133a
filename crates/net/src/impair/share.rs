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
    /// A number above 1 without `%`.
    #[error("`{0}` is more than the whole: did you mean {0}%? fractions go from 0 to 1")]
    Fraction(String),
    /// A percentage above 100.
    #[error("`{0}` is more than the whole: percentages go from 0% to 100%")]
    Percentage(String),
    /// More digits than count.
    #[error("`{0}` is finer than a billionth, the least that counts")]
    Fine(String),
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
        let (number, percent) = match trimmed.strip_suffix('%') {
            Some(number) => (number.trim_end(), true),
            None => (trimmed, false),
        };
        let syntax = || ShareError::Syntax(text.to_owned());
        let (whole, digits) = number.split_once('.').unwrap_or((number, ""));
        let dot_alone = number.contains('.') && digits.is_empty();
        let decimal = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if dot_alone || whole.is_empty() || !decimal(whole) || !decimal(digits) {
            return Err(syntax());
        }
        let (unit, places) = if percent { (WHOLE / 100, 7) } else { (WHOLE, 9) };
        let digits = digits.trim_end_matches('0');
        if digits.len() > places {
            return Err(ShareError::Fine(text.to_owned()));
        }
        let too_much = || match percent {
            true => ShareError::Percentage(text.to_owned()),
            false => ShareError::Fraction(trimmed.to_owned()),
        };
        let whole: u64 = whole.parse().map_err(|_| too_much())?;
        let part: u64 = format!("{digits:0<places$}").parse().map_err(|_| syntax())?;
        let billionths = whole.checked_mul(u64::from(unit)).map(|w| w + part);
        let billionths = billionths.and_then(|b| u32::try_from(b).ok());
        billionths.filter(|&b| b <= WHOLE).map(Self).ok_or_else(too_much)
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
