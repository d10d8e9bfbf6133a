//! Randomness that replays: PCG from seeds that are passed in, and draws whose results do not
//! depend on any library's version.

use rand_core::Rng as _;
use rand_pcg::Mcg128Xsl64;

use crate::Share;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng(Mcg128Xsl64);

/// One step of SplitMix64 (Steele, Lea, Flood 2014): every bit of `x` changes half of the result's.
#[must_use]
pub(crate) const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Rng {
    /// The stream of `key`: its first number says what the run is, the others what it is for.
    #[must_use]
    pub fn new(key: &[u64]) -> Self {
        let (mut high, mut low) = (0_u64, 1_u64);
        for &part in key {
            high = mix(high ^ part);
            low = mix(low.wrapping_add(high));
        }
        Self(Mcg128Xsl64::new(u128::from(high) << 64 | u128::from(low)))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        let wide = u128::from(self.bits()) * u128::from(n);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// An index below `n`; 0 if `n` is 0.
    pub fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap_or(0)
    }

    /// A number from `least` to `most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least).saturating_add(1))
    }

    /// As [`Self::between`], of 32 bits.
    pub fn between32(&mut self, least: u32, most: u32) -> u32 {
        u32::try_from(self.between(least.into(), most.into())).unwrap_or(least)
    }

    /// True in this share of cases.
    pub fn chance(&mut self, share: Share) -> bool {
        self.below(u64::from(Share::WHOLE.billionths())) < u64::from(share.billionths())
    }

    /// True once in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `choices`, which are not empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.bits().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}
