//! `urxe` from outside: what `dissect` shows, and the program with its exit codes.
#![expect(clippy::unwrap_used, reason = "a test's helpers fail as the test does")]

mod bench;
mod cm;
mod command;
mod corners;
mod demo;
mod device;
mod dissect;
mod ending;
mod json;
mod made;
mod picture;
mod pingpong;
mod places;
mod planted;
mod program;
mod programs;
mod settings;
mod sim;
