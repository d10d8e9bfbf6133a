use urxe_memory::{Config, Memory, Sge};
use urxe_wire::Qpn;

use super::*;
use crate::attr::QpKind;
use crate::config::Profile;
use crate::wr::SendWr;

fn conn(kind: QpKind) -> Conn {
    let pd = Memory::new(Config::default()).alloc_pd().expect("the first PD");
    Conn::new(kind, Qpn::new(2), pd, Profile::STRICT)
}

/// A send queue with one SEND of `length` bytes.
fn queue(length: u32) -> Sq {
    let mut sq = Sq::new(4, 1, 0);
    let sges = [Sge { addr: 0, length, lkey: 1 }];
    let wr = SendWr::new(1, SendOp::Send { imm: None }, &sges);
    sq.post(&wr, length, None).expect("an empty queue has room");
    sq
}

#[test]
fn an_unreliable_qp_that_has_sent_half_the_psn_circle_goes_on() {
    // Nothing acknowledges: the oldest PSN stays where the QP began.
    for ahead in [1, 0x7f_ffff, 0x80_0000, 0x80_0001, 0xff_fffe] {
        let (conn, una) = (conn(QpKind::Uc), Psn::ZERO);
        let mut sq = queue(600);
        let mut r = Requester::new(Psn::ZERO, 64, false);
        r.next_psn = Psn::new(ahead);
        r.unasked = u32::MAX;
        let mut sent = Vec::new();
        while let Next::Packet(emit) = r.next(&sq, &conn, una) {
            sent.push((emit.bth.psn.since(Psn::new(ahead)), emit.at, emit.len));
            assert!(!r.sent(&mut sq, &conn, &emit, una), "resends nothing");
            r.advanced(&sq, &conn, una);
        }
        assert_eq!(sent, [(0, 0, 256), (1, 256, 256), (2, 512, 88)], "{ahead:#x} sent before");
    }
}

#[test]
fn no_more_than_half_the_psn_circle_is_in_flight() {
    // IBA 9.7.2: else old and new could not be told apart.
    let conn = Conn { max_rd_atomic: 16, ..conn(QpKind::Rc) };
    let after_one = |length: u32, una| {
        let mut sq = queue(256);
        let sges = [Sge { addr: 0, length, lkey: 1 }];
        let read = SendWr::new(2, SendOp::Read { remote: 0, rkey: 0 }, &sges);
        sq.post(&read, length, None).expect("room");
        let mut r = Requester::new(Psn::ZERO, 64, false);
        let Next::Packet(emit) = r.next(&sq, &conn, Psn::ZERO) else { panic!("the SEND goes") };
        r.sent(&mut sq, &conn, &emit, Psn::ZERO);
        match r.next(&sq, &conn, Psn::new(una)) {
            Next::Packet(emit) => Ok(emit.psns),
            other => Err(matches!(other, Next::Blocked(Blocked::Window))),
        }
    };
    let most = 1 << 31;
    // One PSN is out: 2^23 more would be too many.
    assert_eq!(after_one(most, 0), Err(true));
    assert_eq!(after_one(most - 256, 0), Ok(Psn::WINDOW - 1));
    assert_eq!(after_one(most, 1), Ok(Psn::WINDOW));
}
