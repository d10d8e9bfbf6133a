//! Many threads on one device.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use urxe::{Access, Arm, QpKind, SendOp, WcStatus};

use crate::rig::{ALL, PATIENCE, Side, connect, connected, open, pattern, quick};

/// Eight threads, each with a connection of its own, on two devices; half of them sleep for
/// events, half poll.
#[test]
fn each_with_a_connection_of_its_own() {
    let (near, far) = (open(), open());
    thread::scope(|scope| {
        for t in 0..8_usize {
            let (near, far) = (&near, &far);
            scope.spawn(move || {
                let channel = near.create_comp_channel().unwrap();
                let a = Side::with(near, QpKind::Rc, Some(&channel), quick);
                let b = Side::new(far, QpKind::Rc);
                connect(&a, &b);
                for n in 0..300_usize {
                    let len = 1 + (n * 97 + t) % 5000;
                    a.mr.write(0, &pattern(n + t, len)).unwrap();
                    b.qp.post_recv(n as u64, &[b.mr.sge(0..8192)]).unwrap();
                    if t % 2 == 0 {
                        a.cq.req_notify(Arm::Next).unwrap();
                    }
                    a.qp.post_send(n as u64, SendOp::Send { imm: None }, &[a.mr.sge(0..len)])
                        .unwrap();
                    if t % 2 == 0 {
                        let event = channel.wait_event(PATIENCE).unwrap();
                        assert_eq!(event, Some(a.cq.id()), "thread {t}, message {n}");
                    }
                    assert_eq!(a.done().wr_id, n as u64);
                    assert_eq!((b.done().byte_len as usize), len);
                    assert_eq!(b.mr.to_vec(0..len).unwrap(), pattern(n + t, len));
                }
            });
        }
    });
}

/// Four threads post to one QP while two poll its one CQ and its peer's memory counts.
#[test]
fn all_on_one_queue_pair() {
    const EACH: u64 = 500;
    let (near, far) = (open(), open());
    let (a, b) = connected(&near, &far, QpKind::Rc);
    let (posted, done) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for t in 0..4_usize {
            let (a, b, posted) = (&a, &b, &posted);
            scope.spawn(move || {
                let op = SendOp::FetchAdd { remote: b.mr.addr(), rkey: b.mr.rkey(), add: 1 };
                let sges = [a.mr.sge(t * 8..t * 8 + 8)];
                for n in 0..EACH {
                    while let Err(error) = a.qp.post_send(n, op, &sges) {
                        assert!(error.to_string().contains("the queue holds"), "{error}");
                        thread::yield_now();
                    }
                    posted.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for _ in 0..2 {
            let (a, done) = (&a, &done);
            scope.spawn(move || {
                while done.load(Ordering::SeqCst) < 4 * EACH {
                    match a.cq.poll_one().unwrap() {
                        Some(one) => {
                            assert_eq!(one.status, WcStatus::Success, "{}", one.explain());
                            done.fetch_add(1, Ordering::SeqCst);
                        }
                        None => thread::yield_now(),
                    }
                }
            });
        }
    });
    assert_eq!(posted.into_inner(), 4 * EACH);
    assert_eq!(b.mr.to_vec(0..8).unwrap(), (4 * EACH).to_ne_bytes());
}

/// Memory is taken away while a peer writes it: once `drop` has returned not a byte changes, and
/// the peer is refused.
#[test]
fn memory_is_deregistered_under_traffic() {
    let (near, far) = (open(), open());
    for round in 0..50_u8 {
        let (a, b) = connected(&near, &far, QpKind::Rc);
        let buffer = urxe::Buffer::zeroed(32 << 10).unwrap();
        let mr = b.pd.register_buffer(buffer.clone(), ALL).unwrap();
        let (remote, rkey) = (mr.addr(), mr.rkey());
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut writes = 0_u8;
                loop {
                    writes = writes.wrapping_add(1);
                    a.mr.write(0, &[writes; 1000]).unwrap();
                    let op = SendOp::Write { remote, rkey, imm: None };
                    a.qp.post_send(1, op, &[a.mr.sge(0..32 << 10)]).unwrap();
                    let done = a.cq.wait_for(PATIENCE).unwrap();
                    if done.status != WcStatus::Success {
                        return (done.status, stop.load(Ordering::SeqCst));
                    }
                }
            });
            while mr.load(0).unwrap() <= round % 5 {
                thread::yield_now();
            }
            stop.store(true, Ordering::SeqCst);
            drop(mr);
            buffer.write(0, &[0xee; 1000]).unwrap();
            assert_eq!(writer.join().unwrap(), (WcStatus::RemAccessErr, true));
            let mut after = [0; 1000];
            buffer.read(0, &mut after).unwrap();
            assert_eq!(after, [0xee; 1000], "round {round}");
        });
    }
}

/// Devices are opened and dropped while threads of theirs still poll.
#[test]
fn devices_come_and_go() {
    thread::scope(|scope| {
        for t in 0..4 {
            scope.spawn(move || {
                for _ in 0..25 {
                    let (near, far) = (open(), open());
                    let (a, b) = connected(&near, &far, QpKind::Rc);
                    drop((near, far));
                    let poller = {
                        let cq = b.cq.clone();
                        thread::spawn(move || cq.wait_for(PATIENCE).map(|done| done.wr_id))
                    };
                    b.qp.post_recv(t, &[b.mr.sge(0..64)]).unwrap();
                    a.qp.post_send(1, SendOp::Send { imm: None }, &[a.mr.sge(0..64)]).unwrap();
                    assert_eq!(poller.join().unwrap().unwrap(), t);
                    a.done();
                }
            });
        }
    });
}

/// Objects are made and destroyed by several threads at once.
#[test]
fn objects_come_and_go() {
    let context = open();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let side = Side::new(&context, QpKind::Rc);
                    side.qp.connect(&side.qp.endpoint()).unwrap();
                    let (remote, rkey) = (side.mr.addr(), side.mr.rkey());
                    let op = SendOp::Write { remote, rkey, imm: None };
                    side.qp.post_send(1, op, &[side.mr.sge(64..72)]).unwrap();
                    let narrow = side.pd.register(16, Access::LOCAL_WRITE).unwrap();
                    side.done();
                    drop(narrow);
                }
            });
        }
    });
    assert_eq!(context.counts(), urxe::ObjectCounts::default());
}
