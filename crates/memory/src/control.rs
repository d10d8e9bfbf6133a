//! The books: which PDs exist and who uses them, how many regions and windows, which indexes are
//! free. Behind one lock, taken only to make and destroy objects.

use std::collections::VecDeque;

use crate::table::INDEXES;
use crate::{Config, MemoryError, PdId};

/// Freed key indexes that wait before the first of them is used again, so that a stale key is
/// refused for long: 256 generations of as many indexes pass before a key recurs.
const RESTING: usize = 256;

#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) pds: Pds,
    pub(crate) keys: Keys,
    pub(crate) mrs: Count,
    pub(crate) mws: Count,
}

impl Control {
    pub(crate) fn new(config: &Config, mask: u32) -> Self {
        Self {
            pds: Pds { entries: Vec::new(), free: VecDeque::new(), max: config.max_pd },
            keys: Keys { next: 0, free: VecDeque::new(), mask },
            mrs: Count { what: "memory regions", now: 0, max: config.max_mr },
            mws: Count { what: "memory windows", now: 0, max: config.max_mw },
        }
    }
}

/// How many objects of a kind there are.
#[derive(Debug)]
pub(crate) struct Count {
    what: &'static str,
    now: u32,
    max: u32,
}

impl Count {
    pub(crate) fn check(&self) -> Result<(), MemoryError> {
        if self.now >= self.max {
            return Err(MemoryError::Limit { what: self.what, max: self.max });
        }
        Ok(())
    }

    pub(crate) const fn add(&mut self) {
        self.now += 1;
    }

    pub(crate) const fn remove(&mut self) {
        self.now = self.now.saturating_sub(1);
    }

    pub(crate) const fn now(&self) -> u32 {
        self.now
    }
}

#[derive(Debug)]
struct PdEntry {
    serial: u32,
    alive: bool,
    users: u32,
}

/// The protection domains.
#[derive(Debug)]
pub(crate) struct Pds {
    entries: Vec<PdEntry>,
    free: VecDeque<u32>,
    max: u32,
}

impl Pds {
    pub(crate) fn alloc(&mut self) -> Result<PdId, MemoryError> {
        if let Some(index) = self.free.pop_front() {
            let entry = &mut self.entries[index as usize];
            entry.alive = true;
            return Ok(PdId { index, serial: entry.serial });
        }
        let limit = MemoryError::Limit { what: "protection domains", max: self.max };
        let index = u32::try_from(self.entries.len()).ok().filter(|&index| index < self.max);
        self.entries.push(PdEntry { serial: 0, alive: true, users: 0 });
        let Some(index) = index else {
            self.entries.pop();
            return Err(limit);
        };
        Ok(PdId { index, serial: 0 })
    }

    pub(crate) fn dealloc(&mut self, pd: PdId) -> Result<(), MemoryError> {
        let entry = self.entry(pd)?;
        if entry.users > 0 {
            return Err(MemoryError::PdBusy { pd, users: entry.users });
        }
        entry.alive = false;
        entry.serial = entry.serial.wrapping_add(1);
        self.free.push_back(pd.index);
        Ok(())
    }

    pub(crate) fn count(&self) -> u32 {
        let free = u32::try_from(self.free.len()).unwrap_or(u32::MAX);
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX).saturating_sub(free)
    }

    pub(crate) fn hold(&mut self, pd: PdId) -> Result<(), MemoryError> {
        self.entry(pd)?.users += 1;
        Ok(())
    }

    pub(crate) fn release(&mut self, pd: PdId) -> Result<(), MemoryError> {
        let entry = self.entry(pd)?;
        entry.users = entry.users.checked_sub(1).ok_or(MemoryError::PdNotHeld(pd))?;
        Ok(())
    }

    fn entry(&mut self, pd: PdId) -> Result<&mut PdEntry, MemoryError> {
        self.entries
            .get_mut(pd.index as usize)
            .filter(|entry| entry.alive && entry.serial == pd.serial)
            .ok_or(MemoryError::UnknownPd(pd))
    }
}

/// The key indexes. Slots are used from 0 up; the index in a key is the slot's number under `mask`,
/// so that a peer cannot count on the first key.
#[derive(Debug)]
pub(crate) struct Keys {
    /// First slot that was never used.
    next: u32,
    free: VecDeque<u32>,
    mask: u32,
}

impl Keys {
    /// A slot nobody uses; the caller has checked that regions and windows are within their limits.
    pub(crate) fn alloc(&mut self) -> Option<u32> {
        if self.free.len() <= RESTING {
            while self.next < INDEXES {
                let slot = self.next;
                self.next += 1;
                // The first and the last index stay unused: programs take keys 0 and !0 for "none".
                if !matches!(slot ^ self.mask, 0 | 0xff_ffff) {
                    return Some(slot);
                }
            }
        }
        self.free.pop_front()
    }

    pub(crate) fn free(&mut self, slot: u32) {
        self.free.push_back(slot);
    }

    /// Slots that were ever used are below this.
    pub(crate) const fn used(&self) -> u32 {
        self.next
    }
}

#[cfg(test)]
mod tests;
