//! The registry of one NIC: its set-up, PDs, and the way from key to slot.

use std::sync::atomic::AtomicU32;

use parking_lot::{Mutex, RwLock};

use crate::control::Control;
use crate::table::{INDEXES, Slot, Table, mix};
use crate::{KeyError, MemoryError, PdId};

/// Limits and seed of a [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Varies the keys that are given out. The same seed and calls give the same keys; with 0 the
    /// indexes count up from 1.
    pub key_seed: u32,
    /// Most PDs at a time; at most 2²⁴.
    pub max_pd: u32,
    /// Most regions at a time.
    pub max_mr: u32,
    /// Most windows at a time. Regions and windows share 2²⁴ − 2 key indexes.
    pub max_mw: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { key_seed: 0, max_pd: 1 << 16, max_mr: 1 << 23, max_mw: 1 << 22 }
    }
}

/// Key indexes that can be given out.
const USABLE: u32 = INDEXES - 2;
/// Classes of QPNs in which type 2B windows are counted; a power of two.
pub(crate) const QPN_CLASSES: usize = 64;

/// The registered memory of one NIC.
///
/// All methods take `&self` and may be called from any thread. Those of the data path
/// ([`gather`](Self::gather), [`scatter`](Self::scatter), [`remote`](Self::remote)) allocate
/// nothing, and take one short shared lock per key, on that key alone.
#[derive(Debug)]
pub struct Memory {
    config: Config,
    /// Index in a key = slot number ^ `mask`.
    pub(crate) mask: u32,
    pub(crate) table: Table,
    /// Taken before any slot's lock, never while holding one.
    pub(crate) control: Mutex<Control>,
    /// Bound type 2B windows by the low bits of their QPN.
    pub(crate) qp_windows: [AtomicU32; QPN_CLASSES],
}

impl Memory {
    /// An empty registry. Limits above what keys can tell apart are lowered; see
    /// [`config`](Self::config).
    #[must_use]
    pub fn new(config: Config) -> Self {
        let max_mr = config.max_mr.min(USABLE);
        let config = Config {
            max_pd: config.max_pd.min(INDEXES),
            max_mr,
            max_mw: config.max_mw.min(USABLE - max_mr),
            ..config
        };
        let seed = mix(config.key_seed);
        let mask = seed >> 8;
        Self {
            config,
            mask,
            table: Table::new(seed),
            control: Mutex::new(Control::new(&config, mask)),
            qp_windows: [const { AtomicU32::new(0) }; QPN_CLASSES],
        }
    }

    /// The limits in force.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Makes a protection domain.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Limit`].
    pub fn alloc_pd(&self) -> Result<PdId, MemoryError> {
        self.control.lock().pds.alloc()
    }

    /// Destroys a protection domain that nothing uses.
    ///
    /// # Errors
    ///
    /// [`MemoryError::PdBusy`], [`MemoryError::UnknownPd`].
    pub fn dealloc_pd(&self, pd: PdId) -> Result<(), MemoryError> {
        self.control.lock().pds.dealloc(pd)
    }

    /// Notes one more user of a PD (QP, SRQ, AH): it cannot be deallocated until as many
    /// [`release_pd`](Self::release_pd) calls were made.
    ///
    /// # Errors
    ///
    /// [`MemoryError::UnknownPd`].
    pub fn hold_pd(&self, pd: PdId) -> Result<(), MemoryError> {
        self.control.lock().pds.hold(pd)
    }

    /// Takes back one [`hold_pd`](Self::hold_pd).
    ///
    /// # Errors
    ///
    /// [`MemoryError::UnknownPd`], [`MemoryError::PdNotHeld`].
    pub fn release_pd(&self, pd: PdId) -> Result<(), MemoryError> {
        self.control.lock().pds.release(pd)
    }

    /// Protection domains alive.
    #[must_use]
    pub fn pd_count(&self) -> u32 {
        self.control.lock().pds.count()
    }

    /// Regions alive.
    #[must_use]
    pub fn mr_count(&self) -> u32 {
        self.control.lock().mrs.now()
    }

    /// Windows alive.
    #[must_use]
    pub fn mw_count(&self) -> u32 {
        self.control.lock().mws.now()
    }

    /// The slot that a key's index leads to.
    pub(crate) fn slot(&self, key: u32) -> Result<&RwLock<Slot>, KeyError> {
        self.table.get((key >> 8) ^ self.mask).ok_or(KeyError::UnknownKey { key })
    }

    /// The key of a slot under a generation.
    pub(crate) fn key(&self, slot: u32, low: u8) -> u32 {
        ((slot ^ self.mask) << 8) | u32::from(low)
    }
}
