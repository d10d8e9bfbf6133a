//! The requester: which packet goes next, and how far back to go.

use urxe_wire::{
    AtomicEth, Bth, Deth, Ext, Feth, FlushScope, Ieth, ImmDt, Opcode, Position, Psn, Reth, XrcEth,
};

use crate::conn::Conn;
use crate::segment;
use crate::sq::{Sq, Stage, Wqe};
use crate::window::Window;
use crate::wr::{SendFlags, SendOp};

#[cfg(test)]
mod tests;

/// The half of a QP that sends requests.
#[derive(Debug)]
pub(crate) struct Requester {
    /// WQE that goes next, and the packet of it.
    next: u64,
    offset: u32,
    /// PSN that the next new WQE gets.
    next_psn: Psn,
    /// One past the greatest PSN sent.
    top: Psn,
    /// Number of the last request started.
    ssn: Psn,
    /// The last request the peer has promised to have a receive WQE for; `None` is no limit.
    lsn: Option<Psn>,
    /// READs, atomics and FLUSHes sent and not answered.
    reads: u32,
    /// Packets since an ACK was asked for.
    unasked: u32,
    pub(crate) window: Window,
}

/// Why nothing can be sent though WQEs wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// No WQE waits.
    Idle,
    /// The next WQE has failed; it is told of when all before it are done.
    Failed,
    /// A fence waits for READs and atomics.
    Fence,
    /// `max_rd_atomic` are outstanding.
    Reads,
    /// The peer has granted no credit.
    Credit,
    /// As many PSNs are in flight as may be.
    Window,
    /// A local operation waits for the requests before it.
    Order,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "lives on the stack for one packet; no allocation")]
pub(crate) enum Next {
    /// This packet.
    Packet(Emit),
    /// The local operation of this WQE.
    Local(u64),
    /// This WQE can never be sent: a READ or atomic without initiator depth (IBA 10.2.4).
    Refuse(u64, Opcode),
    /// Nothing now.
    Blocked(Blocked),
}

/// A request packet, all but its payload's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emit {
    pub(crate) index: u64,
    pub(crate) bth: Bth,
    pub(crate) ext: Ext,
    /// Where in the message the payload starts, and its length, bytes.
    pub(crate) at: u64,
    pub(crate) len: usize,
    /// How many PSNs it stands for.
    pub(crate) psns: u32,
    /// Whether the whole WQE is sent with it.
    pub(crate) last: bool,
}

impl Requester {
    pub(crate) fn new(psn: Psn, max_window: u32, credits: bool) -> Self {
        Self {
            next: 0,
            offset: 0,
            next_psn: psn,
            top: psn,
            ssn: Psn::ZERO,
            // Until the peer has said otherwise it has no receive WQE (IBA 9.7.7.2): one request
            // may go to ask.
            lsn: credits.then_some(Psn::ZERO),
            reads: 0,
            unasked: 0,
            window: Window::new(max_window),
        }
    }

    /// Begins with the WQE `index`.
    pub(crate) const fn start_at(&mut self, index: u64) {
        self.next = index;
    }

    /// One past the greatest PSN sent.
    pub(crate) const fn top(&self) -> Psn {
        self.top
    }

    /// PSN of the next request that is new.
    pub(crate) const fn next_psn(&self) -> Psn {
        self.next_psn
    }

    /// Index of the WQE that goes next.
    pub(crate) const fn position(&self) -> u64 {
        self.next
    }

    /// The PSN that goes next: all before it have been sent since the last rewind.
    pub(crate) fn reached(&self, sq: &Sq) -> Psn {
        match sq.get(self.next) {
            Some(wqe) if wqe.psns != 0 => wqe.first_psn.add(self.offset),
            _ => self.next_psn,
        }
    }

    /// Looks for the next packet; `una` is the oldest PSN not acknowledged.
    pub(crate) fn next(&self, sq: &Sq, conn: &Conn, una: Psn) -> Next {
        let Some(wqe) = sq.get(self.next) else {
            return Next::Blocked(Blocked::Idle);
        };
        if let Some(why) = self.gate(sq, wqe, conn) {
            return Next::Blocked(why);
        }
        if wqe.is_local() {
            return Next::Local(self.next);
        }
        if wqe.awaits_response() && conn.max_rd_atomic == 0 {
            let opcode = segment::opcode(conn.transport(), &wqe.op, Position::Only);
            return Next::Refuse(self.next, opcode);
        }
        let started = wqe.stage == Stage::Started;
        let psn = if started { wqe.first_psn.add(self.offset) } else { self.next_psn };
        if conn.reliable() {
            let in_flight = psn.since(una);
            // The rest of a READ's response counts, and no more than half the circle may be out.
            let reads = matches!(wqe.op, SendOp::Read { .. });
            let psns = if reads { conn.packets(wqe.length) - self.offset } else { 1 };
            let too_far = in_flight != 0 && in_flight + psns > Psn::WINDOW;
            if in_flight >= self.window.size() || too_far {
                return Next::Blocked(Blocked::Window);
            }
        }
        Next::Packet(self.build(wqe, conn, psn, una))
    }

    fn gate(&self, sq: &Sq, wqe: &Wqe, conn: &Conn) -> Option<Blocked> {
        match wqe.stage {
            Stage::Failed => return Some(Blocked::Failed),
            Stage::Started | Stage::Done => {}
            Stage::Posted => {
                if wqe.flags.contains(SendFlags::FENCE) && self.reads != 0 {
                    // ibv_post_send(3), IBV_SEND_FENCE: it waits for READs and atomics.
                    return Some(Blocked::Fence);
                }
                let ssn = self.ssn.next();
                if wqe.takes_recv_wqe() && self.lsn.is_some_and(|lsn| ssn.is_after(lsn.next())) {
                    return Some(Blocked::Credit);
                }
            }
        }
        let invalidates = matches!(wqe.op, SendOp::LocalInvalidate { .. });
        if invalidates && self.next != sq.first() {
            // A request before it may need the key again for a retry.
            return Some(Blocked::Order);
        }
        if wqe.awaits_response() && self.reads >= conn.max_rd_atomic.max(1) {
            return Some(Blocked::Reads);
        }
        None
    }

    fn build(&self, wqe: &Wqe, conn: &Conn, psn: Psn, una: Psn) -> Emit {
        let segmented = matches!(
            wqe.op,
            SendOp::Send { .. } | SendOp::SendInvalidate { .. } | SendOp::Write { .. }
        );
        let total = if wqe.awaits_response() && !matches!(wqe.op, SendOp::Read { .. }) {
            1
        } else {
            conn.packets(wqe.length)
        };
        let psns = if segmented { 1 } else { total - self.offset };
        let last = self.offset + psns == total;
        let at = u64::from(self.offset) * u64::from(conn.mtu);
        let left = u64::from(wqe.length) - at;
        let len = match wqe.op {
            SendOp::AtomicWrite { .. } => 8,
            _ if segmented => usize::try_from(left.min(conn.mtu.into())).unwrap_or(0),
            _ => 0,
        };
        // Of what is not cut, the place does not matter.
        let position = match (self.offset, last) {
            (0, true) => Position::Only,
            (0, false) => Position::First,
            (_, true) => Position::Last,
            (_, false) => Position::Middle,
        };
        let opcode = segment::opcode(conn.transport(), &wqe.op, position);
        let mut bth = Bth::new(opcode, conn.dest_qp, psn);
        bth.pkey = conn.pkey;
        bth.mig_req = conn.profile.mig_req;
        // IBA 9.2.3: the bit is for what completes at the receiver, in its last packet.
        bth.solicited = last && wqe.takes_recv_wqe() && wqe.flags.contains(SendFlags::SOLICITED);
        bth.pad = urxe_wire::pad_for(len);
        if conn.reliable() {
            // The last packet the window lets go must bring an answer, or all would wait.
            let fills = psn.add(psns).since(una) >= self.window.size();
            bth.ack_req = last || fills || self.unasked + 1 >= conn.profile.ack_every;
        }
        let ext = request_headers(wqe, conn, opcode, at, left);
        Emit { index: self.next, bth, ext, at, len, psns, last }
    }

    /// `emit` has gone out; `una` is the oldest PSN not acknowledged. Gives whether it was a
    /// retransmission.
    pub(crate) fn sent(&mut self, sq: &mut Sq, conn: &Conn, emit: &Emit, una: Psn) -> bool {
        let psn = emit.bth.psn;
        if let Some(wqe) = sq.get_mut(emit.index) {
            if wqe.stage == Stage::Posted {
                wqe.stage = Stage::Started;
                wqe.first_psn = psn;
                let answered = wqe.awaits_response();
                wqe.psns = if answered { emit.psns } else { conn.packets(wqe.length) };
                self.next_psn = wqe.end_psn();
                self.ssn = self.ssn.next();
                if !wqe.takes_recv_wqe() {
                    // It counts in the peer's MSN, but takes none of the receive WQEs granted
                    // (Linux drivers/infiniband/hw/hfi1/rc.c).
                    self.lsn = self.lsn.map(Psn::next);
                }
            }
            if emit.last {
                self.reads += u32::from(wqe.awaits_response());
                if !conn.reliable() {
                    wqe.stage = Stage::Done;
                }
            }
        }
        let mut again = false;
        if conn.reliable() {
            // Counted from `una`: one READ may take 2^23 PSNs, half the circle.
            let sent = self.top.since(una);
            again = psn.since(una) < sent;
            self.top = una.add(sent.max(psn.add(emit.psns).since(una)));
            self.unasked = if emit.bth.ack_req { 0 } else { self.unasked + 1 };
        }
        if emit.last {
            self.next += 1;
            self.offset = 0;
            self.skip_done(sq);
        } else {
            self.offset += emit.psns;
        }
        again
    }

    /// Leaves local operations that are done behind. After a rewind they are met again.
    fn skip_done(&mut self, sq: &Sq) {
        while sq.get(self.next).is_some_and(|w| w.stage == Stage::Done) {
            self.next += 1;
            self.offset = 0;
        }
    }

    /// Goes back to `psn`, which a started WQE holds.
    pub(crate) fn rewind(&mut self, sq: &Sq, psn: Psn) {
        let Some(index) = sq.find(sq.first(), psn) else {
            return;
        };
        let Some(wqe) = sq.get(index) else {
            return;
        };
        let offset = psn.since(wqe.first_psn);
        if (index, offset) >= (self.next, self.offset) {
            // It is still to be sent.
            return;
        }
        // READs from there on will be sent anew.
        let again = (index..self.next).filter_map(|i| sq.get(i)).filter(|w| w.awaits_response());
        self.reads = self.reads.saturating_sub(u32::try_from(again.count()).unwrap_or(u32::MAX));
        self.next = index;
        self.offset = offset;
        self.unasked = 0;
    }

    /// WQEs have been completed: skips those, and of a reliable QP what the peer has acknowledged,
    /// all before `una`.
    pub(crate) fn advanced(&mut self, sq: &Sq, conn: &Conn, una: Psn) {
        if self.next < sq.first() {
            self.next = sq.first();
            self.offset = 0;
        }
        self.skip_done(sq);
        if !conn.reliable() {
            return;
        }
        if let Some(wqe) = sq.get(self.next)
            && wqe.stage == Stage::Started
            && una.is_after(wqe.first_psn)
        {
            self.offset = self.offset.max(una.since(wqe.first_psn));
        }
    }

    /// The queue was flushed: nothing is in flight any more.
    pub(crate) fn halt(&mut self, sq: &Sq, una: Psn) {
        self.next = sq.end();
        self.offset = 0;
        self.top = una;
        self.reads = 0;
    }

    /// The oldest READ or atomic has been answered. If it was to be sent again, none is counted.
    pub(crate) const fn answered(&mut self) {
        self.reads = self.reads.saturating_sub(1);
    }

    /// The peer has completed `msn` requests and grants `credits` more (`None`: no limit).
    pub(crate) fn grant(&mut self, msn: Psn, credits: Option<u16>) {
        let Some(credits) = credits else {
            self.lsn = None;
            return;
        };
        let lsn = msn.add(credits.into());
        // An older ACK must not take back what a newer one gave.
        match self.lsn {
            Some(old) if !lsn.is_after(old) => {}
            _ => self.lsn = Some(lsn),
        }
    }
}

fn request_headers(wqe: &Wqe, conn: &Conn, opcode: Opcode, at: u64, left: u64) -> Ext {
    let mut ext = Ext::NONE;
    let Some(info) = opcode.info() else {
        return ext;
    };
    let has = |header| info.headers.contains(header);
    if has(urxe_wire::ExtHeaders::XRCETH) {
        ext.xrceth = Some(XrcEth { reserved: 0, srqn: wqe.remote_srqn });
    }
    if let Some((_, _, qkey)) = &wqe.dest {
        // IBA 10.2.5: with the top bit set the QP's own Q_Key goes out.
        let qkey = if qkey.asks_for_own() { conn.qkey } else { *qkey };
        ext.deth = Some(Deth { qkey, reserved: 0, src_qp: conn.qpn });
    }
    let dma_len = u32::try_from(left).unwrap_or(u32::MAX);
    match wqe.op {
        SendOp::Send { imm } if has(urxe_wire::ExtHeaders::IMM) => {
            ext.imm = imm.map(|data| ImmDt { data });
        }
        SendOp::SendInvalidate { rkey } if has(urxe_wire::ExtHeaders::IETH) => {
            ext.ieth = Some(Ieth { rkey });
        }
        SendOp::Write { remote, rkey, imm } => {
            if has(urxe_wire::ExtHeaders::RETH) {
                ext.reth = Some(Reth { va: remote, rkey, dma_len });
            }
            if has(urxe_wire::ExtHeaders::IMM) {
                ext.imm = imm.map(|data| ImmDt { data });
            }
        }
        SendOp::Read { remote, rkey } => {
            // A READ resumed after loss asks for the rest of its range only.
            ext.reth = Some(Reth { va: remote.wrapping_add(at), rkey, dma_len });
        }
        SendOp::CompareSwap { remote: va, rkey, compare, swap } => {
            ext.atomic = Some(AtomicEth { va, rkey, swap_add: swap, compare });
        }
        SendOp::FetchAdd { remote: va, rkey, add } => {
            ext.atomic = Some(AtomicEth { va, rkey, swap_add: add, compare: 0 });
        }
        SendOp::AtomicWrite { remote: va, rkey } => {
            ext.reth = Some(Reth { va, rkey, dma_len: 8 });
        }
        SendOp::Flush { remote: va, length, rkey, scope, level } => {
            ext.feth = Some(Feth::new(scope, level));
            let dma_len = if scope == FlushScope::Range { length } else { 0 };
            ext.reth = Some(Reth { va, rkey, dma_len });
        }
        _ => {}
    }
    ext
}
