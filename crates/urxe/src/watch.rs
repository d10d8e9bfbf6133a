//! Who sleeps on the port, and who wakes whom.
//!
//! One thread watches the port while it sleeps: the background thread, or one of the program that
//! waits for a completion event, which so needs no other thread to be woken by. The watcher writes
//! down until when it sleeps (`asleep_until`) before it looks for the earliest deadline, so that
//! whoever arms an earlier timer meanwhile, poster or poller, sees that it sleeps too long, and
//! rings.
//!
//! The background thread stands aside where a thread polled, or waited for an event, within the
//! last two milliseconds: that one looks after port and timers; unless it has seen that packets
//! wait meanwhile (see [`Aside`]). While a thread of the program
//! watches for longer, the background thread sleeps until it is rung for.

use std::hint;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, fence};
use std::time::Duration;

use urxe_engine::Time;

use crate::Error;
use crate::aside::{ASIDE, Aside};
use crate::device::Device;
use crate::events::{Readable, Wake, wait};
use crate::sink::TRY_AGAIN;

/// So often a broken port is tried again.
const RETRY: Duration = Duration::from_millis(100);
/// So long after a packet the background thread looks for the next one before it sleeps: to be
/// woken takes a CPU that rests about as long.
const SPIN: Duration = Duration::from_micros(50);
/// Looks between two at the clock.
const LOOKS: usize = 8;
/// So often the background thread looks, while it stands aside, whether something was left to be
/// sent by a program that has not polled since.
const LEFT_OVER: Duration = Duration::from_micros(500);
/// A program that polls polls at least so often.
const POLLS: Duration = Duration::from_micros(50);
/// How soon a program's thread that found the background thread watching asks again.
const HAND_OVER: Duration = Duration::from_micros(100);

const NOBODY: u8 = 0;
const BACKGROUND: u8 = 1;
const PROGRAM: u8 = 2;

/// Who watches the port.
#[derive(Debug)]
pub(crate) struct Watch {
    holder: AtomicU8,
    /// Until when the watcher sleeps at most, ns; 0 while it is awake.
    asleep_until: AtomicU64,
    /// Wakes the background thread.
    wake: Wake,
    /// Wakes a thread of the program that watches.
    called: Wake,
    /// Whether the program's threads wait for events here, and not for a descriptor.
    waits_here: AtomicBool,
    /// How often a thread of the program has watched.
    turns: AtomicU64,
    /// Whether the background thread sleeps until it is rung for.
    deep: AtomicBool,
}

impl Watch {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self {
            holder: AtomicU8::new(NOBODY),
            // Whoever arms a timer before the background thread runs makes it look.
            asleep_until: AtomicU64::new(u64::MAX),
            wake: Wake::new()?,
            called: Wake::new()?,
            waits_here: AtomicBool::new(false),
            turns: AtomicU64::new(0),
            deep: AtomicBool::new(false),
        })
    }

    /// Until when the watcher sleeps at most, ns; 0 where none does.
    pub(crate) fn asleep_until(&self) -> u64 {
        self.asleep_until.load(SeqCst)
    }

    /// Wakes the watcher.
    pub(crate) fn ring(&self) {
        if self.holder.load(SeqCst) == PROGRAM {
            self.called.ring();
        } else {
            self.wake.ring();
        }
    }

    /// Wakes the background thread, whatever it sleeps for.
    pub(crate) fn ring_background(&self) {
        self.wake.ring();
    }

    fn take(&self, holder: u8) -> Result<u8, u8> {
        self.holder.compare_exchange(NOBODY, holder, SeqCst, SeqCst)
    }

    /// The watcher is awake, and somebody else may watch.
    fn give_back(&self) {
        self.asleep_until.store(0, SeqCst);
        self.holder.store(NOBODY, SeqCst);
    }

    /// Whether the program's threads wait for events here.
    pub(crate) fn set_waits_here(&self, here: bool) {
        // Mostly it is so already, and a line that is only read can be in all caches.
        if self.waits_here.load(SeqCst) != here {
            self.waits_here.store(here, SeqCst);
        }
    }

    #[cfg(test)]
    pub(crate) fn set_asleep_until(&self, until: u64) {
        self.asleep_until.store(until, SeqCst);
    }

    #[cfg(test)]
    pub(crate) fn was_rung(&self) -> bool {
        let rung = wait(&[self.wake.fd()], Some(Duration::ZERO)).unwrap().is(0);
        self.wake.hush();
        rung
    }
}

#[cfg(test)]
impl Device {
    /// Ends the background thread, so that only calls make progress, and what would wake it shows.
    pub(crate) fn end_thread(&self) {
        self.stop.store(true, SeqCst);
        self.watch.ring_background();
        let thread = self.thread.lock().take();
        thread.unwrap().join().unwrap();
        self.watch.give_back();
        self.watch.was_rung();
    }
}

/// What the background thread remembers from round to round.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// When the port was looked at last.
    checked: Time,
    /// [`Watch::turns`] then.
    turns: u64,
    aside: Aside,
}

impl Device {
    /// A program is about to sleep until a completion event: the background thread takes over,
    /// unless the program's thread will watch.
    pub(crate) fn sleeping(&self) {
        self.armed.store(true, SeqCst);
        if self.watch.waits_here.load(SeqCst) {
            self.stay_aside();
            return;
        }
        self.polled.store(0, SeqCst);
        if self.watch.asleep_until() == 0 {
            self.watch.ring_background();
        }
    }

    fn stay_aside(&self) {
        self.polled.store(self.now().as_nanos(), SeqCst);
    }

    /// Whether a thread polls, one time after the other.
    pub(crate) fn polls(&self, now: Time) -> bool {
        let polled = Time::from_nanos(self.polled.load(Relaxed));
        now.saturating_since(polled) < POLLS && !self.armed.load(Relaxed)
    }

    /// When a thread polled last.
    fn polled_at(&self) -> Time {
        Time::from_nanos(self.polled.load(SeqCst))
    }

    /// Says until when the watcher sleeps, and gives how long that is.
    fn lie_down(&self) -> Duration {
        // First say how long the sleep will be, then look again: who posts meanwhile rings.
        self.watch.asleep_until.store(u64::MAX, SeqCst);
        fence(SeqCst);
        let now = self.now();
        let most = match (self.health.broken().is_some(), self.tx.is_blocked()) {
            (true, _) => RETRY,
            (false, true) => TRY_AGAIN,
            (false, false) if self.nic.has_work() => Duration::ZERO,
            (false, false) => self.look_up,
        };
        let deadline = self.next_deadline().map_or(now + most, |at| at.min(now + most));
        self.watch.asleep_until.store(deadline.as_nanos(), SeqCst);
        let sleep = deadline.saturating_since(now);
        self.port.next_deadline().map_or(sleep, |port| port.min(sleep))
    }

    /// A thread of the program sleeps until `fd` is readable, at most so long, and watches the port
    /// meanwhile if no other does.
    pub(crate) fn watch(
        &self,
        fd: BorrowedFd<'_>,
        rest: Option<Duration>,
    ) -> Result<Readable, Error> {
        let shorter = |most: Duration| Some(rest.map_or(most, |rest| rest.min(most)));
        let watch = &self.watch;
        watch.set_waits_here(true);
        if self.health.broken().is_some() {
            // The background thread tries it again.
            return wait(&[fd], rest);
        }
        match watch.take(PROGRAM) {
            Err(BACKGROUND) => {
                self.stay_aside();
                watch.ring_background();
                return wait(&[fd], shorter(HAND_OVER));
            }
            // When that one leaves, the background thread soon takes over.
            Err(_) => return wait(&[fd], rest),
            Ok(_) => {}
        }
        let sleep = self.lie_down();
        let woken = wait(&[fd, self.port.fd(), watch.called.fd()], shorter(sleep));
        watch.turns.fetch_add(1, SeqCst);
        self.stay_aside();
        watch.give_back();
        if woken.as_ref().is_ok_and(|woken| woken.is(2)) {
            watch.called.hush();
        }
        if watch.deep.swap(false, SeqCst) {
            watch.ring_background();
        }
        woken
    }

    /// One round of the background thread.
    pub(crate) fn background(&self, rounds: &mut Rounds) -> Result<(), Error> {
        let now = self.now();
        let broken = self.health.broken().is_some();
        if broken || now.saturating_since(rounds.checked) >= self.look_up {
            rounds.checked = now;
            self.check_port();
        }
        let watch = &self.watch;
        if watch.take(BACKGROUND).is_err() {
            return self.stand_by(rounds);
        }
        if let Some(rest) = rounds.aside.rest(now, self.polled_at()) {
            // Who polls looks after timers too.
            watch.give_back();
            self.doze(rest.min(LEFT_OVER))?;
            self.go_on();
            return Ok(());
        }
        if rounds.aside.ends() {
            let waited = !broken && wait(&[self.port.fd()], Some(Duration::ZERO))?.any();
            rounds.aside.ended(now, waited);
        }
        let sleep = Some(self.lie_down());
        // A broken port's descriptor may be readable for ever.
        let fds = [watch.wake.fd(), self.port.fd()];
        let woken = wait(if broken { &fds[..1] } else { &fds }, sleep);
        watch.give_back();
        if woken?.is(0) {
            watch.wake.hush();
        }
        if self.may_look(rounds) {
            let found = self.progress();
            rounds.aside.looked(found);
            if found {
                self.spin(rounds);
            }
        }
        Ok(())
    }

    /// Sleeps at most so long, or until it is rung for.
    fn doze(&self, most: Duration) -> Result<(), Error> {
        if wait(&[self.watch.wake.fd()], Some(most))?.is(0) {
            self.watch.wake.hush();
        }
        Ok(())
    }

    /// A thread of the program watches.
    fn stand_by(&self, rounds: &mut Rounds) -> Result<(), Error> {
        let watch = &self.watch;
        let turns = watch.turns.load(SeqCst);
        if turns != rounds.turns {
            rounds.turns = turns;
            return self.doze(ASIDE);
        }
        // It has slept for as long as this thread did: there is no hurry.
        watch.deep.store(true, SeqCst);
        let slept = if watch.holder.load(SeqCst) == PROGRAM && watch.turns.load(SeqCst) == turns {
            self.doze(self.look_up)
        } else {
            Ok(())
        };
        watch.deep.store(false, SeqCst);
        slept
    }

    /// Whether no thread of the program looks after the port.
    fn may_look(&self, rounds: &mut Rounds) -> bool {
        let nobody = self.watch.holder.load(SeqCst) == NOBODY;
        nobody && rounds.aside.rest(self.now(), self.polled_at()).is_none()
    }

    /// Looks for more for a while, as packets seldom come alone; not where a program was told of a
    /// completion, which needs the CPU now.
    fn spin(&self, rounds: &mut Rounds) {
        let armed = self.armed.load(SeqCst);
        let mut last = self.now();
        while self.now().saturating_since(last) < SPIN {
            for _ in 0..LOOKS {
                if self.progress() {
                    last = self.now();
                }
                if armed && !self.armed.load(SeqCst) {
                    return;
                }
            }
            if !self.may_look(rounds) || self.stop.load(SeqCst) {
                return;
            }
            hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests;
