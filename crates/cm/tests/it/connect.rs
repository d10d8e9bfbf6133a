//! A connection is made.

use urxe_cm::{Accept, Count, Drop, Error, Event, How, Message, State};
use urxe_wire::cm::{CmMessage, PortSpace, Rtu, ServiceId};
use urxe_wire::{Psn, Qpn};

use crate::world::{ANN, BOB, World, address, only, parse, want};

#[test]
fn req_rep_and_rtu_make_a_connection() {
    let (mut world, listener) = World::listening();
    let a = world.connect(0x11);
    assert_eq!(world.state(ANN, a), Some(State::ReqSent));
    world.deliver();
    let request = world.request();
    assert_eq!(request.listener, listener);
    assert_eq!(request.route.remote, address(ANN));
    assert_eq!(request.remote_qpn, Qpn::new(0x11));
    assert_eq!(request.remote_ca_guid, 0xa);
    assert_eq!(request.ip.unwrap().source().port(), 40000);
    assert_eq!(&request.private_data()[..6], b"hello\0");
    assert_eq!(request.private_data().len(), 56);
    let b = request.id;
    let with = Accept { private_data: b"welcome", ..request.accept(Qpn::new(0x12), Psn::new(200)) };
    world.call(BOB, |cm, now, out| cm.accept(now, b, &with, out)).unwrap();
    assert_eq!(world.state(BOB, b), Some(State::RepSent));
    world.deliver();
    let Some(Event::ConnectResponse(response)) = world.event(ANN) else { panic!() };
    assert_eq!((response.id, response.remote_qpn), (a, Qpn::new(0x12)));
    assert_eq!(response.remote_ca_guid, 0xb);
    assert_eq!(&response.private_data[..8], b"welcome\0");
    world.establish(a);
    world.deliver();
    let Some(Event::Established { id, how, private_data }) = world.event(BOB) else { panic!() };
    assert_eq!((id, how, &private_data[..4]), (b, How::Rtu, &b"rtu\0"[..]));
    assert_eq!(world.log(), ["a REQ", "b REP", "a RTU"]);
    for (who, id) in [(ANN, a), (BOB, b)] {
        assert_eq!(world.state(who, id), Some(State::Established));
        assert_eq!(world.cms[who].stats().established, 1);
        assert_eq!(world.cms[who].counters().get(Count::Established), 1);
        // Nothing waits any more.
        assert_eq!(world.cms[who].next_deadline(), None);
    }
}

#[test]
fn answers_carry_the_request_s_transaction_id() {
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    let tid = parse(&world.flight[ANN][0].1).0.transaction_id;
    world.deliver();
    let b = world.request().id;
    world.accept(b, 0x12);
    assert_eq!(parse(&world.flight[BOB][0].1).0.transaction_id, tid);
    world.deliver();
    world.establish(a);
    assert_eq!(parse(&world.flight[ANN][0].1).0.transaction_id, tid);
    world.deliver();
    world.disconnect(ANN, a);
    let tid = parse(&world.flight[ANN][0].1).0.transaction_id;
    world.deliver();
    world.disconnect(BOB, b);
    assert_eq!(parse(&world.flight[BOB][0].1).0.transaction_id, tid);
}

/// First data counts as an RTU.
#[test]
fn data_establishes_when_the_rtu_is_lost() {
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    world.deliver();
    let b = world.request().id;
    world.accept(b, 0x12);
    world.deliver();
    world.establish(a);
    let rtu = world.take(ANN);
    assert!(!world.cms[BOB].notify_established(Qpn::new(0x11)), "no QP of bob's");
    assert!(world.cms[BOB].notify_established(Qpn::new(0x12)));
    let Some(Event::Established { how, .. }) = world.event(BOB) else { panic!() };
    assert_eq!(how, How::Data);
    // Once only; and the RTU, when it does come, changes nothing.
    assert!(!world.cms[BOB].notify_established(Qpn::new(0x12)));
    world.give(ANN, &rtu);
    assert_eq!(world.event(BOB), None);
    assert_eq!(world.cms[BOB].counters().drops(Drop::Duplicate), 1);
    assert!(!world.next(), "the REP is not sent again");
}

/// A DREQ is sent only by a side that has the connection.
#[test]
fn a_dreq_establishes_when_the_rtu_is_lost() {
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    world.deliver();
    let b = world.request().id;
    world.accept(b, 0x12);
    world.deliver();
    world.establish(a);
    world.take(ANN);
    world.disconnect(ANN, a);
    world.deliver();
    let events = world.events(BOB);
    assert!(matches!(events[0], Event::Established { how: How::Dreq, .. }));
    assert!(matches!(events[1], Event::DisconnectRequest { id, .. } if id == b));
}

#[test]
fn a_duplicate_req_gets_the_same_rep() {
    let (mut world, _) = World::listening();
    world.connect(0x11);
    let req = world.take(ANN);
    world.give(ANN, &req);
    let b = world.request().id;
    world.accept(b, 0x12);
    let first = world.take(BOB);
    world.give(ANN, &req);
    assert_eq!(world.take(BOB), first);
    assert_eq!(world.event(BOB), None, "the owner is not asked again");
    assert_eq!(world.cms[BOB].counters().drops(Drop::Duplicate), 1);
}

#[test]
fn a_duplicate_rep_gets_the_same_rtu() {
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    world.deliver();
    let b = world.request().id;
    world.accept(b, 0x12);
    let rep = world.take(BOB);
    world.give(BOB, &rep);
    world.establish(a);
    let rtu = world.take(ANN);
    world.events(ANN);
    world.give(BOB, &rep);
    assert_eq!(world.take(ANN), rtu);
    assert_eq!(world.event(ANN), None);
}

#[test]
fn a_late_duplicate_req_does_not_disturb_a_connection() {
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    let req = world.take(ANN);
    world.give(ANN, &req);
    let b = world.request().id;
    world.accept(b, 0x12);
    world.deliver();
    world.events(ANN);
    world.establish(a);
    world.deliver();
    world.events(BOB);
    world.log();
    world.give(ANN, &req);
    assert!(world.log().is_empty());
    assert_eq!((world.event(BOB), world.state(BOB, b)), (None, Some(State::Established)));
}

#[test]
fn an_rtu_of_another_peer_id_establishes_nothing() {
    let (mut world, _) = World::listening();
    world.connect(0x11);
    world.deliver();
    let b = world.request().id;
    world.accept(b, 0x12);
    let rtu = Rtu { local_comm_id: b, remote_comm_id: b, ..Rtu::default() };
    world.forge(BOB, "10.0.0.1", rtu);
    assert_eq!(world.state(BOB, b), Some(State::RepSent));
    assert_eq!(world.cms[BOB].counters().drops(Drop::WrongPeer), 1);
}

#[test]
fn calls_that_a_state_does_not_allow_are_told_so() {
    let (mut world, a, b) = World::established();
    let wrong = |error| matches!(error, Err(Error::WrongState { .. }));
    assert!(wrong(world.call(ANN, |cm, _, out| cm.establish(a, b"", out))));
    let with = Accept::new(Qpn::new(0x13), Psn::new(0));
    assert!(wrong(world.call(BOB, |cm, now, out| cm.accept(now, b, &with, out))));
    assert!(wrong(world.call(BOB, |cm, _, out| cm.mra(b, Default::default(), b"", out))));
    let error = world.call(ANN, |cm, now, out| {
        let reason = urxe_wire::cm::RejReason::ConsumerDefined;
        cm.reject(now, a, reason, b"", b"", out).unwrap_err()
    });
    let text = error.to_string();
    assert!(
        text.ends_with(
            "is in state established; reject needs a REQ or REP that was not \
                            answered"
        ),
        "{text}"
    );
    let none = urxe_wire::cm::CommId(0);
    let error = world.call(ANN, |cm, now, out| cm.disconnect(now, none, b"", out));
    assert_eq!(error, Err(Error::NoConnection(none)));
    assert!(world.log().is_empty());
}

/// IBA 12.6.5 to 12.6.11: what each message has room for.
#[test]
fn private_data_has_its_limits() {
    let (mut world, _) = World::listening();
    let long = [1; 225];
    let too_long =
        |message, len, room| Some(Error::TooLong { message, what: "private data", len, room });
    let want57 = urxe_cm::Connect { private_data: &long[..57], ..want(0x11) };
    let got = world.call(ANN, |cm, now, out| cm.connect(now, &want57, out)).err();
    assert_eq!(got, too_long(Message::Req, 57, 56));
    let want93 = urxe_cm::Connect { private_data: &long[..93], ip: None, ..want(0x11) };
    let got = world.call(ANN, |cm, now, out| cm.connect(now, &want93, out)).err();
    assert_eq!(got, too_long(Message::Req, 93, 92));
    assert!(world.log().is_empty());
    let a = world.connect(0x11);
    world.deliver();
    let b = world.request().id;
    let got = world.call(BOB, |cm, _, out| cm.mra(b, Default::default(), &long[..223], out)).err();
    assert_eq!(got, too_long(Message::Mra, 223, 222));
    let with = Accept { private_data: &long[..197], ..Accept::new(Qpn::new(9), Psn::new(0)) };
    let got = world.call(BOB, |cm, now, out| cm.accept(now, b, &with, out)).err();
    assert_eq!(got, too_long(Message::Rep, 197, 196));
    let reason = urxe_wire::cm::RejReason::ConsumerDefined;
    let reject = |cm: &mut urxe_cm::Cm, now, out: &mut dyn urxe_cm::Sink| {
        cm.reject(now, b, reason, b"", &long[..149], out)
    };
    assert_eq!(world.call(BOB, reject).err(), too_long(Message::Rej, 149, 148));
    world.accept(b, 0x12);
    world.deliver();
    let got = world.call(ANN, |cm, _, out| cm.establish(a, &long, out)).err();
    assert_eq!(got, too_long(Message::Rtu, 225, 224));
    world.establish(a);
    world.deliver();
    let got = world.call(ANN, |cm, now, out| cm.disconnect(now, a, &long[..221], out)).err();
    assert_eq!(got, too_long(Message::Dreq, 221, 220));
    world.disconnect(ANN, a);
    world.deliver();
    let got = world.call(BOB, |cm, now, out| cm.disconnect(now, b, &long, out)).err();
    assert_eq!(got, too_long(Message::Drep, 225, 224));
    assert_eq!(world.log(), ["a REQ", "b REP", "a RTU", "a DREQ"]);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let mut world = World::new();
    let mut refused = |change: fn(&mut urxe_cm::Connect<'_>)| {
        let mut want = want(0x11);
        change(&mut want);
        let error = world.call(ANN, |cm, now, out| cm.connect(now, &want, out)).unwrap_err();
        assert!(world.log().is_empty());
        error.to_string()
    };
    let text = refused(|want| want.timing.max_retries = 16);
    assert_eq!(text, "max_retries is 16, wanted 0 to 15");
    assert_eq!(refused(|want| want.qpn = Qpn::new(1)), "QPN is 1, wanted 0x2 to 0xfffffe");
    assert_eq!(refused(|w| w.path.flow_label = 1 << 20), "flow_label is 1048576, wanted 20 bits");
    assert_eq!(refused(|w| w.path.service_level = 16), "service_level is 16, wanted 0 to 15");
    refused(|w| w.responder_resources = 129);
    refused(|w| w.initiator_depth = 129);
    refused(|w| w.ece = Some(urxe_cm::Ece { vendor_id: 1 << 24, options: 0 }));
}

#[test]
fn ids_are_of_the_slot() {
    let config = urxe_cm::Config { slot: 3, ..urxe_cm::Config::new(1, 1) };
    let mut world = World::with(config, config);
    assert_eq!(world.connect(0x11).0 >> 26, 3);
}

#[test]
fn an_ipv6_connection_has_ipv6_in_its_header() {
    let mut world = World::new();
    let (from, to) = ("[fd00::1]:9".parse().unwrap(), "[fd00::2]:7".parse().unwrap());
    let (qpn, psn) = (Qpn::new(0x11), Psn::new(1));
    let want = urxe_cm::Connect::ip(PortSpace::Ib, from, to, qpn, psn).unwrap();
    world.call(ANN, |cm, now, out| cm.connect(now, &want, out)).unwrap();
    let CmMessage::Req(req) = only(&world.take(ANN)) else { panic!() };
    assert_eq!(req.service_id, ServiceId(0x013f_0007));
    let (ip, rest) = req.ip_header().unwrap();
    assert_eq!((ip.source(), ip.destination()), (from, to.ip()));
    assert_eq!(rest, [0; 56]);
    assert_eq!(req.primary.remote_gid.ip(), to.ip());
}

#[test]
fn a_device_connects_with_itself() {
    let (mut world, _) = World::listening();
    let itself = urxe_cm::Route::new(address(BOB), address(BOB));
    let mut want = want(0x11);
    want.route = itself;
    want.ip = Some(
        urxe_wire::cm::IpHeader::new(std::net::SocketAddr::new(address(BOB), 1), address(BOB))
            .unwrap(),
    );
    let a = world.call(BOB, |cm, now, out| cm.connect(now, &want, out)).unwrap();
    let mads = world.take(BOB);
    let back = |world: &mut World, mads: crate::world::Flight| {
        for (route, mad) in mads {
            world.call(BOB, |cm, now, out| cm.receive(now, &route, &mad, out));
        }
    };
    back(&mut world, mads);
    let b = world.request().id;
    world.accept(b, 0x12);
    let mads = world.take(BOB);
    back(&mut world, mads);
    assert!(matches!(world.event(BOB), Some(Event::ConnectResponse(_))));
    world.call(BOB, |cm, _, out| cm.establish(a, b"", out)).unwrap();
    let mads = world.take(BOB);
    back(&mut world, mads);
    assert!(matches!(world.event(BOB), Some(Event::Established { id, .. }) if id == b));
    assert_eq!(world.cms[BOB].stats().established, 2);
}
