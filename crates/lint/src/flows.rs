//! All flows of a capture, and which of them are the two halves of a connection.
//!
//! A packet of a connection names its destination QP only. Which flow answers which is learned from
//! a CM exchange, or from answers: the PSN of one fits the requests of one flow alone.

use std::collections::BTreeMap;

use urxe_wire::{Direction, Psn, Qpn, Transport};

use crate::Profile;
use crate::cm::Connection;
use crate::fact::{CE, Fact, Flow};
use crate::report::{Place, Report};
use crate::requests::Requests;
use crate::rule::Rule;

/// How many flows are followed at a time.
const FLOWS: usize = 4096;
/// How many request packets are kept in all, about.
const PACKETS: usize = 1 << 18;
/// How many flows an answer is compared with.
const CANDIDATES: usize = 256;
/// Answers that confirm a pair before it is beyond doubt.
const SURE: u32 = 4;

/// One flow.
#[derive(Debug)]
struct Half {
    flow: Flow,
    transport: Transport,
    requests: Requests,
    mtu: Option<u32>,
    peer: Option<usize>,
    /// How many answers agree with the pairing.
    confirmed: u32,
    /// What it may be the answers to.
    candidates: Option<Vec<usize>>,
    /// The first answer that is not judged.
    unjudged: Option<Place>,
    told_pairing: bool,
    marks: Marks,
    src_port: Option<u16>,
    told_port: bool,
    told_mig_req: bool,
    last_frame: u64,
}

/// What ECN its packets carried.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// A packet that no router may mark.
    unmarkable: bool,
    markable: bool,
    marked: bool,
}

/// The flows.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    index: BTreeMap<Flow, usize>,
    halves: Vec<Option<Half>>,
    free: Vec<usize>,
    connections: u64,
    single: u64,
    told_overflow: bool,
}

impl Flows {
    /// Judges a packet by those before it.
    pub(crate) fn see(&mut self, fact: &Fact, report: &mut Report) {
        match fact.info.transport {
            Transport::Cnp => return self.notification(fact, report),
            Transport::Ud | Transport::Rd => return,
            Transport::Rc | Transport::Uc | Transport::Xrc => {}
        }
        let at = self.half(fact, report);
        let most = (PACKETS / self.index.len().max(1)).max(GUARANTEED);
        let mut fact = *fact;
        fact.src_qp = self.peer_qpn(at);
        let Some(half) = self.halves[at].as_mut() else { return };
        half.note(&fact, report);
        match fact.info.direction {
            Direction::Request => {
                half.requests.on_request(&fact, &mut half.mtu, most, report);
                self.share_mtu(at);
            }
            Direction::Response => self.response(at, &fact, report),
        }
    }

    fn get(&self, at: usize) -> Option<&Half> {
        self.halves.get(at).and_then(Option::as_ref)
    }

    fn peer_qpn(&self, at: usize) -> Option<Qpn> {
        let peer = self.get(at)?.peer?;
        self.get(peer).map(|peer| peer.flow.qpn)
    }

    /// The flow of a packet, made if it is new.
    fn half(&mut self, fact: &Fact, report: &mut Report) -> usize {
        if let Some(&at) = self.index.get(&fact.flow) {
            if let Some(half) = self.halves[at].as_mut() {
                half.last_frame = fact.frame;
                if half.transport != fact.info.transport {
                    let what = "another transport: taken for a new QP with the same number";
                    let wanted = format!("{:?}", half.transport);
                    let place = Place::of(fact);
                    report.find(Rule::Restart, &place, what, fact.info.name, wanted);
                    let fresh = Half::new(fact.flow, fact.info.transport, fact.frame);
                    let old = std::mem::replace(half, fresh);
                    self.unlink(old.peer);
                }
            }
            return at;
        }
        if self.index.len() >= FLOWS {
            self.make_room(fact, report);
        }
        let half = Half::new(fact.flow, fact.info.transport, fact.frame);
        self.insert(half)
    }

    fn insert(&mut self, half: Half) -> usize {
        let flow = half.flow;
        let at = match self.free.pop() {
            Some(at) => {
                self.halves[at] = Some(half);
                at
            }
            None => {
                self.halves.push(Some(half));
                self.halves.len() - 1
            }
        };
        self.index.insert(flow, at);
        at
    }

    fn unlink(&mut self, at: Option<usize>) {
        if let Some(half) = at.and_then(|at| self.halves[at].as_mut()) {
            half.peer = None;
        }
    }

    /// Forgets the quarter of the flows that were silent for longest.
    fn make_room(&mut self, fact: &Fact, report: &mut Report) {
        if !std::mem::replace(&mut self.told_overflow, true) {
            let what = "more flows than are kept; those silent for longest are forgotten";
            let (got, wanted) = (format!("more than {FLOWS}"), format!("at most {FLOWS}"));
            report.find(Rule::Overflow, &Place::of(fact), what, got, wanted);
        }
        let mut ages: Vec<(u64, usize)> = self
            .halves
            .iter()
            .enumerate()
            .filter_map(|(at, half)| half.as_ref().map(|half| (half.last_frame, at)))
            .collect();
        ages.sort_unstable();
        for (_, at) in ages.into_iter().take(FLOWS / 4) {
            let Some(half) = self.halves[at].take() else { continue };
            self.count(&half);
            self.index.remove(&half.flow);
            self.unlink(half.peer);
            self.free.push(at);
        }
    }

    fn count(&mut self, half: &Half) {
        match half.peer {
            // Each of the two is counted, or the one that goes first.
            Some(_) => self.connections += 1,
            None => self.single += 1,
        }
    }

    /// Both directions of a connection have one path MTU.
    fn share_mtu(&mut self, at: usize) {
        let Some((peer, mtu)) = self.get(at).and_then(|half| half.peer.zip(half.mtu)) else {
            return;
        };
        if let Some(peer) = self.halves[peer].as_mut()
            && peer.mtu.is_none()
        {
            peer.mtu = Some(mtu);
            peer.requests.learn(mtu);
        }
    }

    fn response(&mut self, at: usize, fact: &Fact, report: &mut Report) {
        self.doubt(at, fact.psn);
        if self.get(at).is_some_and(|half| half.peer.is_none()) {
            self.pair(at, fact, report);
        }
        let Some(peer) = self.get(at).and_then(|half| half.peer) else {
            if let Some(half) = self.halves[at].as_mut() {
                half.unjudged.get_or_insert_with(|| Place::of(fact));
            }
            return;
        };
        let Some(half) = self.halves[peer].as_mut() else { return };
        let mut fact = *fact;
        fact.src_qp = Some(half.flow.qpn);
        half.requests.on_response(&fact, &mut half.mtu, report);
        half.confirmed = half.confirmed.saturating_add(1);
        self.share_mtu(peer);
    }

    /// A pair that was learned is given up if an answer does not fit it before it is sure.
    fn doubt(&mut self, at: usize, psn: Psn) {
        let Some(peer) = self.get(at).and_then(|half| half.peer) else { return };
        let Some(half) = self.get(peer) else { return };
        if half.confirmed < SURE && half.requests.next.is_some() && !half.requests.is_near(psn) {
            self.unlink(Some(peer));
            self.unlink(Some(at));
        }
    }

    /// Finds the flow whose requests an answer fits.
    fn pair(&mut self, at: usize, fact: &Fact, report: &mut Report) {
        let back = |qpn| Flow { src: fact.flow.dst, dst: fact.flow.src, qpn, ..fact.flow };
        let all = self.index.range(back(Qpn::new(0))..=back(Qpn::MULTICAST));
        let fits = |other: usize| {
            self.get(other).is_some_and(|half| {
                half.peer.is_none()
                    && half.transport == fact.info.transport
                    && half.requests.may_answer(fact.psn)
            })
        };
        let mut fitting: Vec<usize> =
            all.map(|(_, other)| *other).filter(|other| fits(*other)).take(CANDIDATES).collect();
        let Some(half) = self.halves[at].as_mut() else { return };
        if let Some(before) = &half.candidates {
            let both: Vec<usize> =
                fitting.iter().copied().filter(|other| before.contains(other)).collect();
            if !both.is_empty() {
                fitting = both;
            }
        }
        match fitting[..] {
            [] => {}
            [only] => {
                half.candidates = None;
                self.join(at, only);
            }
            [..] => {
                if !std::mem::replace(&mut half.told_pairing, true) {
                    let what = "an answer fits several connections; not judged until it is clear";
                    let (got, wanted) = (format!("{} flows", fitting.len()), "one");
                    report.find(Rule::Pairing, &Place::of(fact), what, got, wanted);
                }
                half.candidates = Some(fitting);
            }
        }
    }

    fn join(&mut self, one: usize, other: usize) {
        for (at, peer) in [(one, other), (other, one)] {
            if let Some(half) = self.halves[at].as_mut() {
                half.peer = Some(peer);
                half.confirmed = 0;
            }
        }
        self.share_mtu(one);
        self.share_mtu(other);
    }

    /// A CM exchange made a connection: both flows begin anew.
    pub(crate) fn connect(&mut self, made: &Connection) {
        let sides = [
            (made.to_passive, made.active_psn, None),
            (made.to_active, made.passive_psn, made.passive_timeout),
        ];
        let mut ends = [0; 2];
        for (end, (flow, start, timeout)) in ends.iter_mut().zip(sides) {
            let mut half = Half::new(flow, made.transport, made.frame);
            half.mtu = made.mtu;
            half.requests.start = Some(start);
            half.requests.timeout = timeout;
            half.requests.msn_base = Some(Psn::ZERO);
            *end = match self.index.get(&flow).copied() {
                Some(at) => {
                    let old = self.halves[at].replace(half);
                    self.unlink(old.and_then(|old| old.peer));
                    at
                }
                None if self.index.len() >= FLOWS => return,
                None => self.insert(half),
            };
        }
        self.join(ends[0], ends[1]);
        for end in ends {
            if let Some(half) = self.halves[end].as_mut() {
                half.confirmed = SURE;
            }
        }
    }

    /// A CNP tells the sender of the flow in the other direction.
    fn notification(&mut self, fact: &Fact, report: &mut Report) {
        let notified = self.index.get(&fact.flow).and_then(|at| self.get(*at)?.peer);
        let back = |qpn| Flow { src: fact.flow.dst, dst: fact.flow.src, qpn, ..fact.flow };
        let all = self.index.range(back(Qpn::new(0))..=back(Qpn::MULTICAST));
        let halves: Vec<&Half> = match notified {
            Some(at) => self.get(at).into_iter().collect(),
            None => all.filter_map(|(_, at)| self.get(*at)).collect(),
        };
        let any = |f: fn(&Marks) -> bool| halves.iter().any(|half| f(&half.marks));
        if any(|marks| marks.marked) || halves.is_empty() {
            return;
        }
        let markable = any(|marks| marks.markable);
        let excused = markable || report.profile() == Profile::ConnectX;
        let what = "a CNP, but no packet marked CE passed here";
        let got = match markable {
            true => "packets that may have been marked behind the capture point",
            false => "packets that no router may mark",
        };
        report.find_unless(excused, Rule::CnpCause, &Place::of(fact), what, got, "CE before it");
    }

    /// Judges what only the end of the capture makes certain.
    pub(crate) fn finish(&mut self, end: Option<i64>, report: &mut Report) {
        for half in self.halves.iter().flatten() {
            let peer = half.peer.and_then(|peer| self.get(peer));
            let reached = peer.and_then(|peer| peer.requests.progress);
            if half.transport != Transport::Uc {
                half.requests.finish(half.flow, end, reached, report);
            }
            if let (Some(place), None) = (&half.unjudged, half.peer)
                && !half.told_pairing
            {
                let what = "answers to requests that are not in the capture; not judged";
                report.find(Rule::Unpaired, place, what, "no request", "the requests");
            }
        }
        let halves: Vec<usize> = self.index.values().copied().collect();
        for at in halves {
            if let Some(half) = self.halves[at].take() {
                self.count(&half);
            }
        }
        self.index.clear();
        self.connections = self.connections.div_ceil(2);
    }

    /// Connections with two known halves, and flows without.
    pub(crate) const fn counts(&self) -> (u64, u64) {
        (self.connections, self.single)
    }
}

/// How many request packets each flow may have in flight, however many flows there are.
const GUARANTEED: usize = 64;

impl Half {
    fn new(flow: Flow, transport: Transport, frame: u64) -> Self {
        Self {
            flow,
            transport,
            requests: Requests::default(),
            mtu: None,
            peer: None,
            confirmed: 0,
            candidates: None,
            unjudged: None,
            told_pairing: false,
            marks: Marks::default(),
            src_port: None,
            told_port: false,
            told_mig_req: false,
            last_frame: frame,
        }
    }

    /// What does not depend on the order of packets.
    fn note(&mut self, fact: &Fact, report: &mut Report) {
        match fact.ecn {
            0 => self.marks.unmarkable = true,
            CE => self.marks.marked = true,
            _ => self.marks.markable = true,
        }
        let place = &Place::of(fact);
        if !fact.mig_req && !self.told_mig_req {
            self.told_mig_req = true;
            if report.profile() != Profile::Rxe {
                let what = "MigReq is 0: no path migration is armed, as far as is seen";
                report.find(Rule::MigReq, place, what, 0, 1);
            }
        }
        let before = self.src_port.replace(fact.src_port.unwrap_or_default());
        if let Some(before) = before
            && Some(before) != fact.src_port
            && fact.src_port.is_some()
            && !self.told_port
        {
            self.told_port = true;
            let what = "the connection changes its UDP source port";
            let got = fact.src_port.unwrap_or_default();
            report.find(Rule::SourcePort, place, what, got, before);
        }
    }
}
