//! Posting what is due.

use std::time::Duration;

use urxe_engine::{PostError, RecvWr, SendFlags, SendOp, SendWr, UdDest};
use urxe_memory::{Access, MwType, Sge};
use urxe_wire::Qpn;

use super::{Todo, World};
use crate::oracle::{Invariant, RECV, Verdict};
use crate::plan::{Ends, Queue, Remote, Span, Via, What};

/// How long a program waits before it tries a full queue again; twice as long each time, up to
/// 2⁸ times.
const PAUSE: Duration = Duration::from_micros(5);
/// Changes a key into one that there is not: its index is far above those in use.
const NO_KEY: u32 = 0x4000_0000;

/// What came of posting.
enum Post {
    Taken,
    /// The queue is full.
    Full,
    /// The QP takes nothing any more.
    Gone,
}

impl World {
    /// Posts the sends of a queue that are due, in order.
    pub(super) fn post_sends(&mut self, conn: usize, side: usize) -> Verdict {
        while !self.closing {
            let Some(line) = self.sends.get(&(conn, side)) else { return Ok(()) };
            let Some(&op) = line.ids.get(line.next) else { return Ok(()) };
            let due = self.start + self.plan.ops[op].at;
            if due > self.fabric.now() {
                self.fabric.at(due, Todo::Send(conn, side));
                return Ok(());
            }
            let ready = self.ready(op);
            if ready == Some(false) {
                self.blocked.insert((conn, side));
                return Ok(());
            }
            // Before it is posted: what it brings about may come back here.
            self.step_line(conn, side, true);
            let done = if ready.is_none() { Post::Gone } else { self.post_send(op)? };
            match done {
                Post::Taken => {}
                Post::Gone => self.skip(op),
                Post::Full => {
                    self.step_line(conn, side, false);
                    self.try_later(conn, side);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// An operation is never posted; nor are those that wait for it, which must hear of it.
    fn skip(&mut self, op: usize) {
        self.oracle.skipped(op);
        let now = self.fabric.now();
        for &(conn, side) in &self.blocked {
            self.fabric.at(now, Todo::Send(conn, side));
        }
    }

    /// A queue goes on to its next work request, or back to the one before.
    fn step_line(&mut self, conn: usize, side: usize, on: bool) {
        if let Some(line) = self.sends.get_mut(&(conn, side)) {
            line.next = if on { line.next + 1 } else { line.next - 1 };
        }
    }

    fn try_later(&mut self, conn: usize, side: usize) {
        if let Some(line) = self.sends.get_mut(&(conn, side)) {
            let later = self.fabric.now() + PAUSE * (1 << line.full.min(8));
            line.full += 1;
            self.fabric.at(later, Todo::Send(conn, side));
        }
    }

    fn post_send(&mut self, id: usize) -> Result<Post, crate::Violation> {
        let op = self.plan.ops[id].clone();
        let Some(qp) = self.qps[op.conn][op.side] else { return Ok(Post::Gone) };
        if self.oracle.is_gone(op.conn, op.side) {
            return Ok(Post::Gone);
        }
        let node = self.plan.conns[op.conn].nodes[op.side];
        let bad = op.ends == Ends::LocalProtection;
        let sges = if op.inline { Vec::new() } else { self.sges(&op.local, bad) };
        let inline = if op.inline { self.oracle.take_inline(id) } else { Vec::new() };
        let mut flags = SendFlags::empty();
        flags.set(SendFlags::FENCE, op.fence);
        flags.set(SendFlags::SIGNALED, op.signaled);
        flags.set(SendFlags::SOLICITED, op.solicited);
        flags.set(SendFlags::INLINE, op.inline);
        let wr = SendWr {
            wr_id: id as u64,
            op: self.send_op(id, &op.what),
            sges: &sges,
            inline: &inline,
            flags,
            dest: self.ahs[op.conn][op.side].map(|ah| UdDest {
                ah,
                qpn: Qpn::new(self.oracle.qpns[op.conn][1 - op.side]),
                qkey: super::setup::Q_KEY,
            }),
            remote_srqn: op.srq.map_or(0, |s| self.srqs[s].0),
        };
        let harm = self.harm(op.conn);
        match self.fabric.call(node, |nic, now, out| nic.post_send(now, qp, &wr, out)) {
            Ok(()) => {
                self.sends.entry((op.conn, op.side)).or_default().full = 0;
                self.oracle.posted(id, harm);
                if op.inline {
                    self.oracle.spoil_inline(id);
                }
                self.look(node)?;
                Ok(Post::Taken)
            }
            Err(PostError::Full { .. }) => Ok(Post::Full),
            Err(e) => {
                let what = format!("{} was refused: {e}", self.plan.describe(id));
                Err(self.oracle.violation(Invariant::Accepted, what))
            }
        }
    }

    fn send_op(&self, id: usize, what: &What) -> SendOp {
        let number = || u32::try_from(id).unwrap_or(u32::MAX).to_be_bytes();
        let at = |remote: Remote| self.remote(remote);
        let word = |word: usize| {
            let span = self.plan.words[word].span;
            (self.plan.address(span), self.keys[span.region].1)
        };
        match *what {
            What::Send { invalidate: Some(window), .. } => {
                SendOp::SendInvalidate { rkey: self.oracle.window_keys[window] }
            }
            What::Send { imm, .. } => SendOp::Send { imm: imm.then(number) },
            What::Write { remote, imm } => {
                let (remote, rkey) = at(remote);
                SendOp::Write { remote, rkey, imm: imm.then(number) }
            }
            What::Read(remote) => {
                let (remote, rkey) = at(remote);
                SendOp::Read { remote, rkey }
            }
            What::Add { word: w, add, shift } => {
                let (remote, rkey) = word(w);
                SendOp::FetchAdd { remote: remote + shift, rkey, add }
            }
            What::Swap { word: w, expects, swap } => {
                let (remote, rkey) = word(w);
                let compare = self.oracle.expected(w, expects);
                SendOp::CompareSwap { remote, rkey, compare, swap }
            }
            What::AtomicWrite(remote) => {
                let (remote, rkey) = at(remote);
                SendOp::AtomicWrite { remote, rkey }
            }
            What::Flush { remote: r, scope, level } => {
                let (remote, rkey) = at(r);
                SendOp::Flush { remote, length: r.span.len, rkey, scope, level }
            }
            What::Invalidate { window } => {
                SendOp::LocalInvalidate { rkey: self.oracle.window_keys[window] }
            }
            What::Bind { window, span, step } => SendOp::BindMw {
                mw: self.windows[window],
                rkey: self.new_key(window, step),
                lkey: self.keys[span.region].0,
                addr: self.plan.address(span),
                length: span.len.into(),
                access: Access::REMOTE_WRITE | Access::REMOTE_READ,
            },
        }
    }

    /// The key that a bind asks for; type 1 windows choose theirs.
    fn new_key(&self, window: usize, step: u8) -> Option<u32> {
        let old = self.oracle.window_keys[window];
        let [index @ .., low] = old.to_be_bytes();
        let [a, b, c] = index;
        (self.plan.windows[window].kind == MwType::Type2B).then_some(u32::from_be_bytes([
            a,
            b,
            c,
            low.wrapping_add(step),
        ]))
    }

    /// A bind is done: its window has another key.
    pub(super) fn bound(&mut self, id: usize) {
        if let What::Bind { window, step, .. } = self.plan.ops[id].what {
            let key = self.new_key(window, step).or_else(|| {
                let node = self.plan.windows[window].node;
                let info = self.fabric.nic(node).memory().query_mw(self.windows[window]);
                info.ok().map(|i| i.rkey)
            });
            self.oracle.window_keys[window] = key.unwrap_or_default();
        }
    }

    fn remote(&self, remote: Remote) -> (u64, u32) {
        let span = remote.span;
        let (address, rkey) = (self.plan.address(span), self.keys[span.region].1);
        match remote.via {
            Via::Region => (address, rkey),
            Via::Window(window) => (address, self.oracle.window_keys[window]),
            Via::NoKey => (address, rkey ^ NO_KEY),
            Via::PastEnd => {
                let region = &self.plan.regions[span.region];
                (region.start() + u64::from(region.len) - u64::from(span.len / 2), rkey)
            }
        }
    }

    fn sges(&self, spans: &[Span], bad: bool) -> Vec<Sge> {
        let sge = |span: &Span| {
            let lkey = self.keys[span.region].0 ^ if bad { NO_KEY } else { 0 };
            Sge { addr: self.plan.address(*span), length: span.len, lkey }
        };
        spans.iter().map(sge).collect()
    }

    /// Posts the receives of a queue that are due, in order.
    pub(super) fn post_receives(&mut self, queue: Queue) -> Verdict {
        loop {
            let Some(line) = self.receives.get_mut(&queue) else { return Ok(()) };
            let Some(&id) = line.ids.get(line.next) else { return Ok(()) };
            let due = self.start + self.plan.recvs[id].at;
            if due > self.fabric.now() {
                self.fabric.at(due, Todo::Recv(queue));
                return Ok(());
            }
            line.next += 1;
            self.post_receive(queue, id)?;
        }
    }

    fn post_receive(&mut self, queue: Queue, id: usize) -> Verdict {
        let recv = &self.plan.recvs[id];
        let sges = self.sges(&recv.local, recv.broken);
        let wr = RecvWr { wr_id: RECV | id as u64, sges: &sges };
        let now = self.fabric.now();
        let (node, posted) = match queue {
            Queue::Shared(srq) => {
                let node = self.plan.srqs[srq].node;
                (node, self.fabric.nic(node).post_srq_recv(self.srqs[srq], &wr))
            }
            Queue::Own(conn, side) => {
                let node = self.plan.conns[conn].nodes[side];
                let gone = self.oracle.is_gone(conn, side);
                let Some(qp) = self.qps[conn][side].filter(|_| !gone) else { return Ok(()) };
                (node, self.fabric.nic(node).post_recv(now, qp, &wr))
            }
        };
        if let Err(e) = posted {
            let what = format!("receive {id} of {queue:?} was refused: {e}");
            return Err(self.oracle.violation(Invariant::Accepted, what));
        }
        self.oracle.recv_posted(id);
        self.look(node)
    }
}
