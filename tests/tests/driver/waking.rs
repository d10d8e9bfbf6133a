//! Nobody sleeps too long: programs that wait for descriptors, and timers while nobody polls.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use urxe::{Arm, Config, Context, Observer, Passage, QpKind, SendOp, WcOpcode, WcStatus};

use crate::rig::{PATIENCE, Side, connect, connected, patient, quick};

/// Settings of a device whose thread does not look up by itself while a test lasts: what does not
/// wake it, it sleeps through.
fn sound_asleep() -> Config {
    Config { look_up: Duration::from_secs(3600), ..patient() }
}

fn open() -> Context {
    Context::open(&sound_asleep()).unwrap()
}

/// A program that never polls before it is woken, a few thousand times.
#[test]
fn two_programs_that_sleep_play_ping_pong() {
    const ROUNDS: u64 = 2_000;
    let (near, far) = (open(), open());
    let channels = [near.create_comp_channel().unwrap(), far.create_comp_channel().unwrap()];
    let a = Side::with(&near, QpKind::Rc, Some(&channels[0]), quick);
    let b = Side::with(&far, QpKind::Rc, Some(&channels[1]), quick);
    connect(&a, &b);
    let play = |side: &Side, channel: &urxe::CompChannel, first: bool| {
        let post = || {
            side.qp.post_recv(0, &[side.mr.sge(0..64)]).unwrap();
        };
        let serve = |n| {
            side.qp.post_send(n, SendOp::Send { imm: None }, &[side.mr.sge(64..72)]).unwrap();
        };
        post();
        side.cq.req_notify(Arm::Next).unwrap();
        if first {
            serve(0);
        }
        let (mut sent, mut got) = (u64::from(first), 0);
        let mut open = sent;
        while got < ROUNDS || open != 0 {
            let event = channel.wait_event(PATIENCE).unwrap();
            assert_eq!(event, Some(side.cq.id()), "{got} came, {open} of {sent} are open");
            side.cq.req_notify(Arm::Next).unwrap();
            while let Some(done) = side.cq.poll_one().unwrap() {
                assert_eq!(done.status, WcStatus::Success, "{}", done.explain());
                if done.opcode != WcOpcode::Recv {
                    open -= 1;
                    continue;
                }
                got += 1;
                if got < ROUNDS {
                    post();
                }
                if sent < ROUNDS {
                    serve(sent);
                    sent += 1;
                    open += 1;
                }
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| play(&b, &channels[1], false));
        play(&a, &channels[0], true);
    });
}

/// Looks at nothing but the memory, as programs do that spin on a flag.
#[test]
fn one_sided_operations_need_neither_program_to_call() {
    let (near, far) = (open(), open());
    let (a, b) = connected(&near, &far, QpKind::Rc);
    // As many as the send queue holds: nobody polls, and the thread that takes in the ACKs may not
    // have run yet when all have arrived.
    for n in 1..=128_u8 {
        a.mr.write(0, &[n]).unwrap();
        let write = SendOp::Write { remote: b.mr.addr(), rkey: b.mr.rkey(), imm: None };
        a.qp.post_send(n.into(), write, &[a.mr.sge(0..1)]).unwrap();
        let start = std::time::Instant::now();
        while b.mr.load(0).unwrap() != n {
            assert!(start.elapsed() < PATIENCE, "write {n} did not arrive");
            thread::yield_now();
        }
    }
}

/// When packets left, microseconds since the device was opened.
#[derive(Debug, Default)]
struct Sent {
    packets: AtomicU64,
    last: AtomicU64,
}

impl Observer for Sent {
    fn packet(&self, passage: &Passage<'_>) {
        if passage.sent {
            let now = u64::try_from(passage.time.as_micros()).unwrap();
            self.last.store(now, Ordering::SeqCst);
            self.packets.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// The peer's RNR NAK is taken by a poll, and nobody polls afterwards.
#[test]
fn a_timer_armed_by_a_poll_runs_out_while_nobody_polls() {
    let sent = Arc::new(Sent::default());
    let config = Config { observer: Some(sent.clone()), ..sound_asleep() };
    let (near, far) = (Context::open(&config).unwrap(), open());
    let channel = near.create_comp_channel().unwrap();
    let a = Side::with(&near, QpKind::Rc, Some(&channel), quick);
    let b = Side::new(&far, QpKind::Rc);
    connect(&a, &b);
    a.cq.req_notify(Arm::Next).unwrap();
    a.qp.post_send(1, SendOp::Send { imm: None }, &[a.mr.sge(0..8)]).unwrap();
    // Until the NAK has been taken and the message sent again.
    while sent.packets.load(Ordering::SeqCst) < 2 {
        near.progress();
    }
    b.qp.post_recv(1, &[b.mr.sge(0..8)]).unwrap();
    assert_eq!(channel.wait_event(PATIENCE).unwrap(), Some(a.cq.id()));
    a.done();
}

#[test]
fn waiting_for_an_event_ends_in_time_and_takes_what_waits_at_once() {
    let context = open();
    let channel = context.create_comp_channel().unwrap();
    let a = Side::with(&context, QpKind::Rc, Some(&channel), quick);
    assert_eq!(channel.wait_event(Duration::from_millis(1)).unwrap(), None);
    assert_eq!(context.wait_async_event(Duration::ZERO).unwrap(), None);
    assert_eq!(channel.as_fd().as_fd().try_clone_to_owned().map(drop).ok(), Some(()));
    a.qp.connect(&a.qp.endpoint()).unwrap();
    a.cq.req_notify(Arm::Next).unwrap();
    let write = SendOp::Write { remote: a.mr.addr(), rkey: a.mr.rkey(), imm: None };
    a.qp.post_send(1, write, &[a.mr.sge(64..72)]).unwrap();
    assert_eq!(channel.wait_event(PATIENCE).unwrap(), Some(a.cq.id()));
}
