//! Events on descriptors that can be polled: completion channels and asynchronous events.

use std::array;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use urxe_engine::{AsyncEvent, CqId, Event, Nic, QpId, SrqId};

use crate::Error;
use crate::cm::Watch;
use crate::handle::Handle;

/// A descriptor that counts: readable while it is not 0.
#[derive(Debug)]
pub(crate) struct Wake(OwnedFd);

impl Wake {
    pub(crate) fn new() -> Result<Self, Error> {
        Self::with(EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
    }

    fn with(flags: EventfdFlags) -> Result<Self, Error> {
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

/// Which of the descriptors that were waited for are readable; none where the time is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readable {
    which: u8,
    /// Whether a signal ended the wait.
    pub(crate) interrupted: bool,
}

impl Readable {
    /// Whether the one of this index is.
    pub(crate) const fn is(self, nth: usize) -> bool {
        self.which & (1 << nth) != 0
    }

    pub(crate) const fn any(self) -> bool {
        self.which != 0
    }
}

/// Descriptors that are waited for at once at most.
const FDS: usize = 3;

/// Waits until one of `fds`, three at most, is readable.
pub(crate) fn wait(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> Result<Readable, Error> {
    debug_assert!((1..=FDS).contains(&fds.len()));
    let mut polls: [PollFd<'_>; FDS] = array::from_fn(|i| {
        // An entry twice changes nothing.
        PollFd::from_borrowed_fd(fds[i.min(fds.len() - 1)], PollFlags::IN)
    });
    let timeout = timeout.map(|t| rustix::event::Timespec {
        tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: t.subsec_nanos().into(),
    });
    let polls = &mut polls[..fds.len()];
    match poll(polls, timeout.as_ref()) {
        Ok(_) => {
            let readable = polls.iter().enumerate().filter(|(_, p)| !p.revents().is_empty());
            Ok(Readable { which: readable.fold(0, |w, (i, _)| w | 1 << i), interrupted: false })
        }
        Err(rustix::io::Errno::INTR) => Ok(Readable { which: 0, interrupted: true }),
        Err(e) => Err(Error::host("poll")(e)),
    }
}

/// A queue behind a descriptor, which is readable while the queue is not empty. What comes again
/// while it waits is counted, not stored again, and taken out as often as it came: a program that
/// never looks makes it no longer than there are different things that can happen.
///
/// The descriptor's O_NONBLOCK is the program's to set, as a sign to whoever waits for it; no call
/// here depends on it, for the count is 1 while something waits, and else 0.
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
        Ok(Self { items: Mutex::default(), wake: Wake::with(EventfdFlags::CLOEXEC)? })
    }

    pub(crate) fn push(&self, item: T) {
        let Items { order, times } = &mut *self.items.lock();
        let waits = times.entry(item).or_insert(0);
        if *waits == 0 {
            self.append(order, item);
        }
        *waits += 1;
    }

    /// As [`Self::push`], of what tells a state: it waits once, behind all that came before it.
    pub(crate) fn push_state(&self, item: T) {
        let Items { order, times } = &mut *self.items.lock();
        if times.insert(item, 1).is_none() {
            self.append(order, item);
        } else {
            order.retain(|waiting| *waiting != item);
            order.push_back(item);
        }
    }

    fn append(&self, order: &mut VecDeque<T>, item: T) {
        if order.is_empty() {
            self.wake.ring();
        }
        order.push_back(item);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        let Items { order, times } = &mut *self.items.lock();
        let item = order.pop_front()?;
        match times.get_mut(&item) {
            Some(waits) if *waits > 1 => {
                *waits -= 1;
                order.push_back(item);
            }
            _ => {
                times.remove(&item);
            }
        }
        if order.is_empty() {
            self.hush();
        }
        Some(item)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.lock().order.is_empty()
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
        let before = order.len();
        order.retain(&keep);
        times.retain(|item, _| keep(item));
        if before != 0 && order.is_empty() {
            self.hush();
        }
    }

    /// Takes the count away, unless the program has read it itself: that would wait for ever.
    fn hush(&self) {
        let now = Some(Duration::ZERO);
        if wait(&[self.fd()], now).is_ok_and(Readable::any) {
            self.wake.hush();
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.wake.fd()
    }
}

/// Where the engine's events go.
#[derive(Debug, Default)]
pub(crate) struct Events(Mutex<Routes>);

/// What an asynchronous event is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Affected {
    Cq(CqId),
    Qp(QpId),
    Srq(SrqId),
}

impl Affected {
    /// `None`: the device as a whole.
    const fn by(event: &AsyncEvent) -> Option<Self> {
        match event {
            AsyncEvent::CqErr(cq, _) => Some(Self::Cq(*cq)),
            AsyncEvent::QpFatal(qp)
            | AsyncEvent::QpReqErr(qp)
            | AsyncEvent::QpAccessErr(qp)
            | AsyncEvent::CommEst(qp)
            | AsyncEvent::SqDrained(qp)
            | AsyncEvent::QpLastWqeReached(qp) => Some(Self::Qp(*qp)),
            AsyncEvent::SrqLimitReached(srq) => Some(Self::Srq(*srq)),
            _ => None,
        }
    }
}

/// An asynchronous event, and to which user of a shared object it is told: 0 is who made it.
pub(crate) type Told = (AsyncEvent, u32);
type Asyncs = Weak<Queue<Told>>;

#[derive(Debug, Default)]
struct Routes {
    /// Which CQ's completions go where.
    channels: HashMap<CqId, Weak<Queue<CqId>>>,
    /// Which object's events go where: to the opening it was made through, and to those of its
    /// other users, each with its number.
    owners: HashMap<Affected, Vec<(u32, Asyncs)>>,
    /// How many such numbers were given out.
    users: u32,
    /// All openings: what is of the whole device goes to each.
    all: Vec<Asyncs>,
    /// What the connection manager is told, if there is one.
    watch: Option<Arc<Watch>>,
}

impl Events {
    /// The device is opened, once more perhaps.
    pub(crate) fn open(&self, asyncs: &Arc<Queue<Told>>) {
        let all = &mut self.0.lock().all;
        all.retain(|asyncs| asyncs.strong_count() != 0);
        all.push(Arc::downgrade(asyncs));
    }

    /// The connection manager is told of MADs and of connections whose data has come.
    pub(crate) fn watch(&self, watch: &Arc<Watch>) {
        self.0.lock().watch = Some(Arc::clone(watch));
    }

    /// Completion events of `cq` go to `channel` from now on.
    pub(crate) fn attach(&self, cq: CqId, channel: &Arc<Queue<CqId>>) {
        self.0.lock().channels.insert(cq, Arc::downgrade(channel));
    }

    /// Events of an object that was made through `handle` go there.
    pub(crate) fn own(&self, object: Affected, handle: &Handle) {
        self.0.lock().owners.insert(object, vec![(0, Arc::downgrade(&handle.asyncs))]);
    }

    /// They go to `handle` as well; gives the number that they come with.
    pub(crate) fn share(&self, object: Affected, handle: &Handle) -> u32 {
        let routes = &mut *self.0.lock();
        routes.users = routes.users.wrapping_add(1).max(1);
        let user = (routes.users, Arc::downgrade(&handle.asyncs));
        routes.owners.entry(object).or_default().push(user);
        routes.users
    }

    /// Another user is done with an object.
    pub(crate) fn leave(&self, nic: &Nic, object: Affected, user: u32) {
        let routes = &mut *self.0.lock();
        routes.hand_on(nic);
        let Some(users) = routes.owners.get_mut(&object) else { return };
        let asyncs = users.iter().find(|(number, _)| *number == user).and_then(|u| u.1.upgrade());
        users.retain(|(number, _)| *number != user);
        if let Some(asyncs) = asyncs {
            asyncs.retain(|(event, of)| Affected::by(event) != Some(object) || *of != user);
        }
    }

    /// An object is gone: what happened to it is of interest to nobody, and its number will be
    /// another's.
    pub(crate) fn forget(&self, nic: &Nic, object: Affected) {
        let routes = &mut *self.0.lock();
        routes.hand_on(nic);
        if let Affected::Cq(cq) = object
            && let Some(channel) = routes.channels.remove(&cq).and_then(|c| c.upgrade())
        {
            channel.retain(|waiting| *waiting != cq);
        }
        for (_, asyncs) in routes.owners.remove(&object).unwrap_or_default() {
            if let Some(asyncs) = asyncs.upgrade() {
                asyncs.retain(|(event, _)| Affected::by(event) != Some(object));
            }
        }
    }

    /// The device as a whole has come to something.
    pub(crate) fn tell_all(&self, event: AsyncEvent) {
        self.0.lock().tell(event);
    }

    /// Takes over what has happened in the engine. Says whether a completion was told of.
    pub(crate) fn take_over(&self, nic: &Nic) -> bool {
        self.0.lock().hand_on(nic)
    }
}

impl Routes {
    /// With the routes locked throughout, so that no event of an object comes after its end, and
    /// events come in their order.
    fn hand_on(&self, nic: &Nic) -> bool {
        let mut completion = false;
        while let Some(event) = nic.take_event() {
            match event {
                Event::Async(event) => {
                    if let (AsyncEvent::CommEst(qp), Some(watch)) = (event, &self.watch) {
                        watch.established.lock().push(qp);
                        watch.came.store(true, SeqCst);
                    }
                    self.tell(event);
                }
                Event::Completion(cq) if self.watch.as_ref().is_some_and(|w| w.cq == cq) => {
                    if let Some(watch) = &self.watch {
                        watch.came.store(true, SeqCst);
                    }
                }
                Event::Completion(cq) => {
                    completion = true;
                    let channel = self.channels.get(&cq).and_then(Weak::upgrade);
                    if let Some(channel) = channel {
                        channel.push(cq);
                    }
                }
            }
        }
        completion
    }

    fn tell(&self, event: AsyncEvent) {
        let Some(object) = Affected::by(&event) else {
            let all = self.all.iter().filter_map(Weak::upgrade);
            return all.for_each(|asyncs| asyncs.push_state((event, 0)));
        };
        for (user, asyncs) in self.owners.get(&object).into_iter().flatten() {
            if let Some(asyncs) = asyncs.upgrade() {
                asyncs.push((event, *user));
            }
        }
    }
}

#[cfg(test)]
mod tests;
