//! Events on descriptors that can be polled: completion channels and asynchronous events.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use urxe_engine::{AsyncEvent, CqId, Event, Nic};

use crate::Error;

/// A descriptor that counts: readable while it is not 0.
#[derive(Debug)]
pub(crate) struct Wake(OwnedFd);

impl Wake {
    pub(crate) fn new() -> Result<Self, Error> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(eventfd(0, flags).map_err(Error::host("eventfd"))?))
    }

    /// Makes it readable.
    pub(crate) fn ring(&self) {
        // Fails only where the counter would overflow: it is readable then already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes it unreadable.
    pub(crate) fn hush(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.0, &mut count);
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until one of `fds` is readable; says whether one is.
pub(crate) fn wait(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> Result<bool, Error> {
    let mut polls: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let timeout = timeout.map(|t| rustix::event::Timespec {
        tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: t.subsec_nanos().into(),
    });
    match poll(&mut polls, timeout.as_ref()) {
        Ok(n) => Ok(n != 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(e) => Err(Error::host("poll")(e)),
    }
}

/// A queue behind a descriptor, which is readable while the queue is not empty. What comes again
/// while it waits is counted, not stored again, and taken out as often as it came: a program that
/// never looks makes it no longer than there are different things that can happen.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    items: Mutex<Items<T>>,
    wake: Wake,
}

#[derive(Debug)]
struct Items<T> {
    /// Each once, oldest first.
    order: VecDeque<T>,
    /// How often each waits.
    times: HashMap<T, u64>,
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), times: HashMap::new() }
    }
}

impl<T: Copy + Eq + Hash> Queue<T> {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self { items: Mutex::default(), wake: Wake::new()? })
    }

    pub(crate) fn push(&self, item: T) {
        let Items { order, times } = &mut *self.items.lock();
        let waits = times.entry(item).or_insert(0);
        if *waits == 0 {
            order.push_back(item);
        }
        *waits += 1;
        self.wake.ring();
    }

    /// As [`Self::push`], of what tells a state: it waits once, behind all that came before it.
    pub(crate) fn push_state(&self, item: T) {
        let Items { order, times } = &mut *self.items.lock();
        if times.insert(item, 1).is_some() {
            order.retain(|waiting| *waiting != item);
        }
        order.push_back(item);
        self.wake.ring();
    }

    pub(crate) fn pop(&self) -> Option<T> {
        let Items { order, times } = &mut *self.items.lock();
        let item = order.pop_front();
        if let Some(item) = item {
            match times.get_mut(&item) {
                Some(waits) if *waits > 1 => {
                    *waits -= 1;
                    order.push_back(item);
                }
                _ => {
                    times.remove(&item);
                }
            }
        }
        if order.is_empty() {
            self.wake.hush();
        }
        item
    }

    /// Waits for the oldest, at most so long.
    pub(crate) fn wait(&self, timeout: Duration) -> Result<Option<T>, Error> {
        let start = Instant::now();
        loop {
            if let Some(item) = self.pop() {
                return Ok(Some(item));
            }
            let rest = timeout.saturating_sub(start.elapsed());
            if rest.is_zero() {
                return Ok(None);
            }
            // Another thread may take what this one is woken for; so it looks again.
            wait(&[self.fd()], Some(rest))?;
        }
    }

    /// Takes out what `keep` does not want.
    pub(crate) fn retain(&self, keep: impl Fn(&T) -> bool) {
        let Items { order, times } = &mut *self.items.lock();
        order.retain(&keep);
        times.retain(|item, _| keep(item));
        if order.is_empty() {
            self.wake.hush();
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.wake.fd()
    }
}

/// Where the engine's events go.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) asyncs: Queue<AsyncEvent>,
    channels: Mutex<Channels>,
}

/// Which CQ's events go where.
type Channels = HashMap<CqId, Weak<Queue<CqId>>>;

impl Events {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self { asyncs: Queue::new()?, channels: Mutex::default() })
    }

    /// Events of `cq` go to `channel` from now on.
    pub(crate) fn attach(&self, cq: CqId, channel: &Arc<Queue<CqId>>) {
        self.channels.lock().insert(cq, Arc::downgrade(channel));
    }

    /// A CQ is gone: what happened to it is of interest to nobody, and its number will be
    /// another's.
    pub(crate) fn forget_cq(&self, nic: &Nic, cq: CqId) {
        let mut channels = self.channels.lock();
        self.hand_on(nic, &channels);
        if let Some(channel) = channels.remove(&cq).and_then(|c| c.upgrade()) {
            channel.retain(|waiting| *waiting != cq);
        }
        self.asyncs.retain(|event| !matches!(event, AsyncEvent::CqErr(of, _) if *of == cq));
    }

    /// An object other than a CQ is gone, with its events: those that `is_its` says are.
    pub(crate) fn forget(&self, nic: &Nic, is_its: impl Fn(&AsyncEvent) -> bool) {
        let channels = self.channels.lock();
        self.hand_on(nic, &channels);
        self.asyncs.retain(|event| !is_its(event));
    }

    /// Takes over what has happened in the engine. Says whether a completion was told of.
    pub(crate) fn take_over(&self, nic: &Nic) -> bool {
        self.hand_on(nic, &self.channels.lock())
    }

    /// With the channels locked throughout, so that no event of an object comes after its end,
    /// and events come in their order.
    fn hand_on(&self, nic: &Nic, channels: &Channels) -> bool {
        let mut completion = false;
        while let Some(event) = nic.take_event() {
            match event {
                Event::Async(event) => self.asyncs.push(event),
                Event::Completion(cq) => {
                    completion = true;
                    let channel = channels.get(&cq).and_then(Weak::upgrade);
                    if let Some(channel) = channel {
                        channel.push(cq);
                    }
                }
            }
        }
        completion
    }
}

#[cfg(test)]
mod tests;
