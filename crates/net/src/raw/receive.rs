//! How a raw port receives.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::RawPort;
use super::message::{self, Came};
use super::neighbour::Ways;
use crate::batch::Arrival;
use crate::frame::{self, NotOurs, Parsed};
use crate::{PortStats, RxBatch, sys};

/// How long what neighbours say may wait while packets arrive without a pause.
const HEAR_EVERY: Duration = Duration::from_millis(10);
/// How often what was heard is read in one call, eight frames each: a flood of it must not keep
/// packets waiting.
const HEAR_CALLS: usize = 8;
/// Bytes of the longest frame that tells of a neighbour.
const HEARD: usize = 512;

impl RawPort {
    pub(super) fn receive_batch(&self, batch: &mut RxBatch) -> io::Result<usize> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(self.gone());
        }
        batch.arrivals.clear();
        let slot = batch.slot;
        let mut came = std::mem::take(&mut batch.came);
        came.clear();
        // Another socket is first each time, so that a flood at one does not starve the other.
        let all = self.receivers.len();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        for nth in 0..all {
            let socket = &self.receivers[turn.wrapping_add(nth) % all];
            let from = came.len() * slot;
            let first = came.len();
            let got =
                message::receive(socket.as_fd(), &mut batch.bytes[from..], slot, true, &mut came);
            came[first..].iter_mut().for_each(|c| c.slot += first);
            self.received(got)?;
        }
        let mut packets = 0;
        for came in &came {
            packets += self.take(batch, came);
        }
        batch.came = came;
        if packets != 0 {
            PortStats::add(&self.stats.rx_calls, 1);
            PortStats::add(&self.stats.rx_packets, packets as u64);
        }
        self.attend(packets == 0)?;
        Ok(packets)
    }

    /// A socket whose interface is down says so once.
    fn received(&self, got: io::Result<()>) -> io::Result<()> {
        match got {
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENETDOWN | libc::ENXIO)) => {
                self.check_gone()
            }
            other => other,
        }
    }

    /// Takes a frame into the batch; gives how many packets it is.
    fn take(&self, batch: &mut RxBatch, came: &Came) -> usize {
        let start = came.slot * batch.slot + came.start;
        let bytes = &batch.bytes[start..start + came.len];
        let parsed = if came.whole { frame::parse(bytes) } else { Err(NotOurs::Malformed) };
        let Parsed { flow, headers, len } = match parsed {
            Ok(parsed) => parsed,
            Err(why) => {
                let counter = match why {
                    NotOurs::Malformed => &self.stats.rx_malformed,
                    NotOurs::IpChecksum => &self.stats.rx_ip_checksum,
                    NotOurs::Fragment => &self.stats.rx_fragment,
                };
                PortStats::add(counter, 1);
                tracing::debug!(?why, len = bytes.len(), "frame dropped");
                return 0;
            }
        };
        if flow.dst != self.caps.address && !self.groups.read().contains(&flow.dst) {
            // The filter lets all groups pass.
            PortStats::add(&self.stats.rx_other_group, 1);
            return 0;
        }
        let stride = came.segment.filter(|&s| s != 0).unwrap_or(len.max(1));
        let start = start + headers;
        let arrival = Arrival { flow, start, len, stride, headers, nth: 0, record: None };
        batch.arrivals.push(arrival);
        len.div_ceil(stride).max(1)
    }

    /// Attends to neighbours, if it is time to.
    fn attend(&self, idle: bool) -> io::Result<()> {
        let now = Instant::now();
        let Some(mut ways) = self.ways.try_lock() else {
            // Whoever has them attends to it.
            return Ok(());
        };
        let due = ways.attended.is_none_or(|at| now >= at + HEAR_EVERY);
        if due {
            ways.attended = Some(now);
            let drops = self.receivers.iter().map(|s| sys::drops(s).map(u64::from));
            self.stats.rx_overrun.store(drops.sum::<io::Result<u64>>()?, Ordering::Relaxed);
        }
        if idle || due {
            self.hear(&mut ways, now)?;
            self.settle(&mut ways, now)?;
        }
        Ok(())
    }

    /// Takes in what was heard of neighbours, so much of it as one call may; what is left wakes the
    /// next one.
    pub(super) fn hear(&self, ways: &mut Ways, now: Instant) -> io::Result<()> {
        let mut bytes = [0; 8 * HEARD];
        let answers = !self.kernel.knows_neighbours;
        for _ in 0..HEAR_CALLS {
            let mut came = Vec::new();
            let got = message::receive(self.hearer.as_fd(), &mut bytes, HEARD, false, &mut came);
            self.received(got)?;
            for came in came.iter().filter(|came| came.whole) {
                let start = came.slot * HEARD + came.start;
                ways.hear(&bytes[start..start + came.len], now, answers);
            }
            if came.is_empty() {
                break;
            }
        }
        ways.expire(now);
        Ok(())
    }
}
