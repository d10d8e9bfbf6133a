//! Completion queues and channels.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use urxe_engine::{Arm, Completion, CqId};

use crate::Error;
use crate::context::Handle;
use crate::events::{Queue, wait};

/// A completion queue.
#[derive(Debug)]
pub struct Cq {
    pub(crate) device: Arc<Handle>,
    pub(crate) id: CqId,
}

/// How long [`Cq::wait_one`] waits, seconds: longer than any retry that a default QP makes.
const PATIENCE: Duration = Duration::from_secs(30);

impl Cq {
    pub(crate) fn new(
        device: &Arc<Handle>,
        capacity: u32,
        channel: Option<&CompChannel>,
    ) -> Result<Self, Error> {
        let id = device.nic.create_cq(capacity)?;
        if let Some(channel) = channel {
            device.events.attach(id, &channel.queue);
        }
        Ok(Self { device: Arc::clone(device), id })
    }

    /// Adds the completions that wait, at most `max`, to `out`, oldest first. Where there is none,
    /// what has arrived is looked at first.
    ///
    /// # Errors
    /// None in a queue that exists.
    pub fn poll(&self, out: &mut Vec<Completion>, max: usize) -> Result<usize, Error> {
        let n = self.device.nic.poll_cq(self.id, out, max)?;
        if n != 0 {
            return Ok(n);
        }
        self.device.polling();
        self.device.progress();
        Ok(self.device.nic.poll_cq(self.id, out, max)?)
    }

    /// The oldest completion, if one waits.
    ///
    /// # Errors
    /// None in a queue that exists.
    pub fn poll_one(&self) -> Result<Option<Completion>, Error> {
        if let Some(completion) = self.device.nic.poll_one(self.id)? {
            return Ok(Some(completion));
        }
        self.device.polling();
        self.device.progress();
        Ok(self.device.nic.poll_one(self.id)?)
    }

    /// Polls until a completion comes, at most 30 s.
    ///
    /// # Errors
    /// [`Error::TimedOut`], with the NIC's counters.
    pub fn wait_one(&self) -> Result<Completion, Error> {
        self.wait_for(PATIENCE)
    }

    /// Polls until a completion comes, at most `patience`.
    ///
    /// # Errors
    /// [`Error::TimedOut`], with the NIC's counters.
    pub fn wait_for(&self, patience: Duration) -> Result<Completion, Error> {
        let start = Instant::now();
        loop {
            if let Some(completion) = self.poll_one()? {
                return Ok(completion);
            }
            if start.elapsed() > patience {
                let all = self.device.nic.counters().non_zero();
                let counters: Vec<_> = all.map(|(name, n)| format!("{name} {n}")).collect();
                let (what, seconds) = ("completion", patience.as_secs());
                return Err(Error::TimedOut { what, seconds, counters: counters.join(", ") });
            }
            std::thread::yield_now();
        }
    }

    /// Asks for one event on the channel with the next completion that `arm` means. Completions
    /// that wait already do not count: poll once more after arming.
    ///
    /// # Errors
    /// None in a queue that exists.
    pub fn req_notify(&self, arm: Arm) -> Result<(), Error> {
        self.device.nic.arm_cq(self.id, arm)?;
        self.device.sleeping();
        Ok(())
    }

    /// Changes how many completions it holds.
    ///
    /// # Errors
    /// Where more wait, or the number is out of range.
    pub fn resize(&self, capacity: u32) -> Result<(), Error> {
        Ok(self.device.nic.resize_cq(self.id, capacity)?)
    }

    /// Its number, as a channel's event names it.
    #[must_use]
    pub const fn id(&self) -> CqId {
        self.id
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        self.device.events.detach(self.id);
        if let Err(error) = self.device.nic.destroy_cq(self.id) {
            tracing::error!(%error, "a CQ was dropped before its QPs");
        }
    }
}

/// A channel on which events of completion queues come.
#[derive(Debug)]
pub struct CompChannel {
    queue: Arc<Queue<CqId>>,
    _device: Arc<Handle>,
}

impl CompChannel {
    pub(crate) fn new(device: &Arc<Handle>) -> Result<Self, Error> {
        Ok(Self { queue: Arc::new(Queue::new()?), _device: Arc::clone(device) })
    }

    /// A descriptor that is readable while an event waits.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.queue.fd()
    }

    /// The oldest event, if one waits: the number of the queue.
    #[must_use]
    pub fn take_event(&self) -> Option<CqId> {
        self.queue.pop()
    }

    /// Waits for an event, at most so long.
    ///
    /// # Errors
    /// Where waiting fails.
    pub fn wait_event(&self, timeout: Duration) -> Result<Option<CqId>, Error> {
        wait(&[self.fd()], Some(timeout))?;
        Ok(self.take_event())
    }
}
