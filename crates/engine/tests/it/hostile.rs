//! Packets nobody honest sends: counted and dropped, or refused; never a panic, never a byte out of
//! place.

use std::collections::BTreeSet;

use urxe_engine::{Drop, QpKind, QpState};
use urxe_wire::{Bth, Ext, Opcode, Psn, Qpn};

use crate::ask::{atomic, reth};
use crate::lab::{BASE, Node, bytes_of, lab, op};

/// Everything but the first 16 bytes of the region, which packets may write.
fn untouched(n: &Node) -> bool {
    n.bytes(16, 0xfff0).iter().all(|&b| b == 0)
}

#[test]
fn every_cut_of_every_opcode_on_every_kind() {
    for kind in [QpKind::Rc, QpKind::Uc, QpKind::Ud] {
        for code in 0..=255 {
            let mut n = lab();
            let qp = n.qp(kind, |_, _| {});
            n.recv(qp, 1, 0, 16);
            let mut bytes =
                bytes_of(Bth::new(op("RC_SEND_ONLY"), qp, Psn::new(500)), Ext::NONE, &[0xff; 64]);
            bytes[0] = code;
            for len in (0..=bytes.len()).rev() {
                n.arrive_bytes(&bytes[..len]);
            }
            assert!(untouched(&n), "{kind} {code:#x}");
        }
    }
}

/// Each field at its extremes, on a QP that is in the middle of a message and on one that is not.
#[test]
fn nasty_fields() {
    let key = lab().mr.rkey;
    let far = u64::MAX;
    let asks: Vec<(&str, Ext, usize)> = vec![
        ("RC_RDMA_WRITE_ONLY", reth(far, key, 8), 8),
        ("RC_RDMA_WRITE_ONLY", reth(far - 7, key, 8), 8),
        ("RC_RDMA_WRITE_FIRST", reth(BASE, key, u32::MAX), 1024),
        ("RC_RDMA_WRITE_FIRST", reth(0, key, 1 << 31), 1024),
        ("RC_RDMA_WRITE_LAST", Ext::NONE, 1024),
        ("RC_RDMA_WRITE_MIDDLE", Ext::NONE, 0),
        ("RC_RDMA_READ_REQUEST", reth(far, key, 1), 0),
        ("RC_RDMA_READ_REQUEST", reth(BASE, key, u32::MAX), 0),
        ("RC_RDMA_READ_REQUEST", reth(BASE, 0, 1 << 31), 0),
        ("RC_FETCH_ADD", atomic(far, key, far, far), 0),
        ("RC_FETCH_ADD", atomic(far - 7, key, far, far), 0),
        ("RC_COMPARE_SWAP", atomic(BASE + 0xffff, key, far, far), 0),
        ("RC_ATOMIC_WRITE", reth(BASE, key, 0), 0),
        ("RC_ATOMIC_WRITE", reth(BASE, key, 0), 8),
        ("RC_SEND_ONLY", Ext::NONE, 5000),
        ("RC_SEND_ONLY_WITH_INVALIDATE", crate::ask::inv(u32::MAX), 0),
        ("RC_SEND_LAST_WITH_INVALIDATE", crate::ask::inv(0), 1),
    ];
    for (name, ext, len) in asks {
        for begun in [false, true] {
            let mut n = lab();
            let qp = n.qp(QpKind::Rc, |_, _| {});
            n.recv(qp, 1, 0, 16);
            let mut psn = 500;
            if begun {
                n.arrive_quiet(
                    qp,
                    "RC_RDMA_WRITE_FIRST",
                    psn,
                    reth(BASE, key ^ 1, 2000),
                    &[0; 1024],
                );
                psn += 1;
            }
            n.arrive_request(qp, name, psn, ext, &vec![7; len]);
            assert!(untouched(&n), "{name} {ext:?}");
            assert_eq!(n.state(qp), QpState::Err, "{name} {ext:?}");
        }
    }
}

/// Responses that nobody asked for.
#[test]
fn answers_to_nothing_change_nothing() {
    let names = [
        "RC_RDMA_READ_RESPONSE_FIRST",
        "RC_RDMA_READ_RESPONSE_MIDDLE",
        "RC_RDMA_READ_RESPONSE_LAST",
        "RC_RDMA_READ_RESPONSE_ONLY",
        "RC_ACKNOWLEDGE",
        "RC_ATOMIC_ACKNOWLEDGE",
    ];
    let mut n = lab();
    let qp = n.rc256();
    for name in names {
        for psn in [0, 99, 100, 101, 0xff_ffff] {
            let info = op(name).info().unwrap();
            let mut bytes = vec![0xff; info.header_len() + 4];
            let bth = Bth::new(op(name), qp, Psn::new(psn));
            urxe_wire::Repr::emit(&bth, &mut bytes).unwrap();
            n.arrive_bytes(&bytes);
        }
    }
    assert_eq!((n.state(qp), n.sent().len(), n.done()), (QpState::Rts, 0, vec![]));
}

/// A table of one packet for each reason there is to drop one: none is without a test.
#[test]
fn every_reason_to_drop_is_met_somewhere() {
    let tested: BTreeSet<&str> = DROPS.iter().map(|(drop, _)| drop.name()).collect();
    let all: BTreeSet<&str> = Drop::ALL.iter().map(|drop| drop.name()).collect();
    assert_eq!(tested, all);
    for (drop, make) in DROPS {
        let mut n = lab();
        make(&mut n);
        assert_eq!(n.dropped(*drop), 1, "{drop}");
        let others = Drop::ALL.iter().filter(|d| *d != drop).map(|&d| n.dropped(d)).sum::<u64>();
        assert_eq!(others, 0, "{drop}: {:?}", n.counters().non_zero().collect::<Vec<_>>());
    }
}

type Case = (Drop, fn(&mut Node));

const DROPS: &[Case] = &[
    (Drop::Malformed, |n| n.arrive_bytes(&[0; 11])),
    (Drop::UnknownOpcode, |n| {
        let qp = n.rc256();
        let mut bytes = bytes_of(Bth::new(op("RC_SEND_ONLY"), qp, Psn::new(501)), Ext::NONE, &[]);
        bytes[0] = 0x1f;
        n.arrive_bytes(&bytes);
    }),
    (Drop::NoSuchQp, |n| n.arrive_quiet(Qpn::new(9), "RC_SEND_ONLY", 0, Ext::NONE, &[])),
    (Drop::WrongTransport, |n| {
        let qp = n.rc256();
        n.arrive_quiet(qp, "UC_SEND_ONLY", 500, Ext::NONE, &[]);
    }),
    (Drop::WrongState, |n| {
        let qp = n.rc256();
        n.to_error(qp);
        n.arrive_quiet(qp, "RC_SEND_ONLY", 500, Ext::NONE, &[]);
    }),
    (Drop::WrongAddress, |n| {
        let qp = n.rc256();
        n.peer = crate::lab::US;
        n.arrive_quiet(qp, "RC_SEND_ONLY", 500, Ext::NONE, &[]);
    }),
    (Drop::BadPKey, |n| {
        let qp = n.rc256();
        let mut bth = Bth::new(op("RC_SEND_ONLY"), qp, Psn::new(500));
        bth.pkey = urxe_wire::PKey(0x8001);
        n.arrive(bth, Ext::NONE, &[]);
    }),
    (Drop::BadQKey, |n| {
        let qp = n.qp(QpKind::Ud, |_, _| {});
        n.arrive_quiet(qp, "UD_SEND_ONLY", 0, datagram(1), &[]);
    }),
    (Drop::NoListener, |n| n.arrive_quiet(Qpn::MULTICAST, "UD_SEND_ONLY", 0, datagram(0), &[])),
    (Drop::Gap, |n| {
        let qp = n.rc256();
        n.arrive_quiet(qp, "RC_SEND_ONLY", 501, Ext::NONE, &[]);
    }),
    (Drop::BehindRnr, |n| {
        let qp = n.rc256();
        n.arrive_quiet(qp, "RC_SEND_ONLY", 500, Ext::NONE, &[]);
        n.arrive_quiet(qp, "RC_SEND_ONLY", 501, Ext::NONE, &[]);
    }),
    (Drop::StaleDuplicate, |n| {
        let qp = n.rc256();
        n.arrive_quiet(qp, "RC_FETCH_ADD", 499, atomic(BASE, n.mr.rkey, 1, 0), &[]);
    }),
    (Drop::BadDuplicate, |n| {
        let qp = n.rc256();
        n.arrive_quiet(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE, n.mr.rkey, 8), &[]);
        n.arrive_quiet(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE, n.mr.rkey, 9), &[]);
    }),
    (Drop::BrokenMessage, |n| {
        let qp = n.qp(QpKind::Uc, |_, _| {});
        n.arrive_quiet(qp, "UC_SEND_LAST", 500, Ext::NONE, b"x");
    }),
    (Drop::NoReceive, |n| {
        let qp = n.qp(QpKind::Uc, |_, _| {});
        n.arrive_quiet(qp, "UC_SEND_ONLY", 500, Ext::NONE, b"x");
    }),
    (Drop::TooLong, |n| {
        let qp = n.qp(QpKind::Uc, |_, _| {});
        n.recv(qp, 1, 0, 1);
        n.arrive_quiet(qp, "UC_SEND_ONLY", 500, Ext::NONE, b"xy");
    }),
    (Drop::NotAllowed, |n| {
        let qp = n.qp(QpKind::Uc, |_, _| {});
        n.arrive_quiet(qp, "UC_RDMA_WRITE_ONLY", 500, reth(BASE, 1, 1), b"x");
    }),
    (Drop::GhostAck, |n| {
        let qp = n.rc256();
        n.arrive_ack(qp, 100, 1);
    }),
    (Drop::DuplicateResponse, |n| {
        let qp = n.rc256();
        n.arrive_ack(qp, 99, 0);
    }),
    (Drop::AwaitingRetry, |n| {
        let qp = n.rc256();
        n.post(qp, 1, crate::script::READ, 8);
        n.post(qp, 2, crate::script::WRITE, 8);
        n.arrive_ack(qp, 101, 1);
        n.arrive_ack(qp, 101, 1);
    }),
    (Drop::ReservedSyndrome, |n| {
        let qp = n.rc256();
        n.send_bytes(qp, 1, 0, 4);
        n.arrive_aeth(qp, 100, urxe_wire::Syndrome::from_bits(0x40), 0);
    }),
    (Drop::CnpIgnored, |n| {
        let qp = n.rc256();
        let cnp = Some(urxe_wire::CnpPad::default());
        n.arrive(Bth::new(Opcode::CNP, qp, Psn::ZERO), Ext { cnp, ..Ext::NONE }, &[]);
    }),
    (Drop::NoSuchSrq, |n| {
        let xrcd = Some(n.nic.alloc_xrcd().unwrap());
        let qp = n.qp(QpKind::XrcTarget, |init, _| init.xrcd = xrcd);
        let xrceth = Some(urxe_wire::XrcEth::default());
        n.arrive_quiet(qp, "XRC_SEND_ONLY", 500, Ext { xrceth, ..Ext::NONE }, &[]);
    }),
];

fn datagram(off: u32) -> Ext {
    let qkey = urxe_wire::QKey(crate::lab::Q_KEY.0 + off);
    Ext { deth: Some(urxe_wire::Deth { qkey, ..Default::default() }), ..Ext::NONE }
}
