//! What a requester sends again, and when.

use urxe_wire::{Operation, Psn, Transport};

use crate::Profile;
use crate::fact::Fact;
use crate::message::{self, Message};
use crate::report::{Place, Report};
use crate::requests::{ASKS, GAPS, Requests, ask, packets};
use crate::rule::Rule;
use crate::window::{Mark, Sent, psns};

/// The shortest local ACK timeout there is, code 1, nanoseconds (IBA 9.7.6.1.3).
const SHORTEST_TIMEOUT: i64 = 8_192;
/// What a clock that counts microseconds may hide, nanoseconds.
const CLOCK: i64 = 1_000;
/// A tick of rxe's timers is up to 10 ms (Linux HZ 100 to 1000), nanoseconds.
const TICK: i64 = 10_000_000;

/// A run of packets that are sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    next: Psn,
    message: Message,
    /// How many of its packets had passed before.
    repeats: u32,
    start: Place,
    /// Since when a timer may have run, if no NAK explains the run.
    unexplained_since: Option<Mark>,
}

impl Requests {
    /// A PSN before the next one: one that was missing, or one that comes again.
    pub(crate) fn old(
        &mut self,
        fact: &Fact,
        span: Option<u32>,
        mtu: &mut Option<u32>,
        most: usize,
        report: &mut Report,
    ) {
        if fact.info.transport == Transport::Uc {
            let what = "a PSN that passed before, or comes late";
            report.find(Rule::Duplicate, &Place::of(fact), what, fact.psn, "the next PSN");
            return;
        }
        message::payload(fact, mtu, Rule::PayloadSize, report);
        if self.acked.is_none() && self.begin.is_some_and(|begin| fact.psn.is_before(begin)) {
            // The capture began with a packet that had overtaken this one.
            (self.begin, self.disordered) = (Some(fact.psn), true);
            self.keep(fact, span, most, report);
            return;
        }
        let filled = self.fill(fact, span.unwrap_or(1), report) || self.shorten(fact.psn);
        let before = self.window.find(fact.psn).copied();
        // The capture began in disorder: it was never seen, nor known to be missing.
        let unseen =
            !filled && before.is_none() && self.acked.is_none_or(|acked| fact.psn.is_after(acked));
        self.disordered |= unseen;
        if filled || unseen {
            self.keep(fact, span, most, report);
        } else if let Some(before) = before {
            self.compare(&before, fact, *mtu, span, report);
        }
        self.ask_again(fact, span);
        self.note_resent(fact.psn);
        self.follow(fact, span.unwrap_or(1), filled, before, report);
        if !filled {
            // A copy that the network made has the identification of the packet.
            let copy = fact.ip_id.is_some() && before.is_some_and(|b| b.ip_id == fact.ip_id);
            self.disordered |= copy;
            self.resent |= !copy;
            if let Some(sent) = self.window.find_mut(fact.psn) {
                sent.last = Mark::of(fact);
                sent.times += 1;
                sent.ack_req |= fact.ack_req;
            }
        }
    }

    /// The rest of a READ has a first packet of its own.
    fn ask_again(&mut self, fact: &Fact, span: Option<u32>) {
        let rest = ask(fact, span).filter(|_| !self.asks.iter().any(|ask| ask.psn == fact.psn));
        if let Some(rest) = rest {
            // Not behind the others: the last one is the last that was sent first.
            if self.asks.len() == ASKS {
                self.asks.pop_front();
            }
            self.asks.push_front(rest);
        }
    }

    fn note_resent(&mut self, psn: Psn) {
        if let Some(nak) = &mut self.nak
            && !psn.is_after(nak.psn)
        {
            nak.resent |= psn == nak.psn;
        }
    }

    /// Whether it was missing: then it is no longer.
    fn fill(&mut self, fact: &Fact, span: u32, report: &mut Report) -> bool {
        let Some(at) = self.gaps.iter().position(|gap| gap.holds(fact.psn)) else { return false };
        let mut gap = self.gaps.remove(at);
        let told = std::mem::replace(&mut gap.told, true);
        let rest = gap.without(fact.psn, span.min(gap.len - fact.psn.since(gap.first)));
        for (i, part) in rest.into_iter().flatten().enumerate() {
            self.gaps.insert(at + i, part);
        }
        if !told {
            let after = took(Mark::of(fact), gap.shown_by);
            let what = format!("{} missing, then sent again or passed late", gap.text());
            let place = gap.shown_by.place(fact.flow, None, gap.first);
            report.find(Rule::Loss, &place, what, format!("{after} later"), "in order");
        }
        true
    }

    /// Whether a READ whose span was a guess must end before `psn`, which is no part of it.
    fn shorten(&mut self, psn: Psn) -> bool {
        let guessed = self.window.find_mut(psn).filter(|sent| sent.guess && sent.psn != psn);
        let Some(sent) = guessed else { return false };
        sent.span = psn.since(sent.psn);
        true
    }

    /// What comes again is what was sent before.
    fn compare(
        &self,
        before: &Sent,
        fact: &Fact,
        mtu: Option<u32>,
        span: Option<u32>,
        report: &mut Report,
    ) {
        let place = &Place::of(fact);
        if fact.info.opcode != before.opcode || fact.len != before.len {
            let what = format!("sent again, but not as in frame {}", before.first.frame);
            let got = format!("{}, {} bytes", fact.info.name, fact.len);
            let wanted = format!("{}, {} bytes", before.opcode, before.len);
            report.find(Rule::ResendDiffers, place, what, got, wanted);
            return;
        }
        let (Some(reth), Operation::ReadRequest) = (fact.reth, fact.info.operation) else { return };
        let ask = self.asks.iter().find(|ask| ask.psn == before.psn).copied();
        let (Some(ask), Some(mtu), Some(span)) = (ask, mtu, span) else { return };
        let whole = packets(ask.len, mtu);
        let skipped = fact.psn.since(ask.psn);
        let offset = u64::from(skipped) * u64::from(mtu);
        let rest = u64::from(ask.len).checked_sub(offset);
        let right = reth.va == ask.va.wrapping_add(offset)
            && rest == Some(u64::from(reth.dma_len))
            && skipped + span == whole;
        if !right {
            let got = format!("{} bytes at {:#x}", reth.dma_len, reth.va);
            let wanted = match rest {
                Some(rest) => format!("{rest} bytes at {:#x}", ask.va.wrapping_add(offset)),
                None => "the same range".to_owned(),
            };
            report.find(Rule::ReadResume, place, "a READ sent again", got, wanted);
        }
    }

    /// Follows a run of packets that are sent again.
    fn follow(
        &mut self,
        fact: &Fact,
        span: u32,
        filled: bool,
        before: Option<Sent>,
        report: &mut Report,
    ) {
        if filled {
            self.late = Some(fact.psn.add(span));
        } else if self.late.take().is_some_and(|late| late != fact.psn) {
            self.disordered = true;
        }
        // Some of a run may be lost before it passes here.
        let going_on = self.run.filter(|run| !fact.psn.is_before(run.next)).map(|run| Run {
            message: if run.next == fact.psn { run.message } else { Message::Unknown },
            ..run
        });
        self.troubled |= going_on.is_none() && self.rnr_at != Some(fact.psn);
        let mut run = going_on.unwrap_or_else(|| Run {
            next: fact.psn,
            message: Message::Unknown,
            repeats: 0,
            start: Place::of(fact),
            unexplained_since: before.and_then(|before| self.unexplained(&before)),
        });
        run.next = fact.psn.add(span);
        run.message.step(fact, report);
        run.repeats += u32::from(!filled);
        if !filled && run.repeats == 1 {
            let got = before.map_or("after it was acknowledged".to_owned(), |before| {
                let nak = self.last_nak.is_some_and(|nak| nak.frame > before.last.frame);
                let why = if nak { "after a NAK" } else { "no NAK in between" };
                format!("{} later, {why}", took(Mark::of(fact), before.last))
            });
            let what = format!("{} sent again", psns(fact.psn, span));
            report.find(Rule::Duplicate, &Place::of(fact), what, got, "once, if nothing is lost");
        }
        // One packet that passes twice may have been doubled by the network.
        if run.repeats == 2 {
            self.too_early(&run, report);
        }
        self.run = Some(run);
    }

    /// If no NAK explains that `before` is sent again: since when a timer may have run.
    fn unexplained(&self, before: &Sent) -> Option<Mark> {
        let nak = self.last_nak.is_some_and(|nak| nak.frame > before.last.frame);
        if nak || self.awaits_answers() {
            return None;
        }
        let oldest = self.window.iter().take(GAPS).map(|sent| sent.last);
        oldest.chain([before.last]).min_by_key(|mark| mark.frame)
    }

    /// Whether a response for something later may tell that an answer was lost.
    fn awaits_answers(&self) -> bool {
        self.asks
            .iter()
            .any(|ask| self.acked.is_none_or(|acked| ask.holds(acked) || ask.psn.is_after(acked)))
    }

    fn too_early(&self, run: &Run, report: &mut Report) {
        let Some(since) = run.unexplained_since else { return };
        let Some(waited) = run.start.time.zip(since.time).map(|(now, then)| now - then) else {
            return;
        };
        // IBA 9.7.6.1.3
        let least = self.timeout.unwrap_or(SHORTEST_TIMEOUT);
        let coarse = report.profile() == Profile::Rxe && waited + TICK >= least;
        if waited >= 0 && waited + CLOCK < least {
            let what = "sent again without a NAK, sooner than a timeout can be";
            let got = format!("after {}", Nanos(waited));
            let wanted = format!("after {} or more", Nanos(least));
            let excused = coarse || report.lossy;
            report.find_unless(excused, Rule::ResendEarly, &run.start, what, got, wanted);
        }
    }

    /// After an RNR NAK.
    pub(crate) fn rnr_wait(&mut self, fact: &Fact, report: &mut Report) {
        let Some(rnr) = self.rnr.filter(|rnr| fact.psn == rnr.psn) else { return };
        (self.rnr, self.rnr_at) = (None, Some(rnr.psn));
        let Some(waited) = Mark::of(fact).since(rnr.at) else { return };
        let least = i64::try_from(rnr.timer.duration().as_nanos()).unwrap_or(i64::MAX);
        // IBA 9.7.5.2.8
        if waited + CLOCK < least {
            // What went lost is sent again with all behind it, and may cross the RNR NAK; if that
            // is lost itself, a timer runs out.
            let before = self.window.find(fact.psn).map_or(0, |sent| sent.last.frame);
            let excused = report.profile() == Profile::Rxe
                || report.lossy
                || self.troubled
                || self.awaits_answers()
                || self.sequence_nak.is_some_and(|nak| nak.frame > before);
            let what = format!("sent again too soon after the RNR NAK in frame {}", rnr.at.frame);
            let got = format!("after {}", Nanos(waited));
            let wanted = format!("after {} or more", Nanos(least));
            report.find_unless(excused, Rule::RnrEarly, &Place::of(fact), what, got, wanted);
        }
    }
}

fn took(now: Mark, then: Mark) -> String {
    match now.since(then) {
        Some(nanos) => Nanos(nanos).to_string(),
        None => format!("{} frames", now.frame - then.frame),
    }
}

/// A span of time in words.
pub(crate) struct Nanos(pub(crate) i64);

impl std::fmt::Display for Nanos {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let micros = self.0 / 1_000;
        match micros {
            1_000_000.. => write!(f, "{}.{:03} s", micros / 1_000_000, micros / 1_000 % 1_000),
            1_000.. => write!(f, "{}.{:03} ms", micros / 1_000, micros % 1_000),
            _ => write!(f, "{}.{:03} µs", micros, (self.0 % 1_000).abs()),
        }
    }
}
