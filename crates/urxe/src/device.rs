//! The device: one NIC on one port, and the only reader of the clock.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use urxe_engine::{Nic, NicConfig, Time};
use urxe_net::tap::TapHandle;
use urxe_net::{IcrcMode, Port, PortError, RxBatch};
use urxe_wire::Mtu;

use crate::cm::Slot;
use crate::events::Events;
use crate::groups::Groups;
use crate::health::Health;
use crate::link::Link;
use crate::region::Leftovers;
use crate::sink::Outbox;
use crate::watch::Watch;
use crate::{Config, Error, Observer};

/// Datagrams, or runs of them, that one receive brings.
const RX_SLOTS: usize = 16;

/// A device.
pub(crate) struct Device {
    pub(crate) nic: Nic,
    pub(crate) port: Box<dyn Port>,
    pub(crate) tap: Option<TapHandle>,
    pub(crate) icrc: IcrcMode,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) health: Health,
    pub(crate) groups: Groups,
    pub(crate) cm: Slot,
    pub(crate) leftovers: Leftovers,
    pub(crate) epoch: Instant,
    pub(crate) tx: Outbox,
    pub(crate) rx: Mutex<RxBatch>,
    pub(crate) events: Events,
    /// When a thread polled last, ns; the background thread stands aside then.
    pub(crate) polled: AtomicU64,
    /// Whether a program waits for a completion event; its polls then do not keep the background
    /// thread away.
    pub(crate) armed: AtomicBool,
    pub(crate) watch: Watch,
    /// How long whoever watches sleeps at most.
    pub(crate) look_up: Duration,
    pub(crate) stop: AtomicBool,
    pub(crate) thread: Mutex<Option<JoinHandle<()>>>,
    /// Where PSNs of QPs start; counted on.
    pub(crate) psn_seed: AtomicU64,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("port", self.port.caps()).finish_non_exhaustive()
    }
}

impl Device {
    pub(crate) fn open(config: &Config) -> Result<Arc<Self>, Error> {
        Self::over(Link::open(config)?, config)
    }

    /// A device on this port.
    pub(crate) fn over(link: Link, config: &Config) -> Result<Arc<Self>, Error> {
        let Link { port, tap } = link;
        let caps = port.caps().clone();
        let seed = config.seed.unwrap_or_else(now_as_seed);
        let nic = Nic::new(NicConfig {
            active_mtu: caps.mtu,
            caps: config.caps,
            profile: config.profile,
            seed: u32::try_from(seed & 0xffff_ffff).unwrap_or(0),
            max_window: config.window,
            slot: caps.slot.unwrap_or(0),
            ..NicConfig::new(caps.address)
        })?;
        let device = Arc::new(Self {
            nic,
            port,
            tap,
            icrc: config.icrc,
            observer: config.looks_on(),
            health: Health::default(),
            groups: Groups::default(),
            cm: Slot::default(),
            leftovers: Leftovers::default(),
            epoch: Instant::now(),
            tx: Outbox::default(),
            rx: Mutex::new(RxBatch::new(RX_SLOTS)),
            events: Events::default(),
            polled: AtomicU64::new(0),
            armed: AtomicBool::new(false),
            watch: Watch::new()?,
            look_up: config.look_up,
            stop: AtomicBool::new(false),
            thread: Mutex::default(),
            psn_seed: AtomicU64::new(seed),
        });
        crate::progress::start_thread(&device)?;
        Ok(device)
    }

    /// Time since the device was opened.
    pub(crate) fn now(&self) -> Time {
        let nanos = u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // Time 0 stands for "never" in the engine's tests; a device never is at it.
        Time::from_nanos(nanos.saturating_add(1))
    }

    /// A PSN to start from: another one for each QP.
    pub(crate) fn next_psn(&self) -> urxe_wire::Psn {
        let step = 0x9e37_79b9_7f4a_7c15;
        let n = self.psn_seed.fetch_add(step, std::sync::atomic::Ordering::Relaxed);
        let mixed = (n ^ (n >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40;
        urxe_wire::Psn::new(u32::try_from(mixed).unwrap_or(0))
    }
}

pub(crate) fn now_as_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(0)
}

impl Device {
    /// The address of a device.
    pub(crate) fn address(&self) -> IpAddr {
        self.port.caps().address
    }

    /// Whether packets of path MTU `wanted` fit the way to a peer, as far as the host knows.
    ///
    /// # Errors
    /// [`PortError::PathTooNarrow`].
    pub(crate) fn check_path(&self, to: IpAddr, wanted: Mtu) -> Result<(), PortError> {
        if to.is_loopback() || to == self.address() {
            return Ok(());
        }
        let carries = self.port.route_mtu(to);
        carries.map_or(Ok(()), |carries| PortError::check_path(to, wanted, carries))
    }
}
