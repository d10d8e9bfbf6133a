//! Whoever is running makes progress: a poster, a poller, or, if there is none, one thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Instant;

use urxe_engine::{AsyncEvent, Count, Drop as DropReason, Received, Time};
use urxe_net::{RxBatch, RxPacket};

use crate::cm::Manager;
use crate::device::Device;
use crate::sink::Sink;
use crate::watch::Rounds;
use crate::{Error, Passage};

/// So often what has arrived is taken in before a timer runs out: the answer that it waits for may
/// be there already, after a thread has not run for long. More could keep timers waiting for ever.
const BEFORE_TIMERS: usize = 32;

impl Device {
    /// Takes in what has arrived, does what has come due, sends what that brings about. Says
    /// whether anything arrived. Where another thread is at it already, nothing is done.
    pub(crate) fn progress(&self) -> bool {
        let any = self.look();
        self.go_on();
        any
    }

    /// As [`Self::progress`], but what arrives is not answered yet: a program that finds a
    /// completion goes on with it first, and the ACK leaves in one call with its next request.
    /// Whoever comes next answers, poller, poster, or the background thread.
    pub(crate) fn look(&self) -> bool {
        self.unblock();
        self.go_on();
        let Some(mut rx) = self.rx.try_lock() else {
            return false;
        };
        let any = self.receive(&mut rx);
        let (mut arrived, mut now, mut rounds) = (any, self.now(), 0);
        while arrived {
            self.take_all_in(now, &rx);
            rounds += 1;
            if rounds == BEFORE_TIMERS || !self.is_due(now) {
                break;
            }
            arrived = self.receive(&mut rx);
            now = self.now();
        }
        let due = self.is_due(now);
        if due {
            self.with_sink(|sink| self.nic.expire(now, sink));
        }
        drop(rx);
        if any || due {
            self.posted();
        } else {
            self.tell();
        }
        self.attend_connections();
        any
    }

    /// After [`Self::look`], for a program that found a completion or did not: where it did, what
    /// arrived is answered later, unless the background thread sleeps, which would be woken for it.
    pub(crate) fn looked(&self, found: bool) {
        fence(SeqCst);
        if !found || self.watch.asleep_until() != 0 {
            self.go_on();
        }
    }

    /// Sends what waits to be sent.
    pub(crate) fn go_on(&self) {
        if self.nic.has_work() {
            self.with_sink(|sink| self.nic.pump(self.now(), sink));
            self.posted();
        }
    }

    /// When the engine or the connection manager has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let engine = self.nic.next_deadline().map(|deadline| deadline.at);
        engine.into_iter().chain(self.cm.get().map(Manager::deadline)).min()
    }

    fn is_due(&self, now: Time) -> bool {
        self.nic.next_deadline().is_some_and(|d| d.at <= now)
    }

    fn take_all_in(&self, now: Time, rx: &RxBatch) {
        let mut sink = self.sink();
        rx.for_each(self.icrc, self.port.stats(), |packet| {
            let seen = self.observer.as_ref().map(|_| Instant::now());
            let fate = self.take_in(now, &packet, &mut sink);
            self.show(seen, &packet, fate);
        });
        sink.flush();
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
    pub(crate) fn check_port(&self) {
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
        let until = self.watch.asleep_until();
        if until != 0 && self.next_deadline().is_some_and(|at| at.as_nanos() < until) {
            self.watch.ring();
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
    let mut rounds = Rounds::default();
    while let Some(device) = device.upgrade() {
        if device.stop.load(SeqCst) {
            return;
        }
        let round = catch_unwind(AssertUnwindSafe(|| device.background(&mut rounds)));
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
