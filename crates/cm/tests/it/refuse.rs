//! A connection is refused.

use urxe_cm::{Closed, Config, Connect, Drop, Error, Event, Listen, State};
use urxe_wire::cm::{
    CmMessage, CommId, Lap, MtuCode, PortSpace, Rej, RejMessage, RejReason, Req, ServiceId,
    TransportService,
};
use urxe_wire::{Gid, MAD_LEN, Mtu, PKey, Qpn};

use crate::world::{ANN, BOB, PORT, TIMEWAIT, World, address, only, want};

fn no(world: &mut World, who: usize, id: CommId) {
    let reason = RejReason::ConsumerDefined;
    world.call(who, |cm, now, out| cm.reject(now, id, reason, b"why", b"no", out)).unwrap();
}

#[test]
fn the_passive_side_refuses() {
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    let req = world.take(ANN);
    world.give(ANN, &req);
    let b = world.request().id;
    no(&mut world, BOB, b);
    let rej = world.take(BOB);
    let CmMessage::Rej(message) = only(&rej) else { panic!() };
    assert_eq!(message.message, RejMessage::Req);
    // A duplicate gets the same; the owner is not asked again.
    world.give(ANN, &req);
    assert_eq!(world.take(BOB), rej);
    assert_eq!(world.event(BOB), None);
    assert_eq!(world.cms[BOB].stats().remembered, 1);
    world.give(BOB, &rej);
    let Some(Event::Rejected { id, reason, info, private_data, timewait }) = world.event(ANN)
    else {
        panic!()
    };
    assert_eq!((id, reason, timewait), (a, RejReason::ConsumerDefined, false));
    assert_eq!((&*info, &private_data[..3]), (&b"why"[..], &b"no\0"[..]));
    assert_eq!(world.state(ANN, a), None);
    assert_eq!(world.cms[ANN].counters().rejects(reason), 1);
    // For the owner it is over.
    let error = world.call(BOB, |cm, now, out| cm.disconnect(now, b, b"", out));
    assert_eq!(error, Err(Error::NoConnection(b)));
    world.settle();
}

#[test]
fn the_active_side_refuses_a_rep() {
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    world.deliver();
    let b = world.request().id;
    world.accept(b, 0x12);
    let rep = world.take(BOB);
    world.give(BOB, &rep);
    world.events(ANN);
    no(&mut world, ANN, a);
    let rej = world.take(ANN);
    let CmMessage::Rej(message) = only(&rej) else { panic!() };
    assert_eq!((message.message, message.remote_comm_id), (RejMessage::Rep, b));
    // It was lost: the REP comes again and gets the same.
    world.give(BOB, &rep);
    assert_eq!(world.take(ANN), rej);
    world.give(ANN, &rej);
    assert!(
        matches!(world.event(BOB), Some(Event::Rejected { id, timewait: true, .. }) if id == b)
    );
    world.settle();
}

#[test]
fn an_acceptance_is_taken_back() {
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    world.deliver();
    let b = world.request().id;
    world.accept(b, 0x12);
    world.deliver();
    world.establish(a);
    world.take(ANN);
    world.events(ANN);
    no(&mut world, BOB, b);
    assert_eq!(world.state(BOB, b), Some(State::Timewait));
    world.deliver();
    let how = Closed::Rejected(RejReason::ConsumerDefined);
    assert_eq!(world.event(ANN), Some(Event::Disconnected { id: a, how }));
    world.settle();
}

/// The REJ that bob answers a changed REQ with.
fn answer(change: impl FnOnce(&mut Req)) -> (Rej, World) {
    let (mut world, _) = World::listening();
    world.connect(0x11);
    let CmMessage::Req(mut req) = only(&world.take(ANN)) else { panic!() };
    change(&mut req);
    world.forge(BOB, "10.0.0.1", req);
    assert_eq!(world.event(BOB), None);
    assert!(world.cms[BOB].stats().is_idle(), "nothing is kept of what cannot be");
    let CmMessage::Rej(rej) = only(&world.flight[BOB]) else { panic!() };
    assert_eq!((rej.remote_comm_id, rej.message), (req.local_comm_id, RejMessage::Req));
    (rej, world)
}

/// IBA 12.6.7.2: each thing that can be wrong with a REQ has its reason.
#[test]
fn a_req_that_cannot_be_granted_is_told_why() {
    type Case = (fn(&mut Req), RejReason, Vec<u8>);
    let cases: [Case; 10] = [
        (|r| r.service_id = ServiceId::tcp(PORT + 1), RejReason::InvalidServiceId, vec![]),
        (|r| r.service_id = ServiceId::udp(PORT), RejReason::InvalidServiceId, vec![]),
        (
            |r| r.primary.remote_gid = Gid::from(address(ANN)),
            RejReason::InvalidGid,
            Gid::from(address(BOB)).0.to_vec(),
        ),
        (|r| r.primary.local_gid = Gid::from(address(BOB)), RejReason::InvalidGid, vec![]),
        (|r| r.transport_service = TransportService::Rd, RejReason::InvalidTransport, vec![]),
        (
            |r| (r.transport_service, r.extended_transport) = (TransportService::Extended, 2),
            RejReason::InvalidTransport,
            vec![],
        ),
        (|r| r.mtu = MtuCode(0), RejReason::InvalidMtu, vec![5]),
        (|r| r.mtu = MtuCode(6), RejReason::InvalidMtu, vec![5]),
        (|r| r.local_qpn = Qpn::GSI, RejReason::UnsupportedRequest, vec![]),
        (|r| r.pkey = PKey(0x8001), RejReason::UnsupportedRequest, vec![]),
    ];
    for (change, reason, info) in cases {
        let (rej, world) = answer(change);
        assert_eq!((rej.reason, rej.additional_info()), (reason, Ok(&info[..])));
        let why = match reason {
            RejReason::InvalidServiceId => Drop::NoListener,
            _ => Drop::BadRequest,
        };
        assert_eq!(world.cms[BOB].counters().drops(why), 1, "{reason}");
    }
}

/// A program that trusts the address in a request must be able to.
#[test]
fn an_ip_header_must_tell_the_addresses_that_the_message_has() {
    for at in [0, 1, 16 + 3, 32 + 3] {
        let (rej, _) = answer(|req| req.private_data[at] ^= 0x5f);
        assert_eq!(rej.reason, RejReason::UnsupportedRequest, "byte {at}");
    }
}

#[test]
fn a_listener_of_native_addresses_takes_any_private_data() {
    let mut world = World::new();
    let service_id = ServiceId(0x1234_5678_9abc);
    let listen = Listen { ip: false, service_id, ..Listen::port(PortSpace::Ib, 1, 1) };
    world.cms[BOB].listen(&listen).unwrap();
    let data: Vec<u8> = (0..92).collect();
    let want = Connect { service_id, ip: None, private_data: &data, ..want(0x11) };
    world.call(ANN, |cm, now, out| cm.connect(now, &want, out)).unwrap();
    world.deliver();
    let request = world.request();
    assert_eq!((request.private_data(), request.ip), (&data[..], None));
}

#[test]
fn a_larger_mtu_than_the_device_s_is_refused() {
    let mut world =
        World::with(Config::new(0xa, 1), Config { mtu: Mtu::B1024, ..Config::new(0xb, 2) });
    world.cms[BOB].listen(&Listen::port(PortSpace::Tcp, PORT, 1)).unwrap();
    let mut want = want(0x11);
    want.path.mtu = Mtu::B2048;
    world.call(ANN, |cm, now, out| cm.connect(now, &want, out)).unwrap();
    world.deliver();
    let Some(Event::Rejected { reason, info, .. }) = world.event(ANN) else { panic!() };
    assert_eq!((reason, &*info), (RejReason::InvalidMtu, &[3][..]));
}

/// IBA 12.6.7.2, reason 31.
#[test]
fn another_class_version_is_told_which_is_spoken_here() {
    let (mut world, _) = World::listening();
    world.connect(0x11);
    let mut mads = world.take(ANN);
    mads[0].1[2] = 1;
    world.give(ANN, &mads);
    let CmMessage::Rej(rej) = only(&world.flight[BOB]) else { panic!() };
    assert_eq!((rej.reason, rej.additional_info()), (RejReason::InvalidClassVersion, Ok(&[2][..])));
    assert_eq!(world.cms[BOB].counters().drops(Drop::ClassVersion), 1);
    world.deliver();
    assert!(matches!(world.event(ANN), Some(Event::Rejected { .. })));
}

#[test]
fn what_is_no_cm_message_is_counted() {
    let mut world = World::new();
    let route = urxe_cm::Route::new(address(BOB), address(ANN));
    for bytes in [&[][..], &[1, 7, 2, 3], &[0; MAD_LEN], &[1; MAD_LEN + 1]] {
        world.call(BOB, |cm, now, out| cm.receive(now, &route, bytes, out));
    }
    assert_eq!(world.cms[BOB].counters().drops(Drop::Malformed), 4);
    assert!(world.log().is_empty());
}

#[test]
fn a_closed_listener_refuses_what_waits_and_leaves_connections() {
    let (mut world, listener) = World::listening();
    let (a, b) = world.establish_one(0x11, 0x12);
    world.connect(0x21);
    world.deliver();
    let waiting = world.request().id;
    world.call(BOB, |cm, now, out| cm.unlisten(now, listener, out)).unwrap();
    assert_eq!(world.state(BOB, b), Some(State::Established));
    let error = world.call(BOB, |cm, now, out| cm.disconnect(now, waiting, b"", out));
    assert_eq!(error, Err(Error::NoConnection(waiting)));
    world.deliver();
    assert!(matches!(world.event(ANN), Some(Event::Rejected { .. })));
    assert_eq!(world.state(ANN, a), Some(State::Established));
    // Nothing listens any more, and the port is free.
    world.connect(0x31);
    world.deliver();
    let Some(Event::Rejected { reason, .. }) = world.event(ANN) else { panic!() };
    assert_eq!(reason, RejReason::InvalidServiceId);
    world.cms[BOB].listen(&Listen::port(PortSpace::Tcp, PORT, 4)).unwrap();
    let error = world.call(BOB, |cm, now, out| cm.unlisten(now, listener, out));
    assert_eq!(error, Err(Error::NoListener(listener)));
}

#[test]
fn a_service_is_listened_to_once_at_each_address() {
    let mut world = World::new();
    let bob = &mut world.cms[BOB];
    let any = Listen::port(PortSpace::Tcp, PORT, 1);
    let one = Listen { address: Some(address(BOB)), ..any };
    let other = Listen { address: Some(address(ANN)), ..any };
    let first = bob.listen(&any).unwrap();
    assert_eq!(bob.listen(&any), Err(Error::ServiceInUse(any.service_id)));
    let second = bob.listen(&one).unwrap();
    bob.listen(&other).unwrap();
    let none = Listen { backlog: 0, ..any };
    assert_eq!(bob.listen(&none).unwrap_err().to_string(), "backlog is 0, wanted 1 or more");
    // The one that says the address goes first.
    world.connect(0x11);
    world.deliver();
    assert_eq!(world.request().listener, second);
    assert_ne!(first, second);
}

/// Alternate paths are not supported, and who asks for one is told so.
#[test]
fn lap_and_alternate_paths_are_answered_as_unsupported() {
    use urxe_wire::cm::{AprStatus, Failover};
    let (mut world, a, b) = World::established();
    let lap =
        |local_comm_id, remote_comm_id| Lap { local_comm_id, remote_comm_id, ..Lap::default() };
    let mut status = |local, remote, from| {
        world.forge(BOB, from, lap(local, remote));
        world.take(BOB).first().map(|(_, mad)| match crate::world::parse(mad).1 {
            CmMessage::Apr(apr) => apr.status,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(status(a, b, "10.0.0.1"), Some(AprStatus::Unsupported));
    assert_eq!(status(a, CommId(1), "10.0.0.1"), Some(AprStatus::InvalidCommId));
    assert_eq!(status(a, b, "10.0.0.3"), None);

    let (mut world, _) = World::listening();
    world.connect(0x11);
    let CmMessage::Req(mut req) = only(&world.take(ANN)) else { panic!() };
    req.alternate = req.primary;
    world.forge(BOB, "10.0.0.1", req);
    let b = world.request().id;
    world.accept(b, 0x12);
    let CmMessage::Rep(rep) = only(&world.take(BOB)) else { panic!() };
    assert_eq!(rep.failover, Failover::Unsupported);
}

#[test]
fn a_refusal_is_remembered_while_its_question_may_come_again() {
    let (mut world, _) = World::listening();
    world.connect(0x11);
    let req = world.take(ANN);
    world.give(ANN, &req);
    let b = world.request().id;
    no(&mut world, BOB, b);
    world.take(BOB);
    // Twice the time after which the peer asks again; each time it does, anew.
    for _ in 0..3 {
        world.pass(crate::world::INTERVAL * 2 - TIMEWAIT);
        world.take(ANN);
        world.give(ANN, &req);
        assert!(matches!(only(&world.take(BOB)), CmMessage::Rej(_)));
        assert_eq!(world.event(BOB), None);
    }
    world.pass(crate::world::INTERVAL * 2);
    assert_eq!(world.cms[BOB].stats().remembered, 0);
}

/// Who was told to wait asks again only after that.
#[test]
fn a_refusal_after_an_mra_is_remembered_longer() {
    let (mut world, _) = World::listening();
    world.connect(0x11);
    let req = world.take(ANN);
    world.give(ANN, &req);
    let b = world.request().id;
    let wait = urxe_wire::cm::CmTimeout::new(24).unwrap();
    world.call(BOB, |cm, _, out| cm.mra(b, wait, b"", out)).unwrap();
    no(&mut world, BOB, b);
    world.take(BOB);
    world.pass(wait.duration());
    world.give(ANN, &req);
    assert!(matches!(only(&world.take(BOB)), CmMessage::Rej(_)));
}
