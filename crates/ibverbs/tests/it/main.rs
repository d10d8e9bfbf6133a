//! The library as C programs see it: loaded by name, called by symbol, through the C structs.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]
#![expect(unsafe_code, reason = "the library's functions are C's")]

mod basics;
mod events;
mod library;
mod lookups;
mod misuse;
mod pair;
mod programs;
mod symbols;
mod traffic;
