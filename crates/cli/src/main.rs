//! The `urxe` command.
#![forbid(unsafe_code)]

fn main() {}
