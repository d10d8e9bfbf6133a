//! The driver and the verbs API as programs use them: on real sockets, in several threads,
//! processes and network namespaces.
#![allow(unsafe_code, reason = "fork, and unshare for namespaces")]
#![allow(clippy::unwrap_used, reason = "a test fails so")]
#![allow(clippy::cast_possible_truncation, reason = "the numbers of tests are small")]
#![allow(unreachable_pub, reason = "a test program has no API")]

mod connections;
mod fork;
mod hosts;
mod lifetimes;
mod loopback;
/// As the tests of the ports have them.
#[path = "../../../crates/net/tests/netns/namespace.rs"]
mod namespace;
mod operations;
mod peer;
mod pressure;
mod processes;
mod rig;
mod sharing;
mod spaces;
mod threads;
mod waking;
