//! Completion queues and channels.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use urxe_engine::{Arm, Completion, CqId, CqInfo};

use crate::Error;
use crate::events::{Affected, Queue};
use crate::handle::Handle;

/// A completion queue. It lives until its last handle is dropped and the last QP that uses it.
///
/// ```
/// use urxe::{Config, Context, QpKind};
///
/// let context = Context::open(&Config::default())?;
/// let (pd, cq) = (context.alloc_pd()?, context.create_cq(16)?);
/// let qp = pd.qp(QpKind::Ud).cq(&cq).build()?;
/// drop(cq); // the QP keeps it
/// assert_eq!(context.counts().cqs, 1);
/// drop(qp);
/// assert_eq!(context.counts().cqs, 0);
/// # Ok::<(), urxe::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cq {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    device: Arc<Handle>,
    id: CqId,
}

/// How long [`Cq::wait_one`] waits, seconds: longer than any retry that a default QP makes.
const PATIENCE: Duration = Duration::from_secs(30);

impl Cq {
    pub(crate) fn new(
        device: &Arc<Handle>,
        capacity: u32,
        channel: Option<&CompChannel>,
    ) -> Result<Self, Error> {
        let live = device.live()?;
        if channel.is_some_and(|channel| !Arc::ptr_eq(&channel.device, device)) {
            return Err(Error::OtherDevice { what: "completion channel" });
        }
        let id = live.nic.create_cq(capacity)?;
        live.events.own(Affected::Cq(id), device);
        if let Some(channel) = channel {
            live.events.attach(id, &channel.queue);
        }
        Ok(Self { inner: Arc::new(Inner { device: Arc::clone(device), id }) })
    }

    /// Adds the completions that wait, at most `max`, to `out`, oldest first. Where there is none,
    /// what has arrived is looked at first.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn poll(&self, out: &mut Vec<Completion>, max: usize) -> Result<usize, Error> {
        let device = self.inner.device.live()?;
        let n = device.nic.poll_cq(self.id(), out, max)?;
        if n != 0 {
            return Ok(n);
        }
        device.polling();
        device.look();
        let n = device.nic.poll_cq(self.id(), out, max)?;
        device.looked(n != 0);
        Ok(n)
    }

    /// Hands the completions that wait, at most `max`, to `take`, oldest first. Where there is
    /// none, what has arrived is looked at first. The queue is locked meanwhile.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn poll_with(&self, max: usize, mut take: impl FnMut(Completion)) -> Result<usize, Error> {
        let device = self.inner.device.live()?;
        let n = device.nic.poll_with(self.id(), max, &mut take)?;
        if n != 0 {
            return Ok(n);
        }
        device.polling();
        device.look();
        let n = device.nic.poll_with(self.id(), max, take)?;
        device.looked(n != 0);
        Ok(n)
    }

    /// The oldest completion, if one waits.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn poll_one(&self) -> Result<Option<Completion>, Error> {
        let device = self.inner.device.live()?;
        if let Some(completion) = device.nic.poll_one(self.id())? {
            return Ok(Some(completion));
        }
        device.polling();
        device.look();
        let one = device.nic.poll_one(self.id())?;
        device.looked(one.is_some());
        Ok(one)
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
                let all = self.inner.device.nic.counters().non_zero();
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
    /// [`Error::Forked`].
    pub fn req_notify(&self, arm: Arm) -> Result<(), Error> {
        let device = self.inner.device.live()?;
        device.nic.arm_cq(self.id(), arm)?;
        device.sleeping();
        Ok(())
    }

    /// As [`Self::req_notify`], but completions that wait already count, too, unless an event has
    /// told of them: for programs that do not poll again after arming. Others get an event now and
    /// then whose completion they have polled already.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn req_notify_all(&self, arm: Arm) -> Result<(), Error> {
        let device = self.inner.device.live()?;
        device.nic.arm_cq_for_all(self.id(), arm)?;
        device.sleeping();
        device.tell();
        Ok(())
    }

    /// Changes how many completions it holds.
    ///
    /// # Errors
    /// Where more wait, or the number is out of range.
    pub fn resize(&self, capacity: u32) -> Result<(), Error> {
        Ok(self.inner.device.live()?.nic.resize_cq(self.id(), capacity)?)
    }

    /// What it holds, and whether one was lost.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn query(&self) -> Result<CqInfo, Error> {
        Ok(self.inner.device.live()?.nic.query_cq(self.id())?)
    }

    pub(crate) fn device(&self) -> &Arc<Handle> {
        &self.inner.device
    }

    /// Its number, as a channel's event names it.
    #[must_use]
    pub fn id(&self) -> CqId {
        self.inner.id
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Ok(device) = self.device.live() else { return };
        if let Err(error) = device.nic.destroy_cq(self.id) {
            tracing::error!(%error, "a CQ could not be destroyed");
        }
        device.events.forget(&device.nic, Affected::Cq(self.id));
    }
}

/// A channel on which events of completion queues come, for programs that sleep.
///
/// ```
/// use std::time::Duration;
/// use urxe::{Access, Arm, Config, Context, QpKind, SendOp};
///
/// let context = Context::open(&Config::default())?;
/// let pd = context.alloc_pd()?;
/// let mr = pd.register(64, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
/// let channel = context.create_comp_channel()?;
/// let cq = context.create_cq_on(16, &channel)?;
/// let qp = pd.qp(QpKind::Rc).cq(&cq).access(Access::REMOTE_WRITE).build()?;
/// qp.connect(&qp.endpoint())?; // with itself
///
/// cq.req_notify(Arm::Next)?;
/// let write = SendOp::Write { remote: mr.addr() + 32, rkey: mr.rkey(), imm: None };
/// qp.post_send(1, write, &[mr.sge(0..32)])?;
/// // Any event loop may wait for `channel.fd()`.
/// assert_eq!(channel.wait_event(Duration::from_secs(30))?, Some(cq.id()));
/// assert_eq!(cq.poll_one()?.map(|done| done.wr_id), Some(1));
/// # Ok::<(), urxe::Error>(())
/// ```
#[derive(Debug)]
pub struct CompChannel {
    queue: Arc<Queue<CqId>>,
    device: Arc<Handle>,
}

impl CompChannel {
    pub(crate) fn new(device: &Arc<Handle>) -> Result<Self, Error> {
        device.live()?;
        Ok(Self { queue: Arc::new(Queue::new()?), device: Arc::clone(device) })
    }

    /// A descriptor that is readable while an event waits.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.queue.fd()
    }

    /// The oldest event, if one waits: the number of the queue. None in a child of the process
    /// that opened the device.
    #[must_use]
    pub fn take_event(&self) -> Option<CqId> {
        self.device.live().ok().and_then(|_| self.queue.pop())
    }

    /// Waits for an event, at most so long.
    ///
    /// # Errors
    /// Where waiting fails; [`Error::Forked`].
    pub fn wait_event(&self, timeout: Duration) -> Result<Option<CqId>, Error> {
        let (live, start) = (self.device.live()?, Instant::now());
        if let Some(event) = self.queue.pop() {
            // Maybe it has waited for the descriptor.
            live.watch.set_waits_here(false);
            return Ok(Some(event));
        }
        loop {
            let rest = timeout.saturating_sub(start.elapsed());
            self.sleep(Some(rest))?;
            let event = self.queue.pop();
            if event.is_some() || start.elapsed() >= timeout {
                return Ok(event);
            }
        }
    }

    /// Sleeps until an event waits, or something else has happened: the time is over, or a signal
    /// came, which is told by `false`. Looks after the device meanwhile, so that no other thread
    /// has to be woken first.
    ///
    /// # Errors
    /// Where waiting fails; [`Error::Forked`].
    pub fn sleep(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        let device = self.device.live()?;
        device.look();
        let found = !self.queue.is_empty();
        device.looked(found);
        if !found {
            return Ok(!device.watch(self.queue.fd(), timeout)?.interrupted);
        }
        Ok(true)
    }
}

impl AsFd for CompChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}
