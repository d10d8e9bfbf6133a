use super::*;

#[test]
fn checksum_of_rfc_1071() {
    let bytes = [0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7];
    for cut in 0..=8 {
        for cut2 in cut..=8 {
            let mut sum = Checksum::new();
            sum.add(&bytes[..cut]);
            sum.add(&bytes[cut..cut2]);
            sum.add(&bytes[cut2..]);
            assert_eq!(sum.finish(), !0xddf2, "cut at {cut}, {cut2}");
        }
    }
}

#[test]
fn udp_checksum_by_hand() {
    let udp = Udp { src_port: 0xc000, dst_port: 4791, len: 11, checksum: 0xdead };
    let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    // 0a00 + 0001 + 0a00 + 0002 + 0011 + 000b + c000 + 12b7 + 000b + 0102 + 0300 = eae3
    assert_eq!(udp.right_checksum_v4(src, dst, &[&[1], &[2, 3]]), !0xeae3);
}

#[test]
fn a_checksum_of_zero_is_sent_as_all_ones() {
    let udp = Udp { src_port: 0, dst_port: 0, len: 8, checksum: 0 };
    let zero = Ipv6Addr::UNSPECIFIED;
    let rest = udp.right_checksum_v6(zero, zero, &[]);
    let filled = Udp { src_port: rest, ..udp };
    assert_eq!(filled.right_checksum_v6(zero, zero, &[]), 0xffff);
}

#[test]
fn source_ports_as_linux_computes_them() {
    assert_eq!(source_port(0), 0xc000);
    assert_eq!(source_port(0x3fff), 0xffff);
    assert_eq!(source_port(0xf_ffff), 0xffc0);
    assert_eq!(source_port(0x1_4001), 0xc004);
    assert_eq!(source_port(0xfff0_0000), 0xc000, "a label has 20 bits");
    assert_eq!(flow_label(Qpn::new(0x11), Qpn::new(0x12)), 0x132);
    // ffffff · ffffff = fffffe000001; ^ >> 20: fffff1ffffe1; ^ >> 40: fffff1ffff1e.
    assert_eq!(flow_label(Qpn::MULTICAST, Qpn::MULTICAST), 0xf_ff1e);
    assert_eq!(
        flow_label(Qpn::new(0xabcdef), Qpn::new(0x123456)),
        flow_label(Qpn::new(0x123456), Qpn::new(0xabcdef))
    );
}
