//! Managers and their owners on links that lose, duplicate, delay and reorder, in virtual time.
//! A run depends on its seed alone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use urxe_cm::{
    Accept, Cm, Config, ConnId, Connect, Count, Event, Listen, Mad, Route, SidrAnswer, SidrAsk,
    State,
};
use urxe_wire::cm::{CmTimeout, PortSpace, RejReason};
use urxe_wire::{Psn, Qpn};

use crate::world::INTERVAL;

const PORT: u16 = 7174;

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    pub(crate) fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    fn time(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.below(u64::try_from(most.as_nanos()).unwrap() + 1))
    }
}

/// What a run is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    pub(crate) connects: usize,
    /// Per cent of MADs.
    pub(crate) loss: u64,
    pub(crate) duplicate: u64,
    pub(crate) late: u64,
    /// Of requests and of replies that owners refuse, per cent.
    pub(crate) refuse: u64,
    /// Of requests whose owner takes its time, per cent.
    pub(crate) slow: u64,
    /// How often some node forgets all it knew.
    pub(crate) restarts: u64,
}

impl Plan {
    /// One MAD of ten lost, one twice, one late.
    pub(crate) const fn bad(nodes: usize, connects: usize) -> Self {
        Self {
            nodes,
            connects,
            loss: 10,
            duplicate: 10,
            late: 10,
            refuse: 5,
            slow: 10,
            restarts: 0,
        }
    }
}

/// How an attempt went on one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Established,
    Failed(String),
}

#[derive(Debug)]
enum Act {
    Arrive(usize, Route, Box<Mad>),
    Connect(usize),
    /// The owner decides on a request.
    Decide(usize, ConnId, Qpn),
    /// The owner's QP is ready, or it refuses the REP.
    Ready(usize, ConnId),
    Close(usize, ConnId),
    /// Data arrives.
    Data(usize, Qpn),
    Restart(usize),
    Ask(usize),
    Answer(usize, ConnId),
}

/// A node's life: it changes when the node forgets.
type Life = (usize, u32);

struct Node {
    cm: Cm,
    address: IpAddr,
    life: u32,
    next_qpn: u32,
    free: Vec<Qpn>,
    /// QPs by connection.
    qps: BTreeMap<ConnId, Qpn>,
    /// Of attempts of ours.
    started: BTreeMap<ConnId, Duration>,
    /// Of peers' requests: address and id of the side that asked.
    asked_by: BTreeMap<ConnId, (IpAddr, ConnId)>,
    questions: BTreeSet<ConnId>,
}

/// One run.
pub(crate) struct Fabric {
    plan: Plan,
    rng: Rng,
    now: Duration,
    nodes: Vec<Node>,
    heap: BinaryHeap<Reverse<(Duration, u64)>>,
    acts: BTreeMap<u64, (Life, Act)>,
    seq: u64,
    pub(crate) active: BTreeMap<(Life, ConnId), Outcome>,
    pub(crate) passive: BTreeMap<(Life, ConnId), Outcome>,
    /// Passive attempt to active attempt.
    pairs: BTreeMap<(Life, ConnId), (Life, ConnId)>,
    pub(crate) answered: usize,
    pub(crate) lost: u64,
}

fn config(node: usize, life: u32) -> Config {
    let seed = node as u64 * 1000 + u64::from(life);
    // An MRA asks for no longer than a retry takes, so that runs stay short.
    Config { mra_timeout: CmTimeout::new(20).unwrap(), ..Config::new(node as u64 + 1, seed) }
}

fn listening(node: usize, life: u32) -> Cm {
    let mut cm = Cm::new(config(node, life));
    for space in [PortSpace::Tcp, PortSpace::Udp] {
        cm.listen(&Listen::port(space, PORT, 64)).unwrap();
    }
    cm
}

impl Fabric {
    pub(crate) fn new(plan: Plan, seed: u64) -> Self {
        let node = |n: usize| Node {
            cm: listening(n, 0),
            address: Ipv4Addr::new(10, 0, 0, u8::try_from(n + 1).unwrap()).into(),
            life: 0,
            next_qpn: 0x10,
            free: vec![],
            qps: BTreeMap::new(),
            started: BTreeMap::new(),
            asked_by: BTreeMap::new(),
            questions: BTreeSet::new(),
        };
        let mut fabric = Self {
            plan,
            rng: Rng::new(seed),
            now: Duration::ZERO,
            nodes: (0..plan.nodes).map(node).collect(),
            heap: BinaryHeap::new(),
            acts: BTreeMap::new(),
            seq: 0,
            active: BTreeMap::new(),
            passive: BTreeMap::new(),
            pairs: BTreeMap::new(),
            answered: 0,
            lost: 0,
        };
        for _ in 0..plan.connects {
            let n = fabric.node();
            fabric.at(Duration::ZERO, n, Act::Connect(n));
            if fabric.rng.percent(10) {
                fabric.at(Duration::ZERO, n, Act::Ask(n));
            }
        }
        for _ in 0..plan.restarts {
            let (n, when) = (fabric.node(), fabric.rng.time(Duration::from_secs(30)));
            fabric.at(when, n, Act::Restart(n));
        }
        fabric
    }

    fn node(&mut self) -> usize {
        usize::try_from(self.rng.below(self.plan.nodes as u64)).unwrap()
    }

    fn life(&self, n: usize) -> Life {
        (n, self.nodes[n].life)
    }

    fn at(&mut self, after: Duration, n: usize, act: Act) {
        self.seq += 1;
        self.heap.push(Reverse((self.now + after, self.seq)));
        let life = self.life(n);
        self.acts.insert(self.seq, (life, act));
    }

    /// Runs to its end: until nothing is to be done any more.
    pub(crate) fn run(&mut self) {
        loop {
            let act = self.heap.peek().map(|Reverse((at, _))| *at);
            let due = self.nodes.iter().filter_map(|node| node.cm.next_deadline());
            let due = due.map(|deadline| deadline.at).min();
            let Some(at) = act.into_iter().chain(due).min() else { break };
            assert!(at >= self.now, "time goes back");
            assert!(at < Duration::from_secs(3600), "it does not end: {:?}", self.stats());
            self.now = at;
            if act == Some(at) {
                let Some(Reverse((_, seq))) = self.heap.pop() else { break };
                let Some((life, act)) = self.acts.remove(&seq) else { break };
                // What an owner had in mind is gone with it; what is on the wire is not.
                if life == self.life(life.0) || matches!(act, Act::Arrive(..)) {
                    self.act(act);
                }
            }
            for n in 0..self.nodes.len() {
                self.call(n, |cm, now, out| cm.expire(now, out));
            }
        }
    }

    /// MADs that were sent again.
    pub(crate) fn retried(&self) -> u64 {
        self.nodes.iter().map(|node| node.cm.counters().get(Count::Retried)).sum()
    }

    fn stats(&self) -> Vec<urxe_cm::Stats> {
        self.nodes.iter().map(|node| node.cm.stats()).collect()
    }

    /// Calls a node's manager, puts what it sends on the wire, and tells its owner what happened.
    fn call<T>(
        &mut self,
        n: usize,
        call: impl FnOnce(&mut Cm, Duration, &mut dyn urxe_cm::Sink) -> T,
    ) -> T {
        let mut sent = vec![];
        let mut out = |route: &Route, mad: &Mad| sent.push((*route, *mad));
        let result = call(&mut self.nodes[n].cm, self.now, &mut out);
        for (route, mad) in sent {
            self.carry(route, mad);
        }
        while let Some(event) = self.nodes[n].cm.poll_event() {
            self.event(n, event);
        }
        result
    }

    fn carry(&mut self, route: Route, mad: Mad) {
        let plan = self.plan;
        let to = self.nodes.iter().position(|node| node.address == route.remote);
        let to = to.filter(|_| !self.rng.percent(plan.loss));
        let Some(to) = to else {
            self.lost += 1;
            return;
        };
        let copies = 1 + usize::from(self.rng.percent(plan.duplicate));
        for _ in 0..copies {
            let mut after = Duration::from_micros(10) + self.rng.time(Duration::from_micros(200));
            if self.rng.percent(plan.late) {
                // Later than what is sent again, now and then.
                after += self.rng.time(2 * INTERVAL);
            }
            let arriving = Route::new(route.remote, route.local);
            self.at(after, to, Act::Arrive(to, arriving, Box::new(mad)));
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Arrive(n, route, mad) => {
                self.call(n, |cm, now, out| cm.receive(now, &route, &mad[..], out));
            }
            Act::Connect(n) => self.connect(n),
            Act::Decide(n, id, qpn) => self.decide(n, id, qpn),
            Act::Ready(n, id) => self.ready(n, id),
            Act::Close(n, id) => self.close(n, id),
            Act::Data(n, qpn) => {
                self.call(n, |cm, _, _| cm.notify_established(qpn));
            }
            Act::Restart(n) => self.restart(n),
            Act::Ask(n) => self.ask(n),
            Act::Answer(n, id) => {
                let qp = SidrAnswer::qp(Qpn::new(0x77));
                // Its asker may have given it up; then there is nothing to tell.
                self.call(n, |cm, now, out| cm.sidr_answer(now, id, &qp, out)).unwrap();
            }
        }
    }

    fn qpn(&mut self, n: usize) -> Qpn {
        let node = &mut self.nodes[n];
        node.free.pop().unwrap_or_else(|| {
            node.next_qpn += 1;
            Qpn::new(node.next_qpn)
        })
    }

    fn connect(&mut self, n: usize) {
        let (qpn, to) = (self.qpn(n), self.node());
        let port = u16::try_from(1024 + self.rng.below(60000)).unwrap();
        let from = SocketAddr::new(self.nodes[n].address, port);
        let to = SocketAddr::new(self.nodes[to].address, PORT);
        let psn = Psn::new(u32::try_from(self.rng.below(1 << 24)).unwrap());
        let want = Connect::ip(PortSpace::Tcp, from, to, qpn, psn).unwrap();
        // An owner that waits for what it is told never finds a QPN in use.
        let id = self.call(n, |cm, now, out| cm.connect(now, &want, out)).unwrap();
        let now = self.now;
        self.nodes[n].qps.insert(id, qpn);
        self.nodes[n].started.insert(id, now);
    }

    fn ask(&mut self, n: usize) {
        let to = self.node();
        let from = SocketAddr::new(self.nodes[n].address, 9);
        let to = SocketAddr::new(self.nodes[to].address, PORT);
        let ask = SidrAsk::ip(PortSpace::Udp, from, to).unwrap();
        let id = self.call(n, |cm, now, out| cm.sidr_ask(now, &ask, out)).unwrap();
        self.nodes[n].questions.insert(id);
    }

    fn decide(&mut self, n: usize, id: ConnId, qpn: Qpn) {
        if self.nodes[n].cm.state(id) != Some(State::ReqReceived) {
            // It was taken back.
            self.nodes[n].free.push(qpn);
            return;
        }
        if self.rng.percent(self.plan.refuse) {
            self.nodes[n].free.push(qpn);
            self.refuse(n, id);
            return;
        }
        let with = Accept::new(qpn, Psn::new(7));
        self.call(n, |cm, now, out| cm.accept(now, id, &with, out)).unwrap();
        self.nodes[n].qps.insert(id, qpn);
    }

    fn refuse(&mut self, n: usize, id: ConnId) {
        let reason = RejReason::ConsumerDefined;
        self.call(n, |cm, now, out| cm.reject(now, id, reason, b"", b"", out)).unwrap();
        self.outcome(n, id, Outcome::Failed("we refused".into()));
    }

    fn ready(&mut self, n: usize, id: ConnId) {
        if self.nodes[n].cm.state(id) != Some(State::RepReceived) {
            return;
        }
        if self.rng.percent(self.plan.refuse) {
            self.refuse(n, id);
            self.free(n, id);
            return;
        }
        let attrs = self.nodes[n].cm.qp_attrs(id).unwrap();
        self.call(n, |cm, _, out| cm.establish(id, b"", out)).unwrap();
        self.outcome(n, id, Outcome::Established);
        // Now and then data arrives, before the RTU or after it.
        if self.rng.percent(20) {
            let remote = attrs.rtr.path.remote;
            if let Some(to) = self.nodes.iter().position(|node| node.address == remote) {
                let after = self.rng.time(Duration::from_millis(1));
                self.at(after, to, Act::Data(to, attrs.rtr.dest_qpn));
            }
        }
        self.close_later(n, id);
    }

    /// An owner leaves after a while; both sides may do so at once.
    fn close_later(&mut self, n: usize, id: ConnId) {
        let most = if self.rng.percent(50) { 10 } else { 200 };
        let after = Duration::from_secs(100) + self.rng.time(Duration::from_secs(most));
        self.at(after, n, Act::Close(n, id));
    }

    fn close(&mut self, n: usize, id: ConnId) {
        let state = self.nodes[n].cm.state(id);
        if matches!(state, Some(State::Established | State::DreqReceived)) {
            self.call(n, |cm, now, out| cm.disconnect(now, id, b"", out)).unwrap();
        }
    }

    fn restart(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        node.life += 1;
        node.cm = listening(n, node.life);
        node.qps.clear();
        node.started.clear();
        node.asked_by.clear();
        node.questions.clear();
    }

    fn free(&mut self, n: usize, id: ConnId) {
        if let Some(qpn) = self.nodes[n].qps.remove(&id) {
            self.nodes[n].free.push(qpn);
        }
    }

    fn outcome(&mut self, n: usize, id: ConnId, outcome: Outcome) {
        let key = (self.life(n), id);
        let node = &self.nodes[n];
        let side = if let Some(started) = node.started.get(&id) {
            // Every attempt but the last takes a retry at most, or what an MRA asks for.
            let took = self.now - *started;
            assert!(took <= 2 * 16 * INTERVAL, "{id} took {took:?}");
            &mut self.active
        } else {
            &mut self.passive
        };
        let before = side.insert(key, outcome);
        assert_eq!(before, None, "{key:?} ends twice");
    }

    fn event(&mut self, n: usize, event: Event) {
        match event {
            Event::ConnectRequest(request) => self.requested(n, &request),
            Event::ConnectResponse(response) => {
                let after = self.rng.time(Duration::from_millis(20));
                self.at(after, n, Act::Ready(n, response.id));
            }
            Event::Established { id, .. } => {
                self.outcome(n, id, Outcome::Established);
                self.close_later(n, id);
            }
            Event::Rejected { id, reason, timewait, .. } => {
                let text = format!("rejected: {}", reason.text());
                self.outcome(n, id, Outcome::Failed(text));
                if !timewait {
                    self.free(n, id);
                }
            }
            Event::Unreachable { id, message, timewait } => {
                self.outcome(n, id, Outcome::Failed(format!("no answer to {message}")));
                if !timewait {
                    self.free(n, id);
                }
            }
            Event::DisconnectRequest { id, .. } => {
                let after = self.rng.time(Duration::from_millis(50));
                self.at(after, n, Act::Close(n, id));
            }
            Event::Disconnected { .. } => {}
            Event::TimewaitExit { id, qpn } => {
                let had = self.nodes[n].qps.get(&id).copied();
                assert_eq!(had, Some(qpn));
                self.free(n, id);
            }
            Event::SidrRequest(request) => {
                let after = self.rng.time(Duration::from_millis(50));
                self.at(after, n, Act::Answer(n, request.id));
            }
            Event::SidrResponse(response) => {
                assert_eq!(response.qpn, Qpn::new(0x77));
                assert!(self.nodes[n].questions.remove(&response.id));
                self.answered += 1;
            }
            Event::SidrUnreachable { id } => {
                assert!(self.nodes[n].questions.remove(&id));
            }
        }
    }

    fn requested(&mut self, n: usize, request: &urxe_cm::Request) {
        let slow = self.rng.percent(self.plan.slow);
        let most = if slow { 2 * INTERVAL } else { Duration::from_millis(50) };
        let (after, qpn) = (self.rng.time(most), self.qpn(n));
        self.at(after, n, Act::Decide(n, request.id, qpn));
        let asker = (request.route.remote, request.req.local_comm_id);
        self.nodes[n].asked_by.insert(request.id, asker);
        if let Some(m) = self.nodes.iter().position(|node| node.address == asker.0) {
            self.pairs.insert((self.life(n), request.id), (self.life(m), asker.1));
        }
    }

    /// What must hold at the end of every run.
    pub(crate) fn judge(&self) {
        for (n, node) in self.nodes.iter().enumerate() {
            assert!(node.cm.stats().is_idle(), "node {n} keeps {:?}", node.cm.stats());
            assert!(node.qps.is_empty(), "node {n}: QPNs that nobody freed: {:?}", node.qps);
            assert!(node.questions.is_empty(), "node {n}: questions without an end");
            let life = self.life(n);
            for id in node.started.keys() {
                assert!(self.active.contains_key(&(life, *id)), "{id} of node {n} has no end");
            }
            for id in node.asked_by.keys() {
                assert!(self.passive.contains_key(&(life, *id)), "{id} of node {n} has no end");
            }
        }
        if self.plan.restarts == 0 {
            self.judge_pairs();
        }
    }

    /// Both sides of every attempt end the same way. A request that comes late may make another
    /// attempt on the passive side, which then fails.
    fn judge_pairs(&self) {
        for (key, outcome) in &self.active {
            let pairs = self.pairs.iter().filter(|(_, active)| *active == key);
            let there = pairs.map(|(passive, _)| self.passive.get(passive));
            let established = there.filter(|o| *o == Some(&Outcome::Established)).count();
            let wanted = usize::from(*outcome == Outcome::Established);
            assert_eq!(established, wanted, "{key:?} is {outcome:?}");
        }
    }
}
