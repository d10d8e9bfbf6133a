//! What QPs cost that do nothing.

use std::time::Duration;
use std::{fs, thread};

use nix::time::{ClockId, clock_gettime};

use super::peer::Peer;
use super::side::{Side, Spec};
use super::stats::count;
use super::work::{Run, Sample};
use crate::command::Failure;

/// Rest that is measured at least: the background thread looks up once a second.
const REST: Duration = Duration::from_millis(1500);

/// QPs that are connected and at rest.
pub(super) struct Resting {
    _side: Side,
    id: u32,
}

impl Resting {
    pub(super) fn new(qps: usize, settings: &[String], peer: &mut Peer) -> Result<Self, Failure> {
        let spec = spec(qps, settings);
        let side = Side::open(&spec)?;
        let (id, ends, _) = peer.open(&spec)?;
        side.connect(&ends)?;
        peer.connect(id, side.ends())?;
        Ok(Self { _side: side, id })
    }
}

fn spec(qps: usize, settings: &[String]) -> Spec {
    let settings = settings.to_vec();
    let (sends, receives) = (16, 16);
    Spec {
        mtu: 4096,
        qps,
        bytes: 64,
        sends,
        receives,
        receive: (0, 64),
        settings,
        ..Spec::default()
    }
}

impl Run for Resting {
    /// The share of a core that the busier of the two processes takes.
    fn round(&mut self, peer: &mut Peer, time: Duration) -> Result<Sample, Failure> {
        let time = time.max(REST);
        let (here, there) = (cpu_time()?, peer.cpu_time()?);
        thread::sleep(time);
        let (here, there) = (cpu_time()? - here, peer.cpu_time()? - there);
        let value = here.max(there) / time.as_secs_f64();
        Ok(Sample { value, more: Vec::new() })
    }

    fn end(self: Box<Self>, peer: &mut Peer) -> Result<(), Failure> {
        peer.close(self.id)
    }
}

/// CPU time of this process, seconds.
pub(super) fn cpu_time() -> Result<f64, Failure> {
    Ok(Duration::from(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?).as_secs_f64())
}

/// Memory of QPs in the other process.
pub(super) struct Remembering {
    pub(super) qps: usize,
    pub(super) settings: Vec<String>,
}

impl Run for Remembering {
    /// In a process of its own each time, for freed memory would be taken again unseen.
    fn round(&mut self, _: &mut Peer, _: Duration) -> Result<Sample, Failure> {
        let value = Peer::start()?.memory(self.qps, &self.settings)?;
        Ok(Sample { value, more: Vec::new() })
    }
}

/// Bytes that each of `qps` more QPs takes, connected with itself, its receives posted.
pub(super) fn memory(qps: usize, settings: Vec<String>) -> Result<f64, Failure> {
    const FIRST: usize = 64;
    let mut side = Side::open(&Spec { settings, ..spec(FIRST, &[]) })?;
    let ends = side.ends();
    side.connect(&ends)?;
    let before = resident()?;
    side.add_qps(qps)?;
    for qp in &side.qps[FIRST..] {
        qp.connect(&qp.endpoint())?;
    }
    Ok(count(resident()?.saturating_sub(before)) / count(qps))
}

/// Bytes of this process that are in memory (proc(5), VmRSS).
fn resident() -> Result<usize, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    let kib: usize = number.ok_or("/proc/self/status has no VmRSS")?;
    Ok(kib * 1024)
}
