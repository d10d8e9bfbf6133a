//! Virtual time, a fabric of NICs with faulty links, and the oracle that judges a run.
//!
//! All of it is a function of its arguments: the same seed and settings give the same bytes at the
//! same times, on any machine.
#![forbid(unsafe_code)]

pub mod fault;
pub mod frame;
pub mod link;
pub mod load;
pub mod plan;
pub mod trace;

mod fabric;
mod interpose;
mod oracle;
mod rng;
mod run;
mod settings;
mod shrink;
mod world;

pub use fabric::{Fabric, FabricConfig, Sink, Step, Topology};
pub use interpose::{Faithful, Interpose};
pub use oracle::{Invariant, Violation};
pub use rng::Rng;
pub use run::{Outcome, Run, Stats};
pub use settings::Settings;
pub use shrink::shrink;
pub use urxe_engine::Profile;
pub use urxe_engine::dcqcn::Rate;
pub use urxe_net::impair::{Share, ShareError};
