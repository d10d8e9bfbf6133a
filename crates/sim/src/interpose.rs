//! What can stand between the engine and the oracle: in real runs nothing, in tests of the oracle
//! a bug that it must find.

use urxe_engine::{Completion, Nic};
use urxe_memory::Buffer;

/// Hooks that change what the oracle sees of the engine.
pub trait Interpose {
    /// A packet leaves `node`: IP header to ICRC.
    fn sent(&mut self, node: usize, frame: &mut Vec<u8>) {
        let _ = (node, frame);
    }

    /// Completions were polled at `node`.
    fn polled(&mut self, node: usize, completions: &mut Vec<Completion>) {
        let _ = (node, completions);
    }

    /// A CQ of `node` told that a completion came; false hides that from the program.
    fn told(&mut self, node: usize, nic: &Nic) -> bool {
        let _ = (node, nic);
        true
    }

    /// The run has come to rest, before anything is destroyed; this is the memory of `node`.
    fn rested(&mut self, node: usize, nic: &Nic, memory: &Buffer) {
        let _ = (node, nic, memory);
    }
}

/// Changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faithful;

impl Interpose for Faithful {}
