//! What all objects of a device hold: the device itself, whether it is still theirs, and where
//! their events go.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use urxe_net::fork;

use crate::device::Device;
use crate::events::{Queue, Told};
use crate::{Config, Error};

thread_local! {
    /// Whether this is a device's own thread, which cannot wait for its end. (Asking std for the
    /// current thread would leave memory behind in threads that it did not start.)
    pub(crate) static SERVES: Cell<bool> = const { Cell::new(false) };
}

/// One opening of a device: what is made through it belongs together, and its events come here.
#[derive(Debug)]
pub(crate) struct Handle {
    open: Arc<Open>,
    pub(crate) asyncs: Arc<Queue<Told>>,
}

/// Holds the device open; the last one stops its thread.
#[derive(Debug)]
struct Open {
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
        let device = open()?;
        Self::on(Arc::new(Open { device, forks }))
    }

    /// Another opening of the same device.
    pub(crate) fn again(&self) -> Result<Self, Error> {
        self.live()?;
        Self::on(Arc::clone(&self.open))
    }

    fn on(open: Arc<Open>) -> Result<Self, Error> {
        let asyncs = Arc::new(Queue::new()?);
        open.device.events.open(&asyncs);
        Ok(Self { open, asyncs })
    }

    /// The device, for calls that take locks or touch descriptors.
    ///
    /// # Errors
    /// [`Error::Forked`] in a child of the process that opened it.
    pub(crate) fn live(&self) -> Result<&Device, Error> {
        if self.is_ours() { Ok(&self.open.device) } else { Err(Error::Forked) }
    }

    /// Whether both are openings of one device.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.open, &other.open)
    }

    /// Whether this process opened the device. Where it did not, a lock may be held by a thread
    /// that is not here, and nobody makes progress.
    pub(crate) fn is_ours(&self) -> bool {
        self.open.is_ours()
    }
}

impl Open {
    fn is_ours(&self) -> bool {
        fork::generation_now() == self.forks
    }
}

/// For what takes no lock.
impl Deref for Handle {
    type Target = Device;

    fn deref(&self) -> &Device {
        &self.open.device
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.is_ours() {
            // The parent's: a tap would write what it holds a second time.
            std::mem::forget(Arc::clone(&self.device));
            return;
        }
        self.device.stop.store(true, Ordering::SeqCst);
        self.device.watch.ring_background();
        let thread = self.device.thread.lock().take();
        if let Some(thread) = thread
            && !SERVES.get()
        {
            // It only ends by itself or by a panic, which it has told of.
            let _ = thread.join();
        }
        self.device.last_packets();
    }
}
