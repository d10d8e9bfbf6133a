//! The library as C programs see it: loaded by name, called by symbol, through the C structs; and
//! Debian's programs on it.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]
#![expect(unsafe_code, reason = "the library's functions are C's")]

mod connection;
mod library;
mod lookup;
mod misuse;
mod pair;
mod programs;
mod symbols;
