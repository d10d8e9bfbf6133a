//! What a key allows, and the wait for the last access under it.

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex};

use crate::raw::Area;
use crate::{Access, KeyError, PdId};

/// The bytes behind a grant.
#[derive(Debug)]
pub(crate) enum Source {
    /// A region's own.
    Own(Area),
    /// A window's: those of the region, which therefore outlives every access through the window.
    Of(Arc<Grant>),
    /// An unbound window has none.
    Unbound,
}

/// What a key allows, for as long as the key stands: a region's, or a bound window's.
///
/// An access holds an `Arc` of it, the pin. Taking the grant from its slot stops new accesses; when
/// the last pin goes, dropping `last` tells whoever waits at the gate.
#[derive(Debug)]
pub(crate) struct Grant {
    /// The key when the grant was made.
    pub(crate) key: u32,
    pub(crate) pd: PdId,
    /// The QP that alone may use it (type 2B windows).
    pub(crate) qpn: Option<u32>,
    pub(crate) access: Access,
    /// First address, in the key's own terms.
    pub(crate) start: u64,
    /// Bytes.
    pub(crate) len: u64,
    /// Where `start` stands in the area.
    pub(crate) origin: u64,
    pub(crate) source: Source,
    /// Whether a peer or a work request may invalidate this region.
    pub(crate) invalidatable: bool,
    /// Windows bound to this region. Raised under its slot's shared lock, so that whoever holds the
    /// slot exclusively and reads 0 knows that none is being bound.
    pub(crate) windows: AtomicU32,
    /// The last field, so that the memory is let go before the gate opens.
    pub(crate) last: Last,
}

impl Grant {
    pub(crate) fn area(&self) -> Option<&Area> {
        match &self.source {
            Source::Own(area) => Some(area),
            Source::Of(region) => region.area(),
            Source::Unbound => None,
        }
    }

    /// IBA C10-56: key and user must be of one PD.
    pub(crate) fn check_pd(&self, pd: PdId) -> Result<(), KeyError> {
        if self.pd != pd {
            return Err(KeyError::WrongPd { key: self.key, owner: self.pd, used: pd });
        }
        Ok(())
    }

    /// A type 2B window is for one QP.
    pub(crate) fn check_qp(&self, qpn: u32) -> Result<(), KeyError> {
        match self.qpn {
            Some(bound) if bound != qpn => {
                Err(KeyError::WrongQp { key: self.key, bound, used: qpn })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn check_rights(&self, need: Access) -> Result<(), KeyError> {
        if !self.access.contains(need) {
            return Err(KeyError::Rights { key: self.key, need, have: self.access });
        }
        Ok(())
    }

    /// Where `len` bytes at address `addr` stand in the area.
    pub(crate) fn locate(&self, addr: u64, len: u64) -> Result<u64, KeyError> {
        let within = addr
            .checked_sub(self.start)
            .filter(|offset| offset.checked_add(len).is_some_and(|end| end <= self.len));
        let (start, length) = (self.start, self.len);
        // `origin + len` is within the area, so this sum cannot overflow.
        within.map(|offset| self.origin + offset).ok_or(KeyError::Range {
            key: self.key,
            addr,
            len,
            start,
            length,
        })
    }
}

/// Opens the gate, if somebody waits at one, when its grant is gone.
#[derive(Debug, Default)]
pub(crate) struct Last(OnceLock<Arc<Gate>>);

impl Drop for Last {
    fn drop(&mut self) {
        if let Some(gate) = self.0.get() {
            gate.open();
        }
    }
}

/// Opens once.
#[derive(Debug, Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.open.lock() = true;
        self.opened.notify_all();
    }

    fn wait(&self) {
        let mut open = self.open.lock();
        while !*open {
            self.opened.wait(&mut open);
        }
    }
}

/// Waits until the last access under a grant has ended. The grant must be out of its slot already.
///
/// No wake-up can be lost: the gate is set before this reference is dropped, so whichever reference
/// is the last one finds it, and it stays open. All copies happen before the return: `Arc` orders
/// each drop before the last one's `Last::drop`, and the gate's mutex orders that before us.
pub(crate) fn drain(grant: Arc<Grant>) {
    let Err(pinned) = Arc::try_unwrap(grant).map(drop) else {
        return;
    };
    let gate = Arc::clone(pinned.last.0.get_or_init(Arc::default));
    drop(pinned);
    gate.wait();
}
