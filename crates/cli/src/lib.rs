//! The `urxe` command's parts.
#![forbid(unsafe_code)]

pub mod capture;
