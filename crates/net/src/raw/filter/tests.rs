//! The kernel runs the filters, over a socket pair: no rights needed.

use std::io::{Read, Write};
use std::net::IpAddr;

use socket2::{Domain, Socket, Type};
use urxe_wire::Mac;

use super::*;
use crate::frame::{self, LinkHeader};
use crate::raw::discover::Us;
use crate::testing::{flow, packet};

/// Whether a filter lets a frame pass.
fn passes(filter: &[SockFilter], frame: &[u8]) -> bool {
    let (mut from, mut to) = Socket::pair(Domain::UNIX, Type::DGRAM.nonblocking(), None).unwrap();
    to.attach_filter(filter).unwrap();
    // A packet that is filtered out is sent all the same, to this kind of socket.
    let _ = from.write(frame);
    to.read(&mut [0; 4096]).is_ok()
}

fn frame(src: &str, dst: &str) -> Vec<u8> {
    let transport = [packet(1, 64), vec![0; 4]].concat();
    let flow = flow(src.parse().unwrap(), dst.parse().unwrap());
    let link = LinkHeader { dst: Mac([2; 6]), src: Mac([4; 6]), vlan: None };
    let headers = frame::headers(Some(&link), &flow, 0xc001, 0, false, &transport).unwrap();
    [headers.bytes(), &transport].concat()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn only_roce_to_our_ipv4_address_passes() {
    let us = roce(address("10.9.0.2"), None, false);
    let good = frame("10.9.0.1", "10.9.0.2");
    assert!(passes(&us, &good));
    assert!(!passes(&us, &frame("10.9.0.1", "10.9.0.3")), "another address");
    assert!(!passes(&us, &frame("10.9.0.1", "224.1.2.3")), "a group");
    assert!(!passes(&us, &frame("fd09::1", "fd09::2")), "IPv6");
    for (at, value, what) in [
        (12, 0x86, "ethertype"),
        (23, 6, "TCP"),
        (21, 1, "a later fragment"),
        (36, 0x13, "another port"),
        (30, 11, "the address' first byte"),
        (33, 1, "the address' last byte"),
    ] {
        let mut bad = good.clone();
        bad[at] = value;
        assert!(!passes(&us, &bad), "{what}");
    }
    // With options the UDP header is elsewhere.
    let mut options = good.clone();
    options[14] = 0x46;
    options.splice(34..34, [1; 4]);
    assert!(passes(&us, &options));
    for len in 0..38 {
        assert!(!passes(&us, &good[..len]), "cut to {len}");
    }
}

#[test]
fn only_roce_to_our_ipv6_address_passes() {
    let us = roce(address("fd09::2"), None, false);
    let good = frame("fd09::1", "fd09::2");
    assert!(passes(&us, &good));
    for (at, what) in
        [(12, "ethertype"), (20, "next header"), (38, "first"), (53, "last"), (57, "port")]
    {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(!passes(&us, &bad), "{what}");
    }
    assert!(!passes(&us, &frame("10.9.0.1", "10.9.0.2")), "IPv4");
}

#[test]
fn groups_pass_once_wanted_and_other_addresses_still_do_not() {
    let v4 = roce(address("10.9.0.2"), None, true);
    assert!(passes(&v4, &frame("10.9.0.1", "239.1.2.3")));
    assert!(passes(&v4, &frame("10.9.0.1", "10.9.0.2")));
    assert!(!passes(&v4, &frame("10.9.0.1", "10.9.0.3")));
    let v6 = roce(address("fd09::2"), None, true);
    assert!(passes(&v6, &frame("fd09::1", "ff0e::5")));
    assert!(passes(&v6, &frame("fd09::1", "fd09::2")));
    assert!(!passes(&v6, &frame("fd09::1", "fd09::3")));
}

#[test]
fn what_is_on_no_vlan_is_not_for_a_port_on_one() {
    let tag = |id| Some(VlanTag { id, priority: 0 });
    let good = frame("10.9.0.1", "10.9.0.2");
    assert!(!passes(&roce(address("10.9.0.2"), tag(5), false), &good));
    assert!(passes(&roce(address("10.9.0.2"), tag(0), false), &good), "priority only");
}

#[test]
fn neighbours_are_heard_and_nothing_else() {
    let at = |text: &str, mac| Us { address: address(text), mac: Mac([mac; 6]), vlan: None };
    let arp = neighbours(address("10.9.0.2"), None);
    let peer = at("10.9.0.1", 2);
    assert!(passes(&arp, &peer.ask(address("10.9.0.2")).unwrap()));
    assert!(!passes(&arp, &peer.ask(address("10.9.0.3")).unwrap()), "asks for another");
    assert!(passes(&arp, &peer.ask(peer.address).unwrap()), "announces itself");
    assert!(!passes(&arp, &frame("10.9.0.1", "10.9.0.2")), "RoCE");
    let ndp = neighbours(address("fd09::2"), None);
    let peer = at("fd09::1", 2);
    assert!(passes(&ndp, &peer.ask(address("fd09::2")).unwrap()));
    assert!(!passes(&ndp, &frame("fd09::1", "fd09::2")), "RoCE");
    assert!(!passes(&nothing(), &peer.ask(address("fd09::2")).unwrap()));
}
