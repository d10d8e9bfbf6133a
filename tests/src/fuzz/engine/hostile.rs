//! Packets that a hostile peer might send: near to what is expected, and not.

use urxe_wire::{
    Aeth, AtomicAckEth, AtomicEth, Bth, CnpPad, Deth, Ext, ExtHeaders, Feth, FlushLevel,
    FlushScope, Ieth, ImmDt, Opcode, Psn, QKey, Qpn, RdEth, Reth, Roce, Syndrome, XrcEth,
};

use super::world::{BASE, World};
use crate::fuzz::choices::Choices;

/// A packet for one of our QPs, or for none.
pub(super) fn packet(world: &World, c: &mut Choices<'_>) -> Vec<u8> {
    // Now and then one of ours comes back, changed.
    if c.byte() < 32
        && let Some((_, bytes)) = world.sink.sent.last()
    {
        let mut bytes = bytes.clone();
        for _ in 0..c.below(4) {
            let at = usize::try_from(c.number()).unwrap_or(0) % bytes.len();
            bytes[at] ^= c.byte();
        }
        return bytes;
    }
    let qpn = match c.byte() {
        0..=240 => world.qps[c.below(world.qps.len())],
        _ => Qpn::new(c.number()),
    };
    let info = world.us.nic.query_qp(qpn);
    let opcode = opcode_for(&info, c);
    let near = info.map_or(Psn::ZERO, |i| if c.byte() & 1 == 0 { i.attr.rq_psn } else { i.una });
    let psn = match c.byte() {
        0..=200 => near.add(u32::from(c.byte() % 4)),
        201..=230 => near.sub(u32::from(c.byte() % 4)),
        _ => Psn::new(c.number()),
    };
    let mut bth = Bth::new(opcode, qpn, psn);
    bth.ack_req = c.byte() & 1 == 0;
    bth.solicited = c.byte() & 1 == 0;
    let Some(headers) = opcode.info().map(|i| i.headers) else {
        let mut bytes = vec![0; 12];
        let fits = urxe_wire::Repr::emit(&bth, &mut bytes);
        debug_assert!(fits.is_ok(), "a BTH has 12 bytes");
        bytes.extend_from_slice(c.bytes(8));
        return bytes;
    };
    let ext = ext(world, headers, c);
    let len = match c.byte() {
        0..=99 => 256,
        100..=149 => 0,
        _ => usize::from(c.byte()),
    };
    let payload = vec![0x5a; len];
    let packet = Roce::new(bth, ext, &payload);
    let mut bytes = vec![0; packet.len()];
    if packet.emit(&mut bytes).is_err() {
        // An opcode that carries no payload.
        let packet = Roce::new(bth, ext, &[]);
        bytes = vec![0; packet.len()];
        let fits = packet.emit(&mut bytes);
        debug_assert!(fits.is_ok(), "{opcode} without a payload");
    }
    bytes
}

/// An opcode of the QP's transport, or any.
fn opcode_for<E>(info: &Result<urxe_engine::QpInfo, E>, c: &mut Choices<'_>) -> Opcode {
    use urxe_engine::QpKind as K;
    let any = c.byte();
    let base = match info.as_ref().map(|i| i.kind) {
        Ok(K::Rc) => 0x00,
        Ok(K::Uc) => 0x20,
        Ok(K::Ud | K::Gsi) => 0x60,
        Ok(K::XrcInit | K::XrcTarget) => 0xa0,
        Err(_) => return Opcode(any),
    };
    if c.byte() < 16 { Opcode(any) } else { Opcode(base | any & 0x1f) }
}

fn ext(world: &World, headers: ExtHeaders, c: &mut Choices<'_>) -> Ext {
    let has = |h| headers.contains(h);
    let rkey = match c.byte() {
        0..=180 => world.us.mr.rkey,
        181..=220 => world.secret_rkey,
        _ => c.number(),
    };
    let va = BASE.wrapping_add(u64::from(c.byte()) * 8).wrapping_sub(u64::from(c.byte() & 15));
    let dma_len = match c.byte() {
        0..=99 => 256,
        100..=199 => u32::from(c.byte()) * 4,
        _ => c.number(),
    };
    let aeth = Aeth {
        syndrome: Syndrome::from_bits(c.byte() & 0x7f),
        reserved: false,
        msn: Psn::new(c.number()),
    };
    let atomic = AtomicEth { va: va & !7, rkey, swap_add: 1, compare: 0 };
    let level = FlushLevel::from_bits(c.byte());
    Ext {
        rdeth: has(ExtHeaders::RDETH).then(RdEth::default),
        deth: has(ExtHeaders::DETH).then_some(Deth {
            qkey: QKey(7 + u32::from(c.byte() & 1)),
            reserved: 0,
            src_qp: Qpn::new(c.number()),
        }),
        xrceth: has(ExtHeaders::XRCETH)
            .then_some(XrcEth { reserved: 0, srqn: u32::from(c.byte() & 3) }),
        feth: has(ExtHeaders::FETH).then_some(Feth::new(FlushScope::Range, level)),
        reth: has(ExtHeaders::RETH).then_some(Reth { va, rkey, dma_len }),
        atomic: has(ExtHeaders::ATOMIC).then_some(atomic),
        aeth: has(ExtHeaders::AETH).then_some(aeth),
        atomic_ack: has(ExtHeaders::ATOMIC_ACK).then_some(AtomicAckEth { original: 9 }),
        imm: has(ExtHeaders::IMM).then_some(ImmDt { data: [9; 4] }),
        ieth: has(ExtHeaders::IETH).then_some(Ieth { rkey }),
        cnp: has(ExtHeaders::CNP).then(CnpPad::default),
    }
}
