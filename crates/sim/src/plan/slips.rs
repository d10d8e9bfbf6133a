//! Work requests that must fail.

use urxe_engine::QpKind;
use urxe_memory::Access;

use super::make::Draft;
use super::{Ends, Queue, Remote, Span, Via, What};

impl Draft<'_> {
    pub(super) fn draw_slip(&mut self, conn: usize, side: usize) {
        let c = self.plan.conns[conn];
        let peer = c.nodes[1 - side];
        if !c.access[1 - side].contains(Access::REMOTE_ATOMIC) {
            self.draw_add(conn, side);
            return self.fails(Ends::Invalid);
        }
        match self.rng.below(8) {
            0 => {
                let remote = self.remote(conn, side, 100, 1);
                self.slip_write(conn, side, Remote { via: Via::NoKey, ..remote });
            }
            1 => {
                let remote = self.remote(conn, side, 100, 1);
                self.slip_write(conn, side, Remote { via: Via::PastEnd, ..remote });
            }
            2 => {
                let region = self.no_write[peer];
                let span = self.plan.span(&mut self.rng, region, 5000, 1);
                self.slip_write(conn, side, Remote { span, via: Via::Region });
            }
            3 => {
                let region = self.no_read[peer];
                let span = self.plan.span(&mut self.rng, region, 5000, 1);
                let local = self.pieces(conn, c.nodes[side], 5000);
                let remote = Remote { span, via: Via::Region };
                let op = self.op(conn, side, What::Read(remote), local);
                self.push(op);
                self.fails(Ends::Access);
            }
            4 => {
                self.draw_add(conn, side);
                if let Some(op) = self.plan.ops.last_mut()
                    && let What::Add { shift, .. } = &mut op.what
                {
                    *shift = 4;
                }
                self.fails(Ends::Invalid);
            }
            5 => self.slip_message(conn, side),
            6 => {
                let local = self.pieces(conn, c.nodes[side], 700);
                let what = What::Send { imm: false, invalidate: None };
                let op = self.op(conn, side, what, local);
                let id = self.push(op);
                self.draw_recv(id, 700);
                self.fails(Ends::LocalProtection);
            }
            _ => {
                self.draw_send(conn, side);
                self.break_recv();
            }
        }
    }

    fn fails(&mut self, ends: Ends) {
        if let Some(op) = self.plan.ops.last_mut() {
            op.ends = ends;
        }
    }

    fn slip_write(&mut self, conn: usize, side: usize, remote: Remote) {
        let node = self.plan.conns[conn].nodes[side];
        let local = self.pieces(conn, node, remote.span.len);
        let op = self.op(conn, side, What::Write { remote, imm: false }, local);
        self.push(op);
        self.fails(Ends::Access);
    }

    /// A message longer than its receive.
    fn slip_message(&mut self, conn: usize, side: usize) {
        let c = self.plan.conns[conn];
        let room = match (c.srq[1 - side], c.kind) {
            (Some(srq), _) => self.plan.srqs[srq].room,
            (None, QpKind::Rc | QpKind::XrcInit) => self.rng.between32(0, 9000),
            _ => return,
        };
        let over = self.rng.pick(&[1, 2, 1000, 5000]);
        let local = self.pieces(conn, c.nodes[side], room + over);
        let what = What::Send { imm: self.rng.one_in(2), invalidate: None };
        let op = self.op(conn, side, what, local);
        let id = self.push(op);
        self.draw_recv(id, room);
        if c.srq[1 - side].is_none() {
            let room_now =
                self.plan.recvs.last().map_or(0, |r| r.local.iter().map(|s| s.len).sum());
            self.lengthen(id, conn, side, room_now, over);
        }
        self.fails(Ends::Invalid);
    }

    /// The receive may have got some bytes more than were asked for.
    fn lengthen(&mut self, id: usize, conn: usize, side: usize, room: u32, over: u32) {
        let have = self.plan.ops[id].len();
        if have < room + over {
            let node = self.plan.conns[conn].nodes[side];
            let more: Span = self.memory(conn, node, room + over - have, 1);
            match self.plan.ops[id].local.len() {
                0..4 => self.plan.ops[id].local.push(more),
                _ => self.plan.ops[id].local = vec![self.memory(conn, node, room + over, 1)],
            }
        }
    }

    /// The receive of the last message names no memory: if that is its own, it must fail.
    fn break_recv(&mut self) {
        let Some(recv) = self.plan.recvs.last_mut() else { return };
        let has_bytes = self.plan.ops.last().is_some_and(|op| !op.is_empty());
        if matches!(recv.queue, Queue::Own(..)) && has_bytes {
            recv.broken = true;
            self.fails(Ends::Operational);
        }
    }
}
