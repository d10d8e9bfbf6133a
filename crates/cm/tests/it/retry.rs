//! Answers that do not come, or come late.

use std::time::Duration;

use urxe_cm::{Closed, Config, Count, Drop, Event, Listen, Message, State, Timing, Why};
use urxe_wire::cm::{CmMessage, CmTimeout, Mra, MraMessage, PortSpace, RejMessage, RejReason};

use crate::world::{ANN, BOB, INTERVAL, PORT, TIMEWAIT, World, only, want};

fn timeout(code: u8) -> CmTimeout {
    CmTimeout::new(code).unwrap()
}

/// A REQ is sent again after the peer's response time and twice the lifetime, as often as it says.
#[test]
fn a_req_without_answer_is_sent_again_and_then_given_up() {
    let mut world = World::new();
    let a = world.connect(0x11);
    let start = world.now;
    let req = world.take(ANN);
    for n in 1..=15 {
        let deadline = world.cms[ANN].next_deadline().unwrap();
        assert_eq!((deadline.id, deadline.why), (a, Why::Answer(Message::Req)));
        assert!(world.next());
        assert_eq!(world.now - start, INTERVAL * n);
        assert_eq!(world.take(ANN), req, "the same bytes");
        assert_eq!(world.event(ANN), None);
    }
    assert!(world.next());
    assert_eq!(world.now - start, INTERVAL * 16);
    let CmMessage::Rej(rej) = only(&world.take(ANN)) else { panic!() };
    assert_eq!((rej.reason, rej.message), (RejReason::Timeout, RejMessage::Req));
    assert_eq!(rej.additional_info(), Ok(&[0, 0, 0, 0, 0, 0, 0, 0xa][..]));
    let message = Message::Req;
    let unreachable = Event::Unreachable { id: a, message, timewait: false };
    assert_eq!(world.event(ANN), Some(unreachable));
    assert_eq!(world.state(ANN, a), None);
    let counters = world.cms[ANN].counters();
    assert_eq!((counters.get(Count::Retried), counters.get(Count::Unreachable)), (15, 1));
    // Its QP is free at once.
    world.connect(0x11);
}

#[test]
fn nothing_is_sent_again_before_its_time() {
    let mut world = World::new();
    world.connect(0x11);
    world.log();
    world.pass(INTERVAL - Duration::from_nanos(1));
    assert!(world.log().is_empty());
    world.pass(Duration::from_nanos(1));
    assert_eq!(world.log(), ["a REQ"]);
}

#[test]
fn the_timing_is_the_request_s_own() {
    let mut world = World::new();
    let timing =
        Timing { remote_response: timeout(10), local_response: timeout(12), max_retries: 2 };
    let mut want = want(0x11);
    want.timing = timing;
    want.path.packet_lifetime = timeout(8);
    world.call(ANN, |cm, now, out| cm.connect(now, &want, out)).unwrap();
    let start = world.now;
    while world.next() {}
    assert_eq!(world.now - start, Duration::from_nanos(4096 * ((1 << 10) + (1 << 9)) * 3));
    assert_eq!(world.log(), ["a REQ", "a REQ", "a REQ", "a REJ"]);
}

/// A REP is sent again as the REQ says: the active side's own response time and retries.
#[test]
fn a_rep_without_rtu_is_sent_again_and_then_given_up() {
    let (mut world, _) = World::listening();
    let mut want = want(0x11);
    want.timing.local_response = timeout(18);
    want.timing.max_retries = 3;
    let a = world.call(ANN, |cm, now, out| cm.connect(now, &want, out)).unwrap();
    world.deliver();
    let b = world.request().id;
    world.accept(b, 0x12);
    world.deliver();
    world.establish(a);
    world.take(ANN);
    let (start, interval) = (world.now, timeout(18).duration() + 2 * timeout(16).duration());
    for n in 1..=3 {
        assert!(world.next());
        assert_eq!(world.now - start, interval * n);
        assert!(matches!(only(&world.take(BOB)), CmMessage::Rep(_)));
    }
    assert!(world.next());
    let unreachable = Event::Unreachable { id: b, message: Message::Rep, timewait: true };
    assert_eq!(world.event(BOB), Some(unreachable));
    assert_eq!(world.state(BOB, b), Some(State::Timewait));
    // The active side, which has it established, is told so.
    world.events(ANN);
    world.deliver();
    let how = Closed::Rejected(RejReason::Timeout);
    assert_eq!(world.event(ANN), Some(Event::Disconnected { id: a, how }));
    world.settle();
}

#[test]
fn a_req_that_is_given_up_takes_its_request_back() {
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    world.deliver();
    let b = world.request().id;
    world.call(ANN, |cm, now, out| cm.abandon(now, a, out)).unwrap();
    assert_eq!(world.state(ANN, a), None);
    world.deliver();
    let Some(Event::Rejected { id, reason, info, timewait, .. }) = world.event(BOB) else {
        panic!()
    };
    assert_eq!((id, reason, timewait), (b, RejReason::Timeout, false));
    assert_eq!(*info, [0, 0, 0, 0, 0, 0, 0, 0xa]);
    assert!(world.cms[BOB].stats().is_idle());
}

/// A REP to an attempt that is over is refused, so that its sender need not wait.
#[test]
fn a_rep_to_nobody_is_refused() {
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    world.deliver();
    let b = world.request().id;
    world.accept(b, 0x12);
    let rep = world.take(BOB);
    world.call(ANN, |cm, now, out| cm.abandon(now, a, out)).unwrap();
    world.take(ANN);
    world.give(BOB, &rep);
    let CmMessage::Rej(rej) = only(&world.flight[ANN]) else { panic!() };
    assert_eq!((rej.reason, rej.message), (RejReason::InvalidCommId, RejMessage::Rep));
    world.deliver();
    let Some(Event::Rejected { reason, .. }) = world.event(BOB) else { panic!() };
    assert_eq!(reason, RejReason::InvalidCommId);
}

/// A REQ that comes again while the owner decides is answered with an MRA, always the same.
#[test]
fn a_duplicate_req_that_is_not_decided_gets_an_mra() {
    let (mut world, _) = World::listening();
    world.connect(0x11);
    let req = world.take(ANN);
    world.give(ANN, &req);
    let b = world.request().id;
    assert!(world.take(BOB).is_empty());
    world.give(ANN, &req);
    let first = world.take(BOB);
    let CmMessage::Mra(mra) = only(&first) else { panic!() };
    assert_eq!((mra.message, mra.service_timeout), (MraMessage::Req, timeout(24)));
    assert_eq!(mra.local_comm_id, b);
    world.give(ANN, &req);
    assert_eq!(world.take(BOB), first);
}

#[test]
fn the_owner_s_mra_is_what_duplicates_get() {
    let (mut world, _) = World::listening();
    world.connect(0x11);
    let req = world.take(ANN);
    world.give(ANN, &req);
    let b = world.request().id;
    world.call(BOB, |cm, _, out| cm.mra(b, timeout(22), b"soon", out)).unwrap();
    let first = world.take(BOB);
    let CmMessage::Mra(mra) = only(&first) else { panic!() };
    assert_eq!((mra.service_timeout, &mra.private_data[..5]), (timeout(22), &b"soon\0"[..]));
    world.give(ANN, &req);
    assert_eq!(world.take(BOB), first);
    world.accept(b, 0x12);
    let rep = world.take(BOB);
    assert!(matches!(only(&rep), CmMessage::Rep(_)));
    world.give(ANN, &req);
    assert_eq!(world.take(BOB), rep);
}

/// An MRA lengthens the wait once for each time the message was sent; the REQ goes on then.
#[test]
fn an_mra_lengthens_the_wait() {
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    world.deliver();
    let b = world.request().id;
    world.pass(Duration::from_secs(1));
    world.call(BOB, |cm, _, out| cm.mra(b, timeout(24), b"", out)).unwrap();
    world.deliver();
    let told = world.now;
    world.log();
    // Another one changes nothing.
    world.pass(Duration::from_secs(1));
    world.call(BOB, |cm, _, out| cm.mra(b, timeout(25), b"", out)).unwrap();
    world.deliver();
    assert_eq!(world.cms[ANN].counters().drops(Drop::Duplicate), 1);
    assert_eq!(world.cms[ANN].counters().get(Count::ToldToWait), 1);
    world.log();
    assert!(world.next());
    // The path's own time on top: 2^17 · 4.096 µs.
    assert_eq!(world.now - told, timeout(24).duration() + TIMEWAIT);
    assert_eq!(world.log(), ["a REQ"]);
    world.deliver();
    assert_eq!(world.log(), ["b MRA"]);
    assert_eq!(world.state(ANN, a), Some(State::ReqSent));
    // It was sent again, and is told to wait again.
    assert_eq!(world.cms[ANN].counters().get(Count::ToldToWait), 2);
}

#[test]
fn no_mra_asks_for_more_than_the_longest_wait() {
    let config = Config { longest_mra: timeout(21), ..Config::new(0xa, 1) };
    let mut world = World::with(config, Config::new(0xb, 2));
    world.cms[BOB].listen(&Listen::port(PortSpace::Tcp, PORT, 1)).unwrap();
    world.connect(0x11);
    world.deliver();
    let b = world.request().id;
    world.call(BOB, |cm, _, out| cm.mra(b, timeout(31), b"", out)).unwrap();
    world.deliver();
    let deadline = world.cms[ANN].next_deadline().unwrap();
    assert_eq!(deadline.at - world.now, timeout(21).duration() + TIMEWAIT);
}

#[test]
fn an_mra_never_shortens_the_wait() {
    let mut world = World::new();
    let a = world.connect(0x11);
    let before = world.cms[ANN].next_deadline();
    let mra = Mra { remote_comm_id: a, message: MraMessage::Req, ..Mra::default() };
    world.forge(ANN, "10.0.0.2", mra);
    assert_eq!(world.cms[ANN].next_deadline(), before);
}

/// The active side, too, may take its time.
#[test]
fn a_duplicate_rep_that_is_not_decided_gets_an_mra() {
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    world.deliver();
    let b = world.request().id;
    world.accept(b, 0x12);
    world.deliver();
    world.events(ANN);
    assert!(world.next());
    world.log();
    world.deliver();
    let CmMessage::Mra(mra) = only(&world.flight[ANN]) else { panic!() };
    assert_eq!((mra.message, mra.remote_comm_id), (MraMessage::Rep, b));
    world.deliver();
    let deadline = world.cms[BOB].next_deadline().unwrap();
    assert_eq!(deadline.at - world.now, timeout(24).duration() + TIMEWAIT);
    world.establish(a);
    world.deliver();
    assert_eq!(world.state(BOB, b), Some(State::Established));
}

#[test]
fn a_dreq_without_answer_is_given_up() {
    let (mut world, a, b) = World::established();
    world.disconnect(ANN, a);
    let start = world.now;
    for _ in 0..16 {
        world.take(ANN);
        assert!(world.next());
    }
    assert_eq!(world.now - start, INTERVAL * 16);
    let how = Closed::Unanswered;
    assert_eq!(world.event(ANN), Some(Event::Disconnected { id: a, how }));
    assert_eq!(world.state(ANN, a), Some(State::Timewait));
    assert_eq!(world.cms[ANN].counters().get(Count::DisconnectUnanswered), 1);
    assert!(world.next());
    assert_eq!(world.now - start, INTERVAL * 16 + TIMEWAIT);
    assert!(matches!(world.event(ANN), Some(Event::TimewaitExit { .. })));
    // When the other side ends it, too, nobody is there; it need not wait for all that.
    world.disconnect(BOB, b);
    world.deliver();
    world.deliver();
    assert_eq!(world.event(BOB), Some(Event::Disconnected { id: b, how: Closed::Agreed }));
}

/// A DREQ has all its retries, however many the REQ needed.
#[test]
fn a_dreq_has_retries_of_its_own() {
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    for _ in 0..15 {
        world.take(ANN);
        assert!(world.next());
    }
    world.deliver();
    let b = world.request().id;
    world.accept(b, 0x12);
    world.deliver();
    world.establish(a);
    world.events(ANN);
    world.disconnect(ANN, a);
    world.log();
    for _ in 0..15 {
        assert!(world.next());
        assert_eq!(world.state(ANN, a), Some(State::DreqSent));
    }
}
