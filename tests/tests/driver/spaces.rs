//! Two hosts: network namespaces with a link between them, every kind of port to every other.

use urxe::{Address, Config, Context, Error, PortError, PortKind};

use crate::namespace::{Namespace, pair};
use crate::operations::{self, Link};
use crate::rig::{eventually, patient};

fn open(space: &Namespace, v6: bool, n: u8, kind: PortKind, faults: &str) -> Context {
    open_as(space, v6, n, kind, faults, patient().profile)
}

fn open_as(
    space: &Namespace,
    v6: bool,
    n: u8,
    kind: PortKind,
    faults: &str,
    profile: urxe::Profile,
) -> Context {
    let address = if v6 { format!("fd09::{n}") } else { format!("10.9.0.{n}") };
    let config = Config {
        address: Address::Of(address.parse().unwrap()),
        port: kind,
        faults: faults.to_owned(),
        profile,
        ..Config::default()
    };
    // A program that another test starts has all descriptors until it runs: an address that is
    // closed may be taken for a little longer.
    eventually("a free address", || {
        let config = config.clone();
        match space.run(move || Context::open(&config)) {
            Err(Error::Port(PortError::Taken(_))) => None,
            opened => Some(opened.unwrap()),
        }
    })
}

fn raw() -> PortKind {
    PortKind::Raw("veth".to_owned())
}

/// 5 % of the packets of each device meet each fault.
const FAULTS: &str = "tx.loss=5%,tx.duplicate=5%,tx.reorder=5%,tx.corrupt=1%,seed=7";

fn exchange(kinds: &[PortKind; 2]) {
    let Some((here, there)) = pair() else { return };
    for v6 in [false, true] {
        for (faults, link) in [("", Link::Clean), (FAULTS, Link::Faulty)] {
            let a = open(&here, v6, 1, kinds[0].clone(), faults);
            let b = open(&there, v6, 2, kinds[1].clone(), faults);
            operations::all(&a, &b, link);
        }
    }
}

#[test]
fn udp_to_udp() {
    exchange(&[PortKind::Udp, PortKind::Udp]);
}

#[test]
fn udp_to_raw() {
    exchange(&[PortKind::Udp, raw()]);
}

#[test]
fn raw_to_raw() {
    exchange(&[raw(), raw()]);
}

/// The interface carries more than the way to the peer does.
#[test]
fn a_path_that_carries_less_is_refused_and_one_that_comes_to_is_named() {
    use urxe::{AhAttr, Endpoint, Mtu, QpAttr, QpKind, SendOp, WcStatus};
    let Some((here, there)) = pair() else { return };
    for kind in [PortKind::Udp, raw()] {
        let strict = urxe::Profile::STRICT;
        let a = open_as(&here, false, 1, kind.clone(), "", strict);
        let b = open_as(&there, false, 2, kind.clone(), "", strict);
        here.ip("route add 10.9.0.2/32 dev veth mtu 600");
        let far = crate::rig::Side::new(&b, QpKind::Rc);
        let side = crate::rig::Side::new(&a, QpKind::Rc);
        let error = side.qp.connect(&far.qp.endpoint()).unwrap_err().to_string();
        assert!(error.contains("path to 10.9.0.2") && error.contains("--mtu 512"), "{error}");
        // As a C program does it.
        let end: Endpoint = far.qp.endpoint();
        let ah = AhAttr { dst: end.address, ..AhAttr::default() };
        let attr = QpAttr { path_mtu: Mtu::B1024, ah, dest_qp: end.qpn, ..QpAttr::default() };
        let mask = urxe::AttrMask::AV | urxe::AttrMask::PATH_MTU;
        let error = side.qp.modify(&attr, mask).unwrap_err().to_string();
        assert!(error.contains("packets of 600 bytes"), "{error}");
        // One that comes to carry less once the QPs are connected.
        here.ip("route del 10.9.0.2/32 dev veth mtu 600");
        crate::rig::connect(&side, &far);
        here.ip("route add 10.9.0.2/32 dev veth mtu 600");
        if kind == PortKind::Udp {
            let write = SendOp::Write { remote: far.mr.addr(), rkey: far.mr.rkey(), imm: None };
            side.qp.post_send(1, write, &[side.mr.sge(0..2048)]).unwrap();
            let done = side.cq.wait_for(crate::rig::PATIENCE).unwrap();
            assert_eq!(done.status, WcStatus::RetryExcErr);
            assert!(done.explain().contains("too long for the path"), "{}", done.explain());
            assert!(a.port_stats().tx_too_long > 0);
        }
        here.ip("route del 10.9.0.2/32 dev veth mtu 600");
    }
}

#[test]
fn an_interface_that_goes_and_comes_back_is_told_of() {
    use urxe::{AsyncEvent, PortState};
    let Some((here, there)) = pair() else { return };
    for kind in [PortKind::Udp, raw()] {
        let a = open(&here, false, 1, kind.clone(), "");
        assert_eq!(a.query_port().state, PortState::Active);
        here.ip("link set veth down");
        let event = a.wait_async_event(crate::rig::PATIENCE).unwrap();
        assert_eq!(event, Some(AsyncEvent::PortErr));
        let PortState::Down { why } = a.query_port().state else { panic!("{kind:?}") };
        assert!(why.contains("veth is down"), "{why}");
        here.ip("link set veth up");
        let event = a.wait_async_event(crate::rig::PATIENCE).unwrap();
        assert_eq!(event, Some(AsyncEvent::PortActive));
        let b = open(&there, false, 2, PortKind::Udp, "");
        operations::all(&a, &b, Link::Clean);
    }
    let a = open_as(&here, false, 1, raw(), "", urxe::Profile::STRICT);
    here.ip("link del veth");
    assert_eq!(a.wait_async_event(crate::rig::PATIENCE).unwrap(), Some(AsyncEvent::PortErr));
    let PortState::Down { why } = a.query_port().state else { panic!("it is gone") };
    assert!(why.contains("veth"), "{why}");
    // Calls do not hang: what is sent is lost.
    let side = crate::rig::Side::new(&a, urxe::QpKind::Rc);
    side.qp.connect(&side.qp.endpoint()).unwrap();
    let write = urxe::SendOp::Write { remote: side.mr.addr(), rkey: side.mr.rkey(), imm: None };
    side.qp.post_send(1, write, &[side.mr.sge(64..72)]).unwrap();
    let done = side.cq.wait_for(crate::rig::PATIENCE).unwrap();
    assert_eq!(done.status, urxe::WcStatus::RetryExcErr, "{}", done.explain());
    assert!(a.port_stats().tx_given_up > 0);
}
