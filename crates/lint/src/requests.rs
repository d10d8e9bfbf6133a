//! One direction of a connection: what its requester sent. [`crate::responses`] judges the answers.

use std::collections::VecDeque;

use urxe_wire::{Mtu, Operation, Position, Psn, RnrTimer, Transport};

use crate::fact::{Fact, Flow};
use crate::message::{self, Message};
use crate::report::{Place, Report};
use crate::resends::{Nanos, Run};
use crate::rule::Rule;
use crate::window::{Gap, Mark, Sent, Window};

/// PSNs that are further off than any window are of another connection.
pub(crate) const RESTART: u32 = 1 << 16;
/// How many gaps are kept.
pub(crate) const GAPS: usize = 64;
/// How many READs, atomics and the like are kept, for answers that come again.
pub(crate) const ASKS: usize = 256;
/// What is asked for with an answer of its own kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) operation: Operation,
    pub(crate) psn: Psn,
    /// Unknown until the path MTU is.
    pub(crate) span: Option<u32>,
    pub(crate) va: u64,
    pub(crate) len: u32,
}

impl Ask {
    pub(crate) fn holds(&self, psn: Psn) -> bool {
        psn.since(self.psn) < self.span.unwrap_or_else(|| packets(self.len, Mtu::B256.bytes()))
    }
}

/// How many packets a READ of `len` bytes takes.
pub(crate) fn packets(len: u32, mtu: u32) -> u32 {
    len.div_ceil(mtu.max(1)).max(1)
}

/// A PSN sequence NAK that has been seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nak {
    pub(crate) psn: Psn,
    /// What it names was sent again.
    pub(crate) resent: bool,
    /// What was to be sent next.
    pub(crate) next: Option<Psn>,
}

/// An RNR NAK that has been seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rnr {
    pub(crate) psn: Psn,
    pub(crate) at: Mark,
    pub(crate) timer: RnrTimer,
}

/// What is known of a requester, and of what its responder told it.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) window: Window,
    pub(crate) gaps: Vec<Gap>,
    /// The first PSN that was seen.
    pub(crate) begin: Option<Psn>,
    /// The PSN after the last one that was sent.
    pub(crate) next: Option<Psn>,
    /// The span of the last READ, and so `next`, is not known yet.
    pub(crate) vague: bool,
    tail: Message,
    pub(crate) run: Option<Run>,
    /// After a gap was filled: the PSN whose coming tells a run from a late packet.
    pub(crate) late: Option<Psn>,
    pub(crate) asks: VecDeque<Ask>,
    pub(crate) acked: Option<Psn>,
    /// What was acknowledged last, and how much was completed then.
    pub(crate) history: VecDeque<(Psn, u32)>,
    /// Messages that are completed since `begin`.
    pub(crate) completed: u32,
    /// The MSN less `completed`.
    pub(crate) msn_base: Option<Psn>,
    pub(crate) nak: Option<Nak>,
    pub(crate) rnr: Option<Rnr>,
    /// The PSN that is sent again after the last one.
    pub(crate) rnr_at: Option<Psn>,
    /// There was one, after which rxe sends a sequence NAK again.
    pub(crate) had_rnr: bool,
    pub(crate) last_nak: Option<Mark>,
    pub(crate) fatal: Option<Psn>,
    pub(crate) response_next: Option<Psn>,
    /// Packets passed twice or in another order than they were sent in.
    pub(crate) disordered: bool,
    pub(crate) resent: bool,
    /// Something was lost, before the capture point or behind it.
    pub(crate) troubled: bool,
    pub(crate) sequence_nak: Option<Mark>,
    /// When it last sent something new with all before acknowledged: answers reach it.
    pub(crate) progress: Option<Mark>,
    /// From the CM exchange.
    pub(crate) start: Option<Psn>,
    pub(crate) timeout: Option<i64>,
    told_overflow: bool,
}

impl Requests {
    /// Judges a request; at most `most` of them are kept.
    pub(crate) fn on_request(
        &mut self,
        fact: &Fact,
        mtu: &mut Option<u32>,
        most: usize,
        report: &mut Report,
    ) {
        if self.is_restart(fact.psn) {
            let what = "PSNs jump: taken for a new connection on the same QPNs";
            let wanted = format!("about {}", self.next.unwrap_or_default());
            report.find(Rule::Restart, &Place::of(fact), what, fact.psn, wanted);
            *self = Self::default();
            *mtu = None;
        }
        let span = self.span(fact, *mtu);
        let next = self.expected(fact, report);
        self.rnr_wait(fact, report);
        let distance = fact.psn.distance(next);
        if distance < 0 {
            self.old(fact, span, mtu, most, report);
            return;
        }
        if distance > 0 {
            self.gap(next, fact, report);
        }
        if self.late.take().is_some_and(|late| late != fact.psn) {
            self.disordered = true;
        }
        self.run = None;
        let known = mtu.is_some();
        message::payload(fact, mtu, Rule::PayloadSize, report);
        if let Some(mtu) = mtu.filter(|_| !known) {
            self.learn(mtu);
        }
        self.tail.step(fact, report);
        if self.acked.is_some_and(|acked| acked.next() == fact.psn) {
            self.progress = Some(Mark::of(fact));
        }
        self.keep(fact, span, most, report);
        self.vague = span.is_none();
        self.next = Some(fact.psn.add(span.unwrap_or(1)));
        self.forget();
    }

    /// What is too far behind compares as ahead (IBA 9.7.2): it goes before it does.
    fn forget(&mut self) {
        const FAR: u32 = 1 << 22;
        let Some(next) = self.next else { return };
        let far = |psn: Psn| next.since(psn) > FAR;
        if self.begin.is_some_and(far) {
            self.begin = Some(next.sub(FAR / 2));
        }
        if self.acked.is_some_and(far) {
            (self.acked, self.msn_base) = (None, None);
            self.history.clear();
        }
        self.gaps.retain(|gap| !far(gap.first));
        self.nak = self.nak.filter(|nak| !far(nak.psn));
        self.fatal = self.fatal.filter(|fatal| !far(*fatal));
        self.response_next = self.response_next.filter(|psn| !far(*psn));
    }

    fn is_restart(&self, psn: Psn) -> bool {
        let Some(next) = self.next else { return false };
        let far = psn.distance(next).unsigned_abs() > RESTART;
        let known = self.window.find(psn).is_some() || self.asks.iter().any(|ask| ask.holds(psn));
        far && !known && !self.may_be_next(psn)
    }

    /// Whether `psn` may follow a READ whose span is not known.
    pub(crate) fn may_be_next(&self, psn: Psn) -> bool {
        let last = self.asks.back().filter(|_| self.vague);
        last.is_some_and(|ask| psn.since(ask.psn) <= packets(ask.len, Mtu::B256.bytes()))
    }

    fn span(&self, fact: &Fact, mtu: Option<u32>) -> Option<u32> {
        if fact.info.operation != Operation::ReadRequest {
            return Some(1);
        }
        let len = fact.reth.map_or(0, |reth| reth.dma_len);
        match mtu {
            Some(mtu) => Some(packets(len, mtu)),
            None if len <= Mtu::B256.bytes() => Some(1),
            None => None,
        }
    }

    /// The PSN that a new request has.
    fn expected(&mut self, fact: &Fact, report: &mut Report) -> Psn {
        let psn = fact.psn;
        let Some(next) = self.next else {
            self.begin = Some(self.start.unwrap_or(psn));
            let Some(start) = self.start else { return psn };
            self.tail = Message::Idle;
            if !psn.is_before(start) {
                return start;
            }
            let what = "the first request is before the starting PSN of the CM exchange";
            report.find(Rule::StartPsn, &Place::of(fact), what, psn, start);
            self.begin = Some(psn);
            return psn;
        };
        if !self.vague || psn.is_before(next) {
            return next;
        }
        // Whatever the path MTU is: the READ ends here, or as late as it can.
        let most = self.asks.back().map_or(1, |ask| packets(ask.len, Mtu::B256.bytes()));
        (self.vague, self.tail) = (false, Message::Unknown);
        let Some(sent) = self.window.last_mut() else { return next };
        sent.span = psn.since(sent.psn).clamp(1, most);
        sent.end()
    }

    /// The path MTU is known now.
    pub(crate) fn learn(&mut self, mtu: u32) {
        let open = self.asks.iter().filter(|ask| ask.span.is_none());
        let open: Vec<(Psn, u32)> = open.map(|ask| (ask.psn, packets(ask.len, mtu))).collect();
        for (psn, span) in open {
            self.settle(psn, span);
        }
    }

    /// An answer to a READ says where it ends: it has `psn`, and is the only one or the last.
    pub(crate) fn ends(&mut self, psn: Psn) {
        let open = self.asks.iter_mut().find(|ask| ask.span.is_none() && ask.holds(psn));
        let Some(ask) = open else { return };
        let (first, span) = (ask.psn, psn.since(ask.psn) + 1);
        self.settle(first, span);
    }

    /// The READ at `first` takes `span` PSNs, which were a guess.
    fn settle(&mut self, first: Psn, span: u32) {
        let last = self.asks.back().is_some_and(|ask| ask.psn == first);
        for ask in self.asks.iter_mut().filter(|ask| ask.psn == first) {
            ask.span = Some(span);
        }
        let Some(sent) = self.window.find_mut(first).filter(|sent| sent.guess) else { return };
        let (guess, shown_by) = (std::mem::replace(&mut sent.span, span), sent.first);
        sent.guess = false;
        if self.vague && last {
            (self.vague, self.next) = (false, Some(first.add(span)));
        } else if span < guess {
            let gap = Gap { first: first.add(span), len: guess - span, shown_by, told: false };
            let at = self.gaps.iter().position(|other| gap.first.is_before(other.first));
            self.gaps.insert(at.unwrap_or(self.gaps.len()), gap);
        }
        let rest = self.gaps.iter().flat_map(|gap| match gap.first.since(first) {
            inside if inside < span => gap.without(gap.first, (span - inside).min(gap.len)),
            _ => [Some(*gap), None],
        });
        self.gaps = rest.flatten().take(GAPS).collect();
    }

    fn gap(&mut self, next: Psn, fact: &Fact, report: &mut Report) {
        let gap =
            Gap { first: next, len: fact.psn.since(next), shown_by: Mark::of(fact), told: false };
        (self.tail, self.troubled) = (Message::Unknown, true);
        if fact.info.transport == Transport::Uc {
            let what = "PSNs are missing: lost before the capture point";
            report.find(Rule::Loss, &Place::of(fact), what, gap.text(), "every PSN");
            return;
        }
        if self.gaps.len() == GAPS {
            self.overflow(fact, report);
            self.gaps.remove(0);
            self.msn_base = None;
        }
        self.gaps.push(gap);
    }

    fn overflow(&mut self, fact: &Fact, report: &mut Report) {
        if !std::mem::replace(&mut self.told_overflow, true) && self.acked.is_some() {
            let what = "more is in flight than is kept; the oldest is forgotten";
            report.find(Rule::Overflow, &Place::of(fact), what, "too much", "less");
        }
    }

    /// Keeps a request that has not been seen before.
    pub(crate) fn keep(
        &mut self,
        fact: &Fact,
        span: Option<u32>,
        most: usize,
        report: &mut Report,
    ) {
        if fact.info.transport == Transport::Uc {
            return;
        }
        if let Some(ask) = ask(fact, span) {
            if self.asks.len() == ASKS {
                self.asks.pop_front();
            }
            self.asks.push_back(ask);
        }
        let mark = Mark::of(fact);
        let sent = Sent {
            psn: fact.psn,
            span: span.unwrap_or(1),
            guess: span.is_none(),
            opcode: fact.info.opcode,
            len: fact.len,
            counts: matches!(fact.info.position, Position::Last | Position::Only),
            ack_req: fact.ack_req,
            ip_id: fact.ip_id,
            first: mark,
            last: mark,
            times: 1,
        };
        if self.window.insert(sent, most) {
            self.msn_base = None;
            self.overflow(fact, report);
        }
    }

    /// What only the end of the capture makes certain; `reached` is when the peer was last seen to
    /// get answers from this requester's side.
    pub(crate) fn finish(
        &self,
        flow: Flow,
        end: Option<i64>,
        reached: Option<Mark>,
        report: &mut Report,
    ) {
        for gap in &self.gaps {
            let place = gap.shown_by.place(flow, None, gap.first);
            let what = format!("{} missing up to the end", gap.text());
            report.find(Rule::Loss, &place, what, "never", "sent again");
        }
        if self.fatal.is_some() || self.acked.is_none() {
            return;
        }
        let Some(sent) = self.window.iter().find(|sent| sent.ack_req) else { return };
        const GRACE: i64 = 1_000_000_000;
        let Some(silence) = end.zip(sent.last.time).map(|(end, time)| end - time) else { return };
        if silence < GRACE {
            return;
        }
        let alive = reached.and_then(|mark| mark.since(sent.last)).is_some_and(|t| t > GRACE);
        let place = sent.last.place(flow, Some(sent.opcode), sent.psn);
        let what = "a request with AckReq got no answer";
        let got = format!("none in {}", Nanos(silence));
        report.find_unless(
            !alive || report.lossy,
            Rule::Unanswered,
            &place,
            what,
            got,
            "an ACK or NAK, or the request again",
        );
    }
}

pub(crate) fn ask(fact: &Fact, span: Option<u32>) -> Option<Ask> {
    let (va, len) = match fact.info.operation {
        Operation::ReadRequest => fact.reth.map(|reth| (reth.va, reth.dma_len))?,
        Operation::CompareSwap
        | Operation::FetchAdd
        | Operation::Flush
        | Operation::AtomicWrite => (0, 0),
        _ => return None,
    };
    Some(Ask { operation: fact.info.operation, psn: fact.psn, span, va, len })
}
