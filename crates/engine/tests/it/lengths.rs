//! How long each packet and each message may be (IBA C9-94).

use urxe_engine::{AsyncEvent, QpState, WcOpcode, WcStatus};
use urxe_wire::Ext;

use crate::ask::{imm, reth};
use crate::lab::{BASE, lab};

/// Positions and payload lengths of a message's packets.
type Packets = &'static [(&'static str, usize)];

/// Payload lengths of a message's packets, path MTU 256; whether the message may be.
#[test]
fn first_and_middle_are_full_and_last_has_one_byte_at_least() {
    let cases: [(Packets, bool); 14] = [
        (&[("ONLY", 0)], true),
        (&[("ONLY", 1)], true),
        (&[("ONLY", 256)], true),
        (&[("ONLY", 257)], false),
        (&[("FIRST", 256), ("LAST", 1)], true),
        (&[("FIRST", 256), ("LAST", 256)], true),
        (&[("FIRST", 256), ("LAST", 257)], false),
        (&[("FIRST", 256), ("LAST", 0)], false),
        (&[("FIRST", 255)], false),
        (&[("FIRST", 257)], false),
        (&[("FIRST", 0)], false),
        (&[("FIRST", 256), ("MIDDLE", 256), ("LAST", 3)], true),
        (&[("FIRST", 256), ("MIDDLE", 255)], false),
        (&[("FIRST", 256), ("MIDDLE", 257)], false),
    ];
    for (packets, fits) in cases {
        for is_send in [true, false] {
            let mut n = lab();
            let qp = n.rc256();
            n.recv(qp, 7, 4096, 4096);
            let total: usize = packets.iter().map(|(_, len)| len).sum();
            // A broken WRITE's RETH tells a length that would suit its later packets.
            let total = if fits { total } else { total + 1024 };
            for (psn, &(position, len)) in (500..).zip(packets) {
                let ext = match position {
                    "FIRST" | "ONLY" if !is_send => {
                        let dma_len = if position == "ONLY" { len } else { total };
                        reth(BASE, n.mr.rkey, u32::try_from(dma_len).unwrap())
                    }
                    _ => Ext::NONE,
                };
                let kind = if is_send { "SEND" } else { "RDMA_WRITE" };
                n.arrive_request(qp, &format!("RC_{kind}_{position}"), psn, ext, &vec![9; len]);
            }
            let got = n.outcome(qp);
            if fits {
                assert_eq!(got.state, QpState::Rts, "{packets:?}");
                let done = if is_send { vec![(7, WcStatus::Success)] } else { vec![] };
                assert_eq!(n.done(), done, "{packets:?}");
            } else {
                assert_eq!(got.state, QpState::Err, "{packets:?} {is_send}");
                assert_eq!(got.events, [AsyncEvent::QpReqErr(qp)]);
                let last = 499 + packets.len();
                let nak = format!("RC_ACKNOWLEDGE psn={last} nak InvalidRequest msn=0");
                assert_eq!(got.sent, [nak], "{packets:?} {is_send}");
            }
        }
    }
}

/// A WRITE's payload is as long as its RETH says, in all and packet by packet.
#[test]
fn a_write_agrees_with_its_dma_length() {
    let cases: [(Packets, u32, bool); 10] = [
        (&[("ONLY", 8)], 8, true),
        (&[("ONLY", 8)], 7, false),
        (&[("ONLY", 8)], 9, false),
        (&[("ONLY", 0)], 1, false),
        (&[("FIRST", 256)], 256, false),
        (&[("FIRST", 256), ("LAST", 10)], 266, true),
        (&[("FIRST", 256), ("LAST", 10)], 265, false),
        (&[("FIRST", 256), ("LAST", 10)], 267, false),
        (&[("FIRST", 256), ("MIDDLE", 256)], 512, false),
        (&[("FIRST", 256), ("MIDDLE", 256), ("LAST", 1)], 513, true),
    ];
    for (packets, dma_len, fits) in cases {
        let mut n = lab();
        let qp = n.rc256();
        for (psn, &(position, len)) in (500..).zip(packets) {
            let starts = matches!(position, "FIRST" | "ONLY");
            let ext = if starts { reth(BASE, n.mr.rkey, dma_len) } else { Ext::NONE };
            let name = format!("RC_RDMA_WRITE_{position}");
            n.arrive_request(qp, &name, psn, ext, &vec![9; len]);
        }
        let got = n.outcome(qp);
        assert_eq!(got.state == QpState::Rts, fits, "{packets:?} {dma_len} {got:?}");
        let placed = n.bytes(0, 1024).iter().filter(|&&b| b == 9).count();
        if fits {
            assert_eq!(placed, dma_len as usize);
        } else {
            assert!(got.sent[0].contains("nak InvalidRequest"), "{got:?}");
        }
    }
}

#[test]
fn no_message_is_longer_than_2_to_the_31() {
    for name in ["RC_RDMA_READ_REQUEST", "RC_RDMA_WRITE_FIRST"] {
        // A region of 64 KiB has neither: the key would be found wanting next.
        for (len, nak) in [(1u32 << 31, "RemoteAccess"), ((1 << 31) + 1, "InvalidRequest")] {
            let mut n = lab();
            let qp = n.rc256();
            let data = if name.contains("WRITE") { &[0; 256][..] } else { &[] };
            n.arrive_request(qp, name, 500, reth(BASE, n.mr.rkey, len), data);
            assert_eq!(n.sent(), [format!("RC_ACKNOWLEDGE psn=500 nak {nak} msn=0")], "{name}");
        }
    }
}

/// A zero-length READ or WRITE checks neither key nor address (IBA C9-88).
#[test]
fn a_request_of_no_bytes_checks_neither_key_nor_address() {
    let mut n = lab();
    let qp = n.rc256();
    n.recv(qp, 7, 0, 0);
    let nowhere = reth(0x1234_5678_9abc, 0x00de_ad0000, 0);
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 500, nowhere, &[]);
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 501, nowhere, &[]);
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", 502, imm(nowhere), &[]);
    let expected = [
        "RC_ACKNOWLEDGE psn=500 ack credits=1 msn=1",
        "RC_RDMA_READ_RESPONSE_ONLY psn=501 ack credits=1 msn=2",
        "RC_ACKNOWLEDGE psn=502 ack credits=0 msn=3",
    ];
    assert_eq!(n.sent(), expected);
    let got = n.completions();
    assert_eq!((got[0].opcode, got[0].byte_len), (WcOpcode::RecvRdmaWithImm, 0));
}

/// An atomic moves 8 bytes and an ATOMIC WRITE brings just as many (Linux sw/rxe/rxe_resp.c).
#[test]
fn an_atomic_write_brings_8_bytes() {
    for (len, dma_len, fits) in [(8, 8, true), (4, 4, false), (8, 16, false), (12, 8, false)] {
        let mut n = lab();
        let qp = n.rc256();
        let data = &[7; 16][..len];
        n.arrive_request(qp, "RC_ATOMIC_WRITE", 500, reth(BASE, n.mr.rkey, dma_len), data);
        let line = if fits {
            "RC_RDMA_READ_RESPONSE_ONLY psn=500 ack credits=0 msn=1"
        } else {
            "RC_ACKNOWLEDGE psn=500 nak InvalidRequest msn=0"
        };
        assert_eq!(n.sent(), [line], "{len} {dma_len}");
        assert_eq!(n.bytes(0, 8) == [7; 8], fits);
    }
}
