//! A connection ends.

use urxe_cm::{Accept, Closed, Drop, Error, Event, State, Why};
use urxe_wire::cm::{CmMessage, Drep, Dreq};
use urxe_wire::{Psn, Qpn};

use crate::world::{ANN, BOB, TIMEWAIT, World, only};

#[test]
fn dreq_and_drep_end_a_connection_and_timewait_frees_the_qpns() {
    let (mut world, a, b) = World::established();
    world.disconnect(ANN, a);
    assert_eq!(world.state(ANN, a), Some(State::DreqSent));
    world.deliver();
    let Some(Event::DisconnectRequest { id, private_data }) = world.event(BOB) else { panic!() };
    assert_eq!((id, &private_data[..4]), (b, &b"bye\0"[..]));
    assert_eq!(world.state(BOB, b), Some(State::DreqReceived));
    world.disconnect(BOB, b);
    world.deliver();
    assert_eq!(world.event(ANN), Some(Event::Disconnected { id: a, how: Closed::Agreed }));
    assert_eq!(world.log(), ["a DREQ", "b DREP"]);
    let start = world.now;
    for (who, id) in [(ANN, a), (BOB, b)] {
        assert_eq!(world.state(who, id), Some(State::Timewait));
        assert_eq!(world.cms[who].stats().timewait, 1);
        let deadline = world.cms[who].next_deadline().unwrap();
        assert_eq!((deadline.at - start, deadline.why), (TIMEWAIT, Why::Timewait));
    }
    world.pass(TIMEWAIT);
    let exit = |id, qpn| Some(Event::TimewaitExit { id, qpn: Qpn::new(qpn) });
    assert_eq!(world.event(ANN), exit(a, 0x11));
    assert_eq!(world.event(BOB), exit(b, 0x12));
    assert!(world.cms.iter().all(|cm| cm.stats().is_idle()));
}

#[test]
fn a_qpn_is_not_used_before_its_timewait_is_over() {
    let (mut world, a, b) = World::established();
    let want = crate::world::want(0x11);
    let busy = |of, qpn| Err(Error::QpnInUse { qpn: Qpn::new(qpn), of });
    let got = world.call(ANN, |cm, now, out| cm.connect(now, &want, out));
    assert_eq!(got, busy(a, 0x11));
    world.disconnect(ANN, a);
    world.deliver();
    world.disconnect(BOB, b);
    world.deliver();
    let got = world.call(ANN, |cm, now, out| cm.connect(now, &want, out));
    assert_eq!(got, busy(a, 0x11));
    world.connect(0x21);
    world.deliver();
    world.events(ANN);
    let events = world.events(BOB);
    let Some(Event::ConnectRequest(request)) = events.last() else { panic!() };
    let with = Accept::new(Qpn::new(0x12), Psn::new(0));
    let got = world.call(BOB, |cm, now, out| cm.accept(now, request.id, &with, out));
    assert_eq!(got, busy(b, 0x12).map(drop));
    world.pass(TIMEWAIT);
    world.connect(0x11);
    world.accept(request.id, 0x12);
}

#[test]
fn both_sides_may_end_it_at_once() {
    let (mut world, a, b) = World::established();
    world.disconnect(ANN, a);
    world.disconnect(BOB, b);
    let (from_ann, from_bob) = (world.take(ANN), world.take(BOB));
    world.give(ANN, &from_ann);
    world.give(BOB, &from_bob);
    assert_eq!(world.event(ANN), Some(Event::Disconnected { id: a, how: Closed::Both }));
    assert_eq!(world.event(BOB), Some(Event::Disconnected { id: b, how: Closed::Both }));
    world.deliver();
    assert_eq!(world.log(), ["a DREQ", "b DREQ", "b DREP", "a DREP"]);
    assert_eq!((world.event(ANN), world.event(BOB)), (None, None));
    world.settle();
}

#[test]
fn a_duplicate_dreq_gets_the_same_drep_in_timewait_and_one_later() {
    let (mut world, a, b) = World::established();
    world.disconnect(ANN, a);
    let dreq = world.take(ANN);
    world.give(ANN, &dreq);
    world.give(ANN, &dreq);
    assert_eq!(world.cms[BOB].counters().drops(Drop::Duplicate), 1);
    assert!(world.take(BOB).is_empty(), "the owner has not agreed yet");
    world.disconnect(BOB, b);
    let drep = world.take(BOB);
    world.give(ANN, &dreq);
    assert_eq!(world.take(BOB), drep);
    world.events(BOB);
    world.pass(TIMEWAIT);
    world.events(BOB);
    world.give(ANN, &dreq);
    let CmMessage::Drep(got) = only(&world.take(BOB)) else { panic!() };
    let CmMessage::Drep(first) = only(&drep) else { panic!() };
    assert_eq!((got.local_comm_id, got.remote_comm_id), (b, first.remote_comm_id));
    assert_eq!(world.event(BOB), None);
}

#[test]
fn a_dreq_for_another_qp_ends_nothing() {
    let (mut world, a, b) = World::established();
    let dreq =
        Dreq { local_comm_id: a, remote_comm_id: b, remote_qpn: Qpn::new(0x13), ..Dreq::default() };
    world.forge(BOB, "10.0.0.1", dreq);
    assert_eq!(world.state(BOB, b), Some(State::Established));
    assert_eq!(world.cms[BOB].counters().drops(Drop::WrongQpn), 1);
    assert!(world.log().is_empty());
}

#[test]
fn a_drep_that_nobody_asked_for_ends_nothing() {
    let (mut world, a, b) = World::established();
    let drep = Drep { local_comm_id: a, remote_comm_id: b, ..Drep::default() };
    world.forge(BOB, "10.0.0.1", drep);
    assert_eq!(world.state(BOB, b), Some(State::Established));
    assert_eq!(world.cms[BOB].counters().drops(Drop::WrongState), 1);
}

/// Whatever the state, an owner that goes away leaves nothing behind.
#[test]
fn abandoning_ends_every_state() {
    for step in 0..8 {
        let (mut world, _) = World::listening();
        let a = world.connect(0x11);
        world.deliver();
        let b = world.request().id;
        let steps: [fn(&mut World, _, _); 7] = [
            |w, _, b| w.accept(b, 0x12),
            |w, _, _| w.deliver(),
            |w, a, _| w.establish(a),
            |w, _, _| w.deliver(),
            |w, a, _| w.disconnect(ANN, a),
            |w, _, _| w.deliver(),
            |w, _, b| w.disconnect(BOB, b),
        ];
        for step in &steps[..step] {
            step(&mut world, a, b);
        }
        for (who, id) in [(ANN, a), (BOB, b)] {
            if world.state(who, id).is_some() {
                world.call(who, |cm, now, out| cm.abandon(now, id, out)).unwrap();
            }
            world.deliver();
        }
        for _ in 0..4 {
            world.deliver();
            for (who, id) in [(ANN, a), (BOB, b)] {
                // An owner that still hears of it agrees.
                for event in world.events(who) {
                    let asked = matches!(event, Event::DisconnectRequest { .. });
                    if asked && world.state(who, id) == Some(State::DreqReceived) {
                        world.disconnect(who, id);
                    }
                }
            }
        }
        world.settle();
    }
}
