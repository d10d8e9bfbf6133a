//! What tests of the requester post, and what its peer answers.

use urxe_engine::{Counters, QpAttr, QpId, QpKind, Received, SendFlags, SendOp, SendWr, WcStatus};
use urxe_wire::{
    Aeth, AtomicAckEth, Bth, Credit, Ext, NakCode, Opcode, Psn, Reth, RnrTimer, Syndrome,
};

use crate::lab::{BASE, Node, Pair, bytes_of, op};

/// Where the peer's memory is, in requests.
pub(crate) const REMOTE: u64 = 0x9000;
pub(crate) const RKEY: u32 = 0x4242;

pub(crate) const SEND: SendOp = SendOp::Send { imm: None };
pub(crate) const WRITE: SendOp = SendOp::Write { remote: REMOTE, rkey: RKEY, imm: None };
pub(crate) const READ: SendOp = SendOp::Read { remote: REMOTE, rkey: RKEY };
pub(crate) const ADD: SendOp = SendOp::FetchAdd { remote: REMOTE, rkey: RKEY, add: 1 };

pub(crate) const OK: WcStatus = WcStatus::Success;
pub(crate) const FLUSHED: WcStatus = WcStatus::WrFlushErr;

impl Node {
    /// An RC QP whose peer has said that it does not limit credits.
    pub(crate) fn rc(&mut self, edit: impl FnOnce(&mut QpAttr)) -> QpId {
        let mut psn = 0;
        let qp = self.qp(QpKind::Rc, |_, attr| {
            edit(attr);
            psn = attr.sq_psn.sub(1).value();
        });
        self.arrive_ack(qp, psn, 0);
        qp
    }

    /// Posts a signaled `op` on `length` bytes from the start of the region.
    pub(crate) fn post(&mut self, qp: QpId, wr_id: u64, op: SendOp, length: u32) {
        self.post_with(qp, wr_id, op, length, SendFlags::SIGNALED);
    }

    pub(crate) fn post_with(
        &mut self,
        qp: QpId,
        wr_id: u64,
        op: SendOp,
        length: u32,
        flags: SendFlags,
    ) {
        let sges = [self.sge(0, length)];
        self.send(qp, &SendWr { flags, ..SendWr::new(wr_id, op, &sges) });
    }

    /// PSNs sent since the last call.
    pub(crate) fn psns(&mut self) -> Vec<u32> {
        self.sink.sent.drain(..).map(|s| s.roce().bth.psn.value()).collect()
    }

    /// Nothing was sent since the last call.
    #[track_caller]
    pub(crate) fn is_quiet(&mut self) {
        assert_eq!(self.sent(), Vec::<String>::new());
    }

    /// A READ response of the peer; `which` is FIRST, MIDDLE, LAST or ONLY.
    pub(crate) fn arrive_read(&mut self, qp: QpId, which: &str, psn: u32, payload: &[u8]) {
        let ack = Aeth::new(Syndrome::Ack(Credit::UNLIMITED), Psn::new(1));
        let aeth = (which != "MIDDLE").then_some(ack);
        let opcode = op(&format!("RC_RDMA_READ_RESPONSE_{which}"));
        self.arrive(Bth::new(opcode, qp, Psn::new(psn)), Ext { aeth, ..Ext::NONE }, payload);
    }

    /// The peer's answer to an atomic.
    pub(crate) fn arrive_atomic(&mut self, qp: QpId, psn: u32, original: u64) {
        let aeth = Some(Aeth::new(Syndrome::Ack(Credit::UNLIMITED), Psn::new(1)));
        let atomic_ack = Some(AtomicAckEth { original });
        let bth = Bth::new(op("RC_ATOMIC_ACKNOWLEDGE"), qp, Psn::new(psn));
        self.arrive(bth, Ext { aeth, atomic_ack, ..Ext::NONE }, &[]);
    }

    /// An ACK that grants so many more messages.
    pub(crate) fn arrive_credits(&mut self, qp: QpId, psn: u32, msn: u32, messages: u32) {
        self.arrive_aeth(qp, psn, Syndrome::Ack(Credit::for_messages(messages)), msn);
    }

    pub(crate) fn arrive_rnr(&mut self, qp: QpId, psn: u32, code: u8) {
        self.arrive_aeth(qp, psn, Syndrome::RnrNak(RnrTimer::new(code).unwrap()), 0);
    }

    /// A PSN sequence NAK.
    pub(crate) fn arrive_seq_nak(&mut self, qp: QpId, psn: u32) {
        self.arrive_nak(qp, psn, NakCode::PsnSequence, 0);
    }

    /// The peer says that what we send meets congestion.
    pub(crate) fn arrive_cnp(&mut self, qp: QpId) {
        let mut bth = Bth::new(Opcode::CNP, qp, Psn::ZERO);
        bth.becn = true;
        let cnp = Some(urxe_wire::CnpPad::default());
        self.arrive(bth, Ext { cnp, ..Ext::NONE }, &[]);
    }

    /// An RDMA WRITE of 4 bytes, under these ECN bits.
    pub(crate) fn arrive_marked(&mut self, qp: QpId, psn: u32, ecn: u8) {
        let reth = Some(Reth { va: BASE, rkey: self.mr.rkey, dma_len: 4 });
        let mut bth = Bth::new(op("RC_RDMA_WRITE_ONLY"), qp, Psn::new(psn));
        bth.ack_req = true;
        let bytes = bytes_of(bth, Ext { reth, ..Ext::NONE }, &[1; 4]);
        let packet = Received {
            src: self.peer,
            dst: self.nic.config().addresses[0],
            src_port: 0xc000,
            traffic_class: ecn,
            hop_limit: 64,
            bytes: &bytes,
        };
        self.nic.receive(self.now, &packet, &mut self.sink);
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.nic.counters()
    }

    pub(crate) fn bytes(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        self.buffer.read(offset, &mut out).unwrap();
        out
    }
}

impl Pair {
    /// Carries packets and lets time pass until `done`.
    pub(crate) fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..100 {
            self.run();
            if done(self) {
                return;
            }
            let next = [&self.a, &self.b].map(|n| n.nic.next_deadline().map(|d| d.at));
            let at = next.into_iter().flatten().min().expect("nothing waits, and it is not done");
            for node in [&mut self.a, &mut self.b] {
                node.now = node.now.max(at);
                node.nic.expire(node.now, &mut node.sink);
            }
        }
        panic!("not done after 100 deadlines:\n{}", self.log.join("\n"));
    }
}
