//! Integration suites of urxe.
#![forbid(unsafe_code)]
