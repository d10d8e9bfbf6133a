//! What a responder answers, judged by the requests that were seen.

use urxe_wire::{Credit, Operation, Position, Psn, RnrTimer, Syndrome};

use crate::Profile;
use crate::fact::Fact;
use crate::message;
use crate::report::{Place, Report};
use crate::requests::{Ask, Nak, RESTART, Requests, Rnr};
use crate::rule::Rule;
use crate::window::Mark;

/// How many of the last acknowledgements are kept.
const HISTORY: usize = 32;

impl Requests {
    /// Whether an answer with this PSN may be one to these requests.
    pub(crate) fn may_answer(&self, psn: Psn) -> bool {
        let (Some(front), Some(next)) = (self.window.front(), self.next) else { return false };
        !psn.is_before(front.psn) && (psn.is_before(next) || self.may_be_next(psn))
    }

    /// Whether an answer with this PSN is near these requests, if it is none to them.
    pub(crate) fn is_near(&self, psn: Psn) -> bool {
        self.next.is_some_and(|next| psn.distance(next).unsigned_abs() <= RESTART)
            || self.asks.iter().any(|ask| ask.holds(psn))
    }

    /// Judges a response.
    pub(crate) fn on_response(&mut self, fact: &Fact, mtu: &mut Option<u32>, report: &mut Report) {
        let (Some(next), Some(begin)) = (self.next, self.begin) else { return };
        if !self.is_near(fact.psn) || fact.psn.is_before(begin) {
            return;
        }
        if !fact.psn.is_before(next) && !self.may_be_next(fact.psn) {
            let what = "an answer to what was not sent";
            let wanted = format!("a PSN before {next}");
            let place = &Place::of(fact);
            report.find_unless(report.lossy, Rule::ResponseAhead, place, what, fact.psn, wanted);
            return;
        }
        match (fact.info.operation, fact.aeth.map(|aeth| aeth.syndrome)) {
            (Operation::Acknowledge, Some(Syndrome::Ack(credit))) => self.ack(fact, credit, report),
            (Operation::Acknowledge, Some(Syndrome::RnrNak(timer))) => {
                self.rnr_nak(fact, timer, report);
            }
            (Operation::Acknowledge, Some(Syndrome::Nak(urxe_wire::NakCode::PsnSequence))) => {
                self.sequence_nak(fact, report);
            }
            (Operation::Acknowledge, Some(Syndrome::Nak(_))) => self.fatal_nak(fact, report),
            (Operation::ReadResponse, _) => self.read_response(fact, mtu, report),
            (Operation::AtomicAcknowledge, _) => self.atomic_response(fact, report),
            _ => {}
        }
    }

    fn ack(&mut self, fact: &Fact, _credit: Credit, report: &mut Report) {
        let place = &Place::of(fact);
        let q = fact.psn;
        if let Some(acked) = self.acked.filter(|acked| q.is_before(*acked)) {
            let known = self.is_before_reads(q, report);
            let late = self.disordered || self.may_be_late(fact);
            let what = if late { "an ACK that comes late" } else { "ACKs go back" };
            let wanted = format!("{acked} or later");
            report.find_unless(late || known, Rule::AckBackward, place, what, q, wanted);
            return;
        }
        // A duplicate is acknowledged by the latest PSN, whatever that was (C9-105).
        let entry = self.window.find(q).and_then(|sent| sent.opcode.info());
        if let Some(info) = entry.filter(|info| has_own_answer(info.operation))
            && !self.resent
        {
            let what = "a request that has its own kind of answer is acknowledged";
            let wanted = format!("the answer to {}", info.name);
            report.find(Rule::AnswerKind, place, what, fact.info.name, wanted);
        }
        self.not_after_fatal(fact, report);
        let reads_counted = self.is_before_reads(q, report);
        self.advance(q, fact, report);
        if reads_counted {
            self.msn_within(fact, report);
        } else {
            self.msn_is(fact, report);
        }
    }

    /// rxe acknowledges a duplicate by its last SEND or WRITE, whatever READs it answered since;
    /// but its MSN counts them.
    fn is_before_reads(&self, psn: Psn, report: &Report) -> bool {
        let reads = self.asks.iter().any(|ask| ask.holds(psn.next()));
        report.profile() == Profile::Rxe && self.resent && reads
    }

    /// An ACK that others overtook has the MSN of its time; one that goes back has today's.
    fn may_be_late(&self, fact: &Fact) -> bool {
        let (Some(base), Some(aeth)) = (self.msn_base, fact.aeth) else { return true };
        let then = self.history.iter().find(|(psn, _)| !psn.is_before(fact.psn));
        let Some((_, completed)) = then.filter(|_| self.history[0].0.is_before(fact.psn)) else {
            return !aeth.msn.is_after(base.add(self.completed).sub(1));
        };
        *completed == self.completed || !aeth.msn.is_after(base.add(*completed))
    }

    fn not_after_fatal(&self, fact: &Fact, report: &mut Report) {
        if let Some(fatal) = self.fatal.filter(|fatal| !fact.psn.is_before(*fatal)) {
            let what = "acknowledged after a NAK that broke the connection";
            let wanted = format!("nothing from PSN {fatal} on");
            report.find(Rule::FatalAcked, &Place::of(fact), what, fact.psn, wanted);
        }
    }

    fn sequence_nak(&mut self, fact: &Fact, report: &mut Report) {
        let place = &Place::of(fact);
        let psn = fact.psn;
        let excused = self.disordered || report.lossy;
        if let Some(acked) = self.acked.filter(|acked| !psn.is_after(*acked)) {
            let what = "a NAK names a PSN that is acknowledged";
            let wanted = format!("a PSN after {acked}");
            report.find_unless(excused, Rule::NakPsn, place, what, psn, wanted);
            return;
        }
        let first_missing = self.gaps.first().map(|gap| gap.first);
        if let Some(missing) = first_missing.filter(|missing| missing.is_before(psn)) {
            let what = "a NAK does not name the first PSN that is missing";
            report.find_unless(excused, Rule::NakPsn, place, what, psn, missing);
        } else if self.next.is_some_and(|next| psn.next() == next) && !self.vague {
            let what = "a NAK, but nothing was sent after the PSN that it names";
            let wanted = "a NAK once a later PSN came";
            report.find_unless(excused, Rule::NakPsn, place, what, psn, wanted);
        }
        let before = self.nak.filter(|nak| nak.psn == psn && !nak.resent);
        if before.is_some() {
            let known = report.profile() == Profile::Rxe && self.had_rnr;
            let what = "another NAK for the same gap";
            let wanted = "silence until the PSN that it names comes";
            report.find_unless(excused || known, Rule::NakAgain, place, what, psn, wanted);
        }
        let resent = self.window.find(psn).is_some_and(|sent| sent.times > 1);
        self.advance(psn.sub(1), fact, report);
        self.msn_is(fact, report);
        self.nak = Some(Nak { psn, resent, next: self.next });
        self.last_nak = Some(Mark::of(fact));
        self.sequence_nak = self.last_nak;
    }

    fn rnr_nak(&mut self, fact: &Fact, timer: RnrTimer, report: &mut Report) {
        if self.acked.is_some_and(|acked| !fact.psn.is_after(acked)) {
            return;
        }
        self.advance(fact.psn.sub(1), fact, report);
        self.msn_is(fact, report);
        let at = Mark::of(fact);
        (self.rnr, self.had_rnr) = (Some(Rnr { psn: fact.psn, at, timer }), true);
        self.last_nak = Some(at);
    }

    fn fatal_nak(&mut self, fact: &Fact, report: &mut Report) {
        if self.acked.is_some_and(|acked| !fact.psn.is_after(acked)) {
            return;
        }
        self.advance(fact.psn.sub(1), fact, report);
        self.msn_is(fact, report);
        self.fatal = Some(fact.psn);
        self.last_nak = Some(Mark::of(fact));
    }

    /// All through `q` is acknowledged.
    fn advance(&mut self, q: Psn, fact: &Fact, report: &mut Report) {
        if self.acked.is_some_and(|acked| !q.is_after(acked)) {
            return;
        }
        self.acked = Some(q);
        let place = &Place::of(fact);
        let nak = self.nak.filter(|nak| !nak.psn.is_after(q));
        if let Some(nak) = nak {
            self.nak = None;
            let missing = self.gaps.iter().any(|gap| gap.holds(nak.psn));
            if !nak.resent && !missing {
                // It may have come late, behind the capture point, before the NAK was heard.
                let at_once = nak.next == self.next;
                let excused = self.disordered || report.lossy || at_once;
                let what = format!("PSN {} acknowledged after a NAK for it", nak.psn);
                let got = "not sent again in between";
                let wanted = "the requester goes back to it";
                report.find_unless(excused, Rule::NakIgnored, place, what, got, wanted);
            }
        }
        while let Some(gap) = self.gaps.first().copied().filter(|gap| !gap.first.is_after(q)) {
            self.gaps.remove(0);
            let len = gap.len.min(q.since(gap.first) + 1);
            if let [_, Some(rest)] = gap.without(gap.first, len) {
                self.gaps.insert(0, rest);
            }
            self.msn_base = None;
            let what = "acknowledged, though it never passed here";
            let got = crate::window::psns(gap.first, len);
            let wanted = "a NAK, or the capture missed it (--lossy)";
            report.find_unless(report.lossy, Rule::GapAcked, place, what, got, wanted);
        }
        self.completed = self.completed.wrapping_add(self.window.acknowledge(q));
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back((q, self.completed));
    }

    /// ACKs and NAKs tell the count of what is completed.
    fn msn_is(&mut self, fact: &Fact, report: &mut Report) {
        let Some(aeth) = fact.aeth else { return };
        let base = aeth.msn.sub(self.completed);
        if let Some(known) = self.msn_base
            && known != base
        {
            let what = "MSN is not the count of completed messages";
            let wanted = known.add(self.completed);
            report.find(Rule::Msn, &Place::of(fact), what, aeth.msn, wanted);
        }
        self.msn_base = Some(base);
    }

    /// READ and atomic responses may be made when later requests are completed already.
    fn msn_within(&mut self, fact: &Fact, report: &mut Report) {
        let Some(aeth) = fact.aeth else { return };
        let more = self.window.uncounted();
        let Some(base) = self.msn_base else {
            if more == 0 {
                self.msn_base = Some(aeth.msn.sub(self.completed));
            }
            return;
        };
        let least = base.add(self.completed);
        if aeth.msn.since(least) > more {
            let what = "MSN is not the count of completed messages";
            let wanted = match more {
                0 => least.to_string(),
                _ => format!("{least} to {}", least.add(more)),
            };
            report.find(Rule::Msn, &Place::of(fact), what, aeth.msn, wanted);
            self.msn_base = None;
        }
    }

    /// An answer of its own kind came for `psn`.
    fn answered(&mut self, fact: &Fact, report: &mut Report) {
        self.not_after_fatal(fact, report);
        let newest = self.acked.is_none_or(|acked| fact.psn.is_after(acked));
        let expected = self.response_next.replace(fact.psn.next());
        if newest
            && let Some(expected) = expected.filter(|psn| psn.is_before(fact.psn))
            && self.asks.iter().any(|ask| ask.holds(expected))
        {
            self.troubled = true;
            let what = "READ responses or atomic answers are missing here";
            let got = crate::window::psns(expected, fact.psn.since(expected));
            report.find(Rule::ResponseLoss, &Place::of(fact), what, got, "every PSN");
        }
        if newest {
            self.advance(fact.psn, fact, report);
            self.msn_within(fact, report);
        }
    }

    fn read_response(&mut self, fact: &Fact, mtu: &mut Option<u32>, report: &mut Report) {
        let asks: Vec<Ask> =
            self.asks.iter().rev().filter(|ask| ask.holds(fact.psn)).copied().collect();
        let empty = asks
            .iter()
            .any(|ask| matches!(ask.operation, Operation::Flush | Operation::AtomicWrite));
        let reads: Vec<Ask> =
            asks.into_iter().filter(|ask| ask.operation == Operation::ReadRequest).collect();
        if reads.is_empty() {
            let right = empty && fact.info.position == Position::Only && fact.len == 0;
            if !right {
                self.wrong_kind(fact, report);
            }
            self.answered(fact, report);
            return;
        }
        if matches!(fact.info.position, Position::First | Position::Middle) {
            let known = mtu.is_some();
            message::payload(fact, mtu, Rule::ReadLength, report);
            if let Some(mtu) = mtu.filter(|_| !known) {
                self.learn(mtu);
            }
        }
        if matches!(fact.info.position, Position::Last | Position::Only) {
            self.ends(fact.psn);
        }
        // What was learned gives the READs their spans.
        let reads: Vec<Ask> = self
            .asks
            .iter()
            .filter(|ask| ask.operation == Operation::ReadRequest && ask.holds(fact.psn))
            .copied()
            .collect();
        part_of_a_read(fact, &reads, *mtu, report);
        self.answered(fact, report);
    }

    fn atomic_response(&mut self, fact: &Fact, report: &mut Report) {
        let atomic = |ask: &Ask| {
            matches!(ask.operation, Operation::CompareSwap | Operation::FetchAdd)
                && ask.holds(fact.psn)
        };
        if !self.asks.iter().any(atomic) {
            self.wrong_kind(fact, report);
        }
        self.answered(fact, report);
    }

    /// An answer of a kind that its request does not have, if the request is known.
    fn wrong_kind(&self, fact: &Fact, report: &mut Report) {
        let Some(info) = self.window.find(fact.psn).and_then(|sent| sent.opcode.info()) else {
            return;
        };
        let what = "an answer of the wrong kind";
        let got = format!("{}, {} bytes", fact.info.name, fact.len);
        let wanted = format!("the answer to {}", info.name);
        report.find(Rule::AnswerKind, &Place::of(fact), what, got, wanted);
    }
}

const fn has_own_answer(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::ReadRequest
            | Operation::CompareSwap
            | Operation::FetchAdd
            | Operation::Flush
            | Operation::AtomicWrite
    )
}

/// Judges a READ response by the READs that its PSN may belong to: one, or one and its rest.
fn part_of_a_read(fact: &Fact, reads: &[Ask], mtu: Option<u32>, report: &mut Report) {
    let place = &Place::of(fact);
    let known: Vec<(Position, Option<u32>)> =
        reads.iter().filter_map(|ask| place_in(ask, fact.psn, mtu)).collect();
    if known.is_empty() {
        return;
    }
    let position = fact.info.position;
    if !known.iter().any(|(wanted, _)| *wanted == position) {
        let what = "the opcode is not that of the packet's place in the READ";
        let wanted: Vec<_> =
            known.iter().map(|(wanted, _)| format!("{wanted:?}").to_lowercase()).collect();
        let got = format!("{position:?}").to_lowercase();
        report.find(Rule::ReadPosition, place, what, got, wanted.join(" or "));
        return;
    }
    let ends = matches!(position, Position::Last | Position::Only);
    let fits = known
        .iter()
        .filter(|(wanted, _)| *wanted == position)
        .any(|(_, len)| len.is_none_or(|len| len == fact.len));
    if ends && !fits {
        let wanted: Vec<_> =
            known.iter().filter_map(|(_, len)| len.map(|len| format!("{len} bytes"))).collect();
        let what = "the last READ response does not end the range that was asked for";
        let got = format!("{} bytes", fact.len);
        report.find(Rule::ReadLength, place, what, got, wanted.join(" or "));
    }
}

/// Position and length of the response with `psn`, if the READ's span is known.
fn place_in(ask: &Ask, psn: Psn, mtu: Option<u32>) -> Option<(Position, Option<u32>)> {
    let span = ask.span?;
    let at = psn.since(ask.psn);
    let position = match (at, at + 1 == span) {
        (0, true) => Position::Only,
        (0, false) => Position::First,
        (_, true) => Position::Last,
        (_, false) => Position::Middle,
    };
    let before = match mtu {
        Some(mtu) => Some(mtu.saturating_mul(span - 1)),
        None if span == 1 => Some(0),
        None => None,
    };
    Some((position, before.and_then(|before| ask.len.checked_sub(before))))
}
