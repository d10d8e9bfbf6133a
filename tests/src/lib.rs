//! Integration suites of urxe.
