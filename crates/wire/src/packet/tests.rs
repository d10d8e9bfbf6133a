use super::*;
use crate::{Bth, Ethernet, Ext, Mac, Opcode, Psn, Qpn, Sll, Sll2, Verdict, Vlan, ib};

/// The frame of a ConnectX-4 Lx CNP, ICRC included.
const CNP_FRAME: [u8; 74] = [
    0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2, 0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32, 8, 0, 0x45, 0xc2, 0,
    0x3c, 0x71, 0x8c, 0x40, 0, 0x40, 0x11, 0x91, 0x61, 0x0a, 0, 0x11, 1, 0x0a, 0, 0x12, 1, 0, 0,
    0x12, 0xb7, 0, 0x28, 0, 0, 0x81, 0, 0xff, 0xff, 0x40, 0, 1, 0x18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x82, 0xfd, 0, 0x2a,
];

const ETHERNET: Link =
    Link::Ethernet(Ethernet { dst: Mac([2; 6]), src: Mac([4; 6]), ethertype: 0 });

/// A sealed SEND only of `payload` over IPv4.
fn send(link: Link, payload: &[u8]) -> Packet<'_> {
    let opcode = Opcode::from_name("RC_SEND_ONLY").unwrap();
    let bth = Bth::new(opcode, Qpn::new(0x11), Psn::new(7));
    let mut packet = Packet {
        link,
        vlans: Vlans::NONE,
        network: Network::Ipv4 {
            header: Ipv4::udp([10, 0, 0, 1].into(), [10, 0, 0, 2].into()),
            options: &[],
            udp: Udp::roce(0xc123),
        },
        roce: Roce::new(bth, Ext::NONE, payload),
        trailer: &[],
    };
    packet.seal().unwrap();
    packet
}

fn bytes_of(packet: &Packet<'_>) -> Vec<u8> {
    let mut out = vec![0; packet.len()];
    assert_eq!(packet.emit(&mut out), Ok(out.len()));
    out
}

fn not_roce(link: LinkType, bytes: &[u8]) -> NotRoce {
    match Packet::parse(link, bytes) {
        Err(ParseError::NotRoce(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn bad(link: LinkType, bytes: &[u8]) -> Error {
    match Packet::parse(link, bytes) {
        Err(ParseError::Bad(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn cnp_of_a_connectx() {
    let packet = Packet::parse(LinkType::Ethernet, &CNP_FRAME).unwrap();
    assert_eq!(packet.roce.bth.opcode, Opcode::CNP);
    assert!(packet.roce.bth.becn && !packet.roce.bth.fecn);
    assert_eq!(packet.udp().map(|u| u.src_port), Some(0));
    assert_eq!(packet.icrc_verdict(), Verdict::Ok);
    assert_eq!(packet.icrc_verdict_hidden_id(), Verdict::OkSolvedId(0x718c));
    assert_eq!(bytes_of(&packet), CNP_FRAME);
    let mut again = packet;
    again.seal().unwrap();
    assert_eq!(again, packet, "sealing finds nothing to change");
}

#[test]
fn native_sample_of_the_specification() {
    let mut bytes = ib::tests::SAMPLE.to_vec();
    let vcrc = ib::vcrc(&[&bytes]);
    bytes.extend_from_slice(&vcrc);
    let packet = Packet::parse(LinkType::Infiniband, &bytes).unwrap();
    assert_eq!((packet.network, packet.udp()), (Network::Local, None));
    assert_eq!(packet.icrc_verdict(), Verdict::Ok);
    assert_eq!(packet.compute_vcrc(), Some(vcrc));
    assert_eq!(bytes_of(&packet), bytes);
    assert_eq!(bad(LinkType::Infiniband, &bytes[..57]).field, "packet length in bytes");
}

#[test]
fn vlan_tags_stack_and_their_ethertypes_chain() {
    let mut packet = send(ETHERNET, &[1, 2, 3]);
    packet.vlans.push(Vlan { priority: 3, id: 100, ..Vlan::default() }).unwrap();
    packet.vlans.push(Vlan { id: 7, ..Vlan::default() }).unwrap();
    packet.link.set_ethertype(ethertype::SERVICE_VLAN);
    packet.seal().unwrap();
    assert_eq!(packet.link.ethertype(), Some(ethertype::SERVICE_VLAN), "a TPID stays");
    let bytes = bytes_of(&packet);
    assert_eq!(bytes[12..22], [0x88, 0xa8, 0x60, 100, 0x81, 0, 0, 7, 8, 0]);
    assert_eq!(Packet::parse(LinkType::Ethernet, &bytes), Ok(packet));
    assert_eq!(packet.icrc_verdict(), Verdict::Ok);
    for _ in 0..2 {
        packet.vlans.push(Vlan::default()).unwrap();
    }
    packet.seal().unwrap();
    assert_eq!(Packet::parse(LinkType::Ethernet, &bytes_of(&packet)), Ok(packet));
    let err = packet.vlans.push(Vlan::default()).unwrap_err();
    assert_eq!((err.field, err.got, err.wanted), ("count", 5, Wanted::AtMost(4)));
    let deep = [&[0; 12][..], &[0x81, 0, 0, 1].repeat(5), &[8, 0]].concat();
    assert_eq!(not_roce(LinkType::Ethernet, &deep), NotRoce::VlanDepth);
}

#[test]
fn each_link_carries_the_same_packet() {
    let links = [ETHERNET, Link::RawIp, Link::Sll(Sll::default()), Link::Sll2(Sll2::default())];
    for link in links {
        let packet = send(link, b"payload");
        let bytes = bytes_of(&packet);
        assert_eq!(Packet::parse(link.link_type(), &bytes), Ok(packet));
        assert_eq!(bytes[link.len()..], bytes_of(&send(Link::RawIp, b"payload")));
    }
}

#[test]
fn the_padding_of_a_short_frame_is_a_trailer() {
    let packet = Packet { trailer: &[0, 0, 9], ..send(ETHERNET, &[]) };
    let bytes = bytes_of(&packet);
    assert_eq!(Packet::parse(LinkType::Ethernet, &bytes), Ok(packet));
    assert_eq!(packet.icrc_verdict(), Verdict::Ok);
}

#[test]
fn options_and_udp_checksum_are_sealed() {
    let options = [1, 1, 1, 0];
    let mut packet = send(Link::RawIp, &[5; 6]);
    let Network::Ipv4 { header, udp, .. } = packet.network else { unreachable!() };
    packet.network = Network::Ipv4 { header, options: &options, udp: Udp { checksum: 1, ..udp } };
    packet.seal().unwrap();
    let bytes = bytes_of(&packet);
    assert_eq!(bytes[0], 0x46);
    let again = Packet::parse(LinkType::RawIp, &bytes).unwrap();
    assert_eq!(again, packet);
    assert_eq!(again.icrc_verdict(), Verdict::Ok);
    assert_eq!(again.compute_udp_checksum(), again.udp().map(|u| u.checksum));
    let Network::Ipv4 { header, .. } = again.network else { unreachable!() };
    assert_eq!(header.right_checksum(&options), header.checksum);
    packet.network = Network::Ipv4 { header, options: &options[..2], udp };
    assert_eq!(packet.seal().unwrap_err().field, "options");
}

#[test]
fn other_traffic_has_a_named_reason() {
    let raw = bytes_of(&send(Link::RawIp, &[1; 8]));
    let change = |at: usize, value: u8| {
        let mut bytes = raw.clone();
        bytes[at] = value;
        not_roce(LinkType::RawIp, &bytes)
    };
    assert_eq!(change(0, 0x95), NotRoce::IpVersion(9));
    assert_eq!(change(9, 6), NotRoce::Protocol(6));
    assert_eq!(change(6, 0x20), NotRoce::Fragment);
    assert_eq!(change(7, 1), NotRoce::Fragment);
    assert_eq!(change(23, 0xb8), NotRoce::Port(0x12b8));
    let mut v6 = [0; 48];
    v6[0] = 0x60;
    for (next, why) in [(44, NotRoce::Ipv6Extension(44)), (6, NotRoce::Protocol(6))] {
        v6[6] = next;
        assert_eq!(not_roce(LinkType::RawIp, &v6), why);
    }
    let mut frame = bytes_of(&send(ETHERNET, &[]));
    (frame[12], frame[13]) = (0x89, 0x15);
    assert_eq!(not_roce(LinkType::Ethernet, &frame), NotRoce::RoceV1);
    frame[13] = 0x16;
    assert_eq!(not_roce(LinkType::Ethernet, &frame), NotRoce::Ethertype(0x8916));
    let raw_ib = [0, 1, 0, 0, 0, 2, 0, 0];
    let why = NotRoce::RawInfiniband(NextHeader::RawIpv6);
    assert_eq!(not_roce(LinkType::Infiniband, &raw_ib), why);
    assert_eq!(why.to_string(), "raw InfiniBand packet (RawIpv6)");
}

#[test]
fn each_disagreement_of_lengths_is_its_own_error() {
    let raw = bytes_of(&send(Link::RawIp, &[1; 8]));
    let change = |at: usize, value: u8| {
        let mut bytes = raw.clone();
        bytes[at] = value;
        bad(LinkType::RawIp, &bytes)
    };
    let total = raw.len() as u64;
    assert_eq!(total, 20 + 8 + 12 + 8 + 4);
    let wanted = Wanted::Between(28, total);
    assert_eq!(change(3, 53), Error::new("IPv4", "total length", 53, wanted));
    assert_eq!(change(3, 27), Error::new("IPv4", "total length", 27, wanted));
    assert_eq!(change(3, 51), Error::new("UDP", "length", 32, Wanted::Exactly(31)));
    assert_eq!(change(25, 33), Error::new("UDP", "length", 33, Wanted::Exactly(32)));
    assert_eq!(change(0, 0x44).field, "header length");
    assert_eq!(
        change(28, 0xff),
        Error::new("BTH", "opcode", 0xff, Wanted::OneOf("the defined opcodes"))
    );
    assert_eq!(bad(LinkType::RawIp, &[]), Error::short("IP", 0, 20));
    for len in 1..raw.len() {
        assert!(matches!(Packet::parse(LinkType::RawIp, &raw[..len]), Err(ParseError::Bad(_))));
    }
}

#[test]
fn emit_refuses_what_would_not_parse() {
    let mut out = [0; 256];
    let packet = send(Link::RawIp, &[1; 8]);
    let short = packet.len() - 1;
    assert_eq!(packet.emit(&mut out[..short]), Err(Error::short("packet", short, short + 1)));
    let lone = Packet { network: Network::Local, ..packet };
    assert_eq!(lone.emit(&mut out).unwrap_err().field, "network header length");
    let Network::Ipv4 { header, udp, .. } = packet.network else { unreachable!() };
    let network = Network::Ipv4 { header, options: &[0; 4], udp };
    let err = Packet { network, ..packet }.emit(&mut out).unwrap_err();
    assert_eq!((err.got, err.wanted), (20, Wanted::Exactly(24)));
}

#[test]
fn seal_refuses_what_emit_refuses() {
    let mut out = [0; 256];
    let good = send(ETHERNET, &[1; 8]);
    let roce = |opcode: &str| Bth { opcode: Opcode::from_name(opcode).unwrap(), ..good.roce.bth };
    let undefined = Bth { opcode: Opcode(0x1f), ..good.roce.bth };
    let mut bad = [good; 5];
    bad[0].roce.bth = undefined;
    (bad[1].roce.payload, bad[1].roce.pad) = (&[1; 3], &[]);
    bad[2].roce.bth = roce("RC_RDMA_WRITE_ONLY");
    bad[3].link = Link::RawIp;
    bad[3].vlans.push(Vlan::default()).unwrap();
    let lrh = Lrh::parse(&[0, 2, 0, 1, 0, 0, 0, 2]).unwrap().0;
    bad[4].link = Link::Infiniband { lrh, vcrc: [0; 2] };
    bad[4].network = Network::Local;
    bad[4].vlans.push(Vlan::default()).unwrap();
    let fields = ["opcode", "payload and pad length", "extension header bits", "count", "count"];
    for (mut packet, field) in bad.into_iter().zip(fields) {
        assert_eq!(packet.seal().unwrap_err().field, field);
        assert_eq!(packet.emit(&mut out).unwrap_err().field, field);
    }
}

#[test]
fn seal_sets_what_comes_next() {
    let mut packet = send(Link::RawIp, &[1; 8]);
    let right = packet;
    let Network::Ipv4 { header, .. } = &mut packet.network else { unreachable!() };
    header.protocol = protocol::IBA_TRANSPORT;
    packet.seal().unwrap();
    assert_eq!(packet, right);
    let address = core::net::Ipv6Addr::LOCALHOST;
    let header = Ipv6 { next_header: 0, ..Ipv6::udp(address, address) };
    packet.network = Network::Ipv6 { header, udp: Udp::roce(1) };
    packet.seal().unwrap();
    assert_eq!(Packet::parse(LinkType::RawIp, &bytes_of(&packet)), Ok(packet));
    let lrh = Lrh::parse(&[0, 2, 0, 1, 0, 0, 0, 2]).unwrap().0;
    packet.link = Link::Infiniband { lrh, vcrc: [0; 2] };
    let grh = Grh::parse(&[&[0x60][..], &[0; 39]].concat()).unwrap().0;
    packet.network = Network::Grh(grh);
    packet.seal().unwrap();
    assert_eq!(Packet::parse(LinkType::Infiniband, &bytes_of(&packet)), Ok(packet));
}

#[test]
fn link_types_of_pcap() {
    for link in LinkType::ALL {
        assert_eq!(LinkType::from_pcap(link.to_pcap()), Some(link));
    }
    assert_eq!(LinkType::from_pcap(228), Some(LinkType::RawIp));
    assert_eq!(LinkType::from_pcap(105), None);
}
