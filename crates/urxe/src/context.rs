//! An open device.

use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use urxe_engine::{AsyncEvent, Caps};
use urxe_net::PortStatsSnapshot;
use urxe_wire::{Gid, Mtu};

use crate::cq::{CompChannel, Cq};
use crate::device::Device;
use crate::events::wait;
use crate::{Config, Error, Pd, Xrcd};

/// State of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// It can send and receive.
    Active,
}

/// What a port is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortAttr {
    /// Its state.
    pub state: PortState,
    /// The greatest path MTU.
    pub max_mtu: Mtu,
    /// The greatest path MTU that its link carries.
    pub active_mtu: Mtu,
    /// Its GIDs by index: one for each address.
    pub gids: Vec<Gid>,
    /// The interface it is on.
    pub interface: String,
    /// That interface's MTU, bytes.
    pub link_mtu: u32,
}

/// An open device. Dropping it, and all that was made from it, closes it.
#[derive(Debug)]
pub struct Context {
    pub(crate) device: Arc<Handle>,
}

/// Holds the device open; the last one stops its thread.
#[derive(Debug)]
pub(crate) struct Handle(pub(crate) Arc<Device>);

impl std::ops::Deref for Handle {
    type Target = Device;

    fn deref(&self) -> &Device {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::SeqCst);
        self.0.wake.ring();
        let thread = self.0.thread.lock().take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // It only ends by itself or by a panic, which it has told of.
            let _ = thread.join();
        }
    }
}

impl Context {
    /// Opens a device.
    ///
    /// # Errors
    /// Where its port cannot be opened or a limit is out of range.
    pub fn open(config: &Config) -> Result<Self, Error> {
        Ok(Self { device: Arc::new(Handle(Device::open(config)?)) })
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.device.address()
    }

    /// Its port.
    #[must_use]
    pub fn query_port(&self) -> PortAttr {
        let caps = self.device.port.caps();
        PortAttr {
            state: PortState::Active,
            max_mtu: Mtu::B4096,
            active_mtu: caps.mtu,
            gids: self.device.nic.config().addresses.iter().map(|&a| Gid::from(a)).collect(),
            interface: caps.interface.clone(),
            link_mtu: caps.link_mtu,
        }
    }

    /// Its limits.
    #[must_use]
    pub fn query_device(&self) -> Caps {
        self.device.nic.config().caps
    }

    /// What its engine has counted and is not zero, by name.
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.device.nic.counters().non_zero().collect()
    }

    /// What its port has counted.
    #[must_use]
    pub fn port_stats(&self) -> PortStatsSnapshot {
        self.device.port.stats().snapshot()
    }

    /// Makes a protection domain.
    ///
    /// # Errors
    /// Where there are no more.
    pub fn alloc_pd(&self) -> Result<Pd, Error> {
        Pd::new(&self.device)
    }

    /// Makes a completion queue of `capacity` completions.
    ///
    /// # Errors
    /// Where the capacity is out of range or there are no more.
    pub fn create_cq(&self, capacity: u32) -> Result<Cq, Error> {
        Cq::new(&self.device, capacity, None)
    }

    /// Makes a completion queue whose events come through `channel`.
    ///
    /// # Errors
    /// As [`Self::create_cq`].
    pub fn create_cq_on(&self, capacity: u32, channel: &CompChannel) -> Result<Cq, Error> {
        Cq::new(&self.device, capacity, Some(channel))
    }

    /// Makes a completion channel.
    ///
    /// # Errors
    /// Where the host has no more descriptors.
    pub fn create_comp_channel(&self) -> Result<CompChannel, Error> {
        CompChannel::new(&self.device)
    }

    /// Makes an XRC domain.
    ///
    /// # Errors
    /// Where there are no more.
    pub fn alloc_xrcd(&self) -> Result<Xrcd, Error> {
        Xrcd::new(&self.device)
    }

    /// The oldest asynchronous event, if one waits.
    #[must_use]
    pub fn take_async_event(&self) -> Option<AsyncEvent> {
        self.device.events.asyncs.pop()
    }

    /// Waits for an asynchronous event, at most so long.
    ///
    /// # Errors
    /// Where waiting fails.
    pub fn wait_async_event(&self, timeout: Duration) -> Result<Option<AsyncEvent>, Error> {
        wait(&[self.async_fd()], Some(timeout))?;
        Ok(self.take_async_event())
    }

    /// A descriptor that is readable while an asynchronous event waits.
    #[must_use]
    pub fn async_fd(&self) -> BorrowedFd<'_> {
        self.device.events.asyncs.fd()
    }

    /// Makes progress as a poll does, for programs that wait for nothing else.
    pub fn progress(&self) {
        self.device.polling();
        self.device.progress();
    }
}
