//! Access rights, with the bit values of libibverbs.

use crate::MemoryError;

bitflags::bitflags! {
    /// What a region or window allows. Bit values are those of `enum ibv_access_flags`
    /// (infiniband/verbs.h). Reading through an lkey needs no flag.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Access: u32 {
        /// The NIC may write on behalf of the owner (receives, READ responses, atomic results).
        const LOCAL_WRITE = 1;
        /// A peer may RDMA WRITE. Needs `LOCAL_WRITE`.
        const REMOTE_WRITE = 1 << 1;
        /// A peer may RDMA READ.
        const REMOTE_READ = 1 << 2;
        /// A peer may use atomics. Needs `LOCAL_WRITE`.
        const REMOTE_ATOMIC = 1 << 3;
        /// Memory windows may be bound to the region.
        const MW_BIND = 1 << 4;
        /// Addresses used with the key are offsets from the start, not virtual addresses.
        const ZERO_BASED = 1 << 5;
        /// Pages may fault on access. Always true here, so the flag changes nothing.
        const ON_DEMAND = 1 << 6;
        /// The memory is in huge pages. A hint; it changes nothing here.
        const HUGETLB = 1 << 7;
        /// A peer may FLUSH to global visibility.
        const FLUSH_GLOBAL = 1 << 8;
        /// A peer may FLUSH to persistence.
        const FLUSH_PERSISTENT = 1 << 9;
        /// Writes may be seen out of order. Allowed, not used: they are always in order here.
        const RELAXED_ORDERING = 1 << 20;
    }
}

/// Bits that a device may ignore when it does not know them: `IBV_ACCESS_OPTIONAL_RANGE`
/// (infiniband/verbs.h).
const OPTIONAL: u32 = 0x3ff0_0000;

impl Access {
    /// All rights that make a key usable by a peer.
    pub const REMOTE: Self = Self::REMOTE_WRITE
        .union(Self::REMOTE_READ)
        .union(Self::REMOTE_ATOMIC)
        .union(Self::FLUSH_GLOBAL)
        .union(Self::FLUSH_PERSISTENT);

    /// Rights with which a peer changes memory; they need `LOCAL_WRITE` on the region.
    pub(crate) const REMOTE_CHANGE: Self = Self::REMOTE_WRITE.union(Self::REMOTE_ATOMIC);

    /// Reads the flags a verbs program passed. Unknown flags in libibverbs' optional range are
    /// dropped.
    ///
    /// # Errors
    ///
    /// [`MemoryError::UnknownAccess`] for any other unknown flag.
    pub fn from_verbs(bits: u32) -> Result<Self, MemoryError> {
        let unknown = bits & !Self::all().bits() & !OPTIONAL;
        if unknown != 0 {
            return Err(MemoryError::UnknownAccess { unknown });
        }
        Ok(Self::from_bits_truncate(bits))
    }

    /// Checks the rule between flags: a peer may change only what the owner's NIC may change.
    pub(crate) fn check(self) -> Result<Self, MemoryError> {
        // include/rdma/ib_verbs.h, ib_check_mr_access
        if self.intersects(Self::REMOTE_CHANGE) && !self.contains(Self::LOCAL_WRITE) {
            return Err(MemoryError::NeedsLocalWrite { access: self });
        }
        Ok(self)
    }
}
