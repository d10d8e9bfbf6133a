//! A peer can break its own connections, and no other.

use urxe_cm::{Drop, Event, State};
use urxe_wire::Qpn;
use urxe_wire::cm::{
    CmMessage, CmTimeout, CommId, Drep, Dreq, Mra, MraMessage, Rej, RejReason, Rep, Rtu,
};

use crate::world::{ANN, BOB, World};

/// All messages that can touch a connection, with the right ids.
fn attacks(ours: CommId, theirs: CommId, qpn: u32) -> Vec<CmMessage> {
    let (local_comm_id, remote_comm_id) = (theirs, ours);
    let remote_qpn = Qpn::new(qpn);
    let rej = |reason| Rej { local_comm_id, remote_comm_id, reason, ..Rej::default() };
    let timeout = Rej { remote_comm_id: CommId(0), ..rej(RejReason::Timeout) };
    let service_timeout = CmTimeout::MAX;
    let mra = |message| {
        let mra = Mra { local_comm_id, remote_comm_id, message, ..Mra::default() };
        Mra { service_timeout, ..mra }
    };
    let rep_qpn = Qpn::new(0x666);
    vec![
        Rep { local_comm_id, remote_comm_id, local_qpn: rep_qpn, ..Rep::default() }.into(),
        Rtu { local_comm_id, remote_comm_id, ..Rtu::default() }.into(),
        rej(RejReason::ConsumerDefined).into(),
        rej(RejReason::StaleConnection).into(),
        timeout.into(),
        mra(MraMessage::Req).into(),
        mra(MraMessage::Rep).into(),
        Dreq { local_comm_id, remote_comm_id, remote_qpn, ..Dreq::default() }.into(),
        Drep { local_comm_id, remote_comm_id, ..Drep::default() }.into(),
    ]
}

#[test]
fn no_message_of_another_address_touches_a_connection_in_any_state() {
    let steps: [fn(&mut World, CommId, CommId); 7] = [
        |_, _, _| {},
        |w, _, b| w.accept(b, 0x12),
        |w, _, _| w.deliver(),
        |w, a, _| w.establish(a),
        |w, _, _| w.deliver(),
        |w, a, _| w.disconnect(ANN, a),
        |w, _, _| w.deliver(),
    ];
    let (mut world, _) = World::listening();
    let a = world.connect(0x11);
    world.deliver();
    let b = world.request().id;
    for (n, step) in steps.iter().enumerate() {
        step(&mut world, a, b);
        world.events(ANN);
        world.events(BOB);
        let states = (world.state(ANN, a), world.state(BOB, b));
        let deadlines = world.cms.each_ref().map(urxe_cm::Cm::next_deadline);
        world.log();
        for (who, ours, theirs, qpn) in [(ANN, a, b, 0x11), (BOB, b, a, 0x12)] {
            for attack in attacks(ours, theirs, qpn) {
                world.forge(who, "10.0.0.66", attack);
                assert_eq!(world.event(who), None, "step {n}: {attack:?}");
                assert!(world.log().is_empty(), "step {n}: {attack:?}");
            }
        }
        assert_eq!((world.state(ANN, a), world.state(BOB, b)), states, "step {n}");
        assert_eq!(world.cms.each_ref().map(urxe_cm::Cm::next_deadline), deadlines, "step {n}");
    }
    assert!(world.cms[BOB].counters().drops(Drop::WrongAddress) > 0);
}

#[test]
fn no_message_of_another_connection_s_peer_touches_a_connection() {
    let (mut world, a, b) = World::established();
    // A second one between the same addresses; its messages name the first.
    let (_, second) = world.establish_one(0x21, 0x22);
    for attack in attacks(b, second, 0x12) {
        world.forge(BOB, "10.0.0.1", attack);
    }
    assert_eq!(world.state(BOB, b), Some(State::Established));
    assert_eq!(world.state(ANN, a), Some(State::Established));
    assert_eq!(world.event(BOB), None);
}

#[test]
fn any_message_to_nobody_keeps_nothing_and_answers_at_most_once() {
    let mut world = World::new();
    for attack in attacks(CommId(5), CommId(6), 9) {
        world.forge(BOB, "10.0.0.1", attack);
        assert!(world.take(BOB).len() <= 1);
        assert!(world.cms[BOB].stats().is_idle());
        assert!(!matches!(world.event(BOB), Some(Event::Rejected { .. })));
    }
}

/// What is answered without a connection must not be answered with something that is answered.
#[test]
fn two_managers_never_answer_each_other_without_end() {
    for attack in attacks(CommId(5), CommId(6), 9) {
        let mut world = World::new();
        world.forge(BOB, "10.0.0.1", attack);
        for _ in 0..3 {
            world.deliver();
        }
        assert!(world.flight.iter().all(Vec::is_empty), "{attack:?}");
    }
}
