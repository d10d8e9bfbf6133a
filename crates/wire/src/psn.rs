//! Packet sequence numbers: 24-bit serial arithmetic.

use core::{cmp::Ordering, fmt};

#[cfg(test)]
mod tests;

/// A 24-bit packet sequence number. Arithmetic wraps at 2^24; order is serial (IBA 9.7.2):
/// `a` is before `b` if the signed 24-bit difference `a − b` is negative.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Psn(u32);

impl Psn {
    /// PSN 0.
    pub const ZERO: Self = Self(0);
    /// The greatest PSN, 2^24 − 1; the next one is 0.
    pub const MAX: Self = Self(0x00ff_ffff);
    /// How far ahead a PSN may be and still count as "after": 2^23.
    pub const WINDOW: u32 = 1 << 23;

    /// The PSN of the low 24 bits of `value`; the high 8 bits are dropped.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(value & 0x00ff_ffff)
    }

    /// Its value, 0 to 2^24 − 1.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The PSN `n` after this one (modulo 2^24).
    #[must_use]
    pub const fn add(self, n: u32) -> Self {
        Self::new(self.0.wrapping_add(n))
    }

    /// The PSN `n` before this one (modulo 2^24).
    #[must_use]
    pub const fn sub(self, n: u32) -> Self {
        Self::new(self.0.wrapping_sub(n))
    }

    /// The next PSN.
    #[must_use]
    pub const fn next(self) -> Self {
        self.add(1)
    }

    /// The signed distance `self − other`, −2^23 to 2^23 − 1.
    #[must_use]
    #[expect(
        clippy::cast_possible_wrap,
        reason = "the shift moves bit 23 into the sign on purpose"
    )]
    pub const fn distance(self, other: Self) -> i32 {
        (self.0.wrapping_sub(other.0) << 8) as i32 >> 8
    }

    /// How many steps lead forward from `other` to `self`, 0 to 2^24 − 1.
    #[must_use]
    pub const fn since(self, other: Self) -> u32 {
        self.0.wrapping_sub(other.0) & 0x00ff_ffff
    }

    /// Serial order. Not an `Ord`: it is not transitive around the circle.
    #[must_use]
    pub const fn serial_cmp(self, other: Self) -> Ordering {
        match self.distance(other) {
            0 => Ordering::Equal,
            d if d < 0 => Ordering::Less,
            _ => Ordering::Greater,
        }
    }

    /// Whether this PSN comes before `other`.
    #[must_use]
    pub const fn is_before(self, other: Self) -> bool {
        self.distance(other) < 0
    }

    /// Whether this PSN comes after `other`.
    #[must_use]
    pub const fn is_after(self, other: Self) -> bool {
        self.distance(other) > 0
    }
}

impl fmt::Debug for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Psn({})", self.0)
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Psn> for u32 {
    fn from(psn: Psn) -> Self {
        psn.0
    }
}
