//! The table from key index to slot. It grows by buckets that never move, so looking up takes no
//! lock on the table.

use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

use crate::grant::Grant;
use crate::{KeyError, MwType};

/// log2 of the first bucket's slots; each later bucket doubles the table.
const FIRST_BITS: u32 = 9;
/// Bits of a key's index.
pub(crate) const INDEX_BITS: u32 = 24;
/// Indexes there are.
pub(crate) const INDEXES: u32 = 1 << INDEX_BITS;
const BUCKETS: usize = (INDEX_BITS - FIRST_BITS + 1) as usize;

/// What stands under one key index.
#[derive(Debug)]
pub(crate) struct Slot {
    /// How often the index was given out before.
    pub(crate) serial: u32,
    /// Low byte of the present key.
    pub(crate) low: u8,
    /// A call is changing the region and waits outside the lock.
    pub(crate) changing: bool,
    pub(crate) state: State,
}

#[derive(Debug)]
pub(crate) enum State {
    Free,
    Region(Arc<Grant>),
    /// A region whose key was invalidated. The grant stays, for its memory may still be in use.
    Invalid(Arc<Grant>),
    /// A region that waits for its last access.
    Deregistering,
    Window(Window),
}

#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) kind: MwType,
    pub(crate) bound: bool,
    /// The binding or, while unbound, a spare, so that binding need not allocate.
    pub(crate) grant: Arc<Grant>,
}

impl Slot {
    /// Refuses a key that is not the present one.
    pub(crate) fn check(&self, key: u32) -> Result<(), KeyError> {
        match self.state {
            State::Free => Err(KeyError::UnknownKey { key }),
            _ if self.low != low_byte(key) => Err(KeyError::Stale { key, current: self.low }),
            State::Deregistering => Err(KeyError::Deregistering { key }),
            State::Invalid(_) => Err(KeyError::Invalidated { key }),
            State::Region(_) | State::Window(_) => Ok(()),
        }
    }
}

/// The generation in a key.
pub(crate) const fn low_byte(key: u32) -> u8 {
    key.to_le_bytes()[0]
}

#[derive(Debug)]
pub(crate) struct Table {
    buckets: [OnceLock<Box<[RwLock<Slot>]>>; BUCKETS],
    /// Varies the generations that slots start with.
    seed: u32,
}

/// Bucket of a slot, and its place in there. Bucket 0 holds the first 2⁹ slots, bucket b the next
/// 2⁸⁺ᵇ.
const fn place(index: u32) -> (usize, usize) {
    match (index >> FIRST_BITS).checked_ilog2() {
        None => (0, index as usize),
        Some(log) => (log as usize + 1, (index - (1 << (FIRST_BITS + log))) as usize),
    }
}

/// Slots of a bucket.
const fn bucket_len(bucket: usize) -> usize {
    if bucket == 0 { 1 << FIRST_BITS } else { 1 << (FIRST_BITS as usize + bucket - 1) }
}

/// First index of a bucket.
const fn bucket_start(bucket: usize) -> u32 {
    if bucket == 0 { 0 } else { 1 << (FIRST_BITS as usize + bucket - 1) }
}

impl Table {
    pub(crate) const fn new(seed: u32) -> Self {
        Self { buckets: [const { OnceLock::new() }; BUCKETS], seed }
    }

    /// The slot of an index, if its bucket was ever needed.
    pub(crate) fn get(&self, index: u32) -> Option<&RwLock<Slot>> {
        let (bucket, at) = place(index);
        self.buckets.get(bucket)?.get()?.get(at)
    }

    /// The slot of an index below 2²⁴; makes its bucket if need be.
    pub(crate) fn make(&self, index: u32) -> Option<&RwLock<Slot>> {
        let (bucket, at) = place(index);
        let seed = self.seed;
        let slots = self.buckets.get(bucket)?.get_or_init(|| {
            let first = bucket_start(bucket);
            (first..).take(bucket_len(bucket)).map(|index| fresh(seed, index)).collect()
        });
        slots.get(at)
    }
}

fn fresh(seed: u32, index: u32) -> RwLock<Slot> {
    let low = low_byte(mix(seed ^ index.rotate_left(8)));
    RwLock::new(Slot { serial: 0, low, changing: false, state: State::Free })
}

/// A bijection that scatters its input over 32 bits; 0 stays 0 (the finalizer of MurmurHash3,
/// public domain).
pub(crate) const fn mix(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests;
