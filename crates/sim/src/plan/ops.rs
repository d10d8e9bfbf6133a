//! Drawing work requests.

use std::time::Duration;

use urxe_engine::QpKind;
use urxe_memory::Access;
use urxe_wire::{FlushLevel, FlushScope};

use super::make::Draft;
use super::{Doom, Ends, Op, Queue, Recv, Remote, Span, Via, What};

/// SGEs of a work request, at most.
pub(crate) const MAX_SGE: u32 = 4;
/// Inline bytes, at most.
pub(crate) const MAX_INLINE: u32 = 220;
/// Bytes before a datagram in its receive.
pub(super) const GRH: u32 = 40;
/// The longest datagram.
pub(super) const DATAGRAM: u32 = 4096;

/// What later work requests of a send queue may build upon.
#[derive(Clone, Debug, Default)]
pub(super) struct Past {
    /// What the last WRITE wrote.
    written: Option<Span>,
    /// Where the last READ put its data.
    read: Option<Vec<Span>>,
}

impl Draft<'_> {
    pub(super) fn draw_op(&mut self) {
        let conn = self.rng.index(self.plan.conns.len());
        let c = self.plan.conns[conn];
        let side = if c.kind == QpKind::XrcInit { 0 } else { self.rng.index(2) };
        if c.doom == Doom::Slip && !self.slipped[conn] && self.rng.one_in(5) {
            self.slipped[conn] = true;
            self.draw_slip(conn, side);
            return;
        }
        let may_use_atomics = c.access[1 - side].contains(Access::REMOTE_ATOMIC);
        match (c.kind, self.rng.below(100)) {
            (QpKind::Uc, 0..50) | (QpKind::Ud, _) | (_, 0..30) => self.draw_send(conn, side),
            (QpKind::Uc, _) | (_, 30..56) => self.draw_write(conn, side),
            (_, 56..74) => self.draw_read(conn, side),
            (_, 74..82) if may_use_atomics => self.draw_add(conn, side),
            (_, 82..90) if may_use_atomics => self.draw_swap(conn, side),
            (_, 74..93) => self.draw_atomic_write(conn, side),
            (_, 93..97) => self.draw_flush(conn, side),
            (QpKind::Rc, _) => self.draw_chain(conn, side),
            _ => self.draw_send(conn, side),
        }
    }

    /// A work request with everything but what it does at random.
    pub(super) fn op(&mut self, conn: usize, side: usize, what: What, local: Vec<Span>) -> Op {
        let srq = match self.plan.conns[conn].kind {
            QpKind::XrcInit => self.plan.conns[conn].srq[1],
            _ => None,
        };
        Op {
            conn,
            side,
            at: self.time(Duration::ZERO),
            after: None,
            what,
            local,
            inline: false,
            fence: self.rng.one_in(8),
            solicited: self.rng.one_in(4),
            signaled: !self.rng.one_in(3),
            ends: Ends::Well,
            srq,
        }
    }

    pub(super) fn push(&mut self, op: Op) -> usize {
        self.plan.ops.push(op);
        self.plan.ops.len() - 1
    }

    /// Length of a message: around multiples of the MTU more often than not.
    fn length(&mut self, conn: usize, most: u32) -> u32 {
        let mtu = self.plan.conns[conn].mtu.bytes();
        let rng = &mut self.rng;
        let len = match rng.below(16) {
            0 | 1 => 0,
            2 | 3 => rng.between32(1, 9),
            4 | 5 => rng.between32(1, 300),
            6..=9 => (mtu * rng.between32(1, 4)).saturating_add_signed(rng.pick(&[-1, 0, 1, 4])),
            10..=12 => rng.between32(1, 4 * mtu),
            13 => rng.between32(1, 16 << 10),
            14 => mtu * rng.between32(1, 8),
            _ => rng.between32(1, 64 << 10),
        };
        len.min(most)
    }

    /// Memory of a node that a pair uses.
    pub(super) fn memory(&mut self, conn: usize, node: usize, len: u32, align: u32) -> Span {
        let victim = self.victims[conn].filter(|&r| self.plan.regions[r].node == node);
        let open = &self.open[node];
        let region = match victim.filter(|_| self.rng.one_in(2)) {
            Some(victim) => victim,
            None => open[self.rng.index(open.len())],
        };
        self.plan.span(&mut self.rng, region, len, align)
    }

    /// As [`Self::memory`], in one to four pieces; a few of none.
    pub(super) fn pieces(&mut self, conn: usize, node: usize, len: u32) -> Vec<Span> {
        if len == 0 && self.rng.one_in(2) {
            return Vec::new();
        }
        let count = if self.rng.one_in(3) { self.rng.between32(2, MAX_SGE) } else { 1 };
        let mut left = len;
        let mut pieces = Vec::new();
        for i in (0..count).rev() {
            let part = if i == 0 { left } else { self.rng.between32(0, left) };
            left -= part;
            pieces.push(self.memory(conn, node, part, 1));
        }
        pieces
    }

    fn ends_of(&self, conn: usize, side: usize) -> (usize, usize) {
        let nodes = self.plan.conns[conn].nodes;
        (nodes[side], nodes[1 - side])
    }

    pub(super) fn remote(&mut self, conn: usize, side: usize, len: u32, align: u32) -> Remote {
        let (_, peer) = self.ends_of(conn, side);
        Remote { span: self.memory(conn, peer, len, align), via: Via::Region }
    }

    /// The longest message that a receive of the pair takes.
    fn longest(&self, conn: usize, side: usize) -> u32 {
        let c = &self.plan.conns[conn];
        match (c.srq[1 - side], c.kind) {
            (_, QpKind::Ud) => DATAGRAM,
            (Some(srq), _) => self.plan.srqs[srq].room,
            (None, QpKind::Uc) => 12 << 10,
            _ => 64 << 10,
        }
    }

    pub(super) fn draw_send(&mut self, conn: usize, side: usize) {
        let (here, _) = self.ends_of(conn, side);
        let most = self.longest(conn, side);
        let len = self.length(conn, most);
        let local = self.pieces(conn, here, len);
        let what = What::Send { imm: self.rng.one_in(3), invalidate: None };
        let mut op = self.op(conn, side, what, local);
        op.inline = len <= MAX_INLINE && self.rng.one_in(3);
        let id = self.push(op);
        self.draw_recv(id, len);
    }

    /// The receive that a message takes.
    pub(super) fn draw_recv(&mut self, op: usize, len: u32) {
        let Op { conn, side, .. } = self.plan.ops[op];
        let (to, c) = (1 - side, self.plan.conns[conn]);
        let room = match (c.srq[to], c.kind) {
            (Some(srq), QpKind::Ud) => self.plan.srqs[srq].room.max(DATAGRAM + GRH),
            (Some(srq), _) => self.plan.srqs[srq].room,
            (None, QpKind::Ud) => DATAGRAM + GRH,
            (None, QpKind::Uc) => 12 << 10,
            (None, _) => len + self.rng.pick(&[0, 0, 1, 16]),
        };
        let queue = c.srq[to].map_or(Queue::Own(conn, to), Queue::Shared);
        // An SRQ serves others, too: their receives must not lie in what this pair will lose.
        let local = match queue {
            Queue::Own(..) => self.pieces(conn, c.nodes[to], room),
            Queue::Shared(_) => {
                let region = self.open[c.nodes[to]][0];
                vec![self.plan.span(&mut self.rng, region, room, 1)]
            }
        };
        let at =
            if self.late[conn][to] { self.time(Duration::from_millis(2)) } else { Duration::ZERO };
        self.plan.recvs.push(Recv { queue, op, at, local, broken: false });
    }

    fn draw_write(&mut self, conn: usize, side: usize) {
        let (here, _) = self.ends_of(conn, side);
        let most = if self.plan.conns[conn].kind == QpKind::Uc { 12 << 10 } else { 64 << 10 };
        // What a READ before it brought, if the fence is kept.
        let chained = self.past[conn][side].read.clone().filter(|_| self.rng.one_in(4));
        let fence = chained.is_some();
        let local = match chained {
            Some(local) => local,
            None => {
                let len = self.length(conn, most);
                self.pieces(conn, here, len)
            }
        };
        let len = local.iter().map(|s| s.len).sum();
        let remote = self.remote(conn, side, len, 1);
        // The receiver's check needs the sender's READ to be known.
        let imm = !fence && self.rng.one_in(4);
        let mut op = self.op(conn, side, What::Write { remote, imm }, local);
        op.fence |= fence;
        op.inline = !fence && len <= MAX_INLINE && self.rng.one_in(4);
        let id = self.push(op);
        self.past[conn][side].written = Some(remote.span);
        if imm {
            self.draw_recv(id, 0);
        }
    }

    fn draw_read(&mut self, conn: usize, side: usize) {
        let (here, _) = self.ends_of(conn, side);
        // What a WRITE before it wrote: a READ behind it must see that.
        let back = self.past[conn][side].written.filter(|_| self.rng.one_in(3));
        let remote = match back {
            Some(span) => Remote { span, via: Via::Region },
            None => {
                let len = self.length(conn, 64 << 10);
                self.remote(conn, side, len, 1)
            }
        };
        let local = self.pieces(conn, here, remote.span.len);
        let op = self.op(conn, side, What::Read(remote), local.clone());
        self.push(op);
        self.past[conn][side].read = Some(local);
    }

    fn word(&mut self, node: usize, swaps: bool) -> usize {
        let fits = |w: &usize| {
            let word = self.plan.words[*w];
            word.swaps == swaps && self.plan.regions[word.span.region].node == node
        };
        let all: Vec<usize> = (0..self.plan.words.len()).filter(fits).collect();
        self.rng.pick(&all)
    }

    pub(super) fn draw_add(&mut self, conn: usize, side: usize) {
        let (here, peer) = self.ends_of(conn, side);
        let word = self.word(peer, false);
        let add = self.rng.between(1, 1 << 40);
        let local = vec![self.memory(conn, here, 8, 1)];
        let op = self.op(conn, side, What::Add { word, add, shift: 0 }, local);
        self.push(op);
    }

    fn draw_swap(&mut self, conn: usize, side: usize) {
        let (here, peer) = self.ends_of(conn, side);
        let word = self.word(peer, true);
        let of_word =
            |o: &&usize| matches!(self.plan.ops[**o].what, What::Swap { word: w, .. } if w == word);
        let ids: Vec<usize> = (0..self.plan.ops.len()).collect();
        let before: Vec<usize> = ids.iter().filter(of_word).copied().collect();
        let expects = if before.is_empty() || self.rng.one_in(3) {
            None
        } else {
            Some(before[before.len() - 1 - self.rng.index(before.len().min(2))])
        };
        let swap = self.rng.bits();
        let local = vec![self.memory(conn, here, 8, 1)];
        let op = self.op(conn, side, What::Swap { word, expects, swap }, local);
        self.push(op);
    }

    fn draw_atomic_write(&mut self, conn: usize, side: usize) {
        let (here, _) = self.ends_of(conn, side);
        let remote = self.remote(conn, side, 8, 8);
        let local = vec![self.memory(conn, here, 8, 1)];
        let mut op = self.op(conn, side, What::AtomicWrite(remote), local);
        op.inline = self.rng.one_in(2);
        self.push(op);
        self.past[conn][side].written = Some(remote.span);
    }

    fn draw_flush(&mut self, conn: usize, side: usize) {
        let span = self.past[conn][side].written;
        let remote = match span {
            Some(span) => Remote { span, via: Via::Region },
            None => self.remote(conn, side, 64, 1),
        };
        let scope = self.rng.pick(&[FlushScope::Range, FlushScope::MemoryRegion]);
        let level = self.rng.pick(&[FlushLevel::GLOBAL, FlushLevel::PERSISTENT]);
        let op = self.op(conn, side, What::Flush { remote, scope, level }, Vec::new());
        self.push(op);
    }
}
