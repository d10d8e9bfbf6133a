//! Requests: how a message becomes packets, which PSNs they get, when an ACK is asked for.

use std::time::Duration;

use urxe_engine::{QpKind, SendFlags, SendOp, SendWr};
use urxe_memory::Sge;
use urxe_wire::{Ext, FlushLevel, FlushScope, MAX_MESSAGE, Mtu, Psn};

use crate::lab::{Node, lab, op};
use crate::script::{ADD, OK, READ, REMOTE, RKEY, SEND, WRITE};

/// The opcodes of `packets` packets: those of the middle, and the last one's suffix.
fn names(base: &str, suffix: &str, packets: usize) -> Vec<String> {
    (0..packets)
        .map(|i| match (i == 0, i + 1 == packets) {
            (true, true) => format!("{base}_ONLY{suffix}"),
            (true, false) => format!("{base}_FIRST"),
            (false, false) => format!("{base}_MIDDLE"),
            (false, true) => format!("{base}_LAST{suffix}"),
        })
        .collect()
}

// IBA 9.7.2: PSNs count up by one; first and middle payloads are exactly the MTU (C9-94).
fn check_message(kind: QpKind, what: SendOp, names_of: (&str, &str), length: u32, mtu: Mtu) {
    let mut n = lab();
    let qp = n.qp(kind, |_, attr| attr.path_mtu = mtu);
    let data: Vec<u8> = (0..length).map(|i| u8::try_from(i % 251).unwrap()).collect();
    n.buffer.write(0, &data).unwrap();
    n.post(qp, 1, what, length);
    let packets = length.div_ceil(mtu.bytes()).max(1) as usize;
    let names = names(names_of.0, names_of.1, packets);
    let mut carried = Vec::new();
    assert_eq!(n.sink.sent.len(), packets, "{what:?} of {length}");
    for (i, (sent, name)) in n.sink.sent.iter().zip(&names).enumerate() {
        let p = sent.roce();
        let (first, last) = (i == 0, i + 1 == packets);
        assert_eq!(p.bth.opcode, op(name), "{length} bytes, packet {i}");
        assert_eq!(p.bth.psn, Psn::new(100 + u32::try_from(i).unwrap()));
        assert_eq!(p.bth.ack_req, last && kind == QpKind::Rc, "{length} bytes, packet {i}");
        assert!(last || p.payload.len() == mtu.bytes() as usize, "{name}");
        let mut want = Ext::NONE;
        match what {
            SendOp::Send { imm } if last => want.imm = imm.map(|data| urxe_wire::ImmDt { data }),
            SendOp::SendInvalidate { rkey } if last => want.ieth = Some(urxe_wire::Ieth { rkey }),
            SendOp::Write { remote: va, rkey, imm } => {
                let reth = urxe_wire::Reth { va, rkey, dma_len: length };
                want.reth = first.then_some(reth);
                want.imm = imm.filter(|_| last).map(|data| urxe_wire::ImmDt { data });
            }
            _ => {}
        }
        assert_eq!(p.ext, want, "{name}");
        carried.extend_from_slice(p.payload);
    }
    assert_eq!(carried, data, "{what:?} of {length}");
}

#[test]
fn a_message_of_any_size_is_cut_at_the_mtu() {
    let imm = Some([9, 8, 7, 6]);
    let (remote, rkey) = (REMOTE, RKEY);
    for length in [0, 1, 255, 256, 257, 511, 512, 1023, 1024, 1025, 2048, 2049, 5000] {
        for mtu in [Mtu::B256, Mtu::B1024] {
            for (kind, rc) in [(QpKind::Rc, "RC"), (QpKind::Uc, "UC")] {
                let (send, write) = (format!("{rc}_SEND"), format!("{rc}_RDMA_WRITE"));
                let (send, write) = (send.as_str(), write.as_str());
                check_message(kind, SEND, (send, ""), length, mtu);
                let with = SendOp::Send { imm };
                check_message(kind, with, (send, "_WITH_IMMEDIATE"), length, mtu);
                check_message(kind, WRITE, (write, ""), length, mtu);
                let with = SendOp::Write { remote, rkey, imm };
                check_message(kind, with, (write, "_WITH_IMMEDIATE"), length, mtu);
            }
            let with = SendOp::SendInvalidate { rkey };
            check_message(QpKind::Rc, with, ("RC_SEND", "_WITH_INVALIDATE"), length, mtu);
        }
    }
}

#[test]
fn psns_go_on_over_the_wrap() {
    // IBA 9.7.2
    let mut n = lab();
    let qp = n.rc(|attr| attr.sq_psn = Psn::new(0xff_fffe));
    n.post(qp, 1, SEND, 3000);
    assert_eq!(n.psns(), [0xff_fffe, 0xff_ffff, 0]);
    n.post(qp, 2, READ, 2048);
    assert_eq!(n.psns(), [1]);
    n.post(qp, 3, SEND, 0);
    // The READ's response takes 1 and 2.
    assert_eq!(n.psns(), [3]);
    n.arrive_ack(qp, 0, 1);
    n.arrive_read(qp, "FIRST", 1, &[1; 1024]);
    n.arrive_read(qp, "LAST", 2, &[2; 1024]);
    n.arrive_ack(qp, 3, 3);
    assert_eq!(n.done(), [(1, OK), (2, OK), (3, OK)]);
    assert!(!n.nic.timers_armed());
}

#[test]
fn a_read_takes_as_many_psns_as_its_response_has_packets() {
    // IBA 9.7.2: at least one.
    for (length, next) in [(0, 101), (1, 101), (1024, 101), (1025, 102), (5000, 105)] {
        let mut n = lab();
        let qp = n.rc(|_| {});
        n.post(qp, 1, READ, length);
        n.post(qp, 2, SEND, 0);
        assert_eq!(n.psns(), [100, next], "{length} bytes");
    }
}

#[test]
fn a_read_of_half_the_psn_circle_goes_and_is_resent() {
    // IBA C9-94: 2^31 bytes at most; at MTU 256 that is 2^23 PSNs.
    let mut n = lab();
    let qp = n.rc(|attr| attr.path_mtu = Mtu::B256);
    let sges = [Sge { length: MAX_MESSAGE, ..n.sge(0, 0) }];
    n.send(qp, &SendWr::new(1, READ, &sges));
    let line = "RC_RDMA_READ_REQUEST psn=100 ackreq va=0x9000 rkey=0x4242 dmalen=2147483648";
    assert_eq!(n.sent(), [line]);
    n.arrive_read(qp, "FIRST", 100, &[1; 256]);
    assert_eq!(n.counters().drops(urxe_engine::Drop::GhostAck), 0);
    assert_eq!(n.bytes(0, 256), [1; 256]);
    assert_eq!(n.next_deadline(), Some(Duration::from_nanos(4096 << 10)));
    let line = "RC_RDMA_READ_REQUEST psn=101 ackreq va=0x9100 rkey=0x4242 dmalen=2147483392";
    assert_eq!(n.sent(), [line]);
}

#[test]
fn a_send_of_half_the_psn_circle_fills_its_window() {
    // IBA C9-94: only what is in flight counts, not what is still to come.
    let mut n = lab();
    let qp = n.rc(|attr| attr.path_mtu = Mtu::B256);
    let sges = [Sge { length: MAX_MESSAGE, ..n.sge(0, 0) }];
    n.send(qp, &SendWr::new(1, SEND, &sges));
    let psns = n.psns();
    assert!(psns.len() > 4, "{psns:?}");
    assert_eq!(psns[..4], [100, 101, 102, 103]);
}

#[test]
fn one_packet_requests_say_what_they_ask() {
    let mut n = lab();
    let qp = n.rc(|attr| attr.max_rd_atomic = 8);
    let (remote, rkey) = (REMOTE, RKEY);
    n.post(qp, 1, READ, 5000);
    n.post(qp, 2, SendOp::CompareSwap { remote, rkey, compare: 5, swap: 6 }, 8);
    n.post(qp, 3, ADD, 8);
    n.post(qp, 4, SendOp::AtomicWrite { remote, rkey }, 8);
    for (scope, length) in [(FlushScope::Range, 300), (FlushScope::MemoryRegion, 300)] {
        let level = FlushLevel::PERSISTENT;
        n.post(qp, 5, SendOp::Flush { remote, length, rkey, scope, level }, 0);
    }
    let feth: Vec<_> = n.sink.sent.iter().filter_map(|s| s.roce().ext.feth).collect();
    let wanted = [FlushScope::Range, FlushScope::MemoryRegion];
    assert_eq!(feth, wanted.map(|scope| urxe_wire::Feth::new(scope, FlushLevel::PERSISTENT)));
    assert_eq!(
        n.sent(),
        [
            "RC_RDMA_READ_REQUEST psn=100 ackreq va=0x9000 rkey=0x4242 dmalen=5000",
            "RC_COMPARE_SWAP psn=105 ackreq va=0x9000 swap/add=6 compare=5",
            "RC_FETCH_ADD psn=106 ackreq va=0x9000 swap/add=1 compare=0",
            "RC_ATOMIC_WRITE psn=107 ackreq va=0x9000 rkey=0x4242 dmalen=8 len=8",
            "RC_FLUSH psn=108 ackreq va=0x9000 rkey=0x4242 dmalen=300",
            "RC_FLUSH psn=109 ackreq va=0x9000 rkey=0x4242 dmalen=0",
        ]
    );
}

#[test]
fn an_ack_is_asked_for_at_the_end_every_32_packets_and_where_the_window_ends() {
    let mut n = lab();
    let qp = n.rc(|attr| attr.path_mtu = Mtu::B256);
    // 40 packets, then 256 of which the window lets 24 go.
    n.post(qp, 1, SEND, 40 * 256);
    n.post(qp, 2, SEND, 256 * 256);
    let asked = |n: &mut Node| -> Vec<u32> {
        let sent = n.sink.sent.drain(..);
        let asked = sent.filter(|s| s.roce().bth.ack_req);
        asked.map(|s| s.roce().bth.psn.value()).collect()
    };
    assert_eq!(n.sink.sent.len(), 64);
    assert_eq!(asked(&mut n), [131, 139, 163]);
    n.arrive_ack(qp, 131, 0);
    // 32 acknowledged: a window of 96 from 132 on.
    assert_eq!(n.sink.sent.len(), 64);
    assert_eq!(asked(&mut n), [195, 227]);
}

#[test]
fn the_solicited_bit_is_in_the_last_packet_of_what_completes_at_the_receiver() {
    // IBA 9.2.3
    let mut n = lab();
    let qp = n.rc(|_| {});
    let imm = Some([0; 4]);
    let (remote, rkey) = (REMOTE, RKEY);
    let ops = [SEND, WRITE, SendOp::Write { remote, rkey, imm }, READ];
    for (wr_id, what) in (0..).zip(ops) {
        n.post_with(qp, wr_id, what, 2000, SendFlags::SOLICITED);
    }
    n.post_with(qp, 9, ADD, 8, SendFlags::SOLICITED);
    let sent = n.sink.sent.iter().map(|s| s.roce().bth);
    let solicited: Vec<_> = sent.filter(|b| b.solicited).map(|b| b.opcode).collect();
    let wanted = ["RC_SEND_LAST", "RC_RDMA_WRITE_LAST_WITH_IMMEDIATE"];
    assert_eq!(solicited, wanted.map(op));
}

#[test]
fn the_payload_comes_from_all_sges_in_order() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.buffer.write(0, b"abcdefgh").unwrap();
    let sges = [n.sge(6, 2), n.sge(0, 0), n.sge(0, 3), n.sge(4, 1)];
    n.send(qp, &SendWr::new(1, SEND, &sges));
    assert_eq!(n.sink.sent[0].roce().payload, b"ghabce");
}

#[test]
fn two_qps_with_long_messages_take_turns() {
    let mut n = Node::new(crate::lab::US, crate::lab::PEER, |_| {});
    let qps = [(); 2].map(|()| n.qp(QpKind::Uc, |_, attr| attr.path_mtu = Mtu::B256));
    n.sink.full = true;
    for qp in qps {
        n.post(qp, 1, SEND, 200 * 256);
    }
    n.sink.full = false;
    n.nic.pump(n.now, &mut n.sink);
    // The QP a packet is of shows in its source port: both ports go on in turns, 32 at a time.
    let ports: Vec<u16> = n.sink.sent.iter().map(|s| s.path.src_port).collect();
    assert_eq!(ports.len(), 400);
    let turns: Vec<usize> = ports.chunk_by(|a, b| a == b).map(<[u16]>::len).collect();
    assert_eq!(turns[..12], [32; 12]);
    assert_eq!(turns[12..], [8, 8]);
}

#[test]
fn packets_are_counted_with_headers_and_pad() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    // BTH 12, payload and pad; RETH 16 more.
    n.post(qp, 1, SEND, 5);
    n.post(qp, 2, WRITE, 10);
    let counts = [urxe_engine::Count::TxPackets, urxe_engine::Count::TxBytes];
    assert_eq!(counts.map(|c| n.counters().get(c)), [2, (12 + 8) + (12 + 16 + 12)]);
}
