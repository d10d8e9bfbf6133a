//! How many PSNs are in flight.

use urxe_engine::QpId;
use urxe_wire::Mtu;

use crate::lab::{Node, Pair, US, lab};
use crate::script::{OK, READ, SEND, WRITE};

/// 256 packets of 256 bytes, of which the first window has gone.
fn long(n: &mut Node) -> QpId {
    let qp = n.rc(|attr| attr.path_mtu = Mtu::B256);
    n.post(qp, 1, SEND, 256 * 256);
    qp
}

fn window(n: &Node, qp: QpId) -> u32 {
    n.nic.query_qp(qp).unwrap().window
}

#[test]
fn no_more_than_the_window_is_in_flight() {
    let mut n = lab();
    let qp = long(&mut n);
    assert_eq!(n.psns(), (100..164).collect::<Vec<_>>());
    n.arrive_ack(qp, 131, 0);
    // It doubles each round trip: 32 acknowledged let 64 more go.
    assert_eq!((window(&n, qp), n.psns()), (96, (164..228).collect()));
    n.arrive_ack(qp, 227, 0);
    assert_eq!((window(&n, qp), n.psns()), (192, (228..356).collect()));
}

#[test]
fn one_loss_halves_the_window_once_for_all_that_was_in_flight() {
    let mut n = lab();
    let qp = long(&mut n);
    n.sent();
    n.arrive_seq_nak(qp, 110);
    // 10 acknowledged, then halved.
    assert_eq!(window(&n, qp), 37);
    assert_eq!(n.psns(), (110..147).collect::<Vec<_>>());
    // A further hole in the same flight.
    n.arrive_seq_nak(qp, 120);
    assert_eq!(window(&n, qp), 37);
    n.sent();
    // All that was in flight then is acknowledged: the next loss is another one.
    n.arrive_ack(qp, 163, 0);
    n.sent();
    n.arrive_seq_nak(qp, 164);
    assert_eq!(window(&n, qp), 19);
}

#[test]
fn after_a_timeout_it_starts_small_and_asks_for_an_ack_at_its_end() {
    let mut n = lab();
    let qp = long(&mut n);
    n.sent();
    n.next_deadline().unwrap();
    assert_eq!(window(&n, qp), 4);
    let lines = n.sent();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[3], "RC_SEND_MIDDLE psn=103 ackreq len=256");
    // It does not fall further, and it comes back (as RFC 5681 has it, a loss counts once).
    n.next_deadline().unwrap();
    assert_eq!(n.psns(), [100, 101, 102, 103]);
    n.arrive_ack(qp, 103, 0);
    assert_eq!(window(&n, qp), 8);
    n.arrive_ack(qp, 111, 0);
    assert_eq!(window(&n, qp), 16);
}

#[test]
fn it_never_grows_above_the_most() {
    let mut n = Node::new(US, crate::lab::PEER, |config| config.max_window = 80);
    let qp = long(&mut n);
    n.arrive_ack(qp, 163, 0);
    assert_eq!(window(&n, qp), 80);
    let mut n = Node::new(US, crate::lab::PEER, |config| config.max_window = 4);
    long(&mut n);
    assert_eq!(n.psns(), [100, 101, 102, 103]);
}

#[test]
fn the_packets_of_a_reads_response_count() {
    let mut n = lab();
    let qp = n.rc(|attr| attr.path_mtu = Mtu::B256);
    n.post(qp, 1, READ, 100 * 256);
    n.post(qp, 2, WRITE, 1);
    // A READ alone may be longer than the window.
    assert_eq!(n.psns(), [100]);
    n.arrive_read(qp, "FIRST", 100, &[0; 256]);
    for psn in 101..118 {
        n.is_quiet();
        n.arrive_read(qp, "MIDDLE", psn, &[0; 256]);
    }
    // 18 answered, a window of 82: 200 is the 82nd behind 118.
    n.is_quiet();
    n.arrive_read(qp, "MIDDLE", 118, &[0; 256]);
    assert_eq!(n.psns(), [200]);
}

#[test]
fn a_stream_with_every_tenth_packet_lost_arrives_and_the_window_does_not_collapse() {
    let mut p = Pair::new();
    let (qa, _) = p.connect_as(urxe_engine::QpKind::Rc, |_, attr| attr.path_mtu = Mtu::B256);
    p.lose = Box::new(|n, _| n % 10 == 9);
    let data: Vec<u8> = (0..60_000_u32).map(|i| (i % 253).to_le_bytes()[0]).collect();
    p.a.buffer.write(0, &data).unwrap();
    let remote = crate::lab::BASE;
    let write = urxe_engine::SendOp::Write { remote, rkey: p.b.mr.rkey, imm: None };
    for wr_id in 1..=10 {
        p.a.post(qa, wr_id, write, 60_000);
    }
    p.settle();
    let done: Vec<_> = (1..=10).map(|wr_id| (wr_id, OK)).collect();
    assert_eq!(p.a.done(), done);
    assert_eq!(p.b.bytes(0, 60_000), data);
    assert!(window(&p.a, qa) >= 4);
    // 2,350 packets: go-back-N resends some, not all of them over and over.
    assert!(p.log.len() < 9000, "{} packets", p.log.len());
}
