//! The `urxe` command's parts, so that tests and fuzz targets can call them.
#![forbid(unsafe_code)]

pub mod bench;
pub mod capture;
pub mod cli;
pub mod cm;
pub mod common;
pub mod demo;
pub mod devinfo;
pub mod dissect;
pub mod doctor;
pub mod lint;
pub mod log;
pub mod pingpong;
pub mod ports;
pub mod programs;
pub mod sim;
pub mod units;

mod command;
mod ending;
mod host;
mod trace;

pub use command::run;
