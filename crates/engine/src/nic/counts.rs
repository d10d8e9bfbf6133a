//! How many objects of each kind there are.

use super::Nic;

/// How many objects of each kind a NIC has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ObjectCounts {
    /// Protection domains.
    pub pds: usize,
    /// Memory regions.
    pub mrs: usize,
    /// Memory windows.
    pub mws: usize,
    /// Completion queues.
    pub cqs: usize,
    /// Queue pairs, QP1 too.
    pub qps: usize,
    /// Shared receive queues.
    pub srqs: usize,
    /// Address handles.
    pub ahs: usize,
    /// XRC domains.
    pub xrcds: usize,
    /// Multicast groups that a QP is attached to.
    pub groups: usize,
}

impl Nic {
    /// How many objects of each kind there are now.
    #[must_use]
    pub fn object_counts(&self) -> ObjectCounts {
        ObjectCounts {
            pds: self.memory.pd_count() as usize,
            mrs: self.memory.mr_count() as usize,
            mws: self.memory.mw_count() as usize,
            cqs: self.cqs.len(),
            qps: self.qps.len() + usize::from(self.gsi.read().is_some()),
            srqs: self.srqs.len(),
            ahs: self.ahs.len(),
            xrcds: self.xrcds.len(),
            groups: self.groups.read().len(),
        }
    }
}
