//! The library as C programs see it: loaded by name, called by symbol, through the C structs.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]
#![expect(unsafe_code, reason = "the library's functions are C's")]

mod basics;
mod cq_ex;
mod events;
mod fork;
mod inline;
mod library;
mod lookups;
mod memory;
mod misuse;
mod pair;
mod process;
mod programs;
mod report;
mod symbols;
mod traffic;
mod windows;
mod wr;
mod xrc;
