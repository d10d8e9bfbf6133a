//! Management datagrams as data: each message is one table of fields, as the standard prints it.
//!
//! The table gives view, Repr, parser, emitter and field list. At compile time each field must
//! begin where the one before it ended, be of a width its type can hold, and the last must end
//! with the message: no bit is forgotten and none is claimed twice.

use crate::{AckTimeout, FieldValue, Gid, PKey, Psn, QKey, Qpn};

/// Where a field stands: its first bit, counted from the top of the message, and its width in bits.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) first: usize,
    pub(crate) bits: usize,
}

impl Span {
    /// The field that begins at `bit` (0 is the highest) of `byte`, `bits` wide.
    pub(crate) const fn at(byte: usize, bit: usize, bits: usize) -> Self {
        Self { first: byte * 8 + bit, bits }
    }

    const fn end(self) -> usize {
        self.first + self.bits
    }

    /// The bits it stands in.
    pub(crate) const fn range(self) -> core::ops::Range<usize> {
        self.first..self.end()
    }

    /// Whether `fields` cover `bytes` bytes without a hole or an overlap.
    pub(crate) const fn tile(fields: &[Self], bytes: usize) -> bool {
        let (mut bit, mut i) = (0, 0);
        while i < fields.len() {
            if fields[i].first != bit {
                return false;
            }
            bit = fields[i].end();
            i += 1;
        }
        bit == bytes * 8
    }

    /// The bytes of a field of whole bytes (the tables are checked for it).
    fn bytes(self) -> core::ops::Range<usize> {
        self.first / 8..self.end() / 8
    }

    /// Reads a number of at most 64 bits.
    pub(crate) fn get(self, message: &[u8]) -> u64 {
        let end = self.end().div_ceil(8);
        let word = message[self.first / 8..end].iter().fold(0, |w, &b| w << 8 | u128::from(b));
        let low = u64::try_from(word >> (end * 8 - self.end()) & u128::from(u64::MAX));
        low.unwrap_or_default() & self.mask()
    }

    /// Writes the low bits of a number into a field that is zero so far.
    pub(crate) fn put(self, message: &mut [u8], value: u64) {
        let end = self.end().div_ceil(8);
        let word = u128::from(value & self.mask()) << (end * 8 - self.end());
        let bytes = word.to_be_bytes();
        let part = &mut message[self.first / 8..end];
        let from = bytes.len() - part.len();
        for (to, add) in part.iter_mut().zip(&bytes[from..]) {
            *to |= add;
        }
    }

    const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }
}

/// A type that a field can have.
pub(crate) trait Field: Sized {
    /// The narrowest field of this type, bits. Values too great for their field lose high bits.
    const MIN_BITS: usize = 1;
    /// The widest field of this type, bits.
    const MAX_BITS: usize;

    fn read(message: &[u8], at: Span) -> Self;
    fn write(&self, message: &mut [u8], at: Span);
    fn value(&self, at: Span) -> FieldValue<'_>;
}

/// Gives a type that is a number underneath its place in a table: `$ty`, its widest field in bits,
/// from and to `u64`, and how it is shown.
macro_rules! number_field {
    ($($ty:ty, $bits:literal, $from:expr, $to:expr, $show:expr;)*) => {$(
        impl $crate::layout::Field for $ty {
            const MAX_BITS: usize = $bits;

            fn read(message: &[u8], at: $crate::layout::Span) -> Self {
                let from: fn(u64) -> Self = $from;
                from(at.get(message))
            }

            fn write(&self, message: &mut [u8], at: $crate::layout::Span) {
                let to: fn(Self) -> u64 = $to;
                at.put(message, to(*self));
            }

            fn value(&self, at: $crate::layout::Span) -> $crate::FieldValue<'_> {
                let show: fn(&Self, usize) -> $crate::FieldValue<'_> = $show;
                show(self, at.bits)
            }
        }
    )*};
}

/// The low bits of a number whose field is no wider than the type (the tables are checked for it).
pub(crate) fn low<T: TryFrom<u64> + Default>(value: u64) -> T {
    T::try_from(value).unwrap_or_default()
}

number_field! {
    bool, 1, |v| v != 0, u64::from, |v, _| FieldValue::Flag(*v);
    u8, 8, low, u64::from, |v, _| FieldValue::Number(u64::from(*v));
    u16, 16, low, u64::from, |v, _| FieldValue::Number(u64::from(*v));
    u32, 32, low, u64::from, |v, bits| FieldValue::Hex { value: u64::from(*v), bits };
    u64, 64, |v| v, |v| v, |v, bits| FieldValue::Hex { value: *v, bits };
    Qpn, 24, |v| Self::new(low(v)), |v| v.value().into(), |v, _| FieldValue::Shown(v);
    Psn, 24, |v| Self::new(low(v)), |v| v.value().into(), |v, _| FieldValue::Shown(v);
    QKey, 32, |v| Self(low(v)), |v| v.0.into(),
        |v, bits| FieldValue::Hex { value: v.0.into(), bits };
    PKey, 16, |v| Self(low(v)), |v| v.0.into(),
        |v, bits| FieldValue::Hex { value: v.0.into(), bits };
    AckTimeout, 5, |v| Self::new(low(v)).unwrap_or_default(), |v| v.code().into(),
        |v, _| FieldValue::Number(v.code().into());
}

impl<const N: usize> Field for [u8; N] {
    const MIN_BITS: usize = N * 8;
    const MAX_BITS: usize = N * 8;

    fn read(message: &[u8], at: Span) -> Self {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&message[at.bytes()]);
        bytes
    }

    fn write(&self, message: &mut [u8], at: Span) {
        message[at.bytes()].copy_from_slice(self);
    }

    fn value(&self, _: Span) -> FieldValue<'_> {
        FieldValue::Bytes(self)
    }
}

impl Field for Gid {
    const MIN_BITS: usize = 128;
    const MAX_BITS: usize = 128;

    fn read(message: &[u8], at: Span) -> Self {
        Self(Field::read(message, at))
    }

    fn write(&self, message: &mut [u8], at: Span) {
        self.0.write(message, at);
    }

    fn value(&self, _: Span) -> FieldValue<'_> {
        FieldValue::Shown(self)
    }
}

/// Defines a message or a part of one from its table. Each row is `name: type = (byte, bit, bits)`:
/// where the field begins, bit 0 being the highest of its byte, and how wide it is.
macro_rules! layout {
    (
        $(#[$doc:meta])*
        $name:ident, $view:ident, $text:literal, $len:literal;
        $(
            $(#[$field_doc:meta])*
            $field:ident: $ty:ty = ($byte:literal, $bit:literal, $bits:literal);
        )*
    ) => {
        $(#[$doc])*
        ///
        /// `default()` is all zero bits; a number too great for its field loses its high bits.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
        }

        #[doc = concat!("A ", $text, " over its ", stringify!($len), " bytes.")]
        #[derive(
            Clone, Copy, Debug, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout,
            zerocopy::Immutable, zerocopy::Unaligned,
        )]
        #[repr(transparent)]
        pub struct $view([u8; $len]);

        const _: () = {
            use $crate::layout::{Field, Span};
            assert!(
                Span::tile(&[$(Span::at($byte, $bit, $bits)),*], $len),
                concat!($text, ": a field does not begin where the one before it ended")
            );
            $(assert!(
                <$ty as Field>::MIN_BITS <= $bits && $bits <= <$ty as Field>::MAX_BITS,
                concat!($text, " ", stringify!($field), ": the type does not fit the width")
            );
            assert!(
                <$ty as Field>::MIN_BITS == 1 || $bit == 0,
                concat!($text, " ", stringify!($field), ": bytes begin at a whole byte")
            );)*
        };

        impl $crate::Header for $view {
            const NAME: &'static str = $text;
        }

        impl $view {
            $(
                $(#[$field_doc])*
                #[must_use]
                pub fn $field(&self) -> $ty {
                    use $crate::layout::{Field, Span};
                    Field::read(&self.0, Span::at($byte, $bit, $bits))
                }
            )*
        }

        impl $name {
            fn read(view: &$view) -> Self {
                Self { $($field: view.$field(),)* }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::read(&$view([0; $len]))
            }
        }

        impl $crate::Repr for $name {
            type View = $view;

            fn from_view(view: &$view) -> $crate::Result<Self> {
                Ok(Self::read(view))
            }

            fn to_view(&self) -> $view {
                use $crate::layout::{Field, Span};
                let mut bytes = [0; $len];
                $(Field::write(&self.$field, &mut bytes, Span::at($byte, $bit, $bits));)*
                $view(bytes)
            }
        }

        impl $crate::Fields for $name {
            fn for_each_field(
                &self,
                f: &mut dyn FnMut(&'static str, core::ops::Range<usize>, $crate::FieldValue<'_>),
            ) {
                use $crate::layout::{Field, Span};
                $({
                    let span = Span::at($byte, $bit, $bits);
                    f(stringify!($field), span.range(), Field::value(&self.$field, span));
                })*
            }
        }

        impl $crate::layout::Field for $name {
            const MIN_BITS: usize = $len * 8;
            const MAX_BITS: usize = $len * 8;

            fn read(message: &[u8], at: $crate::layout::Span) -> Self {
                Self::read(&$view($crate::layout::Field::read(message, at)))
            }

            fn write(&self, message: &mut [u8], at: $crate::layout::Span) {
                $crate::layout::Field::write(&$crate::Repr::to_view(self).0, message, at);
            }

            fn value(&self, _: $crate::layout::Span) -> $crate::FieldValue<'_> {
                $crate::FieldValue::Group(self)
            }
        }
    };
}

/// Defines an enum of known codes, each with its words, and `Other` for the rest.
macro_rules! codes {
    (
        $(#[$doc:meta])*
        $name:ident: $int:ty, $bits:literal;
        $($code:literal $variant:ident $text:literal,)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = concat!("Code ", stringify!($code), ": ", $text, ".")] $variant,)*
            /// A code that the standard gives no meaning.
            Other($int),
        }

        impl $name {
            /// All codes that have a meaning, in order.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),*];

            /// The value of a code; every code has one.
            #[must_use]
            pub const fn from_code(code: $int) -> Self {
                match code {
                    $($code => Self::$variant,)*
                    other => Self::Other(other),
                }
            }

            /// Its code on the wire.
            #[must_use]
            pub const fn code(self) -> $int {
                match self {
                    $(Self::$variant => $code,)*
                    Self::Other(code) => code,
                }
            }

            /// What it means, in a few words.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(_) => "reserved",
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{} ({})", self.code(), self.text())
            }
        }

        $crate::layout::number_field! {
            $name, $bits, |v| Self::from_code($crate::layout::low(v)), |v| v.code().into(),
            |v, _| $crate::FieldValue::Coded { code: v.code().into(), meaning: v.text() };
        }
    };
}

pub(crate) use {codes, layout, number_field};

#[cfg(test)]
mod tests;
