use std::thread;
use std::time::Instant;

use super::*;
use crate::{Access, Arm, CompChannel, Config, Context, Cq, Mr, Qp, QpKind, SendOp};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

struct Side {
    qp: Qp,
    cq: Cq,
    channel: CompChannel,
    mr: Mr,
    context: Context,
}

impl Side {
    fn new() -> Self {
        let context = Context::open(&Config::default()).unwrap();
        let pd = context.alloc_pd().unwrap();
        let mr = pd.register(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE).unwrap();
        let channel = context.create_comp_channel().unwrap();
        let cq = context.create_cq_on(64, &channel).unwrap();
        let qp = pd.qp(QpKind::Rc).cq(&cq).access(Access::REMOTE_WRITE).build().unwrap();
        Self { qp, cq, channel, mr, context }
    }

    fn pair() -> (Self, Self) {
        let (a, b) = (Self::new(), Self::new());
        a.qp.connect(&b.qp.endpoint()).unwrap();
        b.qp.connect(&a.qp.endpoint()).unwrap();
        (a, b)
    }

    fn device(&self) -> &Device {
        self.context.device.live().unwrap()
    }

    /// Its device, without the background thread.
    fn alone(&self) -> &Device {
        let device = self.device();
        device.end_thread();
        device
    }

    fn send(&self, wr_id: u64) {
        self.qp.post_send(wr_id, SendOp::Send { imm: None }, &[self.mr.sge(0..8)]).unwrap();
    }

    /// Posts as a program does that has just polled.
    fn write(&self, to: &Self) {
        let op = SendOp::Write { remote: to.mr.addr(), rkey: to.mr.rkey(), imm: None };
        self.device().polling();
        self.qp.post_send(1, op, &[self.mr.sge(0..8)]).unwrap();
    }

    fn receive(&self) {
        self.qp.post_recv(0, &[self.mr.sge(0..8)]).unwrap();
    }

    fn sent(&self) -> u64 {
        self.context.port_stats().tx_packets
    }

    fn until(what: &str, mut done: impl FnMut() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < PATIENCE, "{what}");
            thread::yield_now();
        }
    }
}

/// It needs no other thread: not for packets, not for timers.
#[test]
fn who_waits_for_an_event_looks_after_the_device() {
    let (a, b) = Side::pair();
    a.alone();
    b.alone();
    b.receive();
    b.cq.req_notify(Arm::Next).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| b.channel.wait_event(PATIENCE).unwrap());
        a.cq.req_notify(Arm::Next).unwrap();
        a.send(1);
        assert_eq!(waiter.join().unwrap(), Some(b.cq.id()));
    });
    assert!(b.cq.poll_one().unwrap().is_some());
    // What it owes leaves with its next wait.
    assert_eq!(b.channel.wait_event(Duration::from_millis(1)).unwrap(), None);
    assert_eq!(a.channel.wait_event(PATIENCE).unwrap(), Some(a.cq.id()));
}

/// The first to watch is woken by the port, the second by the first.
#[test]
fn two_threads_wait_for_events_of_one_device() {
    let (a, b) = Side::pair();
    b.alone();
    let second = b.context.create_comp_channel().unwrap();
    let cq = b.context.create_cq_on(8, &second).unwrap();
    let pd = b.context.alloc_pd().unwrap();
    let qp = pd.qp(QpKind::Rc).cq(&cq).build().unwrap();
    let peer = a.context.alloc_pd().unwrap().qp(QpKind::Rc).cq(&a.cq).build().unwrap();
    peer.connect(&qp.endpoint()).unwrap();
    qp.connect(&peer.endpoint()).unwrap();
    b.receive();
    qp.post_recv(0, &[]).unwrap();
    b.cq.req_notify(Arm::Next).unwrap();
    cq.req_notify(Arm::Next).unwrap();
    thread::scope(|scope| {
        let one = scope.spawn(|| b.channel.wait_event(PATIENCE).unwrap());
        let two = scope.spawn(|| second.wait_event(PATIENCE).unwrap());
        peer.post_send(1, SendOp::Send { imm: None }, &[]).unwrap();
        a.send(2);
        assert_eq!(two.join().unwrap(), Some(cq.id()));
        assert_eq!(one.join().unwrap(), Some(b.cq.id()));
    });
}

/// The program finds a completion and goes on; the ACK leaves with its answer, and in front: the
/// peer's send ends before that answer is there, as with every NIC. perftest's latency tests with
/// events take the completions in no other order.
#[test]
fn an_ack_waits_for_the_program_that_found_a_completion() {
    let (a, b) = Side::pair();
    b.alone();
    a.receive();
    b.receive();
    a.send(1);
    Side::until("nothing arrived", || b.cq.poll_one().unwrap().is_some());
    assert_eq!(b.sent(), 0, "the ACK waits");
    b.send(2);
    assert_eq!(b.sent(), 2, "the request and the ACK");
    assert_eq!([(); 2].map(|()| a.cq.wait_one().unwrap().wr_id), [1, 0]);
}

/// It polls no more: the background thread sees to it.
#[test]
fn what_a_program_leaves_to_be_sent_is_sent() {
    let (a, b) = Side::pair();
    b.receive();
    a.send(1);
    Side::until("nothing arrived", || b.cq.poll_one().unwrap().is_some());
    Side::until("the ACK did not leave", || b.sent() == 1);
    let device = a.alone();
    let mut posted = a.sent();
    Side::until("no request ever waited", || {
        posted += 1;
        a.write(&b);
        a.sent() < posted
    });
    device.background(&mut Rounds::default()).unwrap();
    assert_eq!(a.sent(), posted, "a round of it sent what waited");
}

/// The sender of the last message waits for its ACK.
#[test]
fn an_ack_that_is_owed_leaves_before_its_qp_goes() {
    let (a, b) = Side::pair();
    b.alone();
    b.receive();
    a.send(1);
    Side::until("nothing arrived", || b.cq.poll_one().unwrap().is_some());
    assert_eq!(b.sent(), 0);
    drop(b.qp);
    assert_eq!(b.context.port_stats().tx_packets, 1);
    assert_eq!(a.cq.wait_one().unwrap().wr_id, 1);
}

/// While something is in flight and the program polls, requests leave together.
#[test]
fn requests_of_a_program_that_polls_leave_together() {
    let (a, b) = Side::pair();
    a.alone();
    a.write(&b);
    assert_eq!(a.sent(), 1, "nothing was in flight");
    let mut calls = 0;
    // A thread that did not run for longer than a program that polls waits sends at once.
    Side::until("no request ever waited", || {
        calls += 1;
        a.write(&b);
        a.sent() < 1 + calls
    });
    a.cq.poll_one().unwrap();
    assert_eq!(a.sent(), 1 + calls, "a poll sends what waits");
}
