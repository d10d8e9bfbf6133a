use urxe_wire::cm::PortSpace;
use urxe_wire::{Psn, Qpn};

use super::{Connect, ack_timeout, ports_label};
use crate::config::timeout;

#[test]
fn the_flow_label_of_two_ports_is_the_kernel_s() {
    // The REQ of captures/rping.pcap.
    assert_eq!(ports_label(57374, 7174), 0xb_3fa8);
}

#[test]
fn an_ack_timeout_covers_both_ways_and_the_delay() {
    // As in the REQ of captures/rping.pcap: lifetime 16, delay 15.
    assert_eq!(ack_timeout(timeout(16), timeout(15)).code(), 17);
    for (life, delay, want) in [(16, 16, 18), (16, 17, 18), (16, 18, 19), (16, 20, 20), (31, 0, 31)]
    {
        assert_eq!(ack_timeout(timeout(life), timeout(delay)).code(), want, "{life} {delay}");
    }
}

#[test]
fn addresses_of_two_families_are_no_connection() {
    let (four, six) = ("10.0.0.1:7".parse().unwrap(), "[fd00::1]:7".parse().unwrap());
    let (qpn, psn) = (Qpn::new(17), Psn::new(0));
    let error = Connect::ip(PortSpace::Tcp, four, six, qpn, psn).unwrap_err();
    assert_eq!(error.to_string(), "CM IP destination family: got 6, wanted 4");
}
