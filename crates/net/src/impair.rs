//! Faults on live traffic: loss, bursts of loss, duplicates, reordering, wrong bits, delay, jitter
//! and a rate, each way, over any port.
//!
//! [`Dice`] decides, without a clock or a socket; [`Impaired`] holds packets until they are due.
//! It has no thread: what is due is released when the port is called, and the port's descriptor is
//! readable then.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use parking_lot::Mutex;

use crate::batch::{Segment, flip_bit};
use crate::port::pass_on;
use crate::sys::{Epoll, Timer};
use crate::{Flow, Port, Record, RxBatch, TxBatch};

mod config;
mod dice;
mod held;
mod share;
#[cfg(test)]
mod tests;

pub use config::{Faults, FaultsError, Impairment};
pub use dice::{Dice, Fate, Landing, mix};
pub use held::FaultCounts;
pub use share::{Share, ShareError};

use held::Held;

/// Tells the time, from any start.
type Clock = Box<dyn Fn() -> Duration + Send + Sync>;

/// Packets handed to the port below in one go.
const GO: usize = 64;
/// Bytes of the longest packet, BTH to ICRC.
const LONGEST: usize = 4200;
/// How long until a port that had no room is tried again.
const RETRY: Duration = Duration::from_millis(1);

/// A port over a link with faults.
pub struct Impaired<P> {
    port: P,
    clock: Clock,
    epoll: Epoll,
    timer: Timer,
    state: Mutex<State>,
}

struct State {
    tx: Held<Leaving>,
    rx: Held<Arriving>,
    /// What is due and on its way to the port below.
    going: TxBatch,
    /// What came from it.
    came: RxBatch,
    armed: Option<Duration>,
}

/// A packet that leaves: BTH to the room for the ICRC, which is computed as it goes.
#[derive(Clone)]
struct Leaving {
    flow: Flow,
    bytes: Vec<u8>,
    comment: Option<Box<str>>,
}

#[derive(Clone)]
struct Arriving {
    flow: Flow,
    headers: Vec<u8>,
    bytes: Vec<u8>,
    nth: u16,
    record: Option<Record>,
}

impl<P: fmt::Debug> fmt::Debug for Impaired<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Impaired").field("port", &self.port).finish_non_exhaustive()
    }
}

impl<P: Port> Impaired<P> {
    /// Puts faults over `port`. `clock` gives the time since any start, and never goes back.
    ///
    /// # Errors
    /// Where the host gives no timer.
    pub fn new(
        port: P,
        faults: &Impairment,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let (epoll, timer) = (Epoll::new()?, Timer::new()?);
        epoll.add(port.fd())?;
        epoll.add(timer.fd())?;
        let state = State {
            tx: Held::new(Dice::new(faults.tx, faults.seed, 0)),
            rx: Held::new(Dice::new(faults.rx, faults.seed, 1)),
            going: TxBatch::new(GO, LONGEST),
            came: RxBatch::new(8),
            armed: None,
        };
        Ok(Self { port, clock: Box::new(clock), epoll, timer, state: Mutex::new(state) })
    }

    /// What became of packets that left, and of those that arrived.
    pub fn counts(&self) -> (FaultCounts, FaultCounts) {
        let state = self.state.lock();
        (state.tx.counts, state.rx.counts)
    }

    /// The port below.
    pub const fn port(&self) -> &P {
        &self.port
    }

    /// Sends what is due.
    fn release(&self, state: &mut State, now: Duration) -> io::Result<()> {
        loop {
            while state.going.room() > 0
                && let Some((packet, flip)) = state.tx.due(now)
            {
                let Leaving { flow, bytes, comment } = packet;
                state.going.push_given(flow, &bytes, flip, comment);
            }
            if state.going.is_empty() {
                state.tx.set_stuck(false);
                return Ok(());
            }
            self.port.send(&mut state.going)?;
            if !state.going.is_empty() {
                // No room; the timer brings us back.
                state.tx.set_stuck(true);
                return Ok(());
            }
        }
    }

    /// Lets what came set out on the rest of its way.
    fn take_in(&self, state: &mut State, now: Duration) -> io::Result<()> {
        self.port.recv(&mut state.came)?;
        for segment in state.came.segments() {
            state.rx.add(now, segment.bytes.len(), || Arriving {
                flow: segment.flow,
                headers: segment.headers.to_vec(),
                bytes: segment.bytes.to_vec(),
                nth: segment.nth,
                record: segment.record,
            });
        }
        Ok(())
    }

    /// Sets the timer for what is due next.
    fn arm(&self, state: &mut State, now: Duration) -> io::Result<()> {
        let next = state.deadline(now);
        if state.armed != next {
            state.armed = next;
            self.timer.set(next.map(|at| at.saturating_sub(now)))?;
        }
        Ok(())
    }
}

impl State {
    fn deadline(&self, now: Duration) -> Option<Duration> {
        // What is due while the port below has no room can go no sooner than it is tried again.
        let leaving = if self.going.is_empty() { self.tx.next() } else { Some(now + RETRY) };
        leaving.into_iter().chain(self.rx.next()).min()
    }
}

impl<P: Port> Port for Impaired<P> {
    pass_on! {
        self => self.port;
        caps wait_writable join leave route_mtu is_narrow serve stats check
    }

    /// Takes all of `batch`: what the link holds is the link's.
    fn send(&self, batch: &mut TxBatch) -> io::Result<()> {
        let now = (self.clock)();
        let state = &mut *self.state.lock();
        // What the port below has no room for counts as held, and more than the link holds is lost.
        if state.tx.is_stuck() {
            self.release(state, now)?;
        }
        let ethernet = self.caps().sees_ip_header;
        for i in 0..batch.len() {
            batch.note_given(i, ethernet);
            let packet = &batch.packets[i];
            let bytes = batch.bytes(packet.range.clone());
            state.tx.add(now, bytes.len(), || Leaving {
                flow: packet.flow,
                bytes: bytes.to_vec(),
                comment: packet.comment.clone(),
            });
        }
        batch.clear();
        self.release(state, now)?;
        self.arm(state, now)
    }

    fn recv(&self, batch: &mut RxBatch) -> io::Result<usize> {
        let now = (self.clock)();
        let state = &mut *self.state.lock();
        self.release(state, now)?;
        // What is due goes first; the rest waits with the host, which bounds it.
        if !state.rx.is_due(now) {
            self.take_in(state, now)?;
        }
        batch.arrivals.clear();
        let mut n = 0;
        while let Some((mut packet, flip)) = state.rx.due(now) {
            if let Some(bit) = flip {
                flip_bit(&mut packet.bytes, bit);
            }
            let Arriving { flow, ref headers, ref bytes, nth, record } = packet;
            if !batch.push(&Segment { flow, headers, bytes, nth, record }) {
                // Its bit is turned over already.
                state.rx.put_back(packet, None);
                break;
            }
            n += 1;
        }
        self.arm(state, now)?;
        Ok(n)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.fd()
    }

    fn next_deadline(&self) -> Option<Duration> {
        let now = (self.clock)();
        let own = self.state.lock().deadline(now).map(|at| at.saturating_sub(now));
        own.into_iter().chain(self.port.next_deadline()).min()
    }
}
