//! Every kind of port to every other.

use std::net::IpAddr;

use urxe_net::Port;
use urxe_net::raw::{IpId, RawConfig, RawPort, VlanTag};
use urxe_net::udp::{UdpConfig, UdpPort};
use urxe_wire::Verdict;

use crate::namespace::{Namespace, pair};
use crate::traffic::{Listener, collect, flow, packet, send};

const LENGTHS: [usize; 12] = [1024, 1024, 1024, 1024, 512, 4, 0, 64, 64, 64, 4096, 1024];

pub fn address(v6: bool, n: u8) -> IpAddr {
    let text = if v6 { format!("fd09::{n}") } else { format!("10.9.0.{n}") };
    text.parse().unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Udp,
    UdpSegmenting,
    Raw(IpId),
    RawVlan(u16),
    RawChecksum,
}

fn open(space: &Namespace, kind: Kind, address: IpAddr) -> Box<dyn Port> {
    space.run(move || -> Box<dyn Port> {
        let raw = RawConfig::new(address);
        let udp = UdpConfig::new(address);
        let raw = match kind {
            Kind::Udp => return Box::new(UdpPort::open(&udp).unwrap()),
            Kind::UdpSegmenting => {
                let udp = UdpConfig { gso: Some(true), ..udp };
                return Box::new(UdpPort::open(&udp).unwrap());
            }
            Kind::Raw(ip_id) => RawConfig { ip_id, ..raw },
            Kind::RawVlan(id) => RawConfig { vlan: Some(VlanTag { id, priority: 5 }), ..raw },
            Kind::RawChecksum => RawConfig { udp6_checksum: true, ..raw },
        };
        Box::new(RawPort::open(&raw).unwrap())
    })
}

/// Sends both ways; every packet arrives byte by byte as it was sent, with a right ICRC.
fn exchange(kinds: (Kind, Kind), v6: bool) {
    let Some((a, b)) = pair() else { return };
    let listeners = [Listener::new(&a), Listener::new(&b)];
    let here = open(&a, kinds.0, address(v6, 1));
    let there = open(&b, kinds.1, address(v6, 2));
    let ends = [(&here, address(v6, 1), kinds.0), (&there, address(v6, 2), kinds.1)];
    for (from, to) in [(0, 1), (1, 0)] {
        let ((tx, src, _), (rx, dst, kind)) = (ends[from], ends[to]);
        let sent = flow(src, dst);
        send(&**tx, sent, &LENGTHS);
        let got = collect(&**tx, &**rx, LENGTHS.len());
        assert_eq!(got.len(), LENGTHS.len());
        for (psn, (got, len)) in got.iter().zip(LENGTHS).enumerate() {
            let what = format!("{kinds:?} from {src}, PSN {psn}");
            assert_eq!(got.1, packet(u32::try_from(psn).unwrap(), len), "{what}");
            assert_eq!((got.0.src, got.0.dst), (src, dst), "{what}");
            assert_eq!(got.0.traffic_class, sent.traffic_class, "{what}");
            assert_eq!(got.0.hop_limit, sent.hop_limit, "{what}");
            if rx.caps().sees_ip_header {
                assert_eq!(got.2, Verdict::Ok, "{what}, at {kind:?}");
            }
            assert!(got.2.is_ok(), "{what}: {:?}", got.2);
        }
        assert_eq!(rx.stats().snapshot().rx_icrc_bad, 0);
        let stats = tx.stats().snapshot();
        assert_eq!(stats.tx_packets, LENGTHS.len() as u64, "{stats:?}");
    }
    for listener in listeners {
        assert_eq!(listener.icmp_errors(), 0, "{kinds:?}");
    }
}

#[test]
fn udp_to_udp() {
    exchange((Kind::Udp, Kind::Udp), false);
    exchange((Kind::Udp, Kind::Udp), true);
}

#[test]
fn udp_to_raw_sees_the_identification_and_answers() {
    exchange((Kind::Udp, Kind::Raw(IpId::Counter)), false);
    exchange((Kind::Udp, Kind::Raw(IpId::Random(7))), true);
}

#[test]
fn segments_of_one_udp_call_are_told_apart_by_a_raw_port() {
    exchange((Kind::UdpSegmenting, Kind::Raw(IpId::Fixed(0xbeef))), false);
    exchange((Kind::UdpSegmenting, Kind::Raw(IpId::Counter)), true);
}

#[test]
fn raw_to_raw() {
    exchange((Kind::Raw(IpId::Counter), Kind::Raw(IpId::Random(1))), false);
    exchange((Kind::Raw(IpId::Counter), Kind::RawChecksum), true);
}

#[test]
fn raw_to_raw_on_a_vlan_that_the_kernel_does_not_know() {
    exchange((Kind::RawVlan(77), Kind::RawVlan(77)), false);
    exchange((Kind::RawVlan(4094), Kind::RawVlan(4094)), true);
}
