//! Receive WQEs: a QP's own queue and the shared one.

use std::collections::VecDeque;

use parking_lot::Mutex;
use urxe_memory::{PdId, Sge};

use crate::sq::FIRST_SLOTS;
use crate::types::SrqId;
use crate::wr::{PostError, RecvWr};

#[cfg(test)]
mod tests;

/// A ring of receive WQEs whose SGEs lie in one block. It grows as a send queue does
/// ([`crate::sq::Sq`]), so that posting allocates nothing but when more wait than ever before.
#[derive(Debug)]
pub(crate) struct Ring {
    /// `wr_id`, slot, number of SGEs.
    wqes: VecDeque<(u64, u32, u8)>,
    sges: Box<[Sge]>,
    max_sge: usize,
    capacity: usize,
    /// WQEs that `sges` has room for now.
    slots: usize,
    /// Slot of the next WQE posted.
    next_slot: usize,
}

/// A receive WQE taken from its queue, kept for one QP's message in progress.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) wr_id: u64,
    sges: Box<[Sge]>,
    count: usize,
}

impl Taken {
    pub(crate) fn new(max_sge: usize) -> Self {
        Self { wr_id: 0, sges: vec![Sge::default(); max_sge].into(), count: 0 }
    }

    pub(crate) fn sges(&self) -> &[Sge] {
        &self.sges[..self.count]
    }

    /// Bytes it can hold.
    pub(crate) fn room(&self) -> u64 {
        Sge::total(self.sges())
    }
}

impl Ring {
    pub(crate) fn new(capacity: usize, max_sge: usize) -> Self {
        let slots = capacity.min(FIRST_SLOTS);
        Self {
            wqes: VecDeque::with_capacity(slots),
            sges: vec![Sge::default(); slots * max_sge].into(),
            max_sge,
            capacity,
            slots,
            next_slot: 0,
        }
    }

    /// Makes room for more WQEs than ever waited.
    fn grow(&mut self) {
        let (slots, max) = (self.capacity.min(self.slots * 2), self.max_sge);
        let mut sges = vec![Sge::default(); slots * max];
        for (to, (_, slot, _)) in (0..).zip(&mut self.wqes) {
            let (from, at) = (*slot as usize, to as usize);
            sges[at * max..][..max].copy_from_slice(&self.sges[from * max..][..max]);
            *slot = to;
        }
        self.wqes.reserve_exact(slots - self.wqes.len());
        self.next_slot = self.wqes.len();
        self.slots = slots;
        self.sges = sges.into();
    }

    pub(crate) fn post(&mut self, wr: &RecvWr<'_>) -> Result<(), PostError> {
        if self.wqes.len() >= self.capacity {
            let capacity = u32::try_from(self.capacity).unwrap_or(u32::MAX);
            return Err(PostError::Full { capacity });
        }
        let (got, max) = (wr.sges.len(), self.max_sge);
        let count = u8::try_from(got).ok().filter(|_| got <= max);
        let count = count.ok_or(PostError::TooManySges { got, max })?;
        if self.wqes.len() == self.slots {
            self.grow();
        }
        let slot = self.next_slot;
        let at = slot * self.max_sge;
        self.sges[at..at + got].copy_from_slice(wr.sges);
        self.wqes.push_back((wr.wr_id, u32::try_from(slot).unwrap_or(u32::MAX), count));
        self.next_slot = if slot + 1 == self.slots { 0 } else { slot + 1 };
        Ok(())
    }

    /// Moves the oldest WQE into `taken`; says whether there was one.
    pub(crate) fn take(&mut self, taken: &mut Taken) -> bool {
        let Some((wr_id, slot, count)) = self.wqes.pop_front() else {
            return false;
        };
        let (at, count) = (slot as usize * self.max_sge, usize::from(count));
        taken.wr_id = wr_id;
        taken.count = count;
        taken.sges[..count].copy_from_slice(&self.sges[at..at + count]);
        true
    }

    /// Takes the oldest WQE away without its SGEs: it is flushed.
    pub(crate) fn pop(&mut self) -> Option<u64> {
        self.wqes.pop_front().map(|(wr_id, ..)| wr_id)
    }

    pub(crate) fn len(&self) -> usize {
        self.wqes.len()
    }

    pub(crate) fn clear(&mut self) {
        self.wqes.clear();
    }

    pub(crate) fn max_sge(&self) -> usize {
        self.max_sge
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// A ring of another capacity with the same WQEs, or `None` if they do not fit.
    fn resized(&self, capacity: usize) -> Option<Self> {
        if capacity < self.wqes.len() {
            return None;
        }
        let mut ring = Self::new(capacity, self.max_sge);
        for &(wr_id, slot, count) in &self.wqes {
            let at = slot as usize * self.max_sge;
            let sges = &self.sges[at..at + usize::from(count)];
            ring.post(&RecvWr { wr_id, sges }).ok()?;
        }
        Some(ring)
    }
}

/// A shared receive queue.
#[derive(Debug)]
pub(crate) struct Srq {
    pub(crate) id: SrqId,
    pub(crate) pd: PdId,
    /// XRC: the domain whose target QPs may use it, and the CQ they complete to.
    pub(crate) xrc: Option<(crate::types::XrcdId, std::sync::Arc<crate::cq::Cq>)>,
    inner: Mutex<SrqInner>,
}

#[derive(Debug)]
struct SrqInner {
    ring: Ring,
    /// Tell once when fewer WQEs than this are left; 0 is disarmed.
    limit: u32,
}

/// What an SRQ is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrqAttr {
    /// How many WQEs it holds at most.
    pub max_wr: u32,
    /// SGEs of each at most.
    pub max_sge: u32,
    /// Below so many WQEs an event tells; 0 when disarmed.
    pub limit: u32,
}

/// Why an SRQ was not modified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TooFew {
    /// The limit is above the size, which is or would be this.
    ForLimit(u32),
    /// The size is below this: what waits, or the limit that is armed.
    ForUse(u32),
}

impl Srq {
    pub(crate) fn new(
        id: SrqId,
        pd: PdId,
        xrc: Option<(crate::types::XrcdId, std::sync::Arc<crate::cq::Cq>)>,
        attr: SrqAttr,
    ) -> Self {
        let ring = Ring::new(attr.max_wr as usize, attr.max_sge as usize);
        Self { id, pd, xrc, inner: Mutex::new(SrqInner { ring, limit: attr.limit }) }
    }

    pub(crate) fn post(&self, wr: &RecvWr<'_>) -> Result<(), PostError> {
        self.inner.lock().ring.post(wr)
    }

    /// Takes a WQE; says whether there was one, and whether the limit was passed just now.
    pub(crate) fn take(&self, taken: &mut Taken) -> (bool, bool) {
        let inner = &mut *self.inner.lock();
        let took = inner.ring.take(taken);
        // IBA 10.2.9: below the limit one event, then the limit is disarmed.
        let below = took && inner.limit != 0 && inner.ring.len() < inner.limit as usize;
        if below {
            inner.limit = 0;
        }
        (took, below)
    }

    pub(crate) fn attr(&self) -> SrqAttr {
        let inner = self.inner.lock();
        let as_u32 = |n| u32::try_from(n).unwrap_or(u32::MAX);
        let (max_wr, max_sge) = (as_u32(inner.ring.capacity()), as_u32(inner.ring.max_sge()));
        SrqAttr { max_wr, max_sge, limit: inner.limit }
    }

    /// Sets the limit and how many WQEs fit, where given; says whether the limit is passed already.
    ///
    /// # Errors
    /// What is out of range; nothing changes then.
    pub(crate) fn modify(&self, limit: Option<u32>, max_wr: Option<u32>) -> Result<bool, TooFew> {
        let inner = &mut *self.inner.lock();
        let as_u32 = |n| u32::try_from(n).unwrap_or(u32::MAX);
        let (waiting, capacity) = (as_u32(inner.ring.len()), as_u32(inner.ring.capacity()));
        if let Some(limit) = limit
            && limit > max_wr.unwrap_or(capacity)
        {
            return Err(TooFew::ForLimit(max_wr.unwrap_or(capacity)));
        }
        if let Some(max_wr) = max_wr {
            // An armed limit above the size could never be passed again (Linux
            // drivers/infiniband/sw/rxe/rxe_srq.c, rxe_srq_chk_attr).
            let least = waiting.max(if limit.is_none() { inner.limit } else { 0 });
            let fits = Some(max_wr).filter(|&max_wr| max_wr >= least);
            let ring = fits.and_then(|max_wr| inner.ring.resized(max_wr as usize));
            inner.ring = ring.ok_or(TooFew::ForUse(least))?;
        }
        let Some(limit) = limit else { return Ok(false) };
        let below = limit != 0 && inner.ring.len() < limit as usize;
        inner.limit = if below { 0 } else { limit };
        Ok(below)
    }
}
