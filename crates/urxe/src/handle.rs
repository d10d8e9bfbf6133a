//! What all objects of a device hold: the device itself, and whether it is still theirs.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use urxe_net::fork;

use crate::device::Device;
use crate::{Config, Error};

/// Holds the device open; the last one stops its thread.
#[derive(Debug)]
pub(crate) struct Handle {
    device: Arc<Device>,
    /// The fork it was opened after; see [`fork::generation`].
    forks: u32,
}

impl Handle {
    pub(crate) fn open(config: &Config) -> Result<Self, Error> {
        Self::of(|| Device::open(config))
    }

    /// Holds the device that `open` opens.
    pub(crate) fn of(open: impl FnOnce() -> Result<Arc<Device>, Error>) -> Result<Self, Error> {
        let forks = fork::generation();
        Ok(Self { device: open()?, forks })
    }

    /// The device, for calls that take locks or touch descriptors.
    ///
    /// # Errors
    /// [`Error::Forked`] in a child of the process that opened it.
    pub(crate) fn live(&self) -> Result<&Device, Error> {
        if self.is_ours() { Ok(&self.device) } else { Err(Error::Forked) }
    }

    /// Whether this process opened the device. Where it did not, a lock may be held by a thread
    /// that is not here, and nobody makes progress.
    pub(crate) fn is_ours(&self) -> bool {
        fork::generation_now() == self.forks
    }
}

/// For what takes no lock.
impl Deref for Handle {
    type Target = Device;

    fn deref(&self) -> &Device {
        &self.device
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.is_ours() {
            // The parent's: a tap would write what it holds a second time.
            std::mem::forget(Arc::clone(&self.device));
            return;
        }
        self.device.stop.store(true, Ordering::SeqCst);
        self.device.wake.ring();
        let thread = self.device.thread.lock().take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // It only ends by itself or by a panic, which it has told of.
            let _ = thread.join();
        }
        self.device.last_packets();
    }
}
