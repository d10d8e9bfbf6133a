//! What an exchange says of both QPs.

use urxe_cm::{Accept, Connect, Ece, Event, QpAttrs, Transport};
use urxe_wire::cm::{CmMessage, RetryCount};
use urxe_wire::{Mtu, Psn, Qpn};

use crate::world::{ANN, BOB, World, address, only, parse, want};

fn count(n: u8) -> RetryCount {
    RetryCount::new(n).unwrap()
}

/// The attributes of ann's QP and of bob's.
fn exchange(want: &Connect<'_>, with: &Accept<'_>) -> [QpAttrs; 2] {
    let (mut world, _) = World::listening();
    let a = world.call(ANN, |cm, now, out| cm.connect(now, want, out)).unwrap();
    assert!(world.cms[ANN].qp_attrs(a).is_err(), "the peer's QP is not known yet");
    world.deliver();
    let b = world.request().id;
    let before = world.cms[BOB].attrs_for(b, with).unwrap();
    world.call(BOB, |cm, now, out| cm.accept(now, b, with, out)).unwrap();
    assert_eq!(world.cms[BOB].qp_attrs(b), Ok(before));
    world.deliver();
    [world.cms[ANN].qp_attrs(a).unwrap(), before]
}

fn accept() -> Accept<'static> {
    Accept { rnr_retry_count: count(6), ..Accept::new(Qpn::new(0x12), Psn::new(200)) }
}

/// As Linux drivers/infiniband/core/cm.c, `ib_cm_init_qp_attr`, fills them.
#[test]
fn both_qps_are_told_the_same_from_both_sides() {
    let mut want = want(0x11);
    want.path.mtu = Mtu::B2048;
    want.path.traffic_class = 0x28;
    (want.retry_count, want.rnr_retry_count) = (count(5), count(3));
    (want.responder_resources, want.initiator_depth) = (8, 4);
    let [ann, bob] = exchange(&want, &accept());
    // A starting PSN is the one that its sender expects: the first that the other side sends.
    assert_eq!((ann.rtr.rq_psn, bob.rts.sq_psn), (Psn::new(100), Psn::new(100)));
    assert_eq!((bob.rtr.rq_psn, ann.rts.sq_psn), (Psn::new(200), Psn::new(200)));
    assert_eq!((ann.rtr.dest_qpn, bob.rtr.dest_qpn), (Qpn::new(0x12), Qpn::new(0x11)));
    for (attrs, local, remote) in [(ann, ANN, BOB), (bob, BOB, ANN)] {
        assert_eq!(attrs.rtr.mtu, Mtu::B2048);
        let path = attrs.rtr.path;
        assert_eq!((path.local, path.remote), (address(local), address(remote)));
        assert_eq!((path.hop_limit, path.traffic_class), (64, 0x28));
        assert_eq!(path.flow_label, want.path.flow_label);
        assert_eq!(attrs.rts.timeout.code(), 17);
        // The REQ says how often both QPs retry.
        assert_eq!(attrs.rts.retry_cnt, count(5));
        assert_eq!(attrs.init.pkey, urxe_wire::PKey::DEFAULT);
        assert!(attrs.init.remote_write && attrs.init.remote_read_atomic);
    }
    // Each side says how often the other retries after an RNR NAK.
    assert_eq!((ann.rts.rnr_retry, bob.rts.rnr_retry), (count(6), count(3)));
    // What one side may have outstanding the other serves.
    assert_eq!((ann.rts.max_rd_atomic, bob.rtr.max_dest_rd_atomic), (4, 4));
    assert_eq!((bob.rts.max_rd_atomic, ann.rtr.max_dest_rd_atomic), (8, 8));
}

#[test]
fn depths_are_the_least_of_what_both_sides_have() {
    let mut want = want(0x11);
    (want.responder_resources, want.initiator_depth) = (2, 100);
    let with = Accept { responder_resources: 7, initiator_depth: 5, ..accept() };
    let [ann, bob] = exchange(&want, &with);
    assert_eq!((ann.rts.max_rd_atomic, bob.rtr.max_dest_rd_atomic), (7, 7));
    assert_eq!((bob.rts.max_rd_atomic, ann.rtr.max_dest_rd_atomic), (2, 2));
    (want.responder_resources, want.initiator_depth) = (8, 8);
    let [ann, bob] = exchange(&want, &with);
    assert_eq!((bob.rts.max_rd_atomic, ann.rtr.max_dest_rd_atomic), (5, 5));
    (want.responder_resources, want.initiator_depth) = (0, 0);
    let [ann, bob] = exchange(&want, &with);
    assert!(!ann.init.remote_read_atomic && !bob.init.remote_read_atomic);
}

#[test]
fn a_slower_device_lengthens_the_peer_s_ack_timeout() {
    let slow = urxe_cm::Config {
        ack_delay: urxe_wire::cm::CmTimeout::new(20).unwrap(),
        ..urxe_cm::Config::new(0xb, 2)
    };
    let mut world = World::with(urxe_cm::Config::new(0xa, 1), slow);
    let listen = urxe_cm::Listen::port(urxe_wire::cm::PortSpace::Tcp, crate::world::PORT, 1);
    world.cms[BOB].listen(&listen).unwrap();
    let a = world.connect(0x11);
    world.deliver();
    let b = world.request().id;
    world.accept(b, 0x12);
    world.deliver();
    assert_eq!(world.cms[ANN].qp_attrs(a).unwrap().rts.timeout.code(), 20);
    assert_eq!(world.cms[BOB].qp_attrs(b).unwrap().rts.timeout.code(), 17);
}

#[test]
fn uc_and_xrc_are_said_in_the_req() {
    let uc = Connect { transport: Transport::Uc, ..want(0x11) };
    let [ann, bob] = exchange(&uc, &accept());
    assert_eq!((ann.transport, bob.transport), (Transport::Uc, Transport::Uc));

    let (mut world, _) = World::listening();
    let xrc = Connect { transport: Transport::Xrc, initiator_depth: 3, ..want(0x11) };
    world.call(ANN, |cm, now, out| cm.connect(now, &xrc, out)).unwrap();
    let CmMessage::Req(req) = only(&world.flight[ANN]) else { panic!() };
    // The side that sends serves nothing.
    assert_eq!((req.responder_resources, req.initiator_depth), (0, 3));
    assert_eq!((req.transport_service.code(), req.extended_transport), (3, 1));
    world.deliver();
    let request = world.request();
    assert_eq!(request.transport, Transport::Xrc);
    world.accept(request.id, 0x12);
    let CmMessage::Rep(rep) = only(&world.flight[BOB]) else { panic!() };
    // The QPN of the side that receives stands in the EE context (Linux core/cm.c).
    assert_eq!((rep.local_eecn, rep.local_qpn, rep.srq), (0x12, Qpn::new(0), true));
    world.deliver();
    let Some(Event::ConnectResponse(response)) = world.event(ANN) else { panic!() };
    assert_eq!(response.remote_qpn, Qpn::new(0x12));
    let attrs = world.cms[ANN].qp_attrs(response.id).unwrap();
    assert_eq!((attrs.rts.max_rd_atomic, attrs.rtr.max_dest_rd_atomic), (3, 0));
}

#[test]
fn vendor_options_go_both_ways() {
    let (mut world, _) = World::listening();
    let (ours, theirs) = (
        Ece { vendor_id: 0x15_b3c9, options: 0x3000_0002 },
        Ece { vendor_id: 0x01_0203, options: 7 },
    );
    let want = Connect { ece: Some(ours), ..want(0x11) };
    world.call(ANN, |cm, now, out| cm.connect(now, &want, out)).unwrap();
    assert_eq!(parse(&world.flight[ANN][0].1).0.attribute_modifier, 0x3000_0002);
    world.deliver();
    let request = world.request();
    assert_eq!(request.ece, ours);
    let with = Accept { ece: Some(theirs), ..accept() };
    world.call(BOB, |cm, now, out| cm.accept(now, request.id, &with, out)).unwrap();
    world.deliver();
    let Some(Event::ConnectResponse(response)) = world.event(ANN) else { panic!() };
    assert_eq!(response.ece, theirs);
}
