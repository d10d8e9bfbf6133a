//! A capture that urxe-wire has emitted: a packet of each opcode that tshark 4.0 knows. To it RD is
//! another transport, and XRC, FLUSH, ATOMIC WRITE and CNP are unknown.

use std::net::Ipv4Addr;

use urxe_wire::{
    Aeth, AtomicAckEth, AtomicEth, Bth, Credit, Deth, Ethernet, Ext, ExtHeaders, Ieth, ImmDt, Ipv4,
    Link, Mac, NakCode, Network, Opcode, Operation, Packet, Psn, QKey, Qpn, Reth, RnrTimer, Roce,
    Syndrome, Transport, Udp, Vlans,
};

/// The syndromes that the AETHs have in turn.
fn syndromes() -> [Syndrome; 6] {
    [
        Syndrome::RnrNak(RnrTimer::new(13).unwrap()),
        Syndrome::Ack(Credit::new(10).unwrap()),
        Syndrome::Nak(NakCode::RemoteAccess),
        Syndrome::Nak(NakCode::InvalidRequest),
        Syndrome::Ack(Credit::UNLIMITED),
        Syndrome::Nak(NakCode::RemoteOperational),
    ]
}

/// The headers that an opcode asks for, each field with a value of its own.
fn extensions(headers: ExtHeaders, n: u8) -> Ext {
    let has = |header| headers.contains(header);
    let syndromes = syndromes();
    let syndrome = syndromes[usize::from(n) % syndromes.len()];
    let (va, rkey) = (0x7f12_3456_7890_0000 + u64::from(n), 0x0102_0300 + u32::from(n));
    Ext {
        deth: has(ExtHeaders::DETH).then_some(Deth {
            qkey: QKey(0x1234_5600 + u32::from(n)),
            reserved: 0,
            src_qp: Qpn::new(0x65_4300 + u32::from(n)),
        }),
        reth: has(ExtHeaders::RETH).then_some(Reth { va, rkey, dma_len: 70_000 + u32::from(n) }),
        atomic: has(ExtHeaders::ATOMIC).then_some(AtomicEth {
            va: va & !7,
            rkey,
            swap_add: u64::MAX - u64::from(n),
            compare: 1 << 63 | u64::from(n),
        }),
        aeth: has(ExtHeaders::AETH)
            .then(|| Aeth::new(syndrome, Psn::new(0xff_ff00 + u32::from(n)))),
        atomic_ack: has(ExtHeaders::ATOMIC_ACK)
            .then_some(AtomicAckEth { original: 0xfedc_ba98_7654_3200 + u64::from(n) }),
        imm: has(ExtHeaders::IMM).then_some(ImmDt { data: [n, 1, 2, 3] }),
        ieth: has(ExtHeaders::IETH).then_some(Ieth { rkey: rkey ^ 0xffff_ffff }),
        ..Ext::NONE
    }
}

/// A frame of this opcode.
fn frame(opcode: Opcode) -> Option<Vec<u8>> {
    let info = opcode.info()?;
    let known = matches!(info.transport, Transport::Rc | Transport::Uc | Transport::Ud)
        && !matches!(info.operation, Operation::Flush | Operation::AtomicWrite);
    if !known {
        return None;
    }
    let n = opcode.0;
    let mut bth =
        Bth::new(opcode, Qpn::new(0x12_3400 + u32::from(n)), Psn::new(0xab_cd00 | u32::from(n)));
    (bth.solicited, bth.mig_req, bth.ack_req) = (n & 1 != 0, n & 2 != 0, n & 4 != 0);
    let text = b"a payload of any length";
    let payload = if info.payload { &text[..usize::from(n) % text.len()] } else { &[] };
    let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let mac = |last| Mac([2, 0, 0, 0, 0, last]);
    let mut packet = Packet {
        link: Link::Ethernet(Ethernet { dst: mac(2), src: mac(1), ethertype: 0x0800 }),
        vlans: Vlans::NONE,
        network: Network::Ipv4 {
            header: Ipv4::udp(a, b),
            options: &[],
            udp: Udp::roce(49152 + u16::from(n)),
        },
        roce: Roce::new(bth, extensions(info.headers, n), payload),
        trailer: &[],
    };
    packet.seal().unwrap();
    let mut out = vec![0; packet.len()];
    packet.emit(&mut out).unwrap();
    Some(out)
}

/// The capture: a packet of each opcode, in order.
pub(crate) fn every_opcode() -> Vec<u8> {
    let head = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1u32];
    let mut file = head.map(u32::to_le_bytes).concat();
    for frame in (0..=u8::MAX).map(Opcode).filter_map(frame) {
        let len = u32::try_from(frame.len()).unwrap();
        file.extend([1_700_000_000, 0, len, len].map(u32::to_le_bytes).concat());
        file.extend(frame);
    }
    file
}
