//! The line of QPs that have something to send, and each QP's place in it.
//!
//! A QP stands in line once at most. One whose packets a sink gathers is held until they have left,
//! so that no other thread sends later packets of its before them; what comes up for it meanwhile
//! lines it up again when it is let go.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicU8, AtomicUsize};

use parking_lot::Mutex;
use urxe_wire::Qpn;

use crate::qp::Qp;

/// QPs in the order of their turns.
#[derive(Debug, Default)]
pub(crate) struct Line {
    qpns: Mutex<VecDeque<Qpn>>,
    len: AtomicUsize,
}

/// Where a QP comes to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Back,
    /// Its turn goes on.
    Front,
}

impl Line {
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Acquire) == 0
    }

    pub(crate) fn next(&self) -> Option<Qpn> {
        if self.is_empty() {
            return None;
        }
        let qpns = &mut *self.qpns.lock();
        let qpn = qpns.pop_front();
        self.len.store(qpns.len(), Release);
        qpn
    }

    fn push(&self, qpn: Qpn, end: End) {
        let qpns = &mut *self.qpns.lock();
        match end {
            End::Back => qpns.push_back(qpn),
            End::Front => qpns.push_front(qpn),
        }
        self.len.store(qpns.len(), Release);
    }

    /// Makes room for so many QPs, so that lining up does not allocate.
    pub(crate) fn reserve(&self, qps: usize) {
        let qpns = &mut *self.qpns.lock();
        qpns.reserve(qps.saturating_sub(qpns.len()));
    }
}

/// Whether a QP stands in line.
#[derive(Debug, Default)]
pub(crate) struct Place(AtomicU8);

const AWAY: u8 = 0;
const IN_LINE: u8 = 1;
/// It has its turn, or its packets wait in a sink.
const HELD: u8 = 2;
/// And something came up for it.
const WANTED: u8 = 3;

impl Place {
    /// Something came up: lines the QP up unless it stands there.
    pub(crate) fn line_up(&self, line: &Line, qpn: Qpn) {
        let next = |place| match place {
            AWAY => Some(IN_LINE),
            HELD => Some(WANTED),
            _ => None,
        };
        if self.0.fetch_update(AcqRel, Acquire, next) == Ok(AWAY) {
            line.push(qpn, End::Back);
        }
    }

    /// It left the line to have its turn.
    pub(crate) fn hold(&self) {
        self.0.store(HELD, Release);
    }

    /// It is let go; `more` says where it goes on if its turn left something to send.
    pub(crate) fn let_go(&self, line: &Line, qpn: Qpn, more: Option<End>) {
        let to = if more.is_some() { IN_LINE } else { AWAY };
        let from = match self.0.compare_exchange(HELD, to, AcqRel, Acquire) {
            Ok(_) => HELD,
            Err(WANTED) => {
                self.0.store(IN_LINE, Release);
                WANTED
            }
            Err(_) => return,
        };
        if let Some(end) = more.or((from == WANTED).then_some(End::Back)) {
            line.push(qpn, end);
        }
    }
}

/// QPs that a sink holds: their packets are gathered in it and have not left.
#[derive(Debug, Default)]
pub struct Held {
    /// Those with nothing more to send.
    done: Vec<Arc<Qp>>,
    /// Those whose turn was used up, in order.
    used: VecDeque<Arc<Qp>>,
    /// The one whose turn was cut short.
    cut: Option<Arc<Qp>>,
}

impl Held {
    /// For a sink that gathers so many packets: noting their QPs then does not allocate.
    #[must_use]
    pub fn with_capacity(packets: usize) -> Self {
        let (done, used) = (Vec::with_capacity(packets), VecDeque::with_capacity(packets));
        Self { done, used, cut: None }
    }

    /// The QP whose turn it is when none stands in line: one that is here already.
    pub(crate) fn next(&mut self) -> Option<Arc<Qp>> {
        self.used.pop_front()
    }

    pub(crate) fn note(&mut self, qp: Arc<Qp>, more: Option<End>) {
        match more {
            None => self.done.push(qp),
            Some(End::Back) => self.used.push_back(qp),
            Some(End::Front) => self.cut = Some(qp),
        }
    }

    pub(crate) fn let_go(&mut self, line: &Line) {
        for qp in self.done.drain(..) {
            qp.place.let_go(line, qp.qpn, None);
        }
        for qp in self.used.drain(..) {
            qp.place.let_go(line, qp.qpn, Some(End::Back));
        }
        if let Some(qp) = self.cut.take() {
            qp.place.let_go(line, qp.qpn, Some(End::Front));
        }
    }
}
