//! The lab's network: the link that is measured, and one apart for orders to the agents.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::LabError;
use crate::command::ip;

/// The interface of ours on the measured link; its addresses are [`HOST_V4`] and [`HOST_V6`].
pub const BRIDGE: &str = "br0";
/// Our IPv4 address.
pub const HOST_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 88, 0, 1));
/// Our IPv6 address.
pub const HOST_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd88, 0, 0, 0, 0, 0, 0, 1));

/// Another IPv4 address of ours, for a second device.
pub const SECOND_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 88, 0, 2));
/// Another IPv6 address of ours, for a second device.
pub const SECOND_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd88, 0, 0, 0, 0, 0, 0, 2));

/// IPv4 address of a guest's rxe; guests count from 1.
#[must_use]
pub const fn guest_v4(guest: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 88, 0, 10 + guest))
}

/// IPv6 address of a guest's rxe.
#[must_use]
pub const fn guest_v6(guest: u8) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xfd88, 0, 0, 0, 0, 0, 0, 10 + guest as u16))
}

/// Where a guest's agent listens.
pub(crate) const fn agent(guest: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 89, 0, 10 + guest)
}

/// TCP port of the agents.
pub(crate) const AGENT_PORT: u16 = 2222;

/// A guest's tap on the measured link.
#[must_use]
pub fn tap(guest: u8) -> String {
    format!("tap{guest}")
}

/// A guest's tap on the link for orders.
pub(crate) fn order_tap(guest: u8) -> String {
    format!("ctl{guest}")
}

/// Makes both links in this namespace, with an end for each guest. `mtu` is the measured one's.
pub(crate) fn make(guests: u8, mtu: u16) -> Result<(), LabError> {
    ip("link set lo up")?;
    for (bridge, mtu) in [(BRIDGE, mtu), ("ctl", 1500)] {
        ip(&format!("link add {bridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0"))?;
        for guest in 1..=guests {
            let tap = if bridge == BRIDGE { tap(guest) } else { order_tap(guest) };
            ip(&format!("tuntap add {tap} mode tap"))?;
            ip(&format!("link set {tap} mtu {mtu} master {bridge}"))?;
            ip(&format!("link set {tap} up"))?;
        }
        ip(&format!("link set {bridge} mtu {mtu} up"))?;
    }
    ip("addr add 10.89.0.1/24 dev ctl")?;
    for v4 in [HOST_V4, SECOND_V4] {
        ip(&format!("addr add {v4}/24 dev {BRIDGE}"))?;
    }
    for v6 in [HOST_V6, SECOND_V6] {
        ip(&format!("addr add {v6}/64 dev {BRIDGE} nodad"))?;
    }
    Ok(())
}
