//! NICs, the links between them, and virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::IpAddr;

use urxe_engine::{Count, Nic, NicConfig, Path, Payload, Time, Transmit, VerbsError};

use crate::fault::{Fault, Key, orders};
use crate::frame::{self, Refused};
use crate::link::{Link, LinkConfig};
use crate::trace::{Trace, What};
use crate::{Interpose, Rng};

#[cfg(test)]
mod tests;

/// How the nodes are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Topology {
    /// A link from each node to each, itself too.
    #[default]
    Mesh,
    /// A link from each node to a switch and one back; each is a place to wait.
    Star,
}

/// What a fabric is made of.
#[derive(Clone, Debug)]
pub struct FabricConfig {
    /// What all chance comes from.
    pub seed: u64,
    /// How the nodes are joined.
    pub topology: Topology,
    /// What every link does, each direction by itself.
    pub link: LinkConfig,
    /// Faults that name their packets.
    pub faults: Vec<Fault>,
    /// Packets a NIC may send at a time; it has room again a microsecond later.
    pub room: usize,
    /// Whether NICs take packets in at once but answer a microsecond later, all together.
    pub batches: bool,
    /// Whether the trace keeps the packets.
    pub keep_trace: bool,
}

/// Packet buffers a node keeps for its next packets.
const SPARE: usize = 64;

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<E> {
    /// A node took a packet, a deadline or room: completions may wait.
    Node(usize),
    /// What [`Fabric::at`] was told.
    Event(E),
    /// Nothing waits any more.
    Rest,
}

/// Takes the packets of one NIC.
struct Outbox {
    frames: Vec<(IpAddr, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    room: usize,
}

impl Transmit for Outbox {
    fn room(&self) -> usize {
        self.room.saturating_sub(self.frames.len())
    }

    fn packet(&mut self, path: &Path, header: &[u8], payload: Payload<'_>, pad: usize) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        frame::build(path, header, &payload, pad, &mut bytes);
        self.frames.push((path.dst, bytes));
    }
}

struct Node {
    nic: Nic,
    outbox: Outbox,
    deadline: Option<Time>,
    /// Whether it is told soon that there is room again.
    waits_for_room: bool,
}

enum Event<E> {
    /// A frame comes to the end of a link.
    Frame {
        from: usize,
        to: usize,
        hop: usize,
        frame: Vec<u8>,
    },
    Room(usize),
    Told(E),
}

/// Heap entries are ordered by time, then by number.
struct Entry<E>(Time, u64, Event<E>);

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.1 == other.1
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// Nodes, links and time. `E` is what the user wants to be told at some time.
pub struct Fabric<E> {
    now: Time,
    number: u64,
    heap: BinaryHeap<Reverse<Entry<E>>>,
    nodes: Vec<Node>,
    addresses: BTreeMap<IpAddr, usize>,
    links: Vec<Link>,
    config: FabricConfig,
    seen: BTreeMap<(usize, Key), u32>,
    harm: BTreeMap<(usize, u32), u32>,
    trace: Trace,
    arrivals: Vec<(Time, Vec<u8>)>,
    interpose: Box<dyn Interpose>,
}

impl<E> Fabric<E> {
    /// A fabric of NICs. Time starts at 1 ms, so that "before the start" can be told.
    ///
    /// # Errors
    /// Where a NIC cannot be made so.
    pub fn new(
        nics: Vec<NicConfig>,
        config: FabricConfig,
        interpose: Box<dyn Interpose>,
    ) -> Result<Self, VerbsError> {
        let (count, mut nodes, mut addresses) = (nics.len(), Vec::new(), BTreeMap::new());
        for (number, nic) in nics.into_iter().enumerate() {
            addresses.extend(nic.addresses.iter().map(|&a| (a, number)));
            let outbox = Outbox { frames: Vec::new(), spare: Vec::new(), room: config.room };
            let nic = Nic::new(nic)?;
            nodes.push(Node { nic, outbox, deadline: None, waits_for_room: false });
        }
        let links = match config.topology {
            Topology::Mesh => count * count,
            Topology::Star => count * 2,
        };
        Ok(Self {
            now: Time::from_nanos(1_000_000),
            number: 0,
            heap: BinaryHeap::new(),
            nodes,
            addresses,
            links: (0..links).map(|_| Link::new(config.link)).collect(),
            trace: Trace::new(config.keep_trace),
            config,
            seen: BTreeMap::new(),
            harm: BTreeMap::new(),
            arrivals: Vec::new(),
            interpose,
        })
    }

    /// The time.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// A node's NIC, for calls that send nothing.
    #[must_use]
    pub fn nic(&self, node: usize) -> &Nic {
        &self.nodes[node].nic
    }

    /// The trace so far.
    #[must_use]
    pub const fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Gives the trace away; the run is over.
    #[must_use]
    pub fn into_trace(self) -> Trace {
        self.trace
    }

    /// What stands between the engine and who looks at it, and a node's NIC.
    pub fn interpose(&mut self, node: usize) -> (&mut dyn Interpose, &Nic) {
        (self.interpose.as_mut(), &self.nodes[node].nic)
    }

    /// How many packets for a QP of a node were lost, changed, doubled or put out of order.
    #[must_use]
    pub fn harm(&self, node: usize, qpn: u32) -> u32 {
        self.harm.get(&(node, qpn)).copied().unwrap_or(0)
    }

    /// Tells the user `event` at `time`, or at once if that is past.
    pub fn at(&mut self, time: Time, event: E) {
        self.push(time.max(self.now), Event::Told(event));
    }

    /// Cuts all links between two nodes, both ways, for a time.
    pub fn cut(&mut self, a: usize, b: usize, from: Time, to: Time) {
        for (x, y) in [(a, b), (b, a)] {
            for link in self.route(x, y).into_iter().flatten() {
                self.links[link].cuts.push((from, to));
            }
        }
    }

    /// Sets what the links from `a` to `b` do; in a star, the one from the switch to `b`.
    pub fn set_link(&mut self, a: usize, b: usize, config: LinkConfig) {
        if let Some(link) = self.route(a, b).into_iter().flatten().last() {
            self.links[link].config = config;
        }
    }

    /// Calls a NIC with a sink whose packets go on the links.
    pub fn call<R>(&mut self, node: usize, call: impl FnOnce(&Nic, Time, &mut Sink<'_>) -> R) -> R {
        let now = self.now;
        let n = &mut self.nodes[node];
        let result = call(&n.nic, now, &mut Sink(&mut n.outbox));
        self.flush(node);
        result
    }

    /// Lets the next thing happen.
    pub fn step(&mut self) -> Step<E> {
        let due = self.nodes.iter().enumerate().filter_map(|(i, n)| Some((n.deadline?, i))).min();
        let next = self.heap.peek().map(|Reverse(entry)| entry.0);
        if let Some((at, node)) = due
            && next.is_none_or(|next| at < next)
        {
            self.now = self.now.max(at);
            self.call(node, |nic, now, out| nic.expire(now, out));
            return Step::Node(node);
        }
        let Some(Reverse(Entry(at, _, event))) = self.heap.pop() else {
            return Step::Rest;
        };
        self.now = self.now.max(at);
        match event {
            Event::Told(event) => Step::Event(event),
            Event::Room(node) => {
                self.nodes[node].waits_for_room = false;
                self.call(node, |nic, now, out| nic.pump(now, out));
                Step::Node(node)
            }
            Event::Frame { from, to, hop, frame } => {
                if self.config.topology == Topology::Star && hop == 0 {
                    self.carry(from, to, 1, frame);
                } else {
                    self.arrive(from, to, frame);
                }
                Step::Node(to)
            }
        }
    }

    fn push(&mut self, at: Time, event: Event<E>) {
        self.number += 1;
        self.heap.push(Reverse(Entry(at, self.number, event)));
    }

    const fn route(&self, from: usize, to: usize) -> [Option<usize>; 2] {
        let count = self.nodes.len();
        match self.config.topology {
            Topology::Mesh => [Some(from * count + to), None],
            Topology::Star => [Some(from), Some(count + to)],
        }
    }

    /// Puts what a NIC sent on its links.
    fn flush(&mut self, node: usize) {
        let mut frames = std::mem::take(&mut self.nodes[node].outbox.frames);
        for (dst, mut frame) in frames.drain(..) {
            self.interpose.sent(node, &mut frame);
            match self.addresses.get(&dst) {
                Some(&to) => self.carry(node, to, 0, frame),
                None => self.nodes[node].outbox.spare.push(frame),
            }
        }
        let n = &mut self.nodes[node];
        n.outbox.frames = frames;
        n.deadline = n.nic.next_deadline().map(|d| d.at);
        if n.nic.has_work() && !n.waits_for_room {
            n.waits_for_room = true;
            let soon = self.now + std::time::Duration::from_micros(1);
            self.push(soon, Event::Room(node));
        }
    }

    fn carry(&mut self, from: usize, to: usize, hop: usize, frame: Vec<u8>) {
        let Some(link) = self.route(from, to)[hop] else { return };
        let key = Key::of(&frame);
        let nth = self.seen.entry((link, key)).or_default();
        *nth += 1;
        let orders = orders(if hop == 0 { &self.config.faults } else { &[] }, key, *nth);
        // Chance hangs on what the packet is, not on what was sent before it: a run with fewer
        // operations loses the same packets of those that are left.
        let packet = u64::from(key.psn) << 32 | u64::from(key.qpn) << 8 | u64::from(key.opcode);
        let mut rng = Rng::new(&[self.config.seed, link as u64, packet, u64::from(*nth)]);
        let kept = if self.trace.keeps() { frame.clone() } else { Vec::new() };
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let done = self.links[link].carry(self.now, frame, &orders, &mut rng, &mut arrivals);
        self.trace.sent(self.now, (from, to), done, key, &kept);
        if done.lost.is_some() || done.reordered || done.corrupted || done.duplicated {
            *self.harm.entry((to, key.qpn)).or_default() += 1;
        }
        for (at, frame) in arrivals.drain(..) {
            self.push(at, Event::Frame { from, to, hop, frame });
        }
        self.arrivals = arrivals;
    }

    /// The host's and the port's part: checksums first, then the engine.
    fn arrive(&mut self, from: usize, to: usize, frame: Vec<u8>) {
        match frame::open(&frame) {
            Ok(received) => {
                self.trace.came(self.now, (from, to), What::Arrived, &frame);
                let now = self.now;
                let n = &mut self.nodes[to];
                let out = &mut Sink(&mut n.outbox);
                if self.config.batches {
                    // Drops are counted.
                    let _ = n.nic.accept(now, &received, out);
                } else {
                    n.nic.receive(now, &received, out);
                }
            }
            Err(why) => {
                self.trace.came(self.now, (from, to), What::Refused(why), &frame);
                if why == Refused::Icrc {
                    self.nodes[to].nic.counters().add(Count::BadIcrc, 1);
                }
            }
        }
        let spare = &mut self.nodes[to].outbox.spare;
        if spare.len() < SPARE {
            spare.push(frame);
        }
        self.flush(to);
    }
}

/// The way from a NIC to its links.
pub struct Sink<'a>(&'a mut Outbox);

impl Transmit for Sink<'_> {
    fn room(&self) -> usize {
        self.0.room()
    }

    fn packet(&mut self, path: &Path, header: &[u8], payload: Payload<'_>, pad: usize) {
        self.0.packet(path, header, payload, pad);
    }
}
