//! Connections that a peer has forgotten.

use urxe_cm::{Closed, Config, Drop, Event, State};
use urxe_wire::cm::{CmMessage, CommId, RejMessage, RejReason};

use crate::world::{ANN, BOB, World, only};

/// A peer that came back with the same QP no longer has what it had.
#[test]
fn a_req_with_a_qp_that_is_connected_ends_the_old_connection() {
    let (mut world, _, b) = World::established();
    // Ann's program starts again.
    world.cms[ANN] = urxe_cm::Cm::new(Config::new(0xa, 99));
    let a = world.connect(0x11);
    world.deliver();
    assert_eq!(world.log(), ["a REQ", "b REJ", "b DREQ", "a DREP"]);
    let Some(Event::Rejected { id, reason, timewait, .. }) = world.event(ANN) else { panic!() };
    assert_eq!((id, reason, timewait), (a, RejReason::StaleConnection, true));
    assert_eq!(world.state(BOB, b), Some(State::DreqSent));
    assert_eq!(world.cms[BOB].counters().drops(Drop::Stale), 1);
    world.deliver();
    assert_eq!(world.event(BOB), Some(Event::Disconnected { id: b, how: Closed::Agreed }));
    // After its timewait the same QP is a new connection.
    while world.next() {}
    world.events(ANN);
    world.events(BOB);
    world.establish_one(0x11, 0x12);
}

#[test]
fn a_request_that_was_not_answered_is_stale_too() {
    let (mut world, _) = World::listening();
    world.connect(0x11);
    world.deliver();
    let old = world.request().id;
    world.cms[ANN] = urxe_cm::Cm::new(Config::new(0xa, 99));
    world.connect(0x11);
    world.deliver();
    let Some(Event::Rejected { id, reason, timewait, .. }) = world.event(BOB) else { panic!() };
    assert_eq!((id, reason, timewait), (old, RejReason::StaleConnection, false));
    assert_eq!(world.cms[BOB].stats().backlog, 0);
}

/// The same QPN at another address is another QP.
#[test]
fn a_qp_of_the_same_number_elsewhere_is_no_stale_connection() {
    let (mut world, _, b) = World::established();
    let mut other = urxe_cm::Cm::new(Config::new(0xa, 5));
    let from = "10.0.0.3:4".parse().unwrap();
    let to = std::net::SocketAddr::new(crate::world::address(BOB), crate::world::PORT);
    let (qpn, psn) = (urxe_wire::Qpn::new(0x11), urxe_wire::Psn::new(0));
    let space = urxe_wire::cm::PortSpace::Tcp;
    let want = urxe_cm::Connect::ip(space, from, to, qpn, psn).unwrap();
    let mut sent = vec![];
    let mut out = |route: &urxe_cm::Route, mad: &urxe_cm::Mad| sent.push((*route, *mad));
    other.connect(world.now, &want, &mut out).unwrap();
    world.give(ANN, &sent);
    assert!(matches!(world.event(BOB), Some(Event::ConnectRequest(_))));
    assert_eq!(world.state(BOB, b), Some(State::Established));
}

#[test]
fn a_communication_id_that_is_in_use_for_something_else_is_refused() {
    let (mut world, a, b) = World::established();
    world.connect(0x21);
    let CmMessage::Req(mut req) = only(&world.take(ANN)) else { panic!() };
    req.local_comm_id = a;
    world.forge(BOB, "10.0.0.1", req);
    let CmMessage::Rej(rej) = only(&world.take(BOB)) else { panic!() };
    assert_eq!((rej.reason, rej.message), (RejReason::DuplicateCommId, RejMessage::Req));
    assert_eq!(world.cms[BOB].counters().drops(Drop::IdInUse), 1);
    assert_eq!(world.state(BOB, b), Some(State::Established));
}

/// A REP whose QP is in another connection shows that the peer has forgotten that one.
#[test]
fn a_rep_with_a_qp_that_is_connected_is_refused() {
    let (mut world, a, _) = World::established();
    world.connect(0x21);
    world.deliver();
    let second = world.request().id;
    world.accept(second, 0x22);
    let CmMessage::Rep(mut rep) = only(&world.take(BOB)) else { panic!() };
    rep.local_qpn = urxe_wire::Qpn::new(0x12);
    world.log();
    world.forge(ANN, "10.0.0.2", rep);
    assert_eq!(world.log(), ["a REJ", "a DREQ"]);
    let Some(Event::Rejected { reason, timewait, .. }) = world.event(ANN) else { panic!() };
    assert_eq!((reason, timewait), (RejReason::StaleConnection, false));
    assert_eq!(world.state(ANN, a), Some(State::DreqSent));
}

/// A late duplicate of a REQ must not begin a second connection while the first ends.
#[test]
fn a_late_req_in_timewait_is_refused() {
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    let req = world.take(ANN);
    world.give(ANN, &req);
    let b = world.request().id;
    world.accept(b, 0x12);
    world.deliver();
    world.establish(a);
    world.deliver();
    world.disconnect(BOB, b);
    world.deliver();
    world.disconnect(ANN, a);
    world.deliver();
    world.deliver();
    world.events(BOB);
    assert_eq!(world.state(BOB, b), Some(State::Timewait));
    world.give(ANN, &req);
    let CmMessage::Rej(rej) = only(&world.take(BOB)) else { panic!() };
    assert_eq!(rej.reason, RejReason::StaleConnection);
    assert_eq!(world.event(BOB), None);
    assert_ne!(rej.remote_comm_id, CommId(0));
}

/// Two acceptances of one request: the second gets a refusal, the first stays.
#[test]
fn a_second_rep_of_another_id_is_refused() {
    let (mut world, a, b) = World::established();
    let rep = urxe_wire::cm::Rep {
        local_comm_id: CommId(77),
        remote_comm_id: a,
        local_qpn: urxe_wire::Qpn::new(0x99),
        ..Default::default()
    };
    world.forge(ANN, "10.0.0.2", rep);
    let CmMessage::Rej(rej) = only(&world.take(ANN)) else { panic!() };
    assert_eq!((rej.reason, rej.remote_comm_id), (RejReason::InvalidCommId, CommId(77)));
    assert_eq!(world.state(ANN, a), Some(State::Established));
    assert_eq!(world.state(BOB, b), Some(State::Established));
}

/// A peer whose timewait is over before ours may use its QP again.
#[test]
fn a_qp_of_a_connection_in_timewait_is_not_stale() {
    let (mut world, a, b) = World::established();
    world.disconnect(ANN, a);
    world.deliver();
    world.disconnect(BOB, b);
    world.deliver();
    world.events(BOB);
    assert_eq!(world.state(BOB, b), Some(State::Timewait));
    world.cms[ANN] = urxe_cm::Cm::new(Config::new(0xa, 99));
    world.establish_one(0x11, 0x22);
}
