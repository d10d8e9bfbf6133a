//! Handles to the objects of a [`Memory`](crate::Memory), and the scatter/gather element.

use std::fmt;

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            pub(crate) index: u32,
            /// How often the index was used before: a handle of a freed object stays refused.
            pub(crate) serial: u32,
        }

        impl $name {
            /// The index alone, below 2²⁴: unique among the objects alive, reused afterwards.
            #[must_use]
            pub const fn index(self) -> u32 {
                self.index
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($what, " {}.{}"), self.index, self.serial)
            }
        }
    };
}

handle!(
    /// A protection domain.
    PdId,
    "PD"
);
handle!(
    /// A memory region.
    MrId,
    "MR"
);
handle!(
    /// A memory window.
    MwId,
    "MW"
);

/// One element of a scatter/gather list, laid out as `struct ibv_sge`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sge {
    /// Address in the region's own terms: from its iova, or from 0 if it is zero-based.
    pub addr: u64,
    /// Bytes. An element of length 0 is skipped and its key is not looked at.
    pub length: u32,
    /// Key of the region.
    pub lkey: u32,
}

impl Sge {
    /// Bytes that a list holds.
    #[must_use]
    pub fn total(sges: &[Self]) -> u64 {
        sges.iter().map(|sge| u64::from(sge.length)).sum()
    }
}
