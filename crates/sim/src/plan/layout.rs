//! Where everything lies: regions in a node's buffer, spans in regions, guard bytes between.

use urxe_memory::Access;

use super::Plan;
use crate::Rng;

/// A registered piece of a node's buffer.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Whose.
    pub node: usize,
    /// Rights.
    pub access: Access,
    /// Bytes.
    pub len: u32,
    /// First address, as it is registered.
    pub iova: u64,
    /// Where it starts in the node's buffer.
    pub base: u32,
}

impl Region {
    /// First address, as it is used.
    #[must_use]
    pub const fn start(&self) -> u64 {
        if self.access.contains(Access::ZERO_BASED) { 0 } else { self.iova }
    }
}

/// Bytes of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The region.
    pub region: usize,
    /// Offset in it.
    pub at: u32,
    /// Bytes.
    pub len: u32,
}

/// Guard bytes before, between and behind regions, at least.
const GUARD: u32 = 64;

/// All rights.
#[must_use]
pub fn all_rights() -> Access {
    Access::LOCAL_WRITE | Access::MW_BIND | Access::REMOTE
}

impl Plan {
    /// Adds an empty region.
    pub(super) fn region(&mut self, rng: &mut Rng, node: usize, access: Access) -> usize {
        let iova = 4096 * rng.between(1, 1 << 30);
        self.regions.push(Region { node, access, len: 0, iova, base: 0 });
        self.regions.len() - 1
    }

    /// The next free bytes of a region, some guard bytes behind those before.
    pub(super) fn span(&mut self, rng: &mut Rng, region: usize, len: u32, align: u32) -> Span {
        let r = &mut self.regions[region];
        let at = (r.len + rng.between32(1, 9)).next_multiple_of(align);
        r.len = at + len;
        Span { region, at, len }
    }

    /// Lays the regions out; to be called when all spans are made.
    pub(super) fn lay_out(&mut self, rng: &mut Rng) {
        let mut ends = vec![0_u32; self.nodes.len()];
        for region in &mut self.regions {
            region.len += rng.between32(1, 32);
            let end = &mut ends[region.node];
            region.base = (*end + GUARD + rng.between32(0, 256)).next_multiple_of(8);
            *end = region.base + region.len;
        }
    }

    /// Bytes of a node's buffer.
    #[must_use]
    pub fn buffer_len(&self, node: usize) -> usize {
        let of_node = self.regions.iter().filter(|r| r.node == node);
        let end = of_node.map(|r| r.base + r.len).max().unwrap_or(0);
        (end + GUARD) as usize
    }

    /// Where a span lies in its node's buffer.
    #[must_use]
    pub fn place(&self, span: Span) -> std::ops::Range<usize> {
        let at = (self.regions[span.region].base + span.at) as usize;
        at..at + span.len as usize
    }

    /// The address of a span's first byte, in the terms of its region's key.
    #[must_use]
    pub fn address(&self, span: Span) -> u64 {
        self.regions[span.region].start() + u64::from(span.at)
    }
}
