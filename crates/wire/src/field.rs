//! Headers that can list their fields by name, so that a dissector prints any of them the same way.

use core::{fmt, ops::Range};

/// A header whose fields can be walked in wire order.
pub trait Fields {
    /// Calls `f` with each field, reserved ones (`reserved…`) included: its name, the bits of the
    /// header that it stands in (bit 0 is the highest of the first byte), and its value.
    fn for_each_field(&self, f: &mut dyn FnMut(&'static str, Range<usize>, FieldValue<'_>));
}

/// The value of a field, in the way it is best read. `Display` writes it on one line.
#[derive(Clone, Copy)]
pub enum FieldValue<'a> {
    /// A count, port or length: read in decimal.
    Number(u64),
    /// An identifier or key of so many bits: read in hexadecimal, with leading zeros.
    Hex {
        /// The value.
        value: u64,
        /// The width of the field, bits.
        bits: usize,
    },
    /// A single bit.
    Flag(bool),
    /// A code and the words it stands for.
    Coded {
        /// The code on the wire.
        code: u64,
        /// What it means.
        meaning: &'static str,
    },
    /// A value that says itself best, as an address or a time.
    Shown(&'a dyn fmt::Display),
    /// Bytes without a meaning here, such as private data.
    Bytes(&'a [u8]),
    /// A header within the header.
    Group(&'a dyn Fields),
}

impl fmt::Display for FieldValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Number(value) => write!(f, "{value}"),
            Self::Hex { value, bits } => {
                write!(f, "0x{value:0digits$x}", digits = bits.div_ceil(4))
            }
            Self::Flag(on) => f.write_str(if on { "yes" } else { "no" }),
            Self::Coded { code, meaning } => write!(f, "{code} ({meaning})"),
            Self::Shown(value) => value.fmt(f),
            Self::Bytes(bytes) => write_bytes(f, bytes),
            Self::Group(fields) => write_group(f, fields),
        }
    }
}

/// Hexadecimal digits, with a long tail of zeros counted rather than written.
fn write_bytes(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let used = bytes.len() - bytes.iter().rev().take_while(|&&b| b == 0).count();
    let shown = if bytes.len() - used > 8 { used } else { bytes.len() };
    for byte in &bytes[..shown] {
        write!(f, "{byte:02x}")?;
    }
    match bytes.len() - shown {
        0 => Ok(()),
        zeros if shown == 0 => write!(f, "{zeros} zero bytes"),
        zeros => write!(f, " and {zeros} zero bytes"),
    }
}

fn write_group(f: &mut fmt::Formatter<'_>, fields: &dyn Fields) -> fmt::Result {
    let mut result = f.write_str("{");
    let mut separator = " ";
    fields.for_each_field(&mut |name, _, value| {
        result = result.and_then(|()| write!(f, "{separator}{name}: {value}"));
        separator = ", ";
    });
    result.and_then(|()| f.write_str(" }"))
}

#[cfg(test)]
mod tests;
