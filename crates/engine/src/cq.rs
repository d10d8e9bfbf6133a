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
    overflowed: bool,
}

impl Cq {
    pub(crate) fn new(id: CqId, capacity: usize) -> Self {
        let ring = VecDeque::with_capacity(capacity);
        Self { id, inner: Mutex::new(Inner { ring, capacity, armed: None, overflowed: false }) }
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
        let failed = completion.status != crate::WcStatus::Success;
        inner.ring.push_back(completion);
        match inner.armed {
            Some(Arm::Next) => {}
            Some(Arm::Solicited) if solicited || failed => {}
            _ => return Pushed::Quiet,
        }
        inner.armed = None;
        Pushed::Notify
    }

    /// Moves up to `out.len()` completions out, oldest first.
    pub(crate) fn poll(&self, out: &mut Vec<Completion>, max: usize) -> usize {
        let inner = &mut *self.inner.lock();
        let n = max.min(inner.ring.len());
        out.extend(inner.ring.drain(..n));
        n
    }

    /// Takes out the completions of a QP.
    pub(crate) fn forget(&self, qpn: Qpn) {
        self.inner.lock().ring.retain(|completion| completion.qpn != qpn);
    }

    /// Hands up to `max` completions to `take`, oldest first.
    pub(crate) fn poll_with(&self, max: usize, take: impl FnMut(Completion)) -> usize {
        let inner = &mut *self.inner.lock();
        let n = max.min(inner.ring.len());
        inner.ring.drain(..n).for_each(take);
        n
    }

    pub(crate) fn pop(&self) -> Option<Completion> {
        self.inner.lock().ring.pop_front()
    }

    /// Arms for one notification. A CQ armed for the next stays so when armed for solicited
    /// (IBA 11.4.2).
    pub(crate) fn arm(&self, arm: Arm) {
        let inner = &mut *self.inner.lock();
        if inner.armed != Some(Arm::Next) {
            inner.armed = Some(arm);
        }
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
