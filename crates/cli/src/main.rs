//! The `urxe` command.

fn main() {}
