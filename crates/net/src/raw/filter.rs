//! Socket filters (classic BPF, Linux Documentation/networking/filter.rst): the port is woken by
//! what is for it alone. All is looked at as the kernel shows it, the VLAN tag taken off.

use std::net::IpAddr;

use socket2::SockFilter;
use urxe_wire::{ROCE_UDP_PORT, ethertype, protocol};

use super::VlanTag;

#[cfg(test)]
mod tests;

/// Where loads of what is not in the packet start (SKF_AD_OFF): its type, its VLAN tag.
const AD: u32 = 0xffff_f000;
const AD_PACKET_TYPE: u32 = AD + 4;
const AD_VLAN_TAG: u32 = AD + 44;
/// PACKET_OTHERHOST of Linux include/uapi/linux/if_packet.h.
const OTHER_HOST: u32 = 3;
/// As much of the packet as there is.
const ALL: u32 = 0x0004_0000;

/// Where IP, or ARP, starts in a frame.
const IP: u32 = 14;
const ETHERTYPE: u32 = 12;
const ARP: u32 = 0x0806;
const ICMPV6: u32 = 58;
/// Neighbour solicitation and advertisement are 135 and 136 (RFC 4861 4.3, 4.4).
const SOLICITATION: u32 = 135;

const HALF: u32 = libc::BPF_H;
const WORD: u32 = libc::BPF_W;
const BYTE: u32 = libc::BPF_B;

#[derive(Clone, Copy)]
enum To {
    Next,
    Skip(usize),
    Take,
    Drop,
}

#[derive(Clone, Copy)]
struct Op {
    code: u32,
    k: u32,
    on_true: To,
    on_false: To,
}

/// A filter under way. It ends with "take", and "drop" for all tests that fail.
#[derive(Default)]
struct Program(Vec<Op>);

impl Program {
    fn step(&mut self, code: u32, k: u32) {
        self.test(code, k, To::Next, To::Next);
    }

    fn test(&mut self, code: u32, k: u32, on_true: To, on_false: To) {
        self.0.push(Op { code, k, on_true, on_false });
    }

    fn load(&mut self, size: u32, at: u32) {
        self.step(libc::BPF_LD | size | libc::BPF_ABS, at);
    }

    fn mask(&mut self, mask: u32) {
        self.step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, mask);
    }

    fn if_equal(&mut self, k: u32, on_true: To, on_false: To) {
        self.test(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k, on_true, on_false);
    }

    fn want(&mut self, size: u32, at: u32, k: u32) {
        self.load(size, at);
        self.if_equal(k, To::Next, To::Drop);
    }

    /// The packet is for this host and has the tag, or none.
    fn want_link(&mut self, vlan: Option<VlanTag>) {
        self.load(WORD, AD_PACKET_TYPE);
        self.if_equal(OTHER_HOST, To::Drop, To::Next);
        self.load(WORD, AD_VLAN_TAG);
        self.mask(0xfff);
        self.if_equal(vlan.map_or(0, |tag| tag.id.into()), To::Next, To::Drop);
    }

    /// The address at `at` is these words; with `group`, or else is that when masked.
    fn want_address(&mut self, at: u32, words: &[u32], group: Option<(u32, u32)>) {
        if let Some((mask, wanted)) = group {
            self.load(WORD, at);
            self.mask(mask);
            self.if_equal(wanted, To::Skip(2 * words.len()), To::Next);
        }
        for (&word, at) in words.iter().zip((at..).step_by(4)) {
            self.want(WORD, at, word);
        }
    }

    fn finish(self) -> Vec<SockFilter> {
        let take = self.0.len();
        let jump = |i: usize, to| {
            let distance = match to {
                To::Next => 0,
                To::Skip(n) => n,
                To::Take => take - i - 1,
                To::Drop => take - i,
            };
            // The longest program here has some forty steps.
            u8::try_from(distance).unwrap_or(u8::MAX)
        };
        let mut all: Vec<_> = self
            .0
            .iter()
            .enumerate()
            .map(|(i, op)| {
                SockFilter::new(narrow(op.code), jump(i, op.on_true), jump(i, op.on_false), op.k)
            })
            .collect();
        all.extend([ALL, 0].map(give));
        all
    }
}

fn narrow(code: u32) -> u16 {
    u16::try_from(code).unwrap_or(u16::MAX)
}

fn give(bytes: u32) -> SockFilter {
    SockFilter::new(narrow(libc::BPF_RET | libc::BPF_K), 0, 0, bytes)
}

/// Nothing at all.
pub(crate) fn nothing() -> [SockFilter; 1] {
    [give(0)]
}

/// RoCEv2 to `address`; with `groups` to any group too, which the port sorts out itself.
pub(super) fn roce(address: IpAddr, vlan: Option<VlanTag>, groups: bool) -> Vec<SockFilter> {
    let mut p = Program::default();
    p.want_link(vlan);
    match address {
        IpAddr::V4(v4) => {
            p.want(HALF, ETHERTYPE, ethertype::IPV4.into());
            p.want(BYTE, IP + 9, protocol::UDP.into());
            // A later fragment has no UDP header.
            p.load(HALF, IP + 6);
            p.test(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0x1fff, To::Drop, To::Next);
            let group = groups.then_some((0xf000_0000, 0xe000_0000));
            p.want_address(IP + 16, &[v4.into()], group);
            // X is the length of the IP header.
            p.step(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, IP);
            p.step(libc::BPF_LD | HALF | libc::BPF_IND, IP + 2);
            p.if_equal(ROCE_UDP_PORT.into(), To::Next, To::Drop);
        }
        IpAddr::V6(v6) => {
            p.want(HALF, ETHERTYPE, ethertype::IPV6.into());
            p.want(BYTE, IP + 6, protocol::UDP.into());
            let group = groups.then_some((0xff00_0000, 0xff00_0000));
            p.want_address(IP + 24, &words(v6), group);
            p.want(HALF, IP + 42, ROCE_UDP_PORT.into());
        }
    }
    p.finish()
}

/// What tells of neighbours: ARP that is for `address` or of a sender that announces itself;
/// neighbour solicitations and advertisements.
pub(super) fn neighbours(address: IpAddr, vlan: Option<VlanTag>) -> Vec<SockFilter> {
    let mut p = Program::default();
    p.want_link(vlan);
    match address {
        IpAddr::V4(v4) => {
            p.want(HALF, ETHERTYPE, ARP);
            p.load(WORD, IP + 14);
            p.step(libc::BPF_MISC | libc::BPF_TAX, 0);
            p.load(WORD, IP + 24);
            p.if_equal(v4.into(), To::Take, To::Next);
            p.test(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_X, 0, To::Take, To::Drop);
        }
        IpAddr::V6(_) => {
            p.want(HALF, ETHERTYPE, ethertype::IPV6.into());
            p.want(BYTE, IP + 6, ICMPV6);
            p.load(BYTE, IP + 40);
            p.if_equal(SOLICITATION, To::Take, To::Next);
            p.if_equal(SOLICITATION + 1, To::Next, To::Drop);
        }
    }
    p.finish()
}

fn words(v6: std::net::Ipv6Addr) -> Vec<u32> {
    v6.octets().as_chunks::<4>().0.iter().map(|&w| u32::from_be_bytes(w)).collect()
}
