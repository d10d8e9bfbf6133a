//! The `urxe` command's parts, so that tests and fuzz targets can call them.
#![forbid(unsafe_code)]

pub mod capture;
pub mod cli;
pub mod common;
pub mod demo;
pub mod dissect;
pub mod pingpong;
pub mod sim;
pub mod units;

mod command;

pub use command::run;
