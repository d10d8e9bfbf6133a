//! XRC: the initiator's requests name an SRQ, its responses are XRC's (IBA annex A14).

use urxe_engine::{QpKind, SendOp, SendWr};
use urxe_wire::{Aeth, Bth, Credit, Ext, Psn, Syndrome};

use crate::lab::{Node, lab, op};
use crate::script::{OK, READ, REMOTE, RKEY, SEND, WRITE};

fn respond(n: &mut Node, qp: urxe_engine::QpId, name: &str, psn: u32, payload: &[u8]) {
    let aeth = Some(Aeth::new(Syndrome::Ack(Credit::UNLIMITED), Psn::new(1)));
    let bth = Bth::new(op(name), qp, Psn::new(psn));
    n.arrive(bth, Ext { aeth, ..Ext::NONE }, payload);
}

#[test]
fn requests_name_the_srq_in_every_packet() {
    let mut n = lab();
    let qp = n.qp(QpKind::XrcInit, |_, _| {});
    respond(&mut n, qp, "XRC_ACKNOWLEDGE", 99, &[]);
    let sges = [n.sge(0, 1500)];
    let (remote, rkey) = (REMOTE, RKEY);
    let invalidate = SendOp::SendInvalidate { rkey };
    for (wr_id, what) in (1..).zip([SEND, WRITE, READ, invalidate]) {
        n.send(qp, &SendWr { remote_srqn: 77, ..SendWr::new(wr_id, what, &sges) });
    }
    let sges = [n.sge(0, 8)];
    let add = SendOp::FetchAdd { remote, rkey, add: 2 };
    n.send(qp, &SendWr { remote_srqn: 78, ..SendWr::new(5, add, &sges) });
    let wanted = [
        "XRC_SEND_FIRST psn=100 srqn=77 len=1024",
        "XRC_SEND_LAST psn=101 ackreq srqn=77 len=476",
        "XRC_RDMA_WRITE_FIRST psn=102 va=0x9000 rkey=0x4242 dmalen=1500 srqn=77 len=1024",
        "XRC_RDMA_WRITE_LAST psn=103 ackreq srqn=77 len=476",
        "XRC_RDMA_READ_REQUEST psn=104 ackreq va=0x9000 rkey=0x4242 dmalen=1500 srqn=77",
        "XRC_SEND_FIRST psn=106 srqn=77 len=1024",
        "XRC_SEND_LAST_WITH_INVALIDATE psn=107 ackreq inv=0x4242 srqn=77 len=476",
        "XRC_FETCH_ADD psn=108 ackreq va=0x9000 swap/add=2 compare=0 srqn=78",
    ];
    assert_eq!(n.sent(), wanted);
    respond(&mut n, qp, "XRC_RDMA_READ_RESPONSE_FIRST", 104, &[1; 1024]);
    respond(&mut n, qp, "XRC_RDMA_READ_RESPONSE_LAST", 105, &[2; 476]);
    respond(&mut n, qp, "XRC_ACKNOWLEDGE", 107, &[]);
    assert_eq!(n.done(), [(1, OK), (2, OK), (3, OK), (4, OK)]);
    assert_eq!(n.bytes(1020, 8), [1, 1, 1, 1, 2, 2, 2, 2]);
}

#[test]
fn responses_of_another_transport_are_dropped() {
    let mut n = lab();
    let qp = n.qp(QpKind::XrcInit, |_, _| {});
    n.send(qp, &SendWr::new(1, SEND, &[]));
    n.arrive_ack(qp, 100, 1);
    assert_eq!(n.counters().drops(urxe_engine::Drop::WrongTransport), 1);
    assert_eq!(n.done(), []);
    respond(&mut n, qp, "XRC_ACKNOWLEDGE", 100, &[]);
    assert_eq!(n.done(), [(1, OK)]);
}

#[test]
fn a_request_does_not_reach_an_initiator() {
    let mut n = lab();
    let qp = n.qp(QpKind::XrcInit, |_, _| {});
    let xrceth = Some(urxe_wire::XrcEth { reserved: 0, srqn: 1 });
    n.arrive_request(qp, "XRC_SEND_ONLY", 500, Ext { xrceth, ..Ext::NONE }, &[1; 4]);
    assert_eq!(n.counters().drops(urxe_engine::Drop::WrongTransport), 1);
    assert!(n.sent().is_empty());
}
