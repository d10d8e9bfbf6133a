//! The oracle: verbs semantics in plain memory. It is told what was posted and what completed, and
//! says what a right NIC could not have done.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use urxe_engine::{Cause, Time, WcStatus};
use urxe_memory::Buffer;

use crate::plan::{Op, Plan, Queue, Span};

mod atomics;
mod datagrams;
mod excuses;
mod memory;
mod receives;
mod rest;
mod sends;

pub(crate) use receives::RECV;

/// What must hold in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// Each work request completes once, or not at all if it is unsignaled and good.
    ExactlyOnce,
    /// Completions come in the order of posting.
    Order,
    /// A failure is what an injected error or the network explains.
    Status,
    /// A received message is one that was sent: in order, with its length, data and keys.
    Received,
    /// A READ or atomic brings what stands there.
    Fetched,
    /// What is acknowledged is placed.
    Placed,
    /// No byte changes but those that a work request names, and to what it says.
    Stray,
    /// Atomics on a word are as if done one after another.
    Atomic,
    /// A run comes to rest, and then no timer is armed and no work is left.
    Rest,
    /// An armed CQ tells of a completion.
    Notified,
    /// What is destroyed leaves nothing behind.
    Leak,
    /// A call that must be taken is taken.
    Accepted,
    /// The engine does not panic.
    Panic,
}

impl Invariant {
    /// What it says.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::ExactlyOnce => "each work request completes exactly once",
            Self::Order => "completions come in the order of posting",
            Self::Status => "a failure has a cause",
            Self::Received => "what is received was sent, in order and whole",
            Self::Fetched => "a READ or atomic brings what stands there",
            Self::Placed => "what is acknowledged is placed",
            Self::Stray => "no byte changes that no work request names",
            Self::Atomic => "atomics on a word happen one after another",
            Self::Rest => "a run comes to rest",
            Self::Notified => "an armed CQ tells of a completion",
            Self::Leak => "what is destroyed leaves nothing behind",
            Self::Accepted => "a right call is taken",
            Self::Panic => "the engine does not panic",
        }
    }
}

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// When.
    pub at: Time,
    /// What was got and what was wanted.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (at {})", self.invariant.text(), self.what, self.at)
    }
}

/// What is so if nothing is wrong.
pub(crate) type Verdict = Result<(), Violation>;

/// Where a send work request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not posted.
    Waiting,
    /// Posted.
    Posted,
    /// Done, as its or a later completion said.
    Good,
    /// Failed.
    Failed(WcStatus),
    /// Never posted: what it builds upon failed, or its QP is gone.
    Skipped,
}

/// Where a receive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecvPhase {
    Waiting,
    Posted,
    /// Completed, with bytes so many placed if it is `Success`.
    Done(WcStatus),
}

/// How a send queue failed first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    op: usize,
    status: WcStatus,
    cause: Option<Cause>,
    /// Packets of the pair that the network harmed since it was posted.
    harm: u32,
}

/// What is known of one QP.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    /// Sends, in order.
    posted: Vec<usize>,
    /// How many of them are settled.
    settled: usize,
    /// Those that take a receive of the peer.
    messages: Vec<usize>,
    /// How many of the peer's messages have arrived (reliable kinds).
    arrived: usize,
    /// Receives, in order, of its own queue.
    rq: Vec<usize>,
    /// How many of them have completed, and how many well.
    rq_done: usize,
    rq_good: usize,
    failed: Option<Failure>,
    rx_failed: Option<WcStatus>,
    flushed: bool,
    /// Reset or destroyed: nothing completes any more.
    gone: bool,
    /// Went to error because it was told to.
    stopped: bool,
}

/// The oracle.
pub(crate) struct Oracle {
    plan: Arc<Plan>,
    now: Time,
    buffers: Vec<Arc<Buffer>>,
    model: Vec<Vec<u8>>,
    phases: Vec<Phase>,
    recvs: Vec<RecvPhase>,
    sides: Vec<[Side; 2]>,
    /// Data of inline requests, as it was when they were posted.
    inline: BTreeMap<usize, Vec<u8>>,
    /// When operations were posted, and when their completion was seen.
    times: BTreeMap<usize, (Time, Option<Time>)>,
    /// Packets of its pair that the network had harmed when an operation was posted.
    harm: BTreeMap<usize, u32>,
    /// What atomics brought.
    originals: BTreeMap<usize, u64>,
    /// What words held at first.
    initial: Vec<u64>,
    /// Keys of windows.
    pub(crate) window_keys: Vec<u32>,
    /// How often unreliable messages arrived.
    deliveries: BTreeMap<usize, u32>,
    /// What regions held when they were deregistered.
    frozen: BTreeMap<usize, Vec<u8>>,
    /// Whether the network makes two of one, or changes the order.
    doubles: bool,
    pub(crate) qpns: Vec<[u32; 2]>,
}

impl Oracle {
    pub(crate) fn new(plan: Arc<Plan>, buffers: Vec<Arc<Buffer>>, doubles: bool) -> Self {
        let model: Vec<Vec<u8>> = buffers.iter().map(|b| bytes_of(b)).collect();
        let word = |span: Span| {
            let bytes = &model[plan.regions[span.region].node][plan.place(span)];
            u64::from_ne_bytes(bytes.try_into().unwrap_or_default())
        };
        Self {
            initial: plan.words.iter().map(|w| word(w.span)).collect(),
            phases: vec![Phase::Waiting; plan.ops.len()],
            recvs: vec![RecvPhase::Waiting; plan.recvs.len()],
            sides: vec![Default::default(); plan.conns.len()],
            window_keys: vec![0; plan.windows.len()],
            qpns: vec![[0; 2]; plan.conns.len()],
            now: Time::ZERO,
            buffers,
            model,
            plan,
            inline: BTreeMap::new(),
            times: BTreeMap::new(),
            harm: BTreeMap::new(),
            originals: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            frozen: BTreeMap::new(),
            doubles,
        }
    }

    pub(crate) const fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    pub(crate) fn violation(&self, invariant: Invariant, what: String) -> Violation {
        Violation { invariant, at: self.now, what }
    }

    fn fail<T>(&self, invariant: Invariant, what: String) -> Result<T, Violation> {
        Err(self.violation(invariant, what))
    }

    fn op(&self, id: usize) -> &Op {
        &self.plan.ops[id]
    }

    /// Where an operation is.
    pub(crate) fn phase(&self, op: usize) -> Phase {
        self.phases[op]
    }

    /// An operation is not posted at all.
    pub(crate) fn skipped(&mut self, op: usize) {
        self.phases[op] = Phase::Skipped;
    }

    /// The data of an inline request, to be posted. What it was read from is overwritten then: the
    /// copy alone counts.
    pub(crate) fn take_inline(&mut self, op: usize) -> Vec<u8> {
        let data = self.gather(&self.op(op).local);
        self.inline.insert(op, data.clone());
        data
    }

    /// An inline request was taken.
    pub(crate) fn spoil_inline(&mut self, op: usize) {
        let junk = self.inline[&op].iter().map(|b| !b).collect::<Vec<u8>>();
        let spans = self.op(op).local.clone();
        self.scatter(&spans, 0, &junk);
        let mut rest = &junk[..];
        for span in spans {
            let (now, later) = rest.split_at(span.len as usize);
            let node = self.plan.regions[span.region].node;
            let written = self.buffers[node].write(self.plan.place(span).start, now);
            written.unwrap_or_else(|e| unreachable!("a span outside its buffer: {e}"));
            rest = later;
            if self.frozen.contains_key(&span.region) {
                // The program may write to its memory, registered or not.
                self.deregistered(span.region);
            }
        }
    }

    /// An operation was posted. `harm` counts the packets of its pair that the network has harmed.
    pub(crate) fn posted(&mut self, id: usize, harm: u32) {
        self.phases[id] = Phase::Posted;
        self.harm.insert(id, harm);
        self.times.insert(id, (self.now, None));
        let (conn, side) = (self.op(id).conn, self.op(id).side);
        let takes_recv = self.op(id).what.takes_recv();
        let side = &mut self.sides[conn][side];
        side.posted.push(id);
        if takes_recv {
            side.messages.push(id);
        }
    }

    /// A receive was posted.
    pub(crate) fn recv_posted(&mut self, id: usize) {
        self.recvs[id] = RecvPhase::Posted;
        if let Queue::Own(conn, side) = self.plan.recvs[id].queue {
            self.sides[conn][side].rq.push(id);
        }
    }

    /// A QP was told to go to error.
    pub(crate) fn stopped(&mut self, conn: usize, side: usize) {
        self.sides[conn][side].stopped = true;
    }

    /// A QP was reset or destroyed.
    pub(crate) fn gone(&mut self, conn: usize, side: usize) {
        self.sides[conn][side].gone = true;
    }

    /// Whether a QP was reset or destroyed.
    pub(crate) fn is_gone(&self, conn: usize, side: usize) -> bool {
        self.sides[conn][side].gone
    }

    /// A region was deregistered: from now on none of its bytes changes.
    pub(crate) fn deregistered(&mut self, region: usize) {
        let bytes = self.actual(&[self.whole(region)]);
        self.frozen.insert(region, bytes);
    }

    fn whole(&self, region: usize) -> Span {
        Span { region, at: 0, len: self.plan.regions[region].len }
    }

    /// Operations that are done or under way; for reports.
    pub(crate) fn settled(&self) -> usize {
        self.phases.iter().filter(|p| matches!(p, Phase::Good | Phase::Failed(_))).count()
    }

    /// Operations that were done well.
    pub(crate) fn good(&self) -> usize {
        self.phases.iter().filter(|p| matches!(p, Phase::Good)).count()
    }
}

/// A copy of a buffer.
pub(crate) fn bytes_of(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    buffer
        .read(0, &mut bytes)
        .unwrap_or_else(|e| unreachable!("a buffer shorter than itself: {e}"));
    bytes
}
