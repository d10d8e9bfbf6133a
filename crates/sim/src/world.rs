//! Programs that carry a plan out on a fabric, and tell the oracle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use urxe_engine::{CqId, QpId, SrqId, Time};
use urxe_memory::{Buffer, MrInfo, MwId, PdId};

use crate::fabric::{Fabric, Step};
use crate::oracle::{Invariant, Oracle, Phase, Verdict};
use crate::plan::{Plan, Polling, Queue};

mod deeds;
mod end;
mod poll;
mod post;
mod setup;

/// What a program waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Todo {
    /// Sends of a queue may be due.
    Send(usize, usize),
    /// Receives of a queue may be due.
    Recv(Queue),
    /// A deed is due.
    Deed(usize),
    /// A drained send queue goes on.
    Resume(usize, usize),
    /// A lazy program looks at its CQs.
    Poll(usize),
}

/// What a node has.
pub(crate) struct Node {
    pd: PdId,
    buffer: Arc<Buffer>,
    cqs: Vec<CqId>,
    /// Whether a poll is planned.
    will_poll: bool,
}

/// Work requests of a queue that are not posted yet.
#[derive(Clone, Debug, Default)]
struct Line {
    ids: Vec<usize>,
    next: usize,
    /// How often in a row the queue was found full.
    full: u32,
}

/// A run in progress.
pub(crate) struct World {
    pub(crate) plan: Arc<Plan>,
    pub(crate) fabric: Fabric<Todo>,
    pub(crate) oracle: Oracle,
    start: Time,
    nodes: Vec<Node>,
    regions: Vec<Option<MrInfo>>,
    keys: Vec<(u32, u32)>,
    windows: Vec<MwId>,
    srqs: Vec<SrqId>,
    qps: Vec<[Option<QpId>; 2]>,
    ahs: Vec<[Option<urxe_engine::AhId>; 2]>,
    by_qpn: BTreeMap<(usize, u32), (usize, usize)>,
    sends: BTreeMap<(usize, usize), Line>,
    receives: BTreeMap<Queue, Line>,
    /// Queues whose next work request waits for another one.
    blocked: BTreeSet<(usize, usize)>,
    /// Steps more that a slow network may take: who waits for it asks again and again meanwhile.
    patience: u64,
    /// All is at rest and being taken down: nothing is posted any more.
    closing: bool,
}

/// Steps after which a run is taken not to come to rest. A run of 60 operations takes some
/// thousands.
const STEPS_PER_OP: u64 = 3_000;
/// Virtual time after which a run is taken not to come to rest: longer than all retries of any run.
const LONGEST: Duration = Duration::from_secs(10_000);

impl World {
    /// Carries the plan out to its end.
    pub(crate) fn run(&mut self) -> Verdict {
        let result = self.try_run();
        self.oracle.set_time(self.fabric.now());
        result
    }

    fn try_run(&mut self) -> Verdict {
        self.begin()?;
        self.run_to_rest()?;
        self.finish()
    }

    fn begin(&mut self) -> Verdict {
        for number in 0..self.plan.deeds.len() {
            let at = self.start + self.plan.deeds[number].at;
            self.fabric.at(at, Todo::Deed(number));
        }
        let queues: Vec<Queue> = self.receives.keys().copied().collect();
        for queue in queues {
            self.post_receives(queue)?;
        }
        let lines: Vec<(usize, usize)> = self.sends.keys().copied().collect();
        for (conn, side) in lines {
            self.post_sends(conn, side)?;
        }
        for node in 0..self.nodes.len() {
            self.look(node)?;
        }
        Ok(())
    }

    pub(crate) fn run_to_rest(&mut self) -> Verdict {
        let most = STEPS_PER_OP * (self.plan.ops.len() as u64 + 30);
        let most = most.saturating_add(self.patience);
        for _ in 0..most {
            let step = self.fabric.step();
            self.oracle.set_time(self.fabric.now());
            match step {
                Step::Rest => return Ok(()),
                Step::Node(node) => self.look(node)?,
                Step::Event(todo) => self.do_next(todo)?,
            }
            if self.fabric.now() > self.start + LONGEST {
                break;
            }
        }
        let waits: Vec<String> = (0..self.nodes.len())
            .filter_map(|n| self.fabric.nic(n).next_deadline())
            .map(|d| d.to_string())
            .collect();
        let what = format!("it did not within {most} steps; deadlines: {}", waits.join(", "));
        Err(self.oracle.violation(Invariant::Rest, what))
    }

    fn do_next(&mut self, todo: Todo) -> Verdict {
        match todo {
            Todo::Send(conn, side) => self.post_sends(conn, side),
            Todo::Recv(queue) => self.post_receives(queue),
            Todo::Deed(number) => self.do_deed(number),
            Todo::Resume(conn, side) => self.resume(conn, side),
            Todo::Poll(node) => {
                self.nodes[node].will_poll = false;
                self.poll(node)
            }
        }
    }

    /// Something happened at a node: its program looks, when it does.
    fn look(&mut self, node: usize) -> Verdict {
        match self.plan.nodes[node].polling {
            Polling::Eager => {
                self.take_events(node, false)?;
                self.poll(node)
            }
            Polling::Armed => self.take_events(node, true),
            Polling::Lazy => {
                self.take_events(node, false)?;
                if !self.nodes[node].will_poll {
                    self.nodes[node].will_poll = true;
                    let soon = self.fabric.now() + Duration::from_micros(20);
                    self.fabric.at(soon, Todo::Poll(node));
                }
                Ok(())
            }
        }
    }

    /// Packets of a pair that the network harmed so far.
    fn harm(&self, conn: usize) -> u32 {
        let nodes = self.plan.conns[conn].nodes;
        let qpns = self.oracle.qpns[conn];
        (0..2).map(|side| self.fabric.harm(nodes[side], qpns[side])).sum()
    }

    /// Lets queues go on whose next work request waited for one that has ended.
    fn unblock(&mut self) -> Verdict {
        for (conn, side) in std::mem::take(&mut self.blocked) {
            self.post_sends(conn, side)?;
        }
        Ok(())
    }

    /// Whether an operation may be posted as far as others are concerned: `None` is never.
    fn ready(&self, op: usize) -> Option<bool> {
        match self.plan.ops[op].after.map(|id| self.oracle.phase(id)) {
            None | Some(Phase::Good) => Some(true),
            Some(Phase::Waiting | Phase::Posted) => Some(false),
            Some(Phase::Failed(_) | Phase::Skipped) => None,
        }
    }
}
