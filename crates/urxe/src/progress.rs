//! Whoever is running makes progress: a poster, a poller, or, if there is none, one thread.
//!
//! # Who wakes whom
//!
//! The background thread waits for the port, and until the earliest deadline it knows of. It
//! writes down until when (`asleep_until`) before it looks for that deadline, so that whoever arms
//! an earlier timer meanwhile, poster or poller, sees that it sleeps too long, and rings. A thread
//! that polled within the last two milliseconds looks after port and timers itself; the background
//! thread then waits for the rest of them only, unless it has seen that packets wait meanwhile (see
//! [`Aside`]). A program that armed a CQ is about to sleep, so its polls do not count.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use urxe_engine::{AsyncEvent, Count, Drop as DropReason, Received, Time};
use urxe_net::{RxBatch, RxPacket};

use crate::aside::Aside;
use crate::cm::Manager;
use crate::device::Device;
use crate::events::wait;
use crate::sink::{Sink, TRY_AGAIN};
use crate::{Error, Passage};

/// So often what has arrived is taken in before a timer runs out: the answer that it waits for may
/// be there already, after a thread has not run for long. More could keep timers waiting for ever.
const BEFORE_TIMERS: usize = 32;
/// So often a broken port is tried again.
const RETRY: Duration = Duration::from_millis(100);

impl Device {
    /// Takes in what has arrived, does what has come due, sends what that brings about. Says
    /// whether anything arrived. Where another thread is at it already, nothing is done.
    pub(crate) fn progress(&self) -> bool {
        let Some(mut rx) = self.rx.try_lock() else {
            return false;
        };
        self.unblock();
        let any = self.receive(&mut rx);
        let (mut arrived, mut now, mut rounds) = (any, self.now(), 0);
        let mut busy = arrived || self.nic.has_work();
        while arrived {
            self.take_all_in(now, &rx);
            rounds += 1;
            if rounds == BEFORE_TIMERS || !self.is_due(now) {
                break;
            }
            arrived = self.receive(&mut rx);
            now = self.now();
        }
        if self.is_due(now) {
            busy = true;
            self.with_sink(|sink| self.nic.expire(now, sink));
        } else if self.nic.has_work() {
            self.with_sink(|sink| self.nic.pump(now, sink));
        }
        drop(rx);
        if busy {
            self.posted();
        } else {
            self.tell();
        }
        self.attend_connections();
        any
    }

    /// When the engine or the connection manager has something to do.
    fn next_deadline(&self) -> Option<Time> {
        let engine = self.nic.next_deadline().map(|deadline| deadline.at);
        engine.into_iter().chain(self.cm.get().map(Manager::deadline)).min()
    }

    fn is_due(&self, now: Time) -> bool {
        self.nic.next_deadline().is_some_and(|d| d.at <= now)
    }

    fn take_all_in(&self, now: Time, rx: &RxBatch) {
        self.with_sink(|sink| {
            rx.for_each(self.icrc, self.port.stats(), |packet| {
                let seen = self.observer.as_ref().map(|_| Instant::now());
                let fate = self.take_in(now, &packet, sink);
                self.show(seen, &packet, fate);
            });
            self.nic.pump(now, sink);
        });
    }

    fn receive(&self, rx: &mut RxBatch) -> bool {
        match self.port.recv(rx) {
            Ok(n) => {
                self.health.succeeded();
                n != 0
            }
            Err(error) => {
                self.port_failed(&error);
                false
            }
        }
    }

    /// The port is broken: told once, tried again now and then.
    pub(crate) fn port_failed(&self, error: &dyn std::fmt::Display) {
        if self.health.failed(error) {
            tracing::error!(%error, "the port is broken");
            self.events.tell_all(AsyncEvent::PortErr);
        }
    }

    /// Asks the host whether the port can carry packets.
    fn check_port(&self) {
        if let Err(error) = self.port.check() {
            self.port_failed(&error);
        } else if self.health.whole() {
            tracing::info!("the port works again");
            self.events.tell_all(AsyncEvent::PortActive);
        }
    }

    /// Hands a packet to the engine, unless its ICRC is wrong.
    fn take_in(
        &self,
        now: Time,
        packet: &RxPacket<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), DropReason> {
        if !packet.verdict.is_ok() {
            self.nic.counters().add(Count::BadIcrc, 1);
            return Err(DropReason::Malformed);
        }
        let received = Received {
            src: packet.flow.src,
            dst: packet.flow.dst,
            src_port: packet.flow.src_port,
            traffic_class: packet.flow.traffic_class,
            hop_limit: packet.flow.hop_limit,
            bytes: packet.bytes,
        };
        self.nic.accept(now, &received, sink)
    }

    fn show(&self, seen: Option<Instant>, packet: &RxPacket<'_>, fate: Result<(), DropReason>) {
        if let (Err(why), Some(tap), Some(record)) = (fate, &self.tap, packet.record) {
            let text = if packet.verdict.is_ok() {
                format!("dropped: {why} ({})", why.rule())
            } else {
                "dropped: the ICRC is wrong".to_owned()
            };
            tap.comment(record, &text);
        }
        if let (Some(observer), Some(at)) = (&self.observer, seen) {
            observer.packet(&Passage {
                at,
                time: at.duration_since(self.epoch),
                sent: false,
                flow: packet.flow,
                bytes: packet.bytes,
                why: None,
                verdict: packet.verdict,
                fate,
            });
        }
    }

    /// After work was done: events, and a deadline the sleeping thread does not know of.
    pub(crate) fn posted(&self) {
        self.tell();
        let until = self.asleep_until.load(SeqCst);
        if until != 0 && self.next_deadline().is_some_and(|at| at.as_nanos() < until) {
            self.wake.ring();
        }
    }

    /// Hands on what has happened.
    pub(crate) fn tell(&self) {
        if self.events.take_over(&self.nic) {
            self.armed.store(false, SeqCst);
        }
    }

    /// A thread is polling.
    pub(crate) fn polling(&self) {
        if !self.armed.load(Relaxed) {
            self.polled.store(self.now().as_nanos(), Relaxed);
        }
    }

    /// A program is about to sleep until a completion event: the background thread takes over.
    pub(crate) fn sleeping(&self) {
        self.armed.store(true, SeqCst);
        self.polled.store(0, SeqCst);
        if self.asleep_until.load(SeqCst) == 0 {
            self.wake.ring();
        }
    }

    /// When a thread polled last.
    fn polled_at(&self) -> Time {
        Time::from_nanos(self.polled.load(SeqCst))
    }

    /// One round of the background thread.
    fn background(&self, watch: &mut Watch) -> Result<(), Error> {
        let now = self.now();
        let broken = self.health.broken().is_some();
        if broken || now.saturating_since(watch.checked) >= self.look_up {
            watch.checked = now;
            self.check_port();
        }
        if let Some(rest) = watch.aside.rest(now, self.polled_at()) {
            // Who polls looks after timers too.
            self.asleep_until.store(0, SeqCst);
            wait(&[self.wake.fd()], Some(rest))?;
            self.wake.hush();
            return Ok(());
        }
        if watch.aside.ends() {
            let waited = !broken && wait(&[self.port.fd()], Some(Duration::ZERO))?;
            watch.aside.ended(now, waited);
        }
        // First say how long the sleep will be, then look again: who posts meanwhile rings.
        self.asleep_until.store(u64::MAX, SeqCst);
        fence(SeqCst);
        let most = match (broken, self.tx.is_blocked()) {
            (true, _) => RETRY,
            (false, true) => TRY_AGAIN,
            (false, false) if self.nic.has_work() => Duration::ZERO,
            (false, false) => self.look_up,
        };
        let deadline = self.next_deadline().map_or(now + most, |at| at.min(now + most));
        self.asleep_until.store(deadline.as_nanos(), SeqCst);
        let sleep = deadline.saturating_since(now);
        let sleep = self.port.next_deadline().map_or(sleep, |port| port.min(sleep));
        if broken {
            // Its descriptor may be readable for ever.
            wait(&[self.wake.fd()], Some(sleep))?;
        } else {
            wait(&[self.port.fd(), self.wake.fd()], Some(sleep))?;
        }
        self.asleep_until.store(0, SeqCst);
        self.wake.hush();
        if watch.aside.rest(self.now(), self.polled_at()).is_none() {
            let found = self.progress();
            watch.aside.looked(found);
        }
        Ok(())
    }
}

/// What the background thread keeps in mind.
#[derive(Debug, Default)]
struct Watch {
    /// When it looked last whether the port is there.
    checked: Time,
    aside: Aside,
}

/// Starts the thread that serves one-sided traffic while the program does something else. It ends
/// with its device.
pub(crate) fn start_thread(device: &Arc<Device>) -> Result<(), Error> {
    let weak = Arc::downgrade(device);
    let thread = thread::Builder::new()
        .name("urxe".into())
        .spawn(move || serve(&weak))
        .map_err(Error::host("starting the background thread"))?;
    *device.thread.lock() = Some(thread);
    Ok(())
}

fn serve(device: &Weak<Device>) {
    crate::handle::SERVES.set(true);
    let mut watch = Watch::default();
    while let Some(device) = device.upgrade() {
        if device.stop.load(SeqCst) {
            return;
        }
        let round = catch_unwind(AssertUnwindSafe(|| device.background(&mut watch)));
        let why = match round {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "a panic, which was printed".to_owned(),
        };
        tracing::error!(%why, "the background thread ends: open the device anew");
        device.health.failed(&format!("the background thread has ended: {why}"));
        device.events.tell_all(AsyncEvent::DeviceFatal);
        return;
    }
}

#[cfg(test)]
mod tests;
