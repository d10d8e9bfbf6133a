//! The connection manager of a device: it is driven as the engine is, by whoever makes progress.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use urxe_cm::{Cm, Config, Counters, Stats};
use urxe_engine::{CqId, Time};
use urxe_wire::{Gid, Qpn};

use super::dispatch::dispatch;
use super::gsi::Gsi;
use super::ports::Ports;
use super::state::{Outgoing, State};
use crate::Error;
use crate::device::Device;

/// Where a device has its manager once it is needed.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    making: Mutex<()>,
    made: OnceLock<Manager>,
}

impl Slot {
    pub(crate) fn get(&self) -> Option<&Manager> {
        self.made.get()
    }
}

/// What the routes of events tell the manager.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Of QP1.
    pub(crate) cq: CqId,
    /// MADs have come, or data for a connection whose RTU has not.
    pub(crate) came: AtomicBool,
    /// QPs that got their first packet.
    pub(crate) established: Mutex<Vec<Qpn>>,
}

#[derive(Debug)]
pub(crate) struct Manager {
    state: Mutex<State>,
    /// Whoever listens, or listens no more, has this throughout: the broker is told meanwhile.
    pub(super) services: Mutex<()>,
    watch: Arc<Watch>,
    /// When something is to be done, ns; [`u64::MAX`] if nothing is.
    deadline: AtomicU64,
}

impl Device {
    /// The device's manager; QP1 is made if it is the first time.
    pub(super) fn manager(&self) -> Result<&Manager, Error> {
        let _making = self.cm.making.lock();
        if let Some(manager) = self.cm.made.get() {
            return Ok(manager);
        }
        let manager = Manager::open(self)?;
        self.events.watch(&manager.watch);
        Ok(self.cm.made.get_or_init(|| manager))
    }

    /// Does what the connection manager has to do, if it has.
    pub(crate) fn attend_connections(&self) {
        if let Some(manager) = self.cm.get()
            && (manager.watch.came.load(SeqCst) || manager.deadline() <= self.now())
        {
            manager.attend(self);
        }
    }
}

/// An EUI-64 of an address, with the bit that says that nobody assigned it.
fn guid(gid: Gid) -> u64 {
    let [.., a, b, c, d] = gid.0;
    u64::from_be_bytes([0x02, 0x00, a, 0xff, 0xfe, b, c, d])
}

impl Manager {
    fn open(device: &Device) -> Result<Self, Error> {
        let gsi = Gsi::open(device)?;
        let caps = device.port.caps();
        let seed = u64::from(device.next_psn().value()) << 24;
        let seed = seed | u64::from(device.next_psn().value());
        let most = device.nic.config().caps.max_rd_atomic;
        let config = Config {
            slot: caps.slot.unwrap_or(0),
            mtu: caps.mtu,
            max_responder_resources: most,
            max_initiator_depth: most,
            ..Config::new(guid(Gid::from(caps.address)), seed)
        };
        let watch = Watch { cq: gsi.cq, came: true.into(), established: Mutex::default() };
        let state = State {
            cm: Cm::new(config),
            gsi,
            ids: HashMap::new(),
            ports: Ports::new(seed),
            by_conn: HashMap::new(),
            by_listener: HashMap::new(),
        };
        Ok(Self {
            state: Mutex::new(state),
            services: Mutex::default(),
            watch: Arc::new(watch),
            deadline: AtomicU64::new(u64::MAX),
        })
    }

    /// When something is to be done.
    pub(crate) fn deadline(&self) -> Time {
        Time::from_nanos(self.deadline.load(SeqCst))
    }

    /// Runs `f` on the state, hands on what happened, sends what is to be sent.
    pub(super) fn with<R>(
        &self,
        device: &Device,
        f: impl FnOnce(&mut State, Duration, &mut Outgoing) -> R,
    ) -> R {
        let mut out = Outgoing::default();
        let mut state = self.state.lock();
        let now = Duration::from_nanos(device.now().as_nanos());
        let result = f(&mut state, now, &mut out);
        let undelivered = dispatch(&mut state, device, now, &mut out);
        state.gsi.send(device, &out.0);
        let next = state.cm.next_deadline().map_or(Duration::MAX, |deadline| deadline.at);
        self.deadline.store(u64::try_from(next.as_nanos()).unwrap_or(u64::MAX), SeqCst);
        drop(state);
        drop(undelivered);
        device.posted();
        result
    }

    /// Looks at the state.
    pub(super) fn look<R>(&self, f: impl FnOnce(&State) -> R) -> R {
        f(&self.state.lock())
    }

    /// MADs have come, or a time has.
    fn attend(&self, device: &Device) {
        self.with(device, |state, now, out| {
            self.watch.came.store(false, SeqCst);
            let State { cm, gsi, .. } = state;
            gsi.take_in(device, |route, mad| cm.receive(now, route, mad, out));
            for qpn in std::mem::take(&mut *self.watch.established.lock()) {
                cm.notify_established(qpn);
            }
            cm.expire(now, out);
        });
    }

    pub(crate) fn counters(&self) -> Counters {
        self.look(|state| state.cm.counters().clone())
    }

    pub(crate) fn stats(&self) -> Stats {
        self.look(|state| state.cm.stats())
    }
}
