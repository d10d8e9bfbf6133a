//! Ports on a link between two network namespaces that the tests make themselves.
#![allow(unsafe_code, reason = "unshare and poll")]
#![allow(clippy::unwrap_used, reason = "a test fails so")]
#![allow(unreachable_pub, reason = "a test program has no API")]

mod host;
mod impaired;
mod link;
mod namespace;
mod pairs;
mod tapped;
mod traffic;
