//! Points in time, and how they are written.

use std::fmt;

/// A point in time, or a span of it: nanoseconds, from the Unix epoch where it is a point.
///
/// Wide enough for any clock that a pcapng file can describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i128);

const SECOND: i128 = 1_000_000_000;

impl Timestamp {
    /// Seconds and a fraction in units of `unit` nanoseconds, as pcap has them. A fraction of more
    /// than a second is carried.
    #[must_use]
    pub fn from_parts(seconds: u32, fraction: u32, unit: u32) -> Self {
        Self(i128::from(seconds) * SECOND + i128::from(fraction) * i128::from(unit))
    }

    /// `ticks` of a pcapng interface whose if_tsresol is `resolution` and whose if_tsoffset is
    /// `offset` seconds. What is finer than a nanosecond is dropped.
    #[must_use]
    pub fn from_ticks(ticks: u64, resolution: u8, offset: i64) -> Self {
        let ticks = i128::from(ticks);
        let exponent = u32::from(resolution & 0x7f);
        let nanoseconds = if resolution & 0x80 != 0 {
            // Below 2^94 before the shift, which is at most 127.
            (ticks * SECOND) >> exponent
        } else if exponent <= 9 {
            ticks * 10i128.pow(9 - exponent)
        } else {
            10i128.checked_pow(exponent - 9).map_or(0, |unit| ticks / unit)
        };
        Self(nanoseconds + i128::from(offset) * SECOND)
    }

    /// The time from `earlier` to this.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self(self.0 - earlier.0)
    }

    /// Seconds with `digits` decimals, 0 to 9, the rest being dropped.
    #[must_use]
    pub fn seconds(self, digits: usize) -> String {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, fraction) = (self.0.abs() / SECOND, self.0.abs() % SECOND);
        format!("{sign}{whole}.{}", &format!("{fraction:09}")[..digits.min(9)])
    }

    /// The UTC date and time with `digits` decimals, 0 to 9: `2026-11-29 20:17:05.123456`.
    #[must_use]
    pub fn utc(self, digits: usize) -> String {
        let (seconds, fraction) = (self.0.div_euclid(SECOND), self.0.rem_euclid(SECOND));
        let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (y, m, d) = civil(day);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let fraction = &format!("{fraction:09}")[..digits.min(9)];
        format!("{y:04}-{m:02}-{d:02} {hour:02}:{minute:02}:{second:02}.{fraction}")
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.seconds(9))
    }
}

/// Year, month and day of a day number, 1970-01-01 being 0, in the Gregorian calendar.
fn civil(day: i128) -> (i128, i128, i128) {
    // Years that begin in March put the leap day last: a day of the year gives its month by a line.
    let shifted = day + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let d = day_of_year - (153 * march_month + 2) / 5 + 1;
    let m = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + i128::from(m <= 2), m, d)
}
