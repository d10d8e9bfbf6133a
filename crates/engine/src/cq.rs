//! Completion queues. Overflow is an error and an event; a completion is never lost unseen.

use std::collections::VecDeque;

use parking_lot::Mutex;

use urxe_wire::Qpn;

use crate::types::{Completion, CqId};

/// What an armed CQ waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// The next completion.
    Next,
    /// The next solicited or failed completion.
    Solicited,
}

/// A CQ cannot be made so small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResizeError {
    /// More completions wait than would fit.
    #[error("{waiting} completions wait, a CQ of {wanted} cannot hold them; poll first")]
    TooSmall {
        /// Completions in the queue.
        waiting: usize,
        /// The size asked for.
        wanted: usize,
    },
    /// The size is 0 or above the NIC's limit.
    #[error("a CQ holds 1 to {max} completions, not {wanted}")]
    Range {
        /// The size asked for.
        wanted: usize,
        /// The NIC's limit.
        max: usize,
    },
}

/// What pushing did, for the caller to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It is in.
    Quiet,
    /// It is in, and the armed CQ wants to notify.
    Notify,
    /// It found no room: the first time, which must be told of.
    Overflowed,
    /// It found no room, and that is known.
    Lost,
}

#[derive(Debug)]
pub(crate) struct Cq {
    pub(crate) id: CqId,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    ring: VecDeque<Completion>,
    capacity: usize,
    armed: Option<Arm>,
    /// What waits of which no event told: solicited ones among it, or others only.
    untold: Option<Arm>,
    overflowed: bool,
}

impl Inner {
    /// After completions were taken out.
    fn taken(&mut self) {
        if self.ring.is_empty() {
            self.untold = None;
        }
    }

    fn arm(&mut self, arm: Arm) {
        if self.armed != Some(Arm::Next) {
            self.armed = Some(arm);
        }
    }

    /// The event that was asked for is due.
    fn tell(&mut self) {
        self.armed = None;
        self.untold = None;
    }
}

impl Cq {
    pub(crate) fn new(id: CqId, capacity: usize) -> Self {
        let ring = VecDeque::with_capacity(capacity);
        let inner = Inner { ring, capacity, armed: None, untold: None, overflowed: false };
        Self { id, inner: Mutex::new(inner) }
    }

    /// Adds a completion. `solicited` says whether it wakes a CQ armed for solicited ones only.
    pub(crate) fn push(&self, completion: Completion, solicited: bool) -> Pushed {
        let inner = &mut *self.inner.lock();
        if inner.ring.len() >= inner.capacity {
            // IBA 11.6.3: an overflow is an affiliated asynchronous error of the CQ.
            let first = !inner.overflowed;
            inner.overflowed = true;
            return if first { Pushed::Overflowed } else { Pushed::Lost };
        }
        let solicited = solicited || completion.status != crate::WcStatus::Success;
        inner.ring.push_back(completion);
        match inner.armed {
            Some(Arm::Next) => {}
            Some(Arm::Solicited) if solicited => {}
            _ => {
                if solicited {
                    inner.untold = Some(Arm::Solicited);
                }
                inner.untold.get_or_insert(Arm::Next);
                return Pushed::Quiet;
            }
        }
        inner.tell();
        Pushed::Notify
    }

    /// Moves up to `out.len()` completions out, oldest first.
    pub(crate) fn poll(&self, out: &mut Vec<Completion>, max: usize) -> usize {
        let inner = &mut *self.inner.lock();
        let n = max.min(inner.ring.len());
        out.extend(inner.ring.drain(..n));
        inner.taken();
        n
    }

    /// Takes out the completions of a QP.
    pub(crate) fn forget(&self, qpn: Qpn) {
        let inner = &mut *self.inner.lock();
        inner.ring.retain(|completion| completion.qpn != qpn);
        inner.taken();
    }

    /// Hands up to `max` completions to `take`, oldest first.
    pub(crate) fn poll_with(&self, max: usize, take: impl FnMut(Completion)) -> usize {
        let inner = &mut *self.inner.lock();
        let n = max.min(inner.ring.len());
        inner.ring.drain(..n).for_each(take);
        inner.taken();
        n
    }

    pub(crate) fn pop(&self) -> Option<Completion> {
        let inner = &mut *self.inner.lock();
        let completion = inner.ring.pop_front();
        inner.taken();
        completion
    }

    /// Arms for one notification. A CQ armed for the next stays so when armed for solicited
    /// (IBA 11.4.2).
    pub(crate) fn arm(&self, arm: Arm) {
        self.inner.lock().arm(arm);
    }

    /// As [`Self::arm`], but what waits already and no event told of counts, too: says whether the
    /// event is due at once.
    pub(crate) fn arm_for_all(&self, arm: Arm) -> bool {
        let inner = &mut *self.inner.lock();
        inner.arm(arm);
        let due = match inner.armed {
            Some(Arm::Next) => inner.untold.is_some(),
            _ => inner.untold == Some(Arm::Solicited),
        };
        if due {
            inner.tell();
        }
        due
    }

    pub(crate) fn len(&self) -> usize {
        self.inner.lock().ring.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.inner.lock().capacity
    }

    pub(crate) fn overflowed(&self) -> bool {
        self.inner.lock().overflowed
    }

    pub(crate) fn resize(&self, capacity: usize) -> Result<(), ResizeError> {
        let inner = &mut *self.inner.lock();
        let waiting = inner.ring.len();
        if waiting > capacity {
            return Err(ResizeError::TooSmall { waiting, wanted: capacity });
        }
        let mut ring = VecDeque::with_capacity(capacity);
        ring.append(&mut inner.ring);
        inner.ring = ring;
        inner.capacity = capacity;
        Ok(())
    }
}
