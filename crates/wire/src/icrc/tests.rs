use super::*;
use crate::{Header, Lrh, ib};

/// The ConnectX-4 Lx CNP, from the IPv4 header to the ICRC.
const CNP: [u8; 60] = [
    0x45, 0xc2, 0, 0x3c, 0x71, 0x8c, 0x40, 0, 0x40, 0x11, 0x91, 0x61, 0x0a, 0, 0x11, 1, 0x0a, 0,
    0x12, 1, 0, 0, 0x12, 0xb7, 0, 0x28, 0, 0, 0x81, 0, 0xff, 0xff, 0x40, 0, 1, 0x18, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x82, 0xfd, 0, 0x2a,
];
/// The UC SEND only, BTH to ICRC.
const UC_SEND: [u8; 36] = [
    0x24, 0x60, 0xff, 0xff, 0, 0, 0, 0xd3, 0, 0xcf, 0x17, 0x10, 0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89,
    0x35, 0xd9, 0x0e, 0x9a, 0x95, 0x50, 0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0, 0, 0x78, 0xf3, 0x53,
    0xf3,
];
const HOST: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 7);

fn prefix_of(packet: &[u8]) -> (IcrcPrefix, &[u8]) {
    let (ip, rest) = view::Ipv4::view(packet).unwrap();
    let (udp, rest) = view::Udp::view(rest).unwrap();
    (IcrcPrefix::ipv4(ip, &[], udp), rest)
}

/// The ICRC as the rules tell it, one bit after the other over one copy of the packet.
fn slow_icrc(masked: &[u8]) -> [u8; 4] {
    let mut crc = u32::MAX;
    for byte in masked {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
        }
    }
    (!crc).to_le_bytes()
}

#[test]
fn cnp_of_a_connectx() {
    let (prefix, rest) = prefix_of(&CNP);
    assert_eq!(prefix.verify(rest), Verdict::Ok);
    assert_eq!(prefix.verify_hidden_id(rest), Verdict::Ok);
    let (src, dst) = ([10, 0, 17, 1].into(), [10, 0, 18, 1].into());
    let prefix = IcrcPrefix::socket(src, dst, 0, 0, 32).unwrap();
    assert!(!prefix.verify(rest).is_ok());
    assert_eq!(prefix.verify_hidden_id(rest), Verdict::OkSolvedId(0x718c));
}

#[test]
fn uc_send_through_a_socket() {
    let prefix = IcrcPrefix::socket_v4(HOST, HOST, 49152, 1144, 36);
    assert_eq!(prefix.verify(&UC_SEND), Verdict::Ok);
    for guess in [0, 1, 1143, 0xffff] {
        let prefix = IcrcPrefix::socket_v4(HOST, HOST, 49152, guess, 36);
        assert_eq!(prefix.verify_hidden_id(&UC_SEND), Verdict::OkSolvedId(1144));
    }
}

#[test]
fn sample_packet_of_the_specification() {
    let (lrh, rest) = view::Lrh::view(&ib::tests::SAMPLE).unwrap();
    assert_eq!(IcrcPrefix::infiniband(lrh, None).verify(rest), Verdict::Ok);
    let mut other_lane = *lrh;
    other_lane.vl_version = 0x30;
    assert_eq!(IcrcPrefix::infiniband(&other_lane, None).verify(rest), Verdict::Ok);
    let mut other_lid = *lrh;
    other_lid.slid = 1.into();
    let prefix = IcrcPrefix::infiniband(&other_lid, None);
    assert!(!prefix.verify(rest).is_ok());
    assert_eq!(prefix.verify(rest), prefix.verify_hidden_id(rest), "there is no ID to solve for");
}

#[test]
fn native_packets_mask_lane_class_label_hops_and_resv8a() {
    // IBA 7.8.1: the masked fields of a global packet, each set to ones by hand.
    let mut bytes = [0x5a; 8 + 40 + 16];
    (bytes[0], bytes[1], bytes[8]) = (0x30, 0x03, 0x65);
    let (lrh, rest) = view::Lrh::view(&bytes).unwrap();
    let (grh, rest) = view::Grh::view(rest).unwrap();
    let got = IcrcPrefix::infiniband(lrh, Some(grh)).compute(rest);
    let mut masked = bytes;
    masked[0] |= 0xf0;
    masked[8] = 0x6f;
    masked[9..12].fill(0xff);
    masked[15] = 0xff;
    masked[8 + 40 + 4] = 0xff;
    assert_eq!(got, slow_icrc(&masked));
    assert_eq!(Lrh::parse(&bytes).unwrap().0.vl, 3);
}

#[test]
fn ipv6_masks_class_label_hops_and_udp_checksum() {
    let mut bytes = [0x5a; 40 + 8 + 20];
    bytes[0] = 0x65;
    let (ip, rest) = view::Ipv6::view(&bytes).unwrap();
    let (udp, rest) = view::Udp::view(rest).unwrap();
    let got = IcrcPrefix::ipv6(ip, udp).compute(rest);
    let mut masked = [0xff; 8 + 68];
    masked[8..].copy_from_slice(&bytes);
    masked[8] = 0x6f;
    masked[9..12].fill(0xff);
    masked[15] = 0xff;
    masked[8 + 46..8 + 48].fill(0xff);
    masked[8 + 48 + 4] = 0xff;
    assert_eq!(got, slow_icrc(&masked));
}

#[test]
fn every_option_length_payload_length_and_cut_gives_the_plain_crc() {
    let payload: Vec<u8> = (0..300_u32).map(|i| i.wrapping_mul(167).to_le_bytes()[0]).collect();
    for options in [0, 4, 8, 12, 28, 40] {
        let mut ip = Ipv4::udp(HOST, HOST);
        ip.ihl = u8::try_from(5 + options / 4).unwrap();
        ip.id = 0x1234;
        let (ip, udp) = (ip.to_view(), Udp::roce(0xc000).to_view());
        let prefix = IcrcPrefix::ipv4(&ip, &payload[100..100 + options], &udp);
        for len in (5..300).step_by(if options == 0 { 1 } else { 7 }) {
            let mut masked = vec![0xff; 8];
            masked.extend_from_slice(ip.as_bytes());
            for at in [1, 8, 10, 11] {
                masked[8 + at] = 0xff;
            }
            masked.extend_from_slice(&payload[100..100 + options]);
            masked.extend_from_slice(&udp.as_bytes()[..6]);
            masked.extend_from_slice(&[0xff, 0xff]);
            let bth = masked.len();
            masked.extend_from_slice(&payload[..len]);
            masked[bth + 4] = 0xff;
            let wanted = slow_icrc(&masked);
            assert_eq!(prefix.compute(&payload[..len]), wanted, "{options} {len}");
            for cut in [5, 12, 28, len / 2, len] {
                let cut = cut.min(len).max(5);
                let mut icrc = prefix.start(&payload[..cut]);
                let (a, b) = payload[cut..len].split_at((len - cut) / 3);
                icrc.update(a);
                icrc.update(&[]);
                icrc.update(b);
                assert_eq!(icrc.finish(), wanted, "{options} {len} {cut}");
            }
        }
    }
}

#[test]
fn solver_finds_each_id_at_each_length() {
    let payload = vec![0xa5; 0xffff];
    let lens = (12..300).step_by(4).chain([1036, 1040, 4108, 9000, 40_000, 65_500]);
    for (i, len) in lens.enumerate() {
        let id = u16::try_from(i * 2713 % 0x1_0000).unwrap();
        let udp_len = u16::try_from(len).unwrap() + 4;
        let mut packet = payload[..len].to_vec();
        let right = IcrcPrefix::socket_v4(HOST, HOST, 0xc123, id, udp_len);
        packet.extend_from_slice(&right.compute(&payload[..len]));
        let guess = IcrcPrefix::socket_v4(HOST, HOST, 0xc123, !id, udp_len);
        assert_eq!(guess.verify_hidden_id(&packet), Verdict::OkSolvedId(id), "{len}");
        packet[len / 2] ^= 0x10;
        assert!(!guess.verify_hidden_id(&packet).is_ok(), "{len}: a flipped bit is no ID");
    }
}

#[test]
fn solver_knows_all_ids() {
    for id in 0..=u16::MAX {
        let guess = IcrcPrefix::socket_v4(HOST, HOST, 49152, id, 36);
        let wanted = if id == 1144 { Verdict::Ok } else { Verdict::OkSolvedId(1144) };
        assert_eq!(guess.verify_hidden_id(&UC_SEND), wanted);
    }
}

#[test]
fn solver_accepts_one_difference_in_65536() {
    // The 2^16 differences that some ID explains are a linear space, and so are the 2^16 of two
    // bytes walked here. Where they meet in 0 only, each coset of the one holds one of the other.
    let accepted = (0..=u16::MAX)
        .filter(|&d| {
            id_difference([0; 4], [0, 0, d.to_le_bytes()[0], d.to_le_bytes()[1]], 72).is_some()
        })
        .count();
    assert_eq!(accepted, 1, "only no difference at all");
    assert_eq!(id_difference([1; 4], [1; 4], 0x1_0000), None, "too long for IPv4");
}

#[test]
fn short_and_mixed_input_is_bad_and_never_panics() {
    let prefix = IcrcPrefix::socket_v4(HOST, HOST, 0, 0, 0);
    for len in 0..40 {
        assert!(!prefix.verify(&[0x77; 40][..len]).is_ok());
        let _ = prefix.verify_hidden_id(&[0x77; 40][..len]);
    }
    let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
    assert!(IcrcPrefix::socket(IpAddr::V4(HOST), v6, 0, 0, 0).is_none());
    let mapped = IpAddr::V6(HOST.to_ipv6_mapped());
    let prefix = IcrcPrefix::socket(mapped, IpAddr::V4(HOST), 49152, 1144, 36).unwrap();
    assert_eq!(prefix.verify(&UC_SEND), Verdict::Ok);
}

#[test]
fn a_v6_socket_computes_what_the_header_does() {
    let (src, dst) = (Ipv6Addr::LOCALHOST, "fe80::1".parse().unwrap());
    let mut ip = Ipv6::udp(src, dst);
    (ip.payload_len, ip.traffic_class, ip.flow_label, ip.hop_limit) = (44, 0xb8, 0x12345, 3);
    let udp = Udp { len: 44, checksum: 0xabcd, ..Udp::roce(0xc001) };
    let header = IcrcPrefix::ipv6(&ip.to_view(), &udp.to_view());
    let socket = IcrcPrefix::socket(src.into(), dst.into(), 0xc001, 77, 36).unwrap();
    assert_eq!(header.compute(&UC_SEND[..32]), socket.compute(&UC_SEND[..32]));
}

#[test]
fn a_prefix_steps_to_another_id() {
    for options in [0, 4, 40] {
        let ip = |id| Ipv4 { id, ihl: 5 + options / 4, ..Ipv4::udp(HOST, HOST) }.to_view();
        let prefix = |id| {
            let options = &[0x94; 40][..usize::from(options)];
            IcrcPrefix::ipv4(&ip(id), options, &Udp::roce(0xc000).to_view())
        };
        for (from, to) in [(0, 0), (0, 1), (1, 0), (0x00ff, 0x0100), (0x1234, 0xfedc), (7, 0x8000)]
        {
            assert_eq!(prefix(from).with_id(to), prefix(to), "{options} {from} {to}");
        }
    }
    let v6 = IcrcPrefix::socket_v6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, 0xc000, 36);
    assert_eq!(v6.with_id(9), v6, "IPv6 has none");
}

#[test]
fn each_value_of_bth_byte_4_counts_as_ones() {
    let prefix = IcrcPrefix::socket_v4(HOST, HOST, 49152, 1144, 36);
    let mut packet = UC_SEND;
    for byte in 0..=255 {
        packet[4] = byte;
        assert_eq!(prefix.verify(&packet), Verdict::Ok);
        let mut icrc = prefix.start(&packet[..12]);
        icrc.update(&packet[12..32]);
        assert_eq!(icrc.finish()[..], packet[32..]);
    }
}
