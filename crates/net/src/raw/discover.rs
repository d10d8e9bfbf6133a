//! ARP (RFC 826) and neighbour discovery (RFC 4861): what is asked, answered and heard.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use urxe_wire::{Checksum, Ethernet, Ipv6, Mac, Repr, Vlan, ethertype};

use super::VlanTag;
use crate::frame::LinkHeader;

#[cfg(test)]
mod tests;

/// Ethertype of ARP.
const ARP: u16 = 0x0806;
/// Ethernet and IPv4, with addresses of 6 and 4 bytes.
const ARP_OF_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ICMPV6: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Options that hold the hardware address of the sender, and of the target.
const SOURCE_ADDRESS: u8 = 1;
const TARGET_ADDRESS: u8 = 2;

/// Who we are on the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Us {
    pub(super) address: IpAddr,
    pub(super) mac: Mac,
    pub(super) vlan: Option<VlanTag>,
}

/// What was heard of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    /// Whose hardware address it tells.
    pub(super) of: IpAddr,
    pub(super) mac: Mac,
    /// Whether it asks for ours.
    pub(super) asks_us: bool,
}

/// The hardware address of a group (RFC 1112 6.4, RFC 2464 7).
pub(super) fn group_mac(group: IpAddr) -> Mac {
    match group {
        IpAddr::V4(v4) => {
            let [_, b, c, d] = v4.octets();
            Mac([0x01, 0x00, 0x5e, b & 0x7f, c, d])
        }
        IpAddr::V6(v6) => {
            let [.., a, b, c, d] = v6.octets();
            Mac([0x33, 0x33, a, b, c, d])
        }
    }
}

impl Us {
    fn frame(&self, to: Mac, ethertype: u16, body: &[u8]) -> Vec<u8> {
        let link = LinkHeader { dst: to, src: self.mac, vlan: self.vlan };
        [link.headers(ethertype).bytes(), body].concat()
    }

    /// Asks for the hardware address of `target`; `None` if it is of the other family.
    pub(super) fn ask(&self, target: IpAddr) -> Option<Vec<u8>> {
        match (self.address, target) {
            (IpAddr::V4(us), IpAddr::V4(target)) => {
                let body = arp(REQUEST, (self.mac, us), (Mac([0; 6]), target));
                Some(self.frame(Mac([0xff; 6]), ARP, &body))
            }
            (IpAddr::V6(us), IpAddr::V6(target)) => {
                // The solicited-node group of the target (RFC 4291 2.7.1).
                let mut group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0).octets();
                group[13..].copy_from_slice(&target.octets()[13..]);
                let group = Ipv6Addr::from(group);
                let option = (SOURCE_ADDRESS, self.mac);
                let body = discovery(SOLICITATION, 0, (us, group), target, option);
                Some(self.frame(group_mac(group.into()), ethertype::IPV6, &body))
            }
            _ => None,
        }
    }

    /// Tells `to` our hardware address.
    pub(super) fn answer(&self, to: &Heard) -> Option<Vec<u8>> {
        match (self.address, to.of) {
            (IpAddr::V4(us), IpAddr::V4(of)) => {
                let body = arp(REPLY, (self.mac, us), (to.mac, of));
                Some(self.frame(to.mac, ARP, &body))
            }
            (IpAddr::V6(us), IpAddr::V6(of)) => {
                // Solicited, override.
                let option = (TARGET_ADDRESS, self.mac);
                let body = discovery(ADVERTISEMENT, 0x60, (us, of), us, option);
                Some(self.frame(to.mac, ethertype::IPV6, &body))
            }
            _ => None,
        }
    }

    /// What a frame tells of a neighbour, if it is right and does.
    pub(super) fn hear(&self, frame: &[u8]) -> Option<Heard> {
        let (ethernet, mut rest) = Ethernet::parse(frame).ok()?;
        let mut next = ethernet.ethertype;
        while ethertype::is_vlan(next) {
            let (tag, after) = Vlan::parse(rest).ok()?;
            (next, rest) = (tag.ethertype, after);
        }
        let heard = match next {
            ARP => self.hear_arp(rest),
            ethertype::IPV6 => self.hear_discovery(rest),
            _ => None,
        }?;
        // A group's address can be nobody's.
        (heard.mac.0[0] & 1 == 0 && heard.mac != Mac([0; 6])).then_some(heard)
    }

    fn hear_arp(&self, body: &[u8]) -> Option<Heard> {
        let body = body.first_chunk::<28>().filter(|b| b[..6] == ARP_OF_IPV4)?;
        let mac = Mac(body[8..14].try_into().ok()?);
        let of = Ipv4Addr::from(<[u8; 4]>::try_from(&body[14..18]).ok()?);
        let target = Ipv4Addr::from(<[u8; 4]>::try_from(&body[24..28]).ok()?);
        let asks_us = body[7] == REQUEST && IpAddr::V4(target) == self.address;
        // A prober has no address yet (RFC 5227).
        (!of.is_unspecified() || asks_us).then_some(Heard { of: of.into(), mac, asks_us })
    }

    fn hear_discovery(&self, packet: &[u8]) -> Option<Heard> {
        let (ip, body) = Ipv6::parse(packet).ok()?;
        let body = body.get(..ip.payload_len.into())?;
        let (fixed, mut options) = body.split_at_checked(24)?;
        // Only what did not pass a router (RFC 4861 7.1).
        if ip.next_header != ICMPV6 || ip.hop_limit != 255 || checksum(ip.src, ip.dst, body) != 0 {
            return None;
        }
        let target = Ipv6Addr::from(<[u8; 16]>::try_from(&fixed[8..24]).ok()?);
        let (of, wanted, asks_us) = match fixed[0] {
            SOLICITATION => (ip.src, SOURCE_ADDRESS, IpAddr::V6(target) == self.address),
            ADVERTISEMENT => (target, TARGET_ADDRESS, false),
            _ => return None,
        };
        loop {
            let &[kind, words, ..] = options else {
                return None;
            };
            // A length of 0 would never be passed (RFC 4861 4.6).
            let len = usize::from(words).checked_mul(8).filter(|&len| len != 0)?;
            let (option, after) = options.split_at_checked(len)?;
            if kind == wanted {
                let mac = Mac(option[2..8].try_into().ok()?);
                return Some(Heard { of: of.into(), mac, asks_us });
            }
            options = after;
        }
    }
}

fn arp(operation: u8, from: (Mac, Ipv4Addr), to: (Mac, Ipv4Addr)) -> [u8; 28] {
    let mut body = [0; 28];
    body[..6].copy_from_slice(&ARP_OF_IPV4);
    body[7] = operation;
    body[8..14].copy_from_slice(&from.0.0);
    body[14..18].copy_from_slice(&from.1.octets());
    body[18..24].copy_from_slice(&to.0.0);
    body[24..28].copy_from_slice(&to.1.octets());
    body
}

/// IPv6, and an ICMPv6 message of neighbour discovery with one option.
fn discovery(
    kind: u8,
    flags: u8,
    (src, dst): (Ipv6Addr, Ipv6Addr),
    target: Ipv6Addr,
    (option, mac): (u8, Mac),
) -> Vec<u8> {
    let mut body = [0; 32];
    (body[0], body[4]) = (kind, flags);
    body[8..24].copy_from_slice(&target.octets());
    (body[24], body[25]) = (option, 1);
    body[26..].copy_from_slice(&mac.0);
    let sum = checksum(src, dst, &body);
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    let ip = Ipv6 { payload_len: 32, next_header: ICMPV6, hop_limit: 255, ..Ipv6::udp(src, dst) };
    let mut packet = vec![0; Ipv6::LEN];
    // As long as the header is.
    let _ = ip.emit(&mut packet);
    packet.extend_from_slice(&body);
    packet
}

/// The checksum of an ICMPv6 message; 0 over one that holds the right one (RFC 4443 2.3).
fn checksum(src: Ipv6Addr, dst: Ipv6Addr, body: &[u8]) -> u16 {
    let mut sum = Checksum::new();
    sum.add(&src.octets());
    sum.add(&dst.octets());
    sum.add(&u32::try_from(body.len()).unwrap_or(0).to_be_bytes());
    sum.add(&[0, 0, 0, ICMPV6]);
    sum.add(body);
    sum.finish()
}
