//! Memory windows: bound at one end, used from the other, taken away from either.

use urxe_memory::MwType;

use super::make::Draft;
use super::{Doom, Ends, Remote, Via, What, Window};

impl Draft<'_> {
    /// Side `1 - side` opens memory through a window; `side` writes and reads through it; then the
    /// window is closed. In a pair that slips, it is then used once more.
    pub(super) fn draw_chain(&mut self, conn: usize, side: usize) {
        let c = self.plan.conns[conn];
        let (here, peer) = (c.nodes[side], c.nodes[1 - side]);
        let kind = self.rng.pick(&[MwType::Type1, MwType::Type2B]);
        self.plan.windows.push(Window { node: peer, kind });
        let window = self.plan.windows.len() - 1;
        // The first open region of a node is one that windows can open, and no pair loses it.
        let region = self.open[peer][0];
        let len = self.rng.between32(16, 3000);
        let span = self.plan.span(&mut self.rng, region, len, 1);
        let step = u8::try_from(self.rng.between(1, 255)).unwrap_or(1);
        let bind = self.chained(conn, 1 - side, What::Bind { window, span, step }, 0, None);
        let remote = Remote { span, via: Via::Window(window) };
        let source = self.pieces(conn, here, len);
        let what = What::Write { remote, imm: false };
        let mut op = self.op(conn, side, what, source);
        (op.after, op.signaled) = (Some(bind), true);
        let written = self.push(op);
        let read = self.chained(conn, side, What::Read(remote), len, Some(written));
        if kind == MwType::Type1 {
            return;
        }
        let closed = if self.rng.one_in(2) {
            let what = What::Invalidate { window };
            self.chained(conn, 1 - side, what, 0, Some(read))
        } else {
            let what = What::Send { imm: false, invalidate: Some(window) };
            let id = self.chained(conn, side, what, 1, Some(read));
            self.draw_recv(id, 1);
            id
        };
        if c.doom == Doom::Slip && !self.slipped[conn] {
            self.slipped[conn] = true;
            let stale = self.chained(conn, side, What::Read(remote), len, Some(closed));
            self.plan.ops[stale].ends = Ends::Access;
        }
    }

    fn chained(
        &mut self,
        conn: usize,
        side: usize,
        what: What,
        len: u32,
        after: Option<usize>,
    ) -> usize {
        let node = self.plan.conns[conn].nodes[side];
        let local = if len == 0 { Vec::new() } else { self.pieces(conn, node, len) };
        let mut op = self.op(conn, side, what, local);
        (op.after, op.signaled) = (after, true);
        self.push(op)
    }
}
