//! Faults of one packet. A capture of `ibv_rc_pingpong` is 50 frames long: frames 1 to 4 are a
//! SEND, frame 5 its ACK, frames 6 to 9 a SEND the other way, frame 10 its ACK, and so on.

use urxe_lint::Rule;
use urxe_wire::{CnpPad, Ext, Network, Opcode, PKey, Psn, QKey, Reth, Syndrome};

use super::Plant;
use super::tape::{Made, Tape};

/// The PSN after the last one of the pinging side.
pub(super) const NEXT: Psn = Psn::new(1_610_493);

/// Behind Ethernet and IPv4: the length field of UDP.
const UDP_LEN: usize = 14 + 20 + 4;
/// Where the BTH begins.
const BTH: usize = 42;

pub(super) fn pingpong() -> Tape {
    Tape::golden("rc_pingpong")
}

fn datagrams() -> Tape {
    Tape::golden("ud_pingpong")
}

/// A CNP to the pinging side, at the end.
fn notify(tape: &mut Tape) {
    let ext = Ext { cnp: Some(CnpPad { bytes: [0; 16] }), ..Ext::NONE };
    tape.add(5, 50, Made { ext, ..Made::new("CNP", Psn::ZERO) });
    tape.packet(51, |p| p.roce.bth.becn = true);
}

/// The CNP has a cause.
fn congested() -> Tape {
    let mut tape = pingpong();
    tape.packet(1, |p| {
        if let Network::Ipv4 { header, .. } = &mut p.network {
            header.tos |= 3;
        }
    });
    notify(&mut tape);
    tape
}

const fn plant(rule: Rule, healthy: fn() -> Tape, frame: usize, fault: fn(&mut Tape)) -> Plant {
    Plant { rule, healthy, fault, frame, also: &[] }
}

static BYTES: [u8; 4100] = [0x5a; 4100];

pub(super) const PLANTS: &[Plant] = &[
    plant(Rule::Version, pingpong, 50, |t| t.bytes(50)[BTH + 1] |= 1),
    plant(Rule::Opcode, pingpong, 50, |t| t.bytes(50)[BTH] = 0x1f),
    plant(Rule::PadCount, pingpong, 50, |t| t.bytes(50)[BTH + 1] |= 0x10),
    plant(Rule::Malformed, pingpong, 50, |t| {
        // An ACKNOWLEDGE without its AETH.
        t.bytes(50)[17] = 44;
        t.bytes(50)[UDP_LEN + 1] = 24;
    }),
    plant(Rule::Icrc, pingpong, 5, |t| *t.bytes(5).last_mut().unwrap() ^= 1),
    // Nor is judged what else such a packet says.
    plant(Rule::Icrc, pingpong, 5, |t| {
        t.packet(5, |p| p.roce.ext.aeth.as_mut().unwrap().msn = Psn::new(9));
        *t.bytes(5).last_mut().unwrap() ^= 1;
    }),
    plant(Rule::IpChecksum, pingpong, 5, |t| t.bytes(5)[24] ^= 1),
    plant(Rule::UdpChecksum, pingpong, 5, |t| {
        t.bytes(5)[UDP_LEN + 2..BTH].copy_from_slice(&[0x12, 0x34]);
    }),
    plant(
        Rule::PadZero,
        || Tape::golden("rc_ipv6"),
        2,
        |t| {
            let icrc = t.bytes(2).len() - 4;
            t.bytes(2)[icrc - 1] = 1;
            t.seal(2);
        },
    ),
    plant(Rule::Reserved, pingpong, 5, |t| t.packet(5, |p| p.roce.bth.reserved7 = 1)),
    plant(Rule::MigReq, pingpong, 1, |t| t.packet(1, |p| p.roce.bth.mig_req = false)),
    plant(Rule::PKey, pingpong, 5, |t| t.packet(5, |p| p.roce.bth.pkey = PKey(0x8000))),
    plant(Rule::Syndrome, pingpong, 45, |t| {
        t.packet(45, |p| p.roce.ext.aeth.as_mut().unwrap().syndrome = Syndrome::Reserved(0x5f));
    }),
    plant(Rule::Cnp, congested, 51, |t| t.packet(51, |p| p.roce.bth.becn = false)),
    plant(Rule::CnpCause, pingpong, 51, notify),
    plant(Rule::Congestion, pingpong, 5, |t| t.packet(5, |p| p.roce.bth.fecn = true)),
    plant(Rule::DatagramSize, datagrams, 6, |t| t.packet(6, |p| p.roce.payload = &BYTES)),
    plant(
        Rule::MessageSize,
        || Tape::golden("write_bw"),
        56,
        |t| {
            let reth = Reth { va: 0, rkey: 1, dma_len: (1 << 31) + 1 };
            let ext = Ext { reth: Some(reth), ..Ext::NONE };
            let made = Made::new("RC_RDMA_WRITE_FIRST", Psn::new(8_880_792));
            t.add(1, 55, Made { ext, payload: &BYTES[..1024], ..made });
        },
    ),
    plant(
        Rule::AtomicAlign,
        || Tape::golden("atomic_faa"),
        7,
        |t| {
            t.packet(7, |p| p.roce.ext.atomic.as_mut().unwrap().va += 4);
        },
    ),
    plant(Rule::AtomicWriteSize, pingpong, 51, |t| {
        let ext = Ext { reth: Some(Reth { va: 0, rkey: 1, dma_len: 8 }), ..Ext::NONE };
        t.add(41, 50, Made { ext, payload: &BYTES[..4], ..Made::new("RC_ATOMIC_WRITE", NEXT) });
    }),
    plant(Rule::SourcePort, pingpong, 41, |t| {
        t.packet(41, |p| {
            if let Network::Ipv4 { udp, .. } = &mut p.network {
                udp.src_port ^= 1;
            }
        });
    }),
    plant(Rule::OpcodeSequence, pingpong, 2, |t| {
        t.packet(2, |p| p.roce.bth.opcode = Opcode::from_name("RC_SEND_FIRST").unwrap());
    }),
    plant(Rule::PayloadSize, pingpong, 51, |t| {
        t.add(41, 50, Made { payload: &BYTES[..1020], ..Made::new("RC_SEND_FIRST", NEXT) });
    }),
    plant(
        Rule::DmaLength,
        || Tape::golden("write_bw"),
        10,
        |t| {
            t.packet(1, |p| p.roce.ext.reth.as_mut().unwrap().dma_len += 4);
        },
    ),
    plant(
        Rule::GsiQKey,
        || Tape::golden("rping"),
        29,
        |t| {
            t.packet(29, |p| p.roce.ext.deth.as_mut().unwrap().qkey = QKey(7));
        },
    ),
    plant(Rule::Unseen, pingpong, 50, |t| t.cut(50, 48)),
];
