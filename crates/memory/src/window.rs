//! Memory windows: allocate, bind, invalidate, deallocate.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::grant::{Grant, Last, Source};
use crate::memory::QPN_CLASSES;
use crate::region::retire;
use crate::table::{Slot, State, Window, low_byte};
use crate::{Access, KeyError, Memory, MemoryError, MwId, PdId};

/// Type of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MwType {
    /// Bound by any QP of its PD, used by any QP of its PD; a bind may replace the binding.
    Type1,
    /// Bound by a work request that brings the low byte of its key, used only by the QP that bound
    /// it, and invalidated before it is bound again.
    Type2B,
}

/// A window as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MwInfo {
    /// Handle.
    pub id: MwId,
    /// Its type.
    pub kind: MwType,
    /// Its PD.
    pub pd: PdId,
    /// Its present key.
    pub rkey: u32,
    /// Whether it is bound.
    pub bound: bool,
    /// First address of the binding, in the key's terms.
    pub start: u64,
    /// Bytes of the binding; 0 if unbound.
    pub length: u64,
    /// Rights of the binding.
    pub access: Access,
}

/// A bind of a window, as a QP's work request asks for it.
#[derive(Clone, Copy, Debug)]
pub struct BindMw {
    /// The window.
    pub mw: MwId,
    /// PD of the QP.
    pub pd: PdId,
    /// The QP: the only one to use a type 2B window.
    pub qpn: u32,
    /// Key of the region to bind to; not looked at if `len` is 0.
    pub lkey: u32,
    /// The key that the window gets: its index must be the window's, its low byte is the consumer's
    /// choice. Type 2 needs it. Type 1 may have it, if it differs from the present key; without,
    /// the low byte is the present one + 1 (as `ibv_inc_rkey`).
    pub new_rkey: Option<u32>,
    /// First address, in the region's terms.
    pub addr: u64,
    /// Bytes; 0 unbinds a type 1 window.
    pub len: u64,
    /// Remote rights, and `ZERO_BASED` (type 2 only).
    pub access: Access,
}

/// Counts a window on a region, and discounts it if the bind is not completed.
struct Counted(Option<Arc<Grant>>);

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(region) = &self.0 {
            region.windows.fetch_sub(1, Relaxed);
        }
    }
}

impl Memory {
    /// Makes an unbound window; returns its key too.
    ///
    /// # Errors
    ///
    /// [`MemoryError::UnknownPd`], [`MemoryError::Limit`].
    pub fn alloc_mw(&self, pd: PdId, kind: MwType) -> Result<(MwId, u32), MemoryError> {
        let index = self.claim(pd, false)?;
        let Some(slot) = self.table.make(index) else {
            return Err(MemoryError::Limit { what: "keys", max: index });
        };
        let mut slot = slot.write();
        let key = self.key(index, slot.low);
        let grant = Arc::new(unbound(key, pd));
        slot.state = State::Window(Window { kind, bound: false, grant });
        Ok((MwId { index, serial: slot.serial }, key))
    }

    /// Destroys a window, bound or not. Accesses that began before may still end; the region's
    /// deregistration waits for them.
    ///
    /// # Errors
    ///
    /// [`MemoryError::UnknownMw`].
    pub fn dealloc_mw(&self, id: MwId) -> Result<(), MemoryError> {
        let unknown = MemoryError::UnknownMw(id);
        let pd = {
            let mut slot = self.table.get(id.index).ok_or(unknown)?.write();
            let window = window_of(&mut slot, id).ok_or(unknown)?;
            let pd = window.grant.pd;
            self.unbind(window);
            retire(&mut slot);
            pd
        };
        self.give_back(id.index, pd, false)
    }

    /// A window as it stands.
    ///
    /// # Errors
    ///
    /// [`MemoryError::UnknownMw`].
    pub fn query_mw(&self, id: MwId) -> Result<MwInfo, MemoryError> {
        let unknown = MemoryError::UnknownMw(id);
        let slot = self.table.get(id.index).ok_or(unknown)?.read();
        match &slot.state {
            State::Window(Window { kind, bound, grant }) if slot.serial == id.serial => {
                Ok(MwInfo {
                    id,
                    kind: *kind,
                    pd: grant.pd,
                    rkey: self.key(id.index, slot.low),
                    bound: *bound,
                    start: grant.start,
                    length: grant.len,
                    access: grant.access,
                })
            }
            _ => Err(unknown),
        }
    }

    /// Binds a window to a range of a region, or unbinds it (type 1, length 0); returns its new
    /// key. The old key is refused from now on. Nothing changes if it fails.
    ///
    /// A window's remote rights need not be among those of the region, whose own key may give peers
    /// none; the region needs `MW_BIND`, and `LOCAL_WRITE` for a window that peers change memory
    /// through.
    ///
    /// # Errors
    ///
    /// Any [`KeyError`] of the region's key, range and rights; [`KeyError::UnknownMw`],
    /// [`KeyError::WrongPd`], [`KeyError::NewKey`], [`KeyError::AlreadyBound`],
    /// [`KeyError::ZeroLengthBind`], [`KeyError::ZeroBasedRegion`], [`KeyError::WindowAccess`].
    pub fn bind_mw(&self, bind: &BindMw) -> Result<u32, KeyError> {
        let unknown = KeyError::UnknownMw { mw: bind.mw };
        let mut region = Counted(if bind.len == 0 { None } else { Some(self.bindable(bind)?) });
        let mut slot = self.table.get(bind.mw.index).ok_or(unknown)?.write();
        let key = self.key(bind.mw.index, slot.low);
        let window = window_of(&mut slot, bind.mw).ok_or(unknown)?;
        let kind = window.kind;
        // IBA C10-72: window and QP are of one PD.
        window.grant.check_pd(bind.pd)?;
        check_access(key, kind, bind.access)?;
        if kind == MwType::Type2B {
            if window.bound {
                return Err(KeyError::AlreadyBound { key }); // IBA o10-37.2.30
            }
            if bind.len == 0 {
                return Err(KeyError::ZeroLengthBind { key }); // IBA o10-37.2.40
            }
        }
        let new = new_key(key, kind, bind.new_rkey)?;
        self.unbind(window);
        if let Some(region) = region.0.take() {
            let origin = bind.addr - region.start; // `bindable` checked the range
            let zero_based = bind.access.contains(Access::ZERO_BASED);
            let binding = Grant {
                qpn: (kind == MwType::Type2B).then_some(bind.qpn),
                access: bind.access,
                start: if zero_based { 0 } else { bind.addr },
                len: bind.len,
                origin,
                source: Source::Of(region),
                ..unbound(new, bind.pd)
            };
            self.count_qp(binding.qpn, true);
            put(window, binding);
            window.bound = true;
        } else {
            put(window, unbound(new, bind.pd));
        }
        slot.low = low_byte(new);
        Ok(new)
    }

    /// The region of a bind, with the window already counted on it.
    fn bindable(&self, bind: &BindMw) -> Result<Arc<Grant>, KeyError> {
        let key = bind.lkey;
        let slot = self.slot(key)?.read();
        slot.check(key)?;
        let State::Region(region) = &slot.state else {
            return Err(KeyError::NotARegion { key });
        };
        region.check_pd(bind.pd)?;
        region.check_rights(Access::MW_BIND)?; // IBA C10-73
        if bind.access.intersects(Access::REMOTE_CHANGE) {
            region.check_rights(Access::LOCAL_WRITE)?; // IBA C10-74
        }
        if region.access.contains(Access::ZERO_BASED) {
            return Err(KeyError::ZeroBasedRegion { key });
        }
        region.locate(bind.addr, bind.len)?; // IBA C10-75
        region.windows.fetch_add(1, Relaxed);
        Ok(Arc::clone(region))
    }

    /// Invalidates a key: LOCAL_INV, or an incoming SEND with invalidate (`remote`).
    ///
    /// Only regions registered as invalidatable and bound type 2 windows can be. New accesses are
    /// refused when it returns; accesses that began before may still end (it does not wait, for it
    /// runs amid the packets of a QP), and deregistering the region waits for them.
    ///
    /// # Errors
    ///
    /// [`KeyError::NotInvalidatable`], [`KeyError::WindowsBound`], [`KeyError::NotBound`], those
    /// of any key, PD and QP, and [`KeyError::Rights`] if `remote` and the key has no remote right.
    pub fn invalidate(&self, pd: PdId, qpn: u32, rkey: u32, remote: bool) -> Result<(), KeyError> {
        let key = rkey;
        let mut slot = self.slot(key)?.write();
        slot.check(key)?;
        let slot = &mut *slot;
        match &mut slot.state {
            State::Region(grant) => {
                grant.check_pd(pd)?;
                if !grant.invalidatable {
                    return Err(KeyError::NotInvalidatable { key });
                }
                if remote && !grant.access.intersects(Access::REMOTE) {
                    return grant.check_rights(Access::REMOTE);
                }
                let windows = grant.windows.load(Relaxed);
                if windows > 0 {
                    return Err(KeyError::WindowsBound { key, windows });
                }
                let grant = Arc::clone(grant);
                slot.state = State::Invalid(grant);
                Ok(())
            }
            State::Window(window) => {
                window.grant.check_pd(pd)?;
                if window.kind == MwType::Type1 {
                    return Err(KeyError::NotInvalidatable { key }); // IBA o10-37.2.26
                }
                if !window.bound {
                    return Err(KeyError::NotBound { key });
                }
                window.grant.check_qp(qpn)?;
                self.unbind(window);
                Ok(())
            }
            State::Free | State::Deregistering | State::Invalid(_) => {
                Err(KeyError::UnknownKey { key })
            }
        }
    }

    /// Unbinds all type 2B windows of a QP that is being destroyed, so that a later QP with its
    /// number finds none; returns how many there were.
    ///
    /// Costs nothing if no window is bound, else a walk over the table.
    pub fn unbind_qp(&self, qpn: u32) -> usize {
        if self.qp_windows[qpn as usize % QPN_CLASSES].load(Relaxed) == 0 {
            return 0;
        }
        let used = self.control.lock().keys.used();
        let slots = (0..used).filter_map(|index| self.table.get(index));
        let of_qp = slots.filter(|slot| {
            let mut slot = slot.write();
            match &mut slot.state {
                State::Window(window) if window.bound && window.grant.qpn == Some(qpn) => {
                    self.unbind(window);
                    true
                }
                _ => false,
            }
        });
        of_qp.count()
    }

    /// Takes a window's binding, if it has one.
    fn unbind(&self, window: &mut Window) {
        if !window.bound {
            return;
        }
        if let Source::Of(region) = &window.grant.source {
            region.windows.fetch_sub(1, Relaxed);
        }
        self.count_qp(window.grant.qpn, false);
        window.bound = false;
        put(window, unbound(window.grant.key, window.grant.pd));
    }

    fn count_qp(&self, qpn: Option<u32>, bound: bool) {
        if let Some(qpn) = qpn {
            let count = &self.qp_windows[qpn as usize % QPN_CLASSES];
            if bound {
                count.fetch_add(1, Relaxed)
            } else {
                count.fetch_sub(1, Relaxed)
            };
        }
    }
}

/// The grant of a window that is not bound.
fn unbound(key: u32, pd: PdId) -> Grant {
    Grant {
        key,
        pd,
        qpn: None,
        access: Access::empty(),
        start: 0,
        len: 0,
        origin: 0,
        source: Source::Unbound,
        invalidatable: false,
        windows: AtomicU32::new(0),
        last: Last::default(),
    }
}

/// Gives a window another grant, in place unless an access still has the old one pinned.
fn put(window: &mut Window, grant: Grant) {
    match Arc::get_mut(&mut window.grant) {
        Some(spare) => *spare = grant,
        None => window.grant = Arc::new(grant),
    }
}

fn window_of(slot: &mut Slot, id: MwId) -> Option<&mut Window> {
    match &mut slot.state {
        State::Window(window) if slot.serial == id.serial => Some(window),
        _ => None,
    }
}

/// A window carries remote rights only; only type 2 can be zero-based (IBA o10-36.2.2).
fn check_access(key: u32, kind: MwType, access: Access) -> Result<(), KeyError> {
    let allowed = match kind {
        MwType::Type1 => Access::REMOTE,
        MwType::Type2B => Access::REMOTE | Access::ZERO_BASED,
    };
    let access = access.difference(allowed);
    if !access.is_empty() {
        return Err(KeyError::WindowAccess { key, access, kind });
    }
    Ok(())
}

/// The key that a bind gives a window.
fn new_key(key: u32, kind: MwType, wanted: Option<u32>) -> Result<u32, KeyError> {
    let index = key & !0xff;
    match (wanted, kind) {
        (Some(new), MwType::Type2B) if new & !0xff == index => Ok(new),
        (Some(new), MwType::Type1) if new & !0xff == index && new != key => Ok(new),
        (None, MwType::Type1) => Ok(index | u32::from(low_byte(key).wrapping_add(1))),
        (got, _) => Err(KeyError::NewKey { key, got, kind }),
    }
}
