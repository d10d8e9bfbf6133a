//! The device: one NIC on one port, and the only reader of the clock.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use urxe_engine::{Nic, NicConfig, Path, Payload, Time, Transmit, Why};
use urxe_net::tap::TapHandle;
use urxe_net::{Flow, IcrcMode, Port, RxBatch, TxBatch};
use urxe_wire::Verdict;

use crate::events::{Events, Wake};
use crate::groups::Groups;
use crate::health::Health;
use crate::link::Link;
use crate::memory::Leftovers;
use crate::{Config, Error, Observer, Passage};

/// Packets of one transmit batch.
const TX_PACKETS: usize = 64;
/// The longest packet, BTH to ICRC: the longest headers, MTU 4096, pad and ICRC.
const TX_LEN: usize = 4096 + 80;
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
    pub(crate) leftovers: Leftovers,
    pub(crate) epoch: Instant,
    /// Batches that nobody uses now.
    tx: Mutex<Vec<TxBatch>>,
    pub(crate) rx: Mutex<RxBatch>,
    pub(crate) events: Events,
    /// When a thread polled last, ns; the background thread stands aside then.
    pub(crate) polled: AtomicU64,
    /// Whether a program waits for a completion event; its polls then do not keep the background
    /// thread away.
    pub(crate) armed: AtomicBool,
    /// Until when the background thread sleeps at most, ns.
    pub(crate) asleep_until: AtomicU64,
    pub(crate) stop: AtomicBool,
    pub(crate) wake: Wake,
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
        let Link { port, tap } = Link::open(config)?;
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
            observer: config.observer.clone(),
            health: Health::default(),
            groups: Groups::default(),
            leftovers: Leftovers::default(),
            epoch: Instant::now(),
            tx: Mutex::default(),
            rx: Mutex::new(RxBatch::new(RX_SLOTS)),
            events: Events::new()?,
            polled: AtomicU64::new(0),
            armed: AtomicBool::new(false),
            asleep_until: AtomicU64::new(u64::MAX),
            stop: AtomicBool::new(false),
            wake: Wake::new()?,
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

    /// Runs `f` with a sink on the port; what it gathers is sent when `f` is done, or when it is
    /// full.
    pub(crate) fn with_sink<R>(&self, f: impl FnOnce(&mut Sink<'_>) -> R) -> R {
        let spare = self.tx.lock().pop();
        let batch = spare.unwrap_or_else(|| TxBatch::new(TX_PACKETS, TX_LEN));
        let mut sink = Sink { device: self, batch, why: None, patience: PATIENCE };
        let result = f(&mut sink);
        sink.flush();
        self.tx.lock().push(sink.batch);
        result
    }

    /// A PSN to start from: another one for each QP.
    pub(crate) fn next_psn(&self) -> urxe_wire::Psn {
        let step = 0x9e37_79b9_7f4a_7c15;
        let n = self.psn_seed.fetch_add(step, std::sync::atomic::Ordering::Relaxed);
        let mixed = (n ^ (n >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40;
        urxe_wire::Psn::new(u32::try_from(mixed).unwrap_or(0))
    }
}

fn now_as_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(0)
}

/// What the engine sends through.
pub(crate) struct Sink<'a> {
    device: &'a Device,
    batch: TxBatch,
    /// Why the next packet is sent.
    why: Option<Why>,
    /// How long this sink may still wait.
    patience: Duration,
}

/// How long one call waits for room in full sockets, all in all: QPs are locked meanwhile, and
/// what has not gone by then is sent again when its time comes, as if a link had lost it.
const PATIENCE: Duration = Duration::from_millis(20);
/// The longest of these waits: what a network card's queue needs to drain a little.
const ONE_WAIT_MS: i32 = 5;

impl Sink<'_> {
    /// Sends what is gathered. What the host does not take in time is lost, as on a link.
    pub(crate) fn flush(&mut self) {
        while !self.batch.is_empty() {
            if let Err(error) = self.device.port.send(&mut self.batch) {
                self.device.port_failed(&error);
                break;
            }
            if self.batch.is_empty() {
                return;
            }
            let start = Instant::now();
            if self.patience.is_zero() || self.device.port.wait_writable(ONE_WAIT_MS).is_err() {
                break;
            }
            // A card's queue can be full while the socket is not: the wait is over at once then.
            let waited = start.elapsed().max(Duration::from_millis(1));
            self.patience = self.patience.saturating_sub(waited);
        }
        self.device.port.stats().give_up(self.batch.len());
        self.batch.clear();
    }
}

impl Transmit for Sink<'_> {
    fn room(&self) -> usize {
        self.batch.room()
    }

    fn why(&mut self, why: Why) {
        self.why = Some(why);
    }

    fn packet(&mut self, path: &Path, header: &[u8], payload: Payload<'_>, pad: usize) {
        let flow = flow_of(path);
        self.batch.push(flow, header, |out| payload.append_to(out), pad);
        let why = self.why.take();
        if let (Some(why), Some(_)) = (why, &self.device.tap) {
            self.batch.comment_last(&why.to_string());
        }
        if let Some(observer) = &self.device.observer {
            let at = Instant::now();
            observer.packet(&Passage {
                at,
                time: at.duration_since(self.device.epoch),
                sent: true,
                flow,
                bytes: self.batch.last(),
                why,
                verdict: Verdict::Ok,
                fate: Ok(()),
            });
        }
        if self.batch.room() == 0 {
            self.flush();
        }
    }
}

fn flow_of(path: &Path) -> Flow {
    Flow {
        src: path.src,
        dst: path.dst,
        src_port: path.src_port,
        traffic_class: path.traffic_class,
        hop_limit: path.hop_limit,
        flow_label: path.flow_label,
    }
}

impl Device {
    /// The address of a device.
    pub(crate) fn address(&self) -> IpAddr {
        self.port.caps().address
    }
}
