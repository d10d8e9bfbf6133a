//! Two hosts with a program each: processes in network namespaces, over a bad link.

use urxe::{Address, Config, Context};

use crate::namespace::{Namespace, pair};
use crate::peer::{Peer, command};
use crate::processes::{connected, exchange_with, messages};
use crate::rig::{eventually, patient};

/// What leaves either side meets these.
const FAULTS: &str = "tx.loss=5%,tx.duplicate=5%,tx.reorder=5%";

fn address(v6: bool, n: u8) -> String {
    if v6 { format!("fd09::{n}") } else { format!("10.9.0.{n}") }
}

/// A process of its own in a namespace.
fn process(space: &Namespace, address: &str, port: &str) -> Peer {
    // A program that another test starts has all descriptors until it runs: an address that is
    // closed may be taken for a little longer.
    eventually("a free address", || {
        let (address, port) = (address.to_owned(), port.to_owned());
        let child = space.run(move || {
            let settings = [
                ("URXE_ADDR", address.as_str()),
                ("URXE_PORT", &port),
                ("URXE_FAULTS", FAULTS),
                ("URXE_SHARED", "off"),
            ];
            command(&settings).spawn().unwrap()
        });
        match Peer::greet(child) {
            Err(why) if why.contains("is taken") => None,
            greeted => Some(greeted.unwrap()),
        }
    })
}

fn this_process(space: &Namespace, address: &str, port: &str) -> Context {
    let mut config = Config {
        address: Address::Of(address.parse().unwrap()),
        faults: FAULTS.to_owned(),
        shared: Some(false),
        ..patient()
    };
    config.set("port", port).unwrap();
    eventually("a free address", || {
        let config = config.clone();
        space.run(move || Context::open(&config).ok())
    })
}

fn every_operation(ports: [&str; 2]) {
    let Some((here, there)) = pair() else { return };
    for v6 in [false, true] {
        let (near, far) = (address(v6, 1), address(v6, 2));
        let mut peer = process(&there, &far, ports[1]);
        exchange_with(&this_process(&here, &near, ports[0]), &mut peer);
        let mut from = process(&here, &near, ports[0]);
        connected(&mut from, &mut peer, ["rc", "srq"]);
        messages(&mut from, &mut peer, "send", 0);
        let srqn = connected(&mut from, &mut peer, ["xrc", "xrcsrq"]);
        messages(&mut from, &mut peer, &format!("sendsrq {srqn}"), 0);
    }
}

#[test]
fn udp_to_udp() {
    every_operation(["udp", "udp"]);
}

#[test]
fn udp_to_raw_and_back() {
    every_operation(["udp", "raw:veth"]);
    every_operation(["raw:veth", "udp"]);
}

#[test]
fn raw_to_raw() {
    every_operation(["raw:veth", "raw:veth"]);
}
