//! Integration suites of urxe.
#![forbid(unsafe_code)]

pub mod fuzz;
