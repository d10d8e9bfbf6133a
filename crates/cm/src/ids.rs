//! Communication ids: unique, spread by a seed, in the range of a slot.

use urxe_wire::cm::CommId;

#[cfg(test)]
mod tests;

/// Bits of an id below its slot.
const BITS: u32 = 26;
const MASK: u32 = (1 << BITS) - 1;
/// Bits of a half.
const HALF: u32 = BITS / 2;
const HALF_MASK: u32 = (1 << HALF) - 1;

/// Gives out each of 2^26 ids once before it gives out one again.
#[derive(Debug)]
pub(crate) struct Ids {
    slot: u32,
    keys: [u64; 4],
    next: u32,
    /// High half of transaction ids.
    tid: u32,
}

/// One step of SplitMix64 (Steele, Lea, Flood 2014).
const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

const fn low32(x: u64) -> u32 {
    let [a, b, c, d, ..] = x.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

impl Ids {
    pub(crate) const fn new(slot: u8, seed: u64) -> Self {
        let keys = [mix(seed ^ 1), mix(seed ^ 2), mix(seed ^ 3), mix(seed ^ 4)];
        let tid = low32(mix(seed ^ 5));
        let slot = ((slot & 0x3f) as u32) << BITS;
        Self { slot, keys, next: low32(mix(seed ^ 6)) & MASK, tid }
    }

    pub(crate) const fn next(&mut self) -> CommId {
        loop {
            let id = self.slot | self.spread(self.next);
            self.next = (self.next + 1) & MASK;
            // 0 stands for "none" in a REJ.
            if id != 0 {
                return CommId(id);
            }
        }
    }

    /// The transaction id of what a connection asks.
    pub(crate) const fn tid(&self, id: CommId) -> u64 {
        (self.tid as u64) << 32 | id.0 as u64
    }

    /// A permutation of 26 bits (a Feistel network of four rounds): ids come in an order that
    /// tells little of the next one.
    const fn spread(&self, n: u32) -> u32 {
        let (mut left, mut right) = (n >> HALF & HALF_MASK, n & HALF_MASK);
        let mut round = 0;
        while round < self.keys.len() {
            let mixed = low32(mix(self.keys[round] ^ right as u64)) & HALF_MASK;
            (left, right) = (right, left ^ mixed);
            round += 1;
        }
        left << HALF | right
    }
}
