//! Memory regions: register, re-register, deregister, query.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::grant::{Grant, Last, Source, drain};
use crate::raw::Area;
use crate::table::{Slot, State};
use crate::{Access, Backing, Memory, MemoryError, MrId, PdId};

/// A region as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MrInfo {
    /// Handle, for the calls that change it.
    pub id: MrId,
    /// Key for local use.
    pub lkey: u32,
    /// Key for peers; of use to them only with a remote right.
    pub rkey: u32,
    /// Its PD.
    pub pd: PdId,
    /// First address, in the key's terms; 0 if zero-based.
    pub iova: u64,
    /// Bytes.
    pub length: u64,
    /// Rights.
    pub access: Access,
    /// False from an invalidation until the next re-registration.
    pub valid: bool,
    /// Windows bound to it.
    pub windows: u32,
}

/// What else a registration may ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MrOptions {
    /// The key may be invalidated by LOCAL_INV and SEND with invalidate, as that of a
    /// fast-registered region.
    pub invalidatable: bool,
}

/// A re-registration: what is `None` stays. All combinations are allowed.
#[derive(Debug, Default)]
pub struct Rereg {
    /// New memory and its iova.
    pub memory: Option<(Backing, u64)>,
    /// New PD.
    pub pd: Option<PdId>,
    /// New rights.
    pub access: Option<Access>,
}

impl Memory {
    /// Registers memory: from now on its bytes are reached under the keys in the answer, at
    /// addresses from `iova` on (or from 0, whatever `iova` is, with [`Access::ZERO_BASED`]).
    ///
    /// A region of length 0 is allowed; nothing can be reached through it.
    ///
    /// # Errors
    ///
    /// [`MemoryError::NeedsLocalWrite`], [`MemoryError::AddressOverflow`],
    /// [`MemoryError::UnknownPd`], [`MemoryError::Limit`].
    pub fn reg_mr(
        &self,
        pd: PdId,
        backing: Backing,
        iova: u64,
        access: Access,
    ) -> Result<MrInfo, MemoryError> {
        self.reg_mr_with(pd, backing, iova, access, MrOptions::default())
    }

    /// [`reg_mr`](Self::reg_mr) with options.
    ///
    /// # Errors
    ///
    /// As [`reg_mr`](Self::reg_mr).
    pub fn reg_mr_with(
        &self,
        pd: PdId,
        backing: Backing,
        iova: u64,
        access: Access,
        options: MrOptions,
    ) -> Result<MrInfo, MemoryError> {
        let start = first_address(access.check()?, iova, backing.len())?;
        let index = self.claim(pd, true)?;
        let Some(slot) = self.table.make(index) else {
            return Err(MemoryError::Limit { what: "keys", max: index });
        };
        let mut slot = slot.write();
        let grant = Grant {
            key: self.key(index, slot.low),
            pd,
            qpn: None,
            access,
            start,
            len: backing.len(),
            origin: 0,
            source: Source::Own(backing.0),
            invalidatable: options.invalidatable,
            windows: AtomicU32::new(0),
            last: Last::default(),
        };
        let info = info(MrId { index, serial: slot.serial }, &grant, true);
        slot.state = State::Region(Arc::new(grant));
        Ok(info)
    }

    /// Changes memory, PD or rights of a region.
    ///
    /// New memory gives the region new keys, and so does re-registering it after an invalidation;
    /// new rights or a new PD alone keep them (as Linux rxe does). Accesses that began
    /// before are waited for, as in [`dereg_mr`](Self::dereg_mr); later ones see the new state.
    ///
    /// # Errors
    ///
    /// [`MemoryError::UnknownMr`], [`MemoryError::WindowsBound`], [`MemoryError::MrBusy`] if
    /// another thread is changing it, and those of [`reg_mr`](Self::reg_mr). Nothing was changed
    /// then.
    pub fn rereg_mr(&self, id: MrId, change: Rereg) -> Result<MrInfo, MemoryError> {
        if let Some(pd) = change.pd {
            self.hold_pd(pd)?;
        }
        let new_pd = change.pd;
        let result = self.replace(id, change);
        let (info, old) = match result {
            Ok(done) => done,
            Err(error) => {
                new_pd.map_or(Ok(()), |pd| self.release_pd(pd))?;
                return Err(error);
            }
        };
        let old_pd = old.pd;
        drain(old);
        if let Some(slot) = self.table.get(id.index) {
            slot.write().changing = false;
        }
        new_pd.map_or(Ok(()), |_| self.release_pd(old_pd))?;
        Ok(info)
    }

    /// Puts the changed grant in the slot and marks it as changing; returns the old grant.
    fn replace(&self, id: MrId, change: Rereg) -> Result<(MrInfo, Arc<Grant>), MemoryError> {
        let unknown = MemoryError::UnknownMr(id);
        let mut slot = self.table.get(id.index).ok_or(unknown)?.write();
        let (old, valid) = unused_region(&slot, id)?;
        let access = change.access.unwrap_or(old.access).check()?;
        let renew = change.memory.is_some() || !valid;
        let (area, iova) = match change.memory {
            Some((backing, iova)) => (backing.0, iova),
            None => (old.area().map(Area::again).ok_or(unknown)?, old.start),
        };
        let start = first_address(access, iova, area.len())?;
        let low = slot.low.wrapping_add(u8::from(renew));
        let grant = Grant {
            key: self.key(id.index, low),
            pd: change.pd.unwrap_or(old.pd),
            qpn: None,
            access,
            start,
            len: area.len(),
            origin: 0,
            source: Source::Own(area),
            invalidatable: old.invalidatable,
            windows: AtomicU32::new(0),
            last: Last::default(),
        };
        let info = info(id, &grant, true);
        slot.low = low;
        slot.changing = true;
        match std::mem::replace(&mut slot.state, State::Region(Arc::new(grant))) {
            State::Region(old) | State::Invalid(old) => Ok((info, old)),
            other => {
                slot.state = other;
                Err(unknown)
            }
        }
    }

    /// Deregisters a region. From its start new accesses are refused; when it returns, all that had
    /// begun have ended, and the memory is the caller's alone.
    ///
    /// It waits for accesses in progress in other threads, each as long as one copy or one
    /// transmission. So a thread must not call it while it keeps a [`Pinned`](crate::Pinned) or
    /// [`Gather`](crate::Gather) of the region itself, or while it holds a lock that a holder of
    /// one may want: it would wait for ever. [`try_dereg_mr`](Self::try_dereg_mr) never waits.
    ///
    /// # Errors
    ///
    /// [`MemoryError::UnknownMr`], [`MemoryError::WindowsBound`], [`MemoryError::MrBusy`] if
    /// another thread is changing it.
    pub fn dereg_mr(&self, id: MrId) -> Result<(), MemoryError> {
        self.deregister(id, false)
    }

    /// Deregisters a region if no access to it is in progress.
    ///
    /// # Errors
    ///
    /// As [`dereg_mr`](Self::dereg_mr), and [`MemoryError::MrBusy`] if an access is in progress:
    /// the region is unchanged then.
    pub fn try_dereg_mr(&self, id: MrId) -> Result<(), MemoryError> {
        self.deregister(id, true)
    }

    fn deregister(&self, id: MrId, only_idle: bool) -> Result<(), MemoryError> {
        let unknown = MemoryError::UnknownMr(id);
        let lock = self.table.get(id.index).ok_or(unknown)?;
        let grant = {
            let mut slot = lock.write();
            let (grant, _) = unused_region(&slot, id)?;
            // With the slot held exclusively nobody can start a new access.
            if only_idle && Arc::strong_count(grant) > 1 {
                return Err(MemoryError::MrBusy { mr: id });
            }
            match std::mem::replace(&mut slot.state, State::Deregistering) {
                State::Region(grant) | State::Invalid(grant) => grant,
                other => {
                    slot.state = other;
                    return Err(unknown);
                }
            }
        };
        let pd = grant.pd;
        drain(grant);
        retire(&mut lock.write());
        self.give_back(id.index, pd, true)
    }

    /// A region as it stands.
    ///
    /// # Errors
    ///
    /// [`MemoryError::UnknownMr`].
    pub fn query_mr(&self, id: MrId) -> Result<MrInfo, MemoryError> {
        let unknown = MemoryError::UnknownMr(id);
        let slot = self.table.get(id.index).ok_or(unknown)?.read();
        region(&slot, id).map(|(grant, valid)| info(id, grant, valid))
    }

    /// Takes a key index for a region (or a window) of a PD.
    pub(crate) fn claim(&self, pd: PdId, is_mr: bool) -> Result<u32, MemoryError> {
        let control = &mut *self.control.lock();
        let count = if is_mr { &mut control.mrs } else { &mut control.mws };
        count.check()?;
        control.pds.hold(pd)?;
        let Some(index) = control.keys.alloc() else {
            control.pds.release(pd)?;
            return Err(MemoryError::Limit { what: "keys", max: control.keys.used() });
        };
        count.add();
        Ok(index)
    }

    /// Undoes [`claim`](Self::claim).
    pub(crate) fn give_back(&self, index: u32, pd: PdId, is_mr: bool) -> Result<(), MemoryError> {
        let control = &mut *self.control.lock();
        control.keys.free(index);
        if is_mr { &mut control.mrs } else { &mut control.mws }.remove();
        control.pds.release(pd)
    }
}

/// Empties a slot. Its next key has the next generation, its next object a new handle.
pub(crate) fn retire(slot: &mut Slot) {
    slot.state = State::Free;
    slot.low = slot.low.wrapping_add(1);
    slot.serial = slot.serial.wrapping_add(1);
}

/// The region in a slot, and whether its key is valid.
fn region(slot: &Slot, id: MrId) -> Result<(&Arc<Grant>, bool), MemoryError> {
    match &slot.state {
        _ if slot.serial != id.serial => Err(MemoryError::UnknownMr(id)),
        State::Region(grant) => Ok((grant, true)),
        State::Invalid(grant) => Ok((grant, false)),
        State::Deregistering => Err(MemoryError::MrBusy { mr: id }),
        State::Free | State::Window(_) => Err(MemoryError::UnknownMr(id)),
    }
}

/// The region in a slot, if nothing stands in the way of changing it.
fn unused_region(slot: &Slot, id: MrId) -> Result<(&Arc<Grant>, bool), MemoryError> {
    let (grant, valid) = region(slot, id)?;
    if slot.changing {
        return Err(MemoryError::MrBusy { mr: id });
    }
    match grant.windows.load(Relaxed) {
        0 => Ok((grant, valid)),
        windows => Err(MemoryError::WindowsBound { mr: id, windows }),
    }
}

/// First address of a region; checks that its last one exists.
fn first_address(access: Access, iova: u64, len: u64) -> Result<u64, MemoryError> {
    let start = if access.contains(Access::ZERO_BASED) { 0 } else { iova };
    if start.checked_add(len.saturating_sub(1)).is_none() {
        return Err(MemoryError::AddressOverflow { addr: start, len });
    }
    Ok(start)
}

fn info(id: MrId, grant: &Grant, valid: bool) -> MrInfo {
    MrInfo {
        id,
        lkey: grant.key,
        rkey: grant.key,
        pd: grant.pd,
        iova: grant.start,
        length: grant.len,
        access: grant.access,
        valid,
        windows: grant.windows.load(Relaxed),
    }
}
