//! How packets leave: gathered in a batch while a QP is locked, handed to the port when none is.
//!
//! # When the port takes no more
//!
//! The engine stops when the batch is full; the driver hands it to the port and lets the engine go
//! on. What the port has no room for waits in its batch, and until it has gone the engine gets no
//! other: it keeps its work, and a QP is not locked while a socket is waited for. Whoever makes
//! progress, poller or background thread, tries again. One call sends a bounded number of batches;
//! what is left, the next call or the background thread goes on with.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicUsize, fence};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use urxe_engine::{Held, Path, Payload, Time, Transmit, Why};
use urxe_net::{Flow, TxBatch};
use urxe_wire::Verdict;

use crate::Passage;
use crate::device::Device;

/// Packets of one transmit batch.
const TX_PACKETS: usize = 64;
/// The longest packet, BTH to ICRC: the longest headers, MTU 4096, pad and ICRC.
const TX_LEN: usize = 4096 + 80;
/// Requests that wait for others to leave with, at most.
const TOGETHER: usize = 16;
/// Batches that one call sends at most, so that a post of a long message returns soon.
const BATCHES: usize = 4;
/// How soon a port that had no room is tried again: a socket's buffer holds several times what the
/// fastest link carries in that time, and a card's queue is shorter but does not say when it has
/// drained.
pub(crate) const TRY_AGAIN: Duration = Duration::from_millis(1);
/// How long the end of a device waits for what the port had no room for.
const LAST_PATIENCE: Duration = Duration::from_millis(100);

/// The batches of a device.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Those that nobody uses now.
    spare: Mutex<Vec<Load>>,
    /// Those that the port had no room for, oldest first: one of each thread at most.
    stuck: Mutex<VecDeque<TxBatch>>,
    /// Whether there is one.
    blocked: AtomicBool,
    /// Requests that were posted since anything was sent.
    posted: AtomicUsize,
}

/// What a thread gathers.
#[derive(Debug)]
struct Load {
    batch: TxBatch,
    /// Whose packets these are.
    held: Held,
}

impl Load {
    fn new() -> Self {
        let (batch, held) = (TxBatch::new(TX_PACKETS, TX_LEN), Held::with_capacity(TX_PACKETS));
        Self { batch, held }
    }
}

impl Outbox {
    /// Whether packets wait for room in the port.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.load(SeqCst)
    }
}

impl Device {
    /// Runs `f` with a sink on the port, sends what it gathers, and lets the engine go on with what
    /// it still has, so far as one call may.
    pub(crate) fn with_sink<R>(&self, f: impl FnOnce(&mut Sink<'_>) -> R) -> R {
        self.tx.posted.store(0, Relaxed);
        let mut sink = Sink::new(self);
        let result = f(&mut sink);
        let mut batches = 1;
        while sink.flush() && batches < BATCHES && self.nic.has_work() {
            self.nic.pump(self.now(), &mut sink);
            batches += 1;
        }
        drop(sink);
        self.pass_on();
        result
    }

    /// A sink of its own, whose packets leave when it is flushed.
    pub(crate) fn sink(&self) -> Sink<'_> {
        Sink::new(self)
    }

    /// Whether a request that is posted now may wait for others to leave with: something is in
    /// flight already, and the program polls, so that it will soon be sent.
    pub(crate) fn may_wait(&self, now: Time) -> bool {
        self.polls(now)
            && self.watch.asleep_until() == 0
            && self.nic.is_waiting()
            && self.tx.posted.fetch_add(1, Relaxed) < TOGETHER
    }

    /// Gives the port a batch; what is left found no room.
    ///
    /// # Errors
    /// Where the port is broken; then nothing is left.
    fn hand_over(&self, batch: &mut TxBatch) -> io::Result<()> {
        self.port.send(batch).inspect_err(|error| {
            self.port_failed(error);
            self.port.stats().give_up(batch.len());
            batch.clear();
        })
    }

    /// Sends what the port had no room for, as far as it has now.
    pub(crate) fn unblock(&self) {
        if !self.tx.is_blocked() {
            return;
        }
        let mut stuck = self.tx.stuck.lock();
        while let Some(batch) = stuck.front_mut() {
            // Of a broken port's nothing is left.
            let _ = self.hand_over(batch);
            if !batch.is_empty() {
                return;
            }
            stuck.pop_front();
        }
        self.tx.blocked.store(false, SeqCst);
    }

    /// What this call has left to do, the background thread goes on with, if it sleeps.
    pub(crate) fn pass_on(&self) {
        // It says that it sleeps before it looks for work: one of both sees the other.
        fence(SeqCst);
        let until = self.watch.asleep_until();
        if until == 0 {
            return;
        }
        let too_long = if self.tx.is_blocked() {
            until > (self.now() + TRY_AGAIN).as_nanos()
        } else {
            self.nic.has_work()
        };
        if too_long {
            self.watch.ring();
        }
    }

    /// Lets what the port had no room for go before the device ends, if that does not take long.
    pub(crate) fn last_packets(&self) {
        let start = Instant::now();
        self.unblock();
        while self.tx.is_blocked() && start.elapsed() < LAST_PATIENCE {
            std::thread::sleep(TRY_AGAIN);
            self.unblock();
        }
        for batch in &mut *self.tx.stuck.lock() {
            self.port.stats().give_up(batch.len());
            batch.clear();
        }
    }
}

/// What the engine sends through.
pub(crate) struct Sink<'a> {
    device: &'a Device,
    /// None where it is closed from the start, or after its end.
    load: Option<Load>,
    /// Whether the port takes packets.
    open: bool,
    /// Why the next packet is sent.
    why: Option<Why>,
}

impl<'a> Sink<'a> {
    /// A sink without room: what is posted waits.
    pub(crate) fn closed(device: &'a Device) -> Self {
        Self { device, load: None, open: false, why: None }
    }

    fn new(device: &'a Device) -> Self {
        let load = device.tx.spare.lock().pop().unwrap_or_else(Load::new);
        Self { device, load: Some(load), open: !device.tx.is_blocked(), why: None }
    }

    /// Sends what is gathered; says whether the port takes more.
    pub(crate) fn flush(&mut self) -> bool {
        let Self { device, load: Some(load), .. } = self else {
            return false;
        };
        if !load.batch.is_empty() {
            if device.tx.is_blocked() || device.hand_over(&mut load.batch).is_err() {
                self.open = false;
            }
            if !load.batch.is_empty() {
                self.open = false;
                let rest = std::mem::replace(&mut load.batch, TxBatch::new(TX_PACKETS, TX_LEN));
                let mut stuck = device.tx.stuck.lock();
                stuck.push_back(rest);
                device.tx.blocked.store(true, SeqCst);
            }
        }
        device.nic.release(&mut load.held);
        self.open
    }
}

impl Drop for Sink<'_> {
    /// Also where a panic passes through: the QPs must be let go.
    fn drop(&mut self) {
        if let Some(mut load) = self.load.take() {
            self.device.port.stats().give_up(load.batch.len());
            load.batch.clear();
            self.device.nic.release(&mut load.held);
            self.device.tx.spare.lock().push(load);
        }
    }
}

impl Transmit for Sink<'_> {
    fn room(&self) -> usize {
        self.load.as_ref().filter(|_| self.open).map_or(0, |load| load.batch.room())
    }

    fn held(&mut self) -> Option<&mut Held> {
        self.load.as_mut().map(|load| &mut load.held)
    }

    fn why(&mut self, why: Why) {
        self.why = Some(why);
    }

    fn is_narrow(&self, dst: IpAddr) -> bool {
        self.device.port.is_narrow(dst)
    }

    fn packet(&mut self, path: &Path, header: &[u8], payload: Payload<'_>, pad: usize) {
        let Some(Load { batch, .. }) = &mut self.load else { return };
        let flow = flow_of(path);
        batch.push(flow, header, |out| payload.append_to(out), pad);
        let why = self.why.take();
        if let (Some(why), Some(_)) = (why, &self.device.tap) {
            batch.comment_last(&why.to_string());
        }
        if let Some(observer) = &self.device.observer {
            let at = Instant::now();
            observer.packet(&Passage {
                at,
                time: at.duration_since(self.device.epoch),
                sent: true,
                flow,
                bytes: batch.last(),
                why,
                verdict: Verdict::Ok,
                fate: Ok(()),
            });
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

#[cfg(test)]
mod tests;
