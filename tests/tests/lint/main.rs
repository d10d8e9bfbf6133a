//! `urxe-lint` on good traffic, of which it has no violation to tell.
#![expect(clippy::unwrap_used, reason = "a test's helpers fail as the test does")]

mod connections;
mod golden;
mod page;
mod sim;
