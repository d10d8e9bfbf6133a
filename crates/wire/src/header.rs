//! What all fixed-size headers have in common.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Error, Result};

/// The layout of a header over its bytes: a zerocopy struct of alignment 1, with accessors.
pub trait Header:
    FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + Copy + 'static
{
    /// The name errors and `dissect` call it by.
    const NAME: &'static str;

    /// Lays the view over the front of `bytes`; gives it and what follows.
    ///
    /// # Errors
    /// Where `bytes` are too few.
    fn view(bytes: &[u8]) -> Result<(&Self, &[u8])> {
        Self::ref_from_prefix(bytes)
            .map_err(|_| Error::short(Self::NAME, bytes.len(), size_of::<Self>()))
    }
}

/// A fixed-size header as a plain value.
pub trait Repr: Sized + Copy {
    /// Its layout on the wire.
    type View: Header;
    /// Its length on the wire, bytes.
    const LEN: usize = size_of::<Self::View>();

    /// Reads the value out of a view.
    ///
    /// # Errors
    /// Where a field holds what this header cannot hold.
    fn from_view(view: &Self::View) -> Result<Self>;

    /// The bytes of this value.
    fn to_view(&self) -> Self::View;

    /// Takes the header off the front of `bytes`; gives it and what follows.
    ///
    /// # Errors
    /// Where `bytes` are too few or a field holds what this header cannot hold.
    fn parse(bytes: &[u8]) -> Result<(Self, &[u8])> {
        let (view, rest) = Self::View::view(bytes)?;
        Ok((Self::from_view(view)?, rest))
    }

    /// Writes the header to the front of `out`; gives its length.
    ///
    /// # Errors
    /// Where `out` is too short; nothing is written then.
    fn emit(&self, out: &mut [u8]) -> Result<usize> {
        self.to_view()
            .write_to_prefix(out)
            .map_err(|_| Error::short(Self::View::NAME, out.len(), Self::LEN))?;
        Ok(Self::LEN)
    }
}
