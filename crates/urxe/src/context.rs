//! An open device.

use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use urxe_engine::{AsyncEvent, Caps, ObjectCounts, Profile, Time};
use urxe_net::{PortCaps, PortStatsSnapshot};
use urxe_wire::{Gid, Mtu};

use crate::cq::{CompChannel, Cq};
use crate::handle::Handle;
use crate::{Config, Error, Pd, Xrcd};

/// State of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortState {
    /// It can send and receive.
    Active,
    /// It cannot: its interface is down or gone, or the host refuses. [`AsyncEvent::PortErr`] told
    /// of it; [`AsyncEvent::PortActive`] will tell of its end.
    Down {
        /// Why.
        why: String,
    },
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
///
/// A device is of the process that opened it. In a child made by `fork` every call on it gives
/// [`Error::Forked`], and dropping it there changes nothing for the parent; the child opens its
/// own.
///
/// ```
/// use urxe::{Config, Context, PortState};
///
/// let context = Context::open(&Config::from_env()?)?;
/// let port = context.query_port();
/// assert_eq!(port.state, PortState::Active);
/// println!("{} on {}, GID {}", context.address(), port.interface, port.gids[0]);
/// # Ok::<(), urxe::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Context {
    pub(crate) device: Arc<Handle>,
}

impl Context {
    /// Opens a device.
    ///
    /// # Errors
    /// Where its port cannot be opened or a limit is out of range.
    pub fn open(config: &Config) -> Result<Self, Error> {
        Ok(Self { device: Arc::new(Handle::open(config)?) })
    }

    /// Opens the same device once more: what is made through one opening does not go with what is
    /// made through the other, and each has its own asynchronous events.
    ///
    /// # Errors
    /// [`Error::Forked`]; where the host has no more descriptors.
    pub fn again(&self) -> Result<Self, Error> {
        Ok(Self { device: Arc::new(self.device.again()?) })
    }

    /// Whether this process opened the device; see [`Error::Forked`].
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.device.is_ours()
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
        let broken = match self.device.live() {
            Ok(device) => device.health.broken(),
            Err(forked) => Some(forked.to_string()),
        };
        PortAttr {
            state: broken.map_or(PortState::Active, |why| PortState::Down { why }),
            max_mtu: Mtu::B4096,
            active_mtu: caps.mtu,
            gids: self.device.nic.config().addresses.iter().map(|&a| Gid::from(a)).collect(),
            interface: caps.interface.clone(),
            link_mtu: caps.link_mtu,
        }
    }

    /// The GID at `index`.
    #[must_use]
    pub fn query_gid(&self, index: usize) -> Option<Gid> {
        self.device.nic.config().addresses.get(index).map(|&a| Gid::from(a))
    }

    /// How many objects of each kind there are.
    #[must_use]
    pub fn counts(&self) -> ObjectCounts {
        let device = self.device.live();
        device.map_or_else(|_| ObjectCounts::default(), |device| device.nic.object_counts())
    }

    /// What its port is and can.
    #[must_use]
    pub fn port_caps(&self) -> &PortCaps {
        self.device.port.caps()
    }

    /// Its manners.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.device.nic.config().profile
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

    /// What its connection manager has counted and is not zero, by name; nothing before there is
    /// one.
    #[must_use]
    pub fn cm_counters(&self) -> Vec<(&'static str, u64)> {
        let manager = self.device.live().ok().and_then(|device| device.cm.get());
        manager.map_or_else(Vec::new, |manager| manager.counters().non_zero().collect())
    }

    /// How much its connection manager keeps.
    #[must_use]
    pub fn cm_stats(&self) -> crate::cm::Stats {
        let manager = self.device.live().ok().and_then(|device| device.cm.get());
        manager.map(crate::cm::Manager::stats).unwrap_or_default()
    }

    /// Writes out what the capture file still holds back, for programs that end without closing
    /// their devices. Nothing where there is no capture, or the device is another process's.
    pub fn flush_capture(&self) {
        if let (Ok(_), Some(tap)) = (self.device.live(), &self.device.tap) {
            tap.flush();
        }
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

    /// The oldest asynchronous event, if one waits. None in a child of the process that opened
    /// the device.
    #[must_use]
    pub fn take_async_event(&self) -> Option<AsyncEvent> {
        self.take_async_event_of().map(|(event, _)| event)
    }

    /// As [`Self::take_async_event`], with the number of the [`crate::QpShare`] that it came by; 0
    /// where it is of what was made through this opening, or of the whole device.
    #[must_use]
    pub fn take_async_event_of(&self) -> Option<(AsyncEvent, u32)> {
        self.device.live().ok().and_then(|_| self.device.asyncs.pop())
    }

    /// Waits for an asynchronous event, at most so long.
    ///
    /// # Errors
    /// Where waiting fails; [`Error::Forked`].
    pub fn wait_async_event(&self, timeout: Duration) -> Result<Option<AsyncEvent>, Error> {
        self.device.live()?;
        Ok(self.device.asyncs.wait(timeout)?.map(|(event, _)| event))
    }

    /// A descriptor that is readable while an asynchronous event waits.
    #[must_use]
    pub fn async_fd(&self) -> BorrowedFd<'_> {
        self.device.asyncs.fd()
    }

    /// The time now, as [`crate::Completion::at`] counts it: since the device was opened.
    #[must_use]
    pub fn now(&self) -> Time {
        self.device.now()
    }

    /// Sends what waits to be sent: requests that were posted while others were in flight, and ACKs
    /// for what the program has polled, wait for its next call, 500 µs at most. A program that
    /// drops its objects need not call this; one that ends without, should.
    pub fn flush(&self) {
        if let Ok(device) = self.device.live() {
            device.go_on();
        }
    }

    /// Makes progress as a poll does, for programs that wait for nothing else.
    pub fn progress(&self) {
        if let Ok(device) = self.device.live() {
            device.polling();
            device.progress();
        }
    }
}
