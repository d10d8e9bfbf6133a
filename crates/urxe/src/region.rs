//! Memory regions without what is behind them, and what becomes of those dropped too early.

use parking_lot::Mutex;
use urxe_memory::{Access, Backing, MemoryError, MrId, MrInfo, Rereg};

use crate::device::Device;
use crate::{Error, Pd};

/// A registration of memory, whosever it is; [`crate::Mr`] is one of a [`crate::Buffer`]. Dropping
/// it deregisters it: once that is done no peer touches its memory. While windows are bound to it,
/// it stays for them, and goes when the last of them is dropped, or the QP that bound it.
#[derive(Debug)]
pub struct Region {
    pub(crate) pd: Pd,
    pub(crate) info: MrInfo,
}

impl Region {
    /// What it was registered as: its keys, its first address.
    #[must_use]
    pub const fn info(&self) -> &MrInfo {
        &self.info
    }

    /// Whether it is in this PD.
    #[must_use]
    pub fn is_of(&self, pd: &Pd) -> bool {
        self.info.pd == pd.inner.id
    }

    /// Changes its memory (with the address of the first byte), PD or rights; what is `None` stays.
    /// New memory gives it new keys. When it returns, no access under the old terms is in progress.
    ///
    /// # Errors
    /// Where windows are bound to it, or as [`Pd::register_at`]. Nothing was changed then.
    pub fn reregister(
        &mut self,
        pd: Option<&Pd>,
        memory: Option<(Backing, u64)>,
        access: Option<Access>,
    ) -> Result<(), Error> {
        let device = self.pd.inner.device.live()?;
        if let Some(pd) = pd {
            self.pd.goes_with(&pd.inner.device, "PD")?;
        }
        let rereg = Rereg { memory, pd: pd.map(|pd| pd.inner.id), access };
        self.info = device.nic.memory().rereg_mr(self.info.id, rereg)?;
        if let Some(pd) = pd {
            self.pd = pd.clone();
        }
        Ok(())
    }

    /// What it is registered as, and how many windows are bound to it.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn query(&self) -> Result<MrInfo, Error> {
        Ok(self.pd.inner.device.live()?.nic.memory().query_mr(self.info.id)?)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let Ok(device) = self.pd.inner.device.live() else { return };
        match device.nic.memory().dereg_mr(self.info.id) {
            Ok(()) => {}
            Err(MemoryError::WindowsBound { .. }) => {
                device.leftovers.0.lock().push((self.info.id, self.pd.clone()));
                // The last window may have gone meanwhile.
                device.sweep();
            }
            Err(error) => tracing::error!(%error, "a region could not be deregistered"),
        }
    }
}

/// Regions that were dropped while windows were bound to them.
#[derive(Debug, Default)]
pub(crate) struct Leftovers(Mutex<Vec<(MrId, Pd)>>);

impl Device {
    /// Deregisters dropped regions whose windows have gone.
    pub(crate) fn sweep(&self) {
        let mut gone = Vec::new();
        let left = &mut *self.leftovers.0.lock();
        left.retain(|(id, pd)| match self.nic.memory().dereg_mr(*id) {
            Err(MemoryError::WindowsBound { .. }) => true,
            result => {
                if let Err(error) = result {
                    tracing::error!(%error, "a region could not be deregistered");
                }
                gone.push(pd.clone());
                false
            }
        });
    }
}
