//! Capture files made by hand, and frames to fill them with.

use std::net::{Ipv4Addr, Ipv6Addr};

use urxe_cli::capture::Capture;
use urxe_cli::dissect::{Options, Summary, dissect};
use urxe_wire::{
    Bth, Ethernet, Ext, Grh, Ipv4, Ipv6, Link, LinkType, Lrh, Mac, Network, NextHeader, Opcode,
    Packet, Psn, Qpn, Roce, Sll, Sll2, Udp, Vlan, Vlans,
};

/// One side of the packets.
pub(crate) const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The other.
pub(crate) const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const A6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const B6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

/// A packet to QP 0x11, right in all, of this opcode.
pub(crate) fn packet<'a>(opcode: &str, psn: u32, ext: Ext, payload: &'a [u8]) -> Packet<'a> {
    let opcode = Opcode::from_name(opcode).unwrap();
    let bth = Bth::new(opcode, Qpn::new(0x11), Psn::new(psn));
    Packet {
        link: Link::Ethernet(Ethernet { dst: mac(2), src: mac(1), ethertype: 0x0800 }),
        vlans: Vlans::NONE,
        network: Network::Ipv4 { header: Ipv4::udp(A, B), options: &[], udp: Udp::roce(49152) },
        roce: Roce::new(bth, ext, payload),
        trailer: &[],
    }
}

fn mac(last: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, last])
}

/// Moves a packet to a link of another type; `ipv6` where there is a choice.
pub(crate) fn on_link(mut packet: Packet<'_>, link: LinkType, ipv6: bool) -> Packet<'_> {
    packet.link = match link {
        LinkType::Ethernet => packet.link,
        LinkType::RawIp => Link::RawIp,
        LinkType::Sll => Link::Sll(Sll { device_type: 1, address_len: 6, ..Sll::default() }),
        LinkType::Sll2 => {
            Link::Sll2(Sll2 { interface: 3, device_type: 1, packet_type: 4, ..Sll2::default() })
        }
        LinkType::Infiniband => Link::Infiniband { lrh: lrh(), vcrc: [0; 2] },
    };
    packet.network = match (link, ipv6) {
        (LinkType::Infiniband, true) => Network::Grh(Grh {
            traffic_class: 0,
            flow_label: 0x12345,
            payload_len: 0,
            next_header: 0x1b,
            hop_limit: 64,
            sgid: urxe_wire::Gid(A6.octets()),
            dgid: urxe_wire::Gid(B6.octets()),
        }),
        (LinkType::Infiniband, false) => Network::Local,
        (_, true) => Network::Ipv6 { header: Ipv6::udp(A6, B6), udp: Udp::roce(49153) },
        (_, false) => packet.network,
    };
    packet
}

fn lrh() -> Lrh {
    Lrh {
        vl: 0,
        sl: 3,
        reserved2: 0,
        next: NextHeader::Local,
        dlid: 7,
        reserved5: 0,
        packet_len: 0,
        slid: 5,
    }
}

/// Puts a packet into VLANs, outermost first.
pub(crate) fn in_vlans<'a>(mut packet: Packet<'a>, ids: &[u16]) -> Packet<'a> {
    for &id in ids {
        packet.vlans.push(Vlan { priority: 3, id, ..Vlan::default() }).unwrap();
    }
    packet
}

/// The frame's bytes, with all lengths, checksums and CRCs made right.
pub(crate) fn sealed(mut packet: Packet<'_>) -> Vec<u8> {
    packet.seal().unwrap();
    let mut frame = vec![0; packet.len()];
    packet.emit(&mut frame).unwrap();
    frame
}

/// A pcap file of frames that are a microsecond apart; each is its bytes and original length.
pub(crate) fn pcap(
    big_endian: bool,
    nanoseconds: bool,
    link: u32,
    frames: &[(&[u8], u32)],
) -> Vec<u8> {
    let word = |n: u32| if big_endian { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut file = Vec::new();
    let magic = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    // Version 2.4: two halves of a word, the first one first in either order.
    let version = if big_endian { 0x0002_0004 } else { 0x0004_0002 };
    for n in [magic, version, 0, 0, 65_535, link] {
        file.extend(word(n));
    }
    let unit = if nanoseconds { 1000 } else { 1 };
    for (micros, (bytes, original)) in (0..).zip(frames) {
        let len = u32::try_from(bytes.len()).unwrap();
        for n in [1_700_000_000, micros * unit, len, *original] {
            file.extend(word(n));
        }
        file.extend_from_slice(bytes);
    }
    file
}

/// A little-endian pcap file of whole Ethernet frames.
pub(crate) fn ethernet(frames: &[Vec<u8>]) -> Vec<u8> {
    let frames: Vec<_> = frames.iter().map(|f| (&f[..], u32::try_from(f.len()).unwrap())).collect();
    pcap(false, false, 1, &frames)
}

/// A pcapng file with one interface for each link type and a frame on each.
pub(crate) fn pcapng(frames: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let len = u32::try_from(body.len().next_multiple_of(4) + 12).unwrap().to_le_bytes();
        let mut block = kind.to_le_bytes().to_vec();
        block.extend(len);
        block.extend_from_slice(body);
        block.resize(block.len().next_multiple_of(4), 0);
        block.extend(len);
        block
    };
    let section = [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
    let mut file = block(0x0a0d_0d0a, &section);
    for (link, _) in frames {
        // if_tsresol 9, then the end of the options.
        let mut body = link.to_le_bytes().to_vec();
        body.extend([0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        file.extend(block(1, &body));
    }
    for (i, (_, frame)) in (0u32..).zip(frames) {
        let ticks = 1_700_000_000_000_000_000 + u64::from(i) * 1_234;
        let [high, low] = [ticks >> 32, ticks & 0xffff_ffff].map(|n| u32::try_from(n).unwrap());
        let len = u32::try_from(frame.len()).unwrap();
        let mut body: Vec<u8> = [i, high, low, len, len].map(u32::to_le_bytes).concat();
        body.extend_from_slice(frame);
        file.extend(block(6, &body));
    }
    file
}

/// What `dissect` writes, and the footer, or what stopped it.
pub(crate) fn shown(file: &[u8], options: &Options) -> String {
    let mut out = Vec::new();
    let mut summary = Summary::default();
    let mut capture = Capture::new("made.pcap", file).unwrap();
    let stopped = dissect(&mut capture, options, &mut out, &mut summary);
    let mut text = String::from_utf8(out).unwrap();
    text.push_str(&format!("-- {summary}\n"));
    if let Err(e) = stopped {
        text.push_str(&format!("-- {e:?}\n"));
    }
    text
}

/// A golden capture.
pub(crate) fn golden(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/captures");
    std::fs::read(format!("{folder}/{name}.pcap")).unwrap()
}
