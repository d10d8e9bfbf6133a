use super::*;

/// The IPv4 header of the ConnectX CNP.
const CNP: [u8; 20] = [
    0x45, 0xc2, 0, 0x3c, 0x71, 0x8c, 0x40, 0, 0x40, 0x11, 0x91, 0x61, 0x0a, 0, 0x11, 1, 0x0a, 0,
    0x12, 1,
];

#[test]
fn ipv4_of_a_nic() {
    let (header, _) = Ipv4::parse(&CNP).unwrap();
    assert_eq!((header.tos, header.total_len, header.id), (0xc2, 60, 0x718c));
    assert!(header.dont_fragment && !header.is_fragment());
    assert_eq!((header.src, header.dst), ([10, 0, 17, 1].into(), [10, 0, 18, 1].into()));
    assert_eq!(header.right_checksum(&[]), header.checksum);
    let mut out = [0; 20];
    header.emit(&mut out).unwrap();
    assert_eq!(out, CNP);
}

#[test]
fn ipv4_checksum_covers_options() {
    let mut header = Ipv4::udp([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    header.ihl = 6;
    let options = [0x94, 0x04, 0x12, 0x34];
    header.checksum = header.right_checksum(&options);
    let mut sum = Checksum::new();
    let mut bytes = [0; 20];
    header.emit(&mut bytes).unwrap();
    sum.add(&bytes);
    sum.add(&options);
    assert_eq!(sum.finish(), 0, "a right header sums up to all ones");
    assert_eq!(header.header_len(), 24);
}

#[test]
fn fragments_are_seen() {
    let header = Ipv4::udp([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    assert!(!header.is_fragment());
    assert!(Ipv4 { more_fragments: true, ..header }.is_fragment());
    assert!(Ipv4 { fragment_offset: 1, ..header }.is_fragment());
}

#[test]
fn wrong_versions_and_lengths_have_names() {
    let mut bytes = [0; 40];
    bytes[0] = 0x65;
    assert_eq!(Ipv4::parse(&bytes), Err(Error::new("IPv4", "version", 6, Wanted::Exactly(4))));
    bytes[0] = 0x44;
    let wanted = Wanted::Between(5, 15);
    assert_eq!(Ipv4::parse(&bytes), Err(Error::new("IPv4", "header length", 4, wanted)));
    assert_eq!(Ipv6::parse(&bytes), Err(Error::new("IPv6", "version", 4, Wanted::Exactly(6))));
}

#[test]
fn ipv6_first_word() {
    let mut header = Ipv6::udp(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
    (header.traffic_class, header.flow_label, header.payload_len) = (0xab, 0x54321, 0x1234);
    let mut bytes = [0; 40];
    header.emit(&mut bytes).unwrap();
    assert_eq!(bytes[..8], [0x6a, 0xb5, 0x43, 0x21, 0x12, 0x34, 17, 64]);
    assert_eq!((bytes[23], bytes[39]), (1, 0));
    assert_eq!(Ipv6::parse(&bytes).unwrap().0, header);
}
