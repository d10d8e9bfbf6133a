//! Every flipped bit of a packet is caught by its ICRC, but for the fields that it leaves out.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs::File;

use pcap_file::pcap::PcapReader;
use urxe_wire::{Header, IcrcPrefix, LinkType, Network, Packet, ParseError, Verdict, view};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/captures");

/// Bits of an IPv4 packet, from the IP header on, that may change on the way (IBA A17.3.3): TOS,
/// TTL, header checksum, UDP checksum, BTH byte 4.
const FREE_V4: &[(usize, u8)] =
    &[(1, 0xff), (8, 0xff), (10, 0xff), (11, 0xff), (26, 0xff), (27, 0xff), (32, 0xff)];
/// The same of IPv6: traffic class, flow label, hop limit, UDP checksum, BTH byte 4.
const FREE_V6: &[(usize, u8)] =
    &[(0, 0x0f), (1, 0xff), (2, 0xff), (3, 0xff), (7, 0xff), (46, 0xff), (47, 0xff), (52, 0xff)];
/// What the user of a UDP socket does not see of an IPv4 header beside [`FREE_V4`].
const HIDDEN_V4: &[(usize, u8)] = &[(4, 0xff), (5, 0xff), (6, 0xe0)];

/// The `nth` packet of a capture, without its Ethernet header.
fn packet(name: &str, nth: usize) -> Vec<u8> {
    let file = File::open(format!("{FOLDER}/{name}.pcap")).unwrap();
    let mut reader = PcapReader::new(file).unwrap();
    let mut seen = 0;
    loop {
        let frame = reader.next_packet().unwrap().unwrap();
        if seen == nth {
            return frame.data[14..].to_vec();
        }
        seen += 1;
    }
}

/// An ACK, an atomic, a CM message, a padded IPv6 packet and a full one of 1024 bytes.
fn samples() -> [Vec<u8>; 5] {
    [
        packet("atomic_faa", 1),
        packet("atomic_cas", 0),
        packet("rping", 0),
        packet("rc_ipv6", 1),
        packet("rc_pingpong", 0),
    ]
}

fn is_in(fields: &[(usize, u8)], at: usize, bit: u8) -> bool {
    fields.iter().any(|&(byte, mask)| byte == at && mask & bit != 0)
}

/// Calls `check` on `bytes` with each bit flipped in turn.
fn each_flip(bytes: &[u8], mut check: impl FnMut(usize, u8, &[u8])) {
    let mut flipped = bytes.to_vec();
    for at in 0..bytes.len() {
        for bit in (0..8).map(|i| 1 << i) {
            flipped[at] ^= bit;
            check(at, bit, &flipped);
            flipped[at] ^= bit;
        }
    }
}

/// The verdict on header bytes as they stand, whatever they say.
fn verdict(bytes: &[u8], v6: bool) -> Verdict {
    if v6 {
        let (ip, rest) = view::Ipv6::view(bytes).unwrap();
        let (udp, rest) = view::Udp::view(rest).unwrap();
        return IcrcPrefix::ipv6(ip, udp).verify(rest);
    }
    let (ip, rest) = view::Ipv4::view(bytes).unwrap();
    let (udp, rest) = view::Udp::view(rest).unwrap();
    IcrcPrefix::ipv4(ip, &[], udp).verify(rest)
}

#[test]
fn the_icrc_covers_every_bit_but_the_free_ones() {
    for bytes in samples() {
        let v6 = bytes[0] >> 4 == 6;
        let free = if v6 { FREE_V6 } else { FREE_V4 };
        each_flip(&bytes, |at, bit, flipped| {
            assert_eq!(
                verdict(flipped, v6).is_ok(),
                is_in(free, at, bit),
                "byte {at} bit {bit:#x}"
            );
        });
    }
}

#[test]
fn a_parsed_packet_with_a_flipped_bit_is_bad_or_does_not_parse() {
    for bytes in samples() {
        let free = if bytes[0] >> 4 == 6 { FREE_V6 } else { FREE_V4 };
        each_flip(&bytes, |at, bit, flipped| match Packet::parse(LinkType::RawIp, flipped) {
            Ok(packet) => {
                let ok = packet.icrc_verdict().is_ok();
                assert_eq!(ok, is_in(free, at, bit), "byte {at} bit {bit:#x}");
                let mut out = vec![0; flipped.len()];
                assert_eq!(packet.emit(&mut out), Ok(flipped.len()));
                assert_eq!(out, flipped);
            }
            Err(ParseError::NotRoce(_) | ParseError::Bad(_)) => {
                assert!(!is_in(free, at, bit), "byte {at} bit {bit:#x}");
            }
        });
    }
}

#[test]
fn with_the_id_hidden_only_the_ip_header_hides_flips() {
    for bytes in samples().into_iter().filter(|b| b[0] >> 4 == 4) {
        each_flip(&bytes, |at, bit, flipped| {
            let Ok(packet) = Packet::parse(LinkType::RawIp, flipped) else { return };
            let unseen = is_in(FREE_V4, at, bit) || is_in(HIDDEN_V4, at, bit);
            let ok = packet.icrc_verdict_hidden_id().is_ok();
            assert_eq!(ok, unseen, "byte {at} bit {bit:#x}");
        });
    }
}

#[test]
fn a_native_packet_s_icrc_covers_every_bit_but_the_free_ones() {
    // The packet of a capture moved to a native link: LRH, GRH, BTH. The free fields are VL,
    // traffic class, flow label, hop limit and BTH byte 4 (IBA 7.8.1).
    let free = [(0, 0xf0), (8, 0x0f), (9, 0xff), (10, 0xff), (11, 0xff), (15, 0xff), (52, 0xff)];
    let ip = packet("rc_ipv6", 1);
    let mut bytes = vec![0x10, 3, 0, 1, 0, 0, 0, 2];
    bytes.extend_from_slice(&ip[..40]);
    bytes.extend_from_slice(&ip[48..ip.len() - 4]);
    let compute = |bytes: &[u8]| {
        let (lrh, rest) = view::Lrh::view(bytes).unwrap();
        let (grh, rest) = view::Grh::view(rest).unwrap();
        IcrcPrefix::infiniband(lrh, Some(grh)).compute(rest)
    };
    let right = compute(&bytes);
    each_flip(&bytes, |at, bit, flipped| {
        assert_eq!(compute(flipped) == right, is_in(&free, at, bit), "byte {at} bit {bit:#x}");
    });
}

#[test]
fn the_samples_are_what_they_should_be() {
    let names = samples().map(|bytes| {
        let packet = Packet::parse(LinkType::RawIp, &bytes).unwrap();
        let v6 = matches!(packet.network, Network::Ipv6 { .. });
        (packet.roce.bth.opcode.name().unwrap(), v6, packet.roce.pad.len())
    });
    assert_eq!(
        names,
        [
            ("RC_ATOMIC_ACKNOWLEDGE", false, 0),
            ("RC_COMPARE_SWAP", false, 0),
            ("UD_SEND_ONLY", false, 0),
            ("RC_SEND_LAST", true, 3),
            ("RC_SEND_FIRST", false, 0),
        ]
    );
}
