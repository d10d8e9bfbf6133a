//! The engine from outside: a NIC, a peer, and what goes between them at what time.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![allow(dead_code, reason = "the lab is for all tests, each uses a part")]

mod completer;
mod lab;
mod requester;
mod responses;
mod retry;
mod script;
mod smoke;
