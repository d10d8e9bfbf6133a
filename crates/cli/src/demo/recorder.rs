//! Looks on at two devices and remembers each packet, when it left and when it arrived, and what
//! the programs did and saw meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;
use urxe::{Completion, DropReason, Mr, Observer, Passage, QpKind, Qpn, Why};
use urxe_wire::{Bth, ICRC_LEN, Repr, Roce};

use super::frame::ip_packet;
use super::memory::{Change, Watch};
use super::world::{Side, Who};

/// A packet that was sent.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    /// When it left, since the demo began.
    pub(super) left: Duration,
    /// When it arrived; `None` if it was lost on its way.
    pub(super) arrived: Option<Duration>,
    /// From whom.
    pub(super) from: Who,
    /// The IP packet, with a right ICRC.
    pub(super) frame: Vec<u8>,
    /// Where in it the BTH begins.
    pub(super) bth_at: usize,
    /// Why it left, where that is no new request's nor a plain answer's doing.
    pub(super) why: Option<Why>,
    /// Why it was not acted upon when it arrived.
    pub(super) dropped: Option<DropReason>,
    /// Which step of the demo it belongs to.
    pub(super) step: usize,
}

impl Packet {
    /// Its headers from the BTH on.
    pub(super) fn roce(&self) -> Option<Roce<'_>> {
        Roce::parse(self.frame.get(self.bth_at..)?).ok()
    }
}

/// Two QPs that belong together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Their kind.
    pub(super) kind: QpKind,
    /// Alice's QPN, and where her memory begins.
    pub(super) alice: (Qpn, u64),
    /// Bob's.
    pub(super) bob: (Qpn, u64),
}

impl Pair {
    /// Of two sides.
    pub(super) fn of(kind: QpKind, a: &Side, b: &Side) -> Self {
        Self { kind, alice: (a.qp.qpn(), a.mr.addr()), bob: (b.qp.qpn(), b.mr.addr()) }
    }

    /// The QPN and the memory of one of them.
    pub(super) const fn of_whom(&self, who: Who) -> (Qpn, u64) {
        match who {
            Who::Alice => self.alice,
            Who::Bob => self.bob,
        }
    }
}

/// Something that a program did, or that happened to it.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// In which step.
    pub(super) step: usize,
    /// To whom.
    pub(super) who: Who,
    /// On which QP.
    pub(super) qpn: Qpn,
    /// Since the demo began.
    pub(super) at: Duration,
    /// What.
    pub(super) what: What,
}

/// What happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum What {
    /// A request was posted.
    Send { wr_id: u64, words: String },
    /// A receive was posted.
    Recv { wr_id: u64, words: String },
    /// A completion was polled.
    Cqe {
        wr_id: u64,
        status: &'static str,
        ok: bool,
        opcode: String,
        byte_len: u32,
        explain: String,
    },
    /// A packet that arrived changed memory.
    Memory { packet: usize, changes: Vec<Change> },
    /// All that changed in a side's memory, when its connection ended.
    Sum { changes: Vec<Change> },
}

/// The memory of what passed.
#[derive(Debug)]
pub(super) struct Recorder {
    start: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    packets: Vec<Packet>,
    /// Transport bytes of each packet, without the ICRC, to know it again when it arrives.
    bytes: Vec<Vec<u8>>,
    events: Vec<Event>,
    pairs: Vec<(usize, Pair)>,
    watches: Vec<Watch>,
    step: usize,
    /// Of what each has sent, the packet that arrived last.
    last: BTreeMap<Who, usize>,
}

/// A packet that has been on its way so long is lost: a timeout is eight times as long.
const LONG: Duration = Duration::from_millis(8);

impl Default for Recorder {
    fn default() -> Self {
        Self { start: Instant::now(), inner: Mutex::default() }
    }
}

impl Recorder {
    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // What is remembered stays good if another thread panicked.
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Since the demo began.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// What comes from now on belongs to `step`.
    pub(super) fn begin(&self, step: usize) {
        self.lock().step = step;
    }

    /// Two QPs were connected.
    pub(super) fn connected(&self, pair: Pair) {
        let inner = &mut *self.lock();
        inner.pairs.push((inner.step, pair));
    }

    /// Looks at `mr` whenever a packet for the QP arrives.
    pub(super) fn watch(&self, who: Who, qpn: Qpn, mr: &Arc<Mr>) {
        self.lock().watches.push(Watch::new(who, qpn, mr));
    }

    /// The program itself has changed the memory.
    pub(super) fn filled(&self, who: Who, qpn: Qpn) {
        if let Some(watch) = self.lock().watch_of(who, qpn) {
            watch.rebase();
        }
    }

    /// The connection ends.
    pub(super) fn unwatch(&self, who: Who, qpn: Qpn) {
        let at = self.now();
        let inner = &mut *self.lock();
        if let Some(watch) = inner.watch_of(who, qpn) {
            let changes = watch.in_all();
            inner.watches.retain(|w| !w.is(who, qpn));
            inner.happened(who, qpn, at, What::Sum { changes });
        }
    }

    /// Something is posted.
    pub(super) fn posted(&self, who: Who, qpn: Qpn, recv: bool, wr_id: u64, words: String) {
        let what = if recv { What::Recv { wr_id, words } } else { What::Send { wr_id, words } };
        let at = self.now();
        self.lock().happened(who, qpn, at, what);
    }

    /// A completion was polled.
    pub(super) fn completed(&self, who: Who, done: &Completion) {
        let what = What::Cqe {
            wr_id: done.wr_id,
            status: done.status.text(),
            ok: done.status == urxe::WcStatus::Success,
            opcode: format!("{:?}", done.opcode),
            byte_len: done.byte_len,
            explain: done.explain(),
        };
        let at = self.now();
        self.lock().happened(who, done.qpn, at, what);
    }

    /// The packets of `step`, in the order in which they left.
    pub(super) fn of(&self, step: usize) -> Vec<Packet> {
        self.lock().packets.iter().filter(|p| p.step == step).cloned().collect()
    }

    /// How many packets of this step have not arrived.
    pub(super) fn lost(&self) -> usize {
        let inner = self.lock();
        let step = inner.packets.iter().rev().take_while(|p| p.step == inner.step);
        step.filter(|p| p.arrived.is_none()).count()
    }

    /// All that happened.
    pub(super) fn events(&self) -> Vec<Event> {
        self.lock().events.clone()
    }

    /// The pairs of QPs of `step`.
    pub(super) fn pairs(&self, step: usize) -> Vec<Pair> {
        let inner = self.lock();
        inner.pairs.iter().filter(|(s, _)| *s == step).map(|(_, pair)| *pair).collect()
    }
}

/// Looks on at one of the devices, whose addresses may be the same.
#[derive(Debug)]
pub(super) struct Eye {
    /// Whose device it is.
    pub(super) who: Who,
    /// What remembers.
    pub(super) recorder: Arc<Recorder>,
}

impl Observer for Eye {
    fn packet(&self, passage: &Passage<'_>) {
        let at = passage.at.saturating_duration_since(self.recorder.start);
        let inner = &mut *self.recorder.lock();
        let Some((covered, _)) = passage.bytes.split_last_chunk::<ICRC_LEN>() else {
            return;
        };
        if passage.sent {
            inner.sent(at, self.who, passage, covered);
        } else {
            inner.arrived(at, self.who, passage, covered);
        }
    }
}

impl Inner {
    fn watch_of(&mut self, who: Who, qpn: Qpn) -> Option<&mut Watch> {
        self.watches.iter_mut().find(|w| w.is(who, qpn))
    }

    fn happened(&mut self, who: Who, qpn: Qpn, at: Duration, what: What) {
        let step = self.step;
        self.events.push(Event { step, who, qpn, at, what });
    }

    fn sent(&mut self, left: Duration, from: Who, passage: &Passage<'_>, covered: &[u8]) {
        let frame = ip_packet(passage);
        self.packets.push(Packet {
            left,
            arrived: None,
            from,
            bth_at: frame.len() - passage.bytes.len(),
            frame,
            why: passage.why,
            dropped: None,
            step: self.step,
        });
        self.bytes.push(covered.to_vec());
    }

    fn arrived(&mut self, at: Duration, who: Who, passage: &Passage<'_>, covered: &[u8]) {
        let from = who.other();
        let Some(nth) = self.which(from, at, covered) else {
            return;
        };
        self.last.insert(from, nth);
        self.packets[nth].arrived = Some(at);
        self.packets[nth].dropped = passage.fate.err();
        let Ok((bth, _)) = Bth::parse(covered) else {
            return;
        };
        let changes = self.watch_of(who, bth.dest_qp).map(Watch::changes).unwrap_or_default();
        if !changes.is_empty() {
            self.happened(who, bth.dest_qp, at, What::Memory { packet: nth, changes });
        }
    }

    /// Which of the packets on their way has arrived. Equal ones (a request sent again, an ACK of
    /// the same news) are told apart by the link's keeping of order and by age.
    fn which(&self, from: Who, at: Duration, covered: &[u8]) -> Option<usize> {
        let step = self.step;
        let last = self.last.get(&from).copied();
        let all = self.packets.iter().zip(&self.bytes).enumerate();
        let equal = all.filter(|(_, (p, bytes))| {
            p.step == step && p.arrived.is_none() && p.from == from && *bytes == covered
        });
        let equal: Vec<_> = equal.map(|(nth, (p, _))| (nth, p.left)).collect();
        let young = |left: Duration| at.saturating_sub(left) < LONG;
        let next = equal.iter().find(|&&(nth, left)| Some(nth) > last && young(left));
        next.or(equal.last()).map(|&(nth, _)| nth)
    }
}
