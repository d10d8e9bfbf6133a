//! Requests without end are bounded.

use urxe_cm::{Config, Drop, Error, Event, Limits, Listen};
use urxe_wire::Qpn;
use urxe_wire::cm::{CmMessage, CommId, PortSpace, Req};

use crate::world::{ANN, BOB, PORT, World, only, want};

/// A REQ as ann sends it, to be changed.
fn template() -> Req {
    let mut world = World::new();
    world.connect(0x11);
    let CmMessage::Req(req) = only(&world.take(ANN)) else { panic!() };
    req
}

fn flood(world: &mut World, n: u32) {
    let req = template();
    for n in 1..=n {
        let req = Req { local_comm_id: CommId(n), local_qpn: Qpn::new(n + 100), ..req };
        world.forge(BOB, "10.0.0.1", req);
    }
}

#[test]
fn requests_beyond_the_backlog_are_dropped_and_taken_later() {
    let (mut world, _) = World::listening();
    flood(&mut world, 1000);
    let stats = world.cms[BOB].stats();
    assert_eq!((stats.connecting, stats.backlog, stats.events), (4, 4, 4));
    assert_eq!(world.cms[BOB].counters().drops(Drop::BacklogFull), 996);
    assert!(world.log().is_empty(), "who is dropped asks again");
    // An answer makes room.
    let id = world.request().id;
    world.accept(id, 0x12);
    flood(&mut world, 1000);
    assert_eq!(world.cms[BOB].stats().connecting, 5);
}

#[test]
fn requests_that_are_taken_back_make_room_and_events_are_bounded() {
    let limits = Limits { events: 10, ..Limits::default() };
    let mut world = World::with(Config::new(0xa, 1), Config { limits, ..Config::new(0xb, 2) });
    world.cms[BOB].listen(&Listen::port(PortSpace::Tcp, PORT, 100)).unwrap();
    let req = template();
    for n in 1..=1000 {
        let local_comm_id = CommId(n);
        world.forge(BOB, "10.0.0.1", Req { local_comm_id, ..req });
        let reason = urxe_wire::cm::RejReason::Timeout;
        let rej = urxe_wire::cm::Rej { local_comm_id, reason, ..Default::default() };
        world.forge(BOB, "10.0.0.1", rej);
    }
    let stats = world.cms[BOB].stats();
    assert_eq!((stats.connecting, stats.backlog, stats.events), (0, 0, 10));
    assert_eq!(world.cms[BOB].counters().drops(Drop::EventsFull), 995);
}

#[test]
fn connections_are_bounded() {
    let limits = Limits { connections: 3, listeners: 1, sidr: 1, ..Limits::default() };
    let config = Config { limits, ..Config::new(0xa, 1) };
    let mut world = World::with(config, config);
    world.cms[BOB].listen(&Listen::port(PortSpace::Tcp, PORT, 100)).unwrap();
    for qpn in 0x11..0x14 {
        world.connect(qpn);
    }
    let error = world.call(ANN, |cm, now, out| cm.connect(now, &want(0x20), out));
    assert_eq!(error, Err(Error::Full { what: "connections", limit: 3 }));
    flood(&mut world, 10);
    assert_eq!(world.cms[BOB].stats().connecting, 3);
    assert_eq!(world.cms[BOB].counters().drops(Drop::Full), 7);
    let error = world.cms[BOB].listen(&Listen::port(PortSpace::Udp, PORT, 1));
    assert_eq!(error, Err(Error::Full { what: "listeners", limit: 1 }));
}

#[test]
fn refusals_that_are_remembered_are_bounded() {
    let limits = Limits { remembered: 5, ..Limits::default() };
    let mut world = World::with(Config::new(0xa, 1), Config { limits, ..Config::new(0xb, 2) });
    world.cms[BOB].listen(&Listen::port(PortSpace::Tcp, PORT, 100)).unwrap();
    flood(&mut world, 50);
    for event in world.events(BOB) {
        let Event::ConnectRequest(request) = event else { panic!() };
        let reason = urxe_wire::cm::RejReason::NoResources;
        let reject = |cm: &mut urxe_cm::Cm, now, out: &mut dyn urxe_cm::Sink| {
            cm.reject(now, request.id, reason, b"", b"", out)
        };
        world.call(BOB, reject).unwrap();
    }
    let stats = world.cms[BOB].stats();
    assert_eq!((stats.remembered, stats.connecting, stats.backlog), (5, 0, 0));
}
