//! What a parser says of bytes it cannot take.

use core::fmt;

/// A `Result` whose error says which header, which field, what was got and what was wanted.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why bytes are not a packet. Ends as a counted, named drop in the engine and as a line in
/// `dissect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{header} {field}: got {got}, wanted {wanted}")]
pub struct Error {
    /// The header that could not be taken, by its short name (`BTH`, `IPv4`, `CM REQ`).
    pub header: &'static str,
    /// The field of it; `length` where bytes were missing.
    pub field: &'static str,
    /// The value that was found.
    pub got: u64,
    /// What would have been right.
    pub wanted: Wanted,
}

/// The values a field may have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Just this value.
    Exactly(u64),
    /// This value or a greater one.
    AtLeast(u64),
    /// This value or a smaller one.
    AtMost(u64),
    /// A value of this inclusive range.
    Between(u64, u64),
    /// One of the values that these words name.
    OneOf(&'static str),
}

impl Error {
    /// An error from its parts.
    #[must_use]
    pub const fn new(header: &'static str, field: &'static str, got: u64, wanted: Wanted) -> Self {
        Self { header, field, got, wanted }
    }

    /// `got` bytes were there where `needed` are wanted.
    #[must_use]
    pub const fn short(header: &'static str, got: usize, needed: usize) -> Self {
        Self::new(header, "length", got as u64, Wanted::AtLeast(needed as u64))
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(v) => write!(f, "{v}"),
            Self::AtLeast(v) => write!(f, "at least {v}"),
            Self::AtMost(v) => write!(f, "at most {v}"),
            Self::Between(a, b) => write!(f, "{a} to {b}"),
            Self::OneOf(names) => write!(f, "one of {names}"),
        }
    }
}
