//! Any packets in any order: each receive completes once and in order, answers are well-formed, no
//! byte is placed where none may be.

use proptest::prelude::*;
use urxe_engine::{QpId, QpKind, QpState};
use urxe_wire::{Bth, Direction, Ext, ExtHeaders, Opcode, Psn, Reth, Transport};

use crate::ask::{atomic, flush, imm};
use crate::lab::{BASE, Node, Q_KEY, bytes_of, lab};

/// Peers may change the first page alone; receives lie in the second.
const OPEN: u32 = 4096;

#[derive(Clone, Debug)]
struct Packet {
    code: u8,
    /// From the PSN that is expected.
    ahead: i8,
    len: usize,
    va: u64,
    dma_len: u32,
    good_key: bool,
    ack_req: bool,
    room: bool,
}

fn packet() -> impl Strategy<Value = Packet> {
    let codes: Vec<u8> = (0..=255u8).filter(|&c| Opcode(c).info().is_some()).collect();
    let len = prop_oneof![Just(0), Just(256), Just(8), 0..300usize];
    let dma_len = prop_oneof![Just(0), Just(8), Just(256), Just(512), 0..700u32, any::<u32>()];
    let va = prop_oneof![4 => (0..512u64).prop_map(|o| BASE + 8 * o), 1 => any::<u64>()];
    let ahead = prop_oneof![8 => Just(0i8), 2 => -4..4i8];
    let flags = (prop::bool::weighted(0.9), any::<bool>(), prop::bool::weighted(0.8));
    (prop::sample::select(codes), ahead, len, va, dma_len, flags).prop_map(
        |(code, ahead, len, va, dma_len, (good_key, ack_req, room))| Packet {
            code,
            ahead,
            len,
            va,
            dma_len,
            good_key,
            ack_req,
            room,
        },
    )
}

fn headers(p: &Packet, rkey: u32) -> Ext {
    use urxe_wire::{FlushLevel, FlushScope};
    let wanted = Opcode(p.code).info().unwrap().headers;
    let rkey = if p.good_key { rkey } else { rkey ^ 1 };
    let all = imm(atomic(p.va, rkey, 1, 0));
    let scoped = flush(FlushScope::Range, FlushLevel::GLOBAL, p.va, rkey, p.dma_len);
    let has = |header| wanted.contains(header);
    Ext {
        rdeth: has(ExtHeaders::RDETH).then(Default::default),
        deth: has(ExtHeaders::DETH).then(|| urxe_wire::Deth { qkey: Q_KEY, ..Default::default() }),
        xrceth: has(ExtHeaders::XRCETH).then(Default::default),
        feth: scoped.feth.filter(|_| has(ExtHeaders::FETH)),
        reth: has(ExtHeaders::RETH).then_some(Reth { va: p.va, rkey, dma_len: p.dma_len }),
        atomic: all.atomic.filter(|_| has(ExtHeaders::ATOMIC)),
        aeth: has(ExtHeaders::AETH).then(|| {
            urxe_wire::Aeth::new(urxe_wire::Syndrome::from_bits(p.va.to_le_bytes()[0]), Psn::ZERO)
        }),
        atomic_ack: has(ExtHeaders::ATOMIC_ACK).then(Default::default),
        imm: all.imm.filter(|_| has(ExtHeaders::IMM)),
        ieth: has(ExtHeaders::IETH).then_some(urxe_wire::Ieth { rkey }),
        cnp: has(ExtHeaders::CNP).then(Default::default),
    }
}

fn arrive(n: &mut Node, qp: QpId, p: &Packet, rkey: u32) {
    let expected = n.nic.query_qp(qp).unwrap().attr.rq_psn;
    let psn = expected.add(p.ahead.rem_euclid(127).unsigned_abs().into());
    let psn = if p.ahead < 0 { expected.sub(p.ahead.unsigned_abs().into()) } else { psn };
    let mut bth = Bth::new(Opcode(p.code), qp, psn);
    bth.ack_req = p.ack_req;
    let payload = Opcode(p.code).info().unwrap().payload;
    let data = vec![0xaa; if payload { p.len } else { 0 }];
    n.sink.full = !p.room;
    n.arrive_bytes(&bytes_of(bth, headers(p, rkey), &data));
}

fn check(kind: QpKind, transport: Transport, packets: &[Packet]) {
    let mut n = lab();
    let open = urxe_memory::Backing::part(n.buffer.clone(), 0, OPEN as usize).unwrap();
    let rkey = n.nic.memory().reg_mr(n.pd, open, BASE, crate::lab::all_rights()).unwrap().rkey;
    let qp = n.qp(kind, |_, attr| attr.path_mtu = urxe_wire::Mtu::B256);
    let posted: Vec<u64> = (0..20).collect();
    posted.iter().for_each(|&wr_id| n.recv(qp, wr_id, u64::from(OPEN) + 100, 600));
    for p in packets {
        // Most are of the QP's own transport.
        let code = if p.code & 0xe0 == 0xa0 { transport as u8 | p.code & 0x1f } else { p.code };
        let code = if Opcode(code).info().is_some() { code } else { p.code };
        arrive(&mut n, qp, &Packet { code, ..p.clone() }, rkey);
    }
    n.sink.full = false;
    n.pump();
    let next = n.nic.query_qp(qp).unwrap().attr.rq_psn;
    for sent in &n.sink.sent {
        let roce = sent.roce();
        let info = roce.bth.opcode.info().unwrap();
        assert!(info.direction == Direction::Response, "{}", sent.line());
        assert!(!roce.bth.psn.is_after(next), "{}", sent.line());
        assert_eq!(roce.bth.dest_qp, crate::lab::PEER_QPN);
    }
    if n.state(qp) != QpState::Err {
        n.to_error(qp);
    }
    let done: Vec<u64> = n.done().iter().map(|&(wr_id, _)| wr_id).collect();
    assert_eq!(done, posted, "each receive completes once, in order");
    let open = OPEN as usize;
    assert!(n.bytes(open, 100).iter().chain(&n.bytes(open + 700, 2000)).all(|&b| b == 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_reliable_connection(packets in prop::collection::vec(packet(), 0..60)) {
        check(QpKind::Rc, Transport::Rc, &packets);
    }

    #[test]
    fn an_unreliable_connection(packets in prop::collection::vec(packet(), 0..60)) {
        check(QpKind::Uc, Transport::Uc, &packets);
    }

    #[test]
    fn datagrams(packets in prop::collection::vec(packet(), 0..60)) {
        check(QpKind::Ud, Transport::Ud, &packets);
    }
}
