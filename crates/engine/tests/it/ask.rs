//! What a peer made by hand asks, and what is seen of the NIC that it asked.

use urxe_engine::{AsyncEvent, Count, Drop, Event, QpAttr, QpId, QpInit, QpKind, QpState};
use urxe_memory::Access;
use urxe_wire::{AtomicEth, Bth, Ext, Feth, FlushLevel, FlushScope, Ieth, ImmDt, Mtu, Psn, Reth};

use crate::lab::{BASE, Node, SIZE, bytes_of, op};

/// A RETH.
pub(crate) fn reth(va: u64, rkey: u32, dma_len: u32) -> Ext {
    Ext { reth: Some(Reth { va, rkey, dma_len }), ..Ext::NONE }
}

/// An AtomicETH.
pub(crate) fn atomic(va: u64, rkey: u32, swap_add: u64, compare: u64) -> Ext {
    Ext { atomic: Some(AtomicEth { va, rkey, swap_add, compare }), ..Ext::NONE }
}

/// FETH and RETH of a FLUSH.
pub(crate) fn flush(scope: FlushScope, level: FlushLevel, va: u64, rkey: u32, len: u32) -> Ext {
    Ext { feth: Some(Feth::new(scope, level)), ..reth(va, rkey, len) }
}

/// `ext` with immediate data 1, 2, 3, 4.
pub(crate) fn imm(ext: Ext) -> Ext {
    Ext { imm: Some(ImmDt { data: [1, 2, 3, 4] }), ..ext }
}

/// An IETH.
pub(crate) fn inv(rkey: u32) -> Ext {
    Ext { ieth: Some(Ieth { rkey }), ..Ext::NONE }
}

/// What a refused request left behind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) sent: Vec<String>,
    pub(crate) state: QpState,
    pub(crate) events: Vec<AsyncEvent>,
}

impl Node {
    /// An RC QP in RTS with path MTU 256.
    pub(crate) fn rc256(&mut self) -> QpId {
        self.rc256_with(|_, _| {})
    }

    pub(crate) fn rc256_with(&mut self, edit: impl FnOnce(&mut QpInit, &mut QpAttr)) -> QpId {
        self.qp(QpKind::Rc, |init, attr| {
            attr.path_mtu = Mtu::B256;
            edit(init, attr);
        })
    }

    pub(crate) fn state(&self, qp: QpId) -> QpState {
        self.nic.query_qp(qp).unwrap().attr.qp_state
    }

    pub(crate) fn to_error(&self, qp: QpId) {
        let attr = QpAttr { qp_state: QpState::Err, ..self.attr() };
        self.nic.modify_qp(qp, &attr, urxe_engine::AttrMask::STATE).unwrap();
    }

    pub(crate) fn async_events(&mut self) -> Vec<AsyncEvent> {
        let only = |event| match event {
            Event::Async(event) => Some(event),
            Event::Completion(_) => None,
        };
        self.events().into_iter().filter_map(only).collect()
    }

    pub(crate) fn outcome(&mut self, qp: QpId) -> Outcome {
        Outcome { sent: self.sent(), state: self.state(qp), events: self.async_events() }
    }

    /// Fills the region with bytes that tell where they stand.
    pub(crate) fn fill(&self) {
        let all: Vec<u8> = (0..SIZE).map(byte_at).collect();
        self.buffer.write(0, &all).unwrap();
    }

    pub(crate) fn dropped(&self, why: Drop) -> u64 {
        self.nic.counters().drops(why)
    }

    pub(crate) fn count(&self, what: Count) -> u64 {
        self.nic.counters().get(what)
    }

    /// A request whose AckReq bit is as told.
    pub(crate) fn arrive_quiet(&mut self, qp: QpId, name: &str, psn: u32, ext: Ext, data: &[u8]) {
        self.arrive(Bth::new(op(name), qp, Psn::new(psn)), ext, data);
    }

    /// A request that is taken in without anything being sent.
    pub(crate) fn accept(&mut self, qp: QpId, name: &str, psn: u32, ext: Ext, data: &[u8]) {
        let mut bth = Bth::new(op(name), qp, Psn::new(psn));
        bth.ack_req = true;
        let bytes = bytes_of(bth, ext, data);
        let packet = urxe_engine::Received {
            src: self.peer,
            dst: self.nic.config().addresses[0],
            src_port: 0xc000,
            traffic_class: 0,
            hop_limit: 64,
            bytes: &bytes,
        };
        self.nic.accept(self.now, &packet, &mut self.sink).ok();
    }

    /// Sends what waits.
    pub(crate) fn pump(&mut self) {
        self.nic.pump(self.now, &mut self.sink);
    }

    /// A second region over the same buffer, with these rights.
    pub(crate) fn region(&self, access: Access) -> urxe_memory::MrInfo {
        let backing = urxe_memory::Backing::buffer(std::sync::Arc::clone(&self.buffer));
        self.nic.memory().reg_mr(self.pd, backing, BASE, access).unwrap()
    }
}

/// The byte that [`Node::fill`] puts at `offset`.
pub(crate) fn byte_at(offset: usize) -> u8 {
    u8::try_from((offset * 7 + offset / 256) % 251).unwrap()
}

/// The bytes that [`Node::fill`] puts at `offset` and behind it.
pub(crate) fn bytes_at(offset: usize, len: usize) -> Vec<u8> {
    (offset..offset + len).map(byte_at).collect()
}
