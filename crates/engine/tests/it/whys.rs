//! What the engine says of a packet that is no new request's nor a plain answer's doing.

use urxe_engine::{Cause, QpState, Rule, Why};
use urxe_memory::Access;
use urxe_wire::{Bth, Ext, Opcode, Psn};

use crate::ask::reth;
use crate::lab::{BASE, Node, bytes_of, lab, op};
use crate::script::{READ, SEND, WRITE};

/// PSNs and reasons of what was sent since the last call.
fn whys(n: &mut Node) -> Vec<(u32, Option<Why>)> {
    n.sink.sent.drain(..).map(|s| (s.roce().bth.psn.value(), s.why)).collect()
}

#[test]
fn what_is_sent_again_says_what_asked_for_it() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    n.post(qp, 1, WRITE, 2048);
    n.post(qp, 2, WRITE, 8);
    assert_eq!(whys(&mut n), [(100, None), (101, None), (102, None)], "new requests");
    n.next_deadline().unwrap();
    let again = |psn, why| (psn, Some(why));
    let all = |why| [100, 101, 102].map(|psn| again(psn, why));
    assert_eq!(whys(&mut n), all(Why::Timeout));
    n.arrive_seq_nak(qp, 101);
    assert_eq!(whys(&mut n), [again(101, Why::Nak), again(102, Why::Nak)]);
    // A new one behind what goes again.
    n.next_deadline().unwrap();
    n.post(qp, 3, WRITE, 8);
    assert_eq!(whys(&mut n), [again(101, Why::Timeout), again(102, Why::Timeout), (103, None)]);
    let qp = n.rc(|_| {});
    n.post(qp, 4, SEND, 8);
    n.arrive_rnr(qp, 100, 1);
    whys(&mut n);
    n.next_deadline().unwrap();
    assert_eq!(whys(&mut n), [again(100, Why::RnrOver)]);
    let qp = n.rc(|_| {});
    n.post(qp, 5, READ, 8);
    n.post(qp, 6, WRITE, 8);
    whys(&mut n);
    n.arrive_ack(qp, 101, 2);
    assert_eq!(whys(&mut n), [again(100, Why::ImpliedNak), again(101, Why::ImpliedNak)]);
}

#[test]
fn naks_and_notifications_say_what_came() {
    let mut n = lab();
    let qp = n.rc256();
    n.arrive_marked(qp, 500, 3);
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 503, reth(0, 0, 0), &[]);
    n.arrive_request(qp, "RC_SEND_ONLY", 501, Ext::NONE, b"x");
    let gap = Why::Gap(Psn::new(501), Psn::new(503));
    let wanted =
        [(0, Some(Why::Congestion)), (500, None), (501, Some(gap)), (501, Some(Why::NotReady))];
    assert_eq!(whys(&mut n), wanted);
    // An ACK before the NAK is none of its business.
    n.sink.full = true;
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 501, reth(0, 0, 0), &[]);
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", 502, reth(BASE, 1, 4), b"1234");
    n.sink.full = false;
    n.pump();
    let got = whys(&mut n);
    assert_eq!(got[0], (501, None));
    let (502, Some(Why::Refused(cause))) = got[1] else { panic!("{got:?}") };
    assert!(matches!(cause, Cause { rule: Rule::RemoteKey(_), psn: Some(_) }), "{cause}");
    assert_eq!(n.state(qp), QpState::Err);
    let qp = n.rc256();
    let bth = Bth::new(op("RC_SEND_ONLY"), qp, Psn::new(500));
    let mut bytes = bytes_of(bth, Ext::NONE, &[]);
    bytes[0] = 0x15;
    n.arrive_bytes(&bytes);
    let [(500, Some(Why::Refused(cause)))] = whys(&mut n)[..] else { panic!("no NAK") };
    assert_eq!(cause.rule, Rule::UnknownOpcode(Opcode(0x15)));
}

/// A READ whose memory goes while it is answered: the NAK says so.
#[test]
fn the_nak_of_a_read_that_is_broken_off_says_why() {
    let mut n = lab();
    let qp = n.rc256();
    let region = n.region(Access::REMOTE_READ);
    n.sink.room = Some(1);
    n.arrive_request(qp, "RC_RDMA_READ_REQUEST", 500, reth(BASE, region.rkey, 1024), &[]);
    n.nic.memory().dereg_mr(region.id).unwrap();
    n.sink.room = None;
    n.pump();
    let got = whys(&mut n);
    let [(500, None), (501, Some(Why::Refused(cause)))] = got[..] else { panic!("{got:?}") };
    assert!(matches!(cause.rule, Rule::RemoteKey(_)), "{cause}");
}
