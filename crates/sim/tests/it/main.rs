//! Whole runs: many seeds pass, planted bugs are caught, and a seed is a run.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod congestion;
mod planted;
mod seeds;
