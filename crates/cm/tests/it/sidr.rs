//! Which QP serves this? (IBA 12.11)

use std::net::SocketAddr;

use urxe_cm::{Count, Drop, Ece, Error, Event, Listen, Message, SidrAnswer, SidrAsk, Timing, Why};
use urxe_wire::cm::{CmMessage, CmTimeout, PortSpace, SidrRep, SidrStatus};
use urxe_wire::{QKey, Qpn};

use crate::world::{ANN, BOB, PORT, World, address, only};

fn ask() -> SidrAsk<'static> {
    let from = SocketAddr::new(address(ANN), 50000);
    let to = SocketAddr::new(address(BOB), PORT);
    SidrAsk { private_data: b"who?", ..SidrAsk::ip(PortSpace::Udp, from, to).unwrap() }
}

fn world() -> World {
    let mut world = World::new();
    world.cms[BOB].listen(&Listen::port(PortSpace::Udp, PORT, 2)).unwrap();
    world
}

#[test]
fn a_question_gets_a_qp_and_its_key() {
    let mut world = world();
    let a = world.call(ANN, |cm, now, out| cm.sidr_ask(now, &ask(), out)).unwrap();
    let req = world.take(ANN);
    world.give(ANN, &req);
    let Some(Event::SidrRequest(request)) = world.event(BOB) else { panic!() };
    assert_eq!((&request.private_data()[..5], request.private_data().len()), (&b"who?\0"[..], 180));
    assert_eq!(request.ip.unwrap().source().port(), 50000);
    // While it waits, a duplicate does not ask the owner again.
    world.give(ANN, &req);
    assert_eq!((world.event(BOB), world.take(BOB).len()), (None, 0));
    let ece = Ece { vendor_id: 0x0a_0b0c, options: 5 };
    let answer =
        SidrAnswer { private_data: b"me", ece: Some(ece), ..SidrAnswer::qp(Qpn::new(0x33)) };
    world.call(BOB, |cm, now, out| cm.sidr_answer(now, request.id, &answer, out)).unwrap();
    let rep = world.take(BOB);
    // A duplicate later on gets the same answer.
    world.give(ANN, &req);
    assert_eq!(world.take(BOB), rep);
    world.give(BOB, &rep);
    let Some(Event::SidrResponse(response)) = world.event(ANN) else { panic!() };
    assert_eq!((response.id, response.status), (a, SidrStatus::Success));
    assert_eq!((response.qpn, response.qkey), (Qpn::new(0x33), QKey::RDMA_CM_UDP));
    assert_eq!((&response.private_data[..3], response.ece), (&b"me\0"[..], ece));
    world.give(BOB, &rep);
    assert_eq!(world.cms[ANN].counters().drops(Drop::UnknownId), 1);
    world.settle();
}

#[test]
fn a_question_to_nobody_is_told_so() {
    let mut world = World::new();
    world.call(ANN, |cm, now, out| cm.sidr_ask(now, &ask(), out)).unwrap();
    world.deliver();
    let Some(Event::SidrResponse(response)) = world.event(ANN) else { panic!() };
    assert_eq!(response.status, SidrStatus::UnsupportedServiceId);
    assert!(world.cms.iter().all(|cm| cm.stats().is_idle()));
}

#[test]
fn a_question_without_answer_is_asked_again_and_given_up() {
    let mut world = world();
    let timing = Timing {
        remote_response: CmTimeout::new(18).unwrap(),
        max_retries: 3,
        ..Timing::default()
    };
    let ask = SidrAsk { timing, ..ask() };
    let a = world.call(ANN, |cm, now, out| cm.sidr_ask(now, &ask, out)).unwrap();
    let start = world.now;
    let deadline = world.cms[ANN].next_deadline().unwrap();
    assert_eq!((deadline.id, deadline.why), (a, Why::Answer(Message::SidrReq)));
    while world.next() {}
    assert_eq!(world.now - start, CmTimeout::new(18).unwrap().duration() * 4);
    assert_eq!(world.log(), ["a SIDR_REQ"; 4]);
    assert_eq!(world.event(ANN), Some(Event::SidrUnreachable { id: a }));
    assert_eq!(world.cms[ANN].counters().get(Count::Retried), 3);
    assert!(world.cms[ANN].stats().is_idle());
}

#[test]
fn an_answer_of_another_address_is_none() {
    let mut world = world();
    let a = world.call(ANN, |cm, now, out| cm.sidr_ask(now, &ask(), out)).unwrap();
    let rep = SidrRep { request_id: a, qpn: Qpn::new(9), ..SidrRep::default() };
    world.forge(ANN, "10.0.0.3", rep);
    assert_eq!((world.event(ANN), world.cms[ANN].stats().sidr), (None, 1));
    assert_eq!(world.cms[ANN].counters().drops(Drop::WrongAddress), 1);
    world.call(ANN, |cm, _, _| cm.sidr_abandon(a)).unwrap();
    assert!(world.cms[ANN].stats().is_idle());
    assert_eq!(world.cms[ANN].sidr_abandon(a), Err(Error::NoQuestion(a)));
}

#[test]
fn the_backlog_bounds_questions_and_closing_answers_them() {
    let mut world = World::new();
    let listener = world.cms[BOB].listen(&Listen::port(PortSpace::Udp, PORT, 2)).unwrap();
    for _ in 0..3 {
        world.call(ANN, |cm, now, out| cm.sidr_ask(now, &ask(), out)).unwrap();
    }
    world.deliver();
    assert_eq!(world.events(BOB).len(), 2);
    assert_eq!(world.cms[BOB].counters().drops(Drop::BacklogFull), 1);
    world.call(BOB, |cm, now, out| cm.unlisten(now, listener, out)).unwrap();
    world.deliver();
    let told = world.events(ANN);
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|event| {
        matches!(event, Event::SidrResponse(r) if r.status == SidrStatus::Rejected)
    }));
}

#[test]
fn an_ip_header_that_lies_is_refused() {
    let mut world = world();
    world.call(ANN, |cm, now, out| cm.sidr_ask(now, &ask(), out)).unwrap();
    let CmMessage::SidrReq(mut req) = only(&world.take(ANN)) else { panic!() };
    req.private_data[19] ^= 1;
    world.forge(BOB, "10.0.0.1", req);
    let CmMessage::SidrRep(rep) = only(&world.take(BOB)) else { panic!() };
    assert_eq!(rep.status, SidrStatus::Rejected);
    assert_eq!(world.event(BOB), None);
}

#[test]
fn another_class_version_is_told_so() {
    let mut world = world();
    world.call(ANN, |cm, now, out| cm.sidr_ask(now, &ask(), out)).unwrap();
    let mut mads = world.take(ANN);
    mads[0].1[2] = 3;
    world.give(ANN, &mads);
    let CmMessage::SidrRep(rep) = only(&world.take(BOB)) else { panic!() };
    assert_eq!(rep.status, SidrStatus::UnsupportedVersion);
}

#[test]
fn private_data_has_its_limits() {
    let mut world = world();
    let long = [0; 181];
    let ask = SidrAsk { private_data: &long, ..ask() };
    let got = world.call(ANN, |cm, now, out| cm.sidr_ask(now, &ask, out)).unwrap_err();
    let what = "private data";
    assert_eq!(got, Error::TooLong { message: Message::SidrReq, what, len: 181, room: 180 });
}
