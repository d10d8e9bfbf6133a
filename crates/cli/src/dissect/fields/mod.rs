//! Headers as lists of fields with their bytes: what `-v` prints and `--json` nests.

mod outer;
mod transport;

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

pub(crate) use outer::{ethernet, grh, ipv4, ipv6, lrh, sll, sll2, udp, vlan};
pub(crate) use transport::{bth, extensions};

/// A header of a frame.
#[derive(Clone, Debug)]
pub(crate) struct HeaderFields {
    /// Its name, as in `RETH`.
    pub(crate) name: &'static str,
    /// Where it begins, bytes from the frame's start.
    pub(crate) offset: usize,
    /// Its length, bytes.
    pub(crate) len: usize,
    /// Its fields in the order they stand in.
    pub(crate) fields: Vec<Field>,
}

/// A field of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Its name in JSON, as in `dest_qp`; text has blanks for `_`.
    pub(crate) name: &'static str,
    /// The first byte that holds some of it, from the header's start.
    pub(crate) at: usize,
    /// How many bytes hold some of it. Fields of a few bits share their byte.
    pub(crate) len: usize,
    /// What it holds.
    pub(crate) value: Value,
}

/// What a field holds, in the way it is best read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A count, port or length.
    Number(u64),
    /// An identifier of so many bits.
    Hex(u64, usize),
    /// One bit.
    Flag(bool),
    /// A code that is read in decimal, and its meaning.
    Coded(u64, String),
    /// A code of so many bits that is read in hexadecimal, and its meaning.
    CodedHex(u64, usize, String),
    /// What says itself best, as an address does.
    Text(String),
    /// Bytes without a meaning here.
    Bytes(Vec<u8>),
    /// A header within the header; its fields count from the outer one's start.
    Group(Vec<Field>),
}

impl HeaderFields {
    /// A header of `len` bytes at `offset`, without fields yet.
    #[must_use]
    pub(crate) fn new(name: &'static str, offset: usize, len: usize) -> Self {
        Self { name, offset, len, fields: Vec::new() }
    }

    /// Adds a field that stands in `len` bytes from byte `at` of the header.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, at: usize, len: usize, value: Value) -> Self {
        self.fields.push(Field { name, at, len, value });
        self
    }
}

/// A header's name as a JSON key: small letters, and `_` where no letter or digit stands.
#[must_use]
pub(crate) fn key(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    name.chars().map(letter).collect()
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => n.fmt(f),
            Self::Hex(n, bits) => write!(f, "0x{n:0digits$x}", digits = bits.div_ceil(4)),
            Self::CodedHex(n, bits, meaning) => {
                write!(f, "0x{n:0digits$x} ({meaning})", digits = bits.div_ceil(4))
            }
            Self::Flag(on) => f.write_str(if *on { "yes" } else { "no" }),
            Self::Coded(code, meaning) => write!(f, "{code} ({meaning})"),
            Self::Text(text) => f.write_str(text),
            Self::Bytes(bytes) => Octets(bytes).fmt(f),
            Self::Group(fields) => write!(f, "{} fields", fields.len()),
        }
    }
}

/// Bytes as hexadecimal digits; many equal ones are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Octets<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Octets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zeros = self.0.iter().rev().take_while(|&&b| b == 0).count();
        let shown = if zeros > 8 { self.0.len() - zeros } else { self.0.len() };
        for byte in &self.0[..shown] {
            write!(f, "{byte:02x}")?;
        }
        match self.0.len() - shown {
            0 => Ok(()),
            n if shown == 0 => write!(f, "{n} zero bytes"),
            n => write!(f, " and {n} zero bytes"),
        }
    }
}

/// A JSON object of the fields. Numbers are numbers up to 32 bits wide; wider identifiers are
/// strings like `"0x00007f0012345678"`, since many readers of JSON hold only 53 bits.
impl Serialize for HeaderFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Object(&self.fields).serialize(serializer)
    }
}

/// Fields as a JSON object.
struct Object<'a>(&'a [Field]);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for field in self.0 {
            serialize_field(&mut map, field.name, &field.value)?;
        }
        map.end()
    }
}

/// Adds a field to a JSON object; a code brings its meaning along as `…_text`.
pub(crate) fn serialize_field<M: SerializeMap>(
    map: &mut M,
    key: &str,
    value: &Value,
) -> Result<(), M::Error> {
    match value {
        Value::Number(n) => map.serialize_entry(key, n),
        Value::Hex(n, bits) if *bits <= 32 => map.serialize_entry(key, n),
        Value::Flag(on) => map.serialize_entry(key, on),
        Value::Coded(code, meaning) => {
            map.serialize_entry(key, code)?;
            map.serialize_entry(&format!("{key}_text"), meaning)
        }
        Value::CodedHex(code, bits, meaning) => {
            serialize_field(map, key, &Value::Hex(*code, *bits))?;
            map.serialize_entry(&format!("{key}_text"), meaning)
        }
        Value::Text(text) => map.serialize_entry(key, text),
        Value::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            map.serialize_entry(key, &digits)
        }
        Value::Group(fields) => map.serialize_entry(key, &Object(fields)),
        value @ Value::Hex(..) => map.serialize_entry(key, &value.to_string()),
    }
}
