use super::*;
use crate::{Bth, Opcode, Reth, Roce};

/// The specification's sample packet for the CRCs (IBA 7.8, quoted on linux-rdma in January 2025):
/// an RC WRITE only on a local route, LRH to ICRC.
pub(crate) const SAMPLE: [u8; 56] = [
    0x70, 0x12, 0x37, 0x5c, 0, 0x0e, 0x17, 0xd2, 0x0a, 0x20, 0x24, 0x87, 0, 0x87, 0xb1, 0xb3, 0,
    0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05, 0, 0,
    0, 0x0e, 0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, 0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0,
    0, 0x96, 0x25, 0xb7, 0x5a,
];

#[test]
fn sample_packet_of_the_specification() {
    let (lrh, rest) = Lrh::parse(&SAMPLE).unwrap();
    assert_eq!((lrh.vl, lrh.sl, lrh.next), (7, 1, NextHeader::Local));
    assert_eq!((lrh.dlid, lrh.slid, lrh.packet_bytes()), (0x375c, 0x17d2, SAMPLE.len()));
    let roce = Roce::parse(rest).unwrap();
    assert_eq!(roce.bth.opcode, Opcode::from_name("RC_RDMA_WRITE_ONLY").unwrap());
    assert_eq!(roce.ext.reth.map(|r: Reth| r.dma_len), Some(14));
    assert_eq!((roce.payload.len(), roce.pad), (14, &[0, 0][..]));
    let mut out = [0; 56];
    lrh.emit(&mut out).unwrap();
    roce.emit(&mut out[8..]).unwrap();
    assert_eq!(out, SAMPLE);
    assert_eq!(Bth::LEN + Reth::LEN, roce.header_len());
}

#[test]
fn vcrc_leaves_the_residue_of_its_polynomial() {
    // A receiver runs the CRC over packet and VCRC and finds the same value for each right packet:
    // the inversion of the 16 ones shifted through the register, x^16 · (x^15 + … + 1) mod P.
    let residue = vcrc(&[&[], &vcrc(&[])]);
    for len in 0..SAMPLE.len() {
        let (a, b) = SAMPLE[..len].split_at(len / 3);
        let crc = vcrc(&[a, b]);
        assert_eq!(vcrc(&[a, b, &crc]), residue, "{len}");
        if len > 0 {
            let mut bad = SAMPLE[..len].to_vec();
            bad[len / 2] ^= 1;
            assert_ne!(vcrc(&[&bad]), crc);
        }
    }
}

#[test]
fn vcrc_is_long_division_by_its_polynomial() {
    // Bit by bit, the way IBA 7.8.2 draws the shift register: each byte's lowest bit comes first.
    let mut register = 0xffff_u16;
    for bit in SAMPLE.iter().flat_map(|b| (0..8).map(move |i| u16::from(b >> i & 1))) {
        let feedback = register >> 15 ^ bit;
        register = (register << 1) ^ (feedback * 0x100b);
    }
    // Bit 15 leaves first, as the lowest bit of the first byte.
    assert_eq!(vcrc(&[&SAMPLE]), (!register).reverse_bits().to_le_bytes());
}

#[test]
fn grh_shares_its_layout_with_ipv6() {
    let mut bytes = [0; 40];
    for (i, b) in (0u8..).zip(&mut bytes) {
        *b = i;
    }
    bytes[0] = 0x6f;
    let (grh, _) = Grh::parse(&bytes).unwrap();
    let (ip, _) = Ipv6::parse(&bytes).unwrap();
    assert_eq!((grh.traffic_class, grh.flow_label), (0xf0, 0x1_0203));
    assert_eq!((grh.sgid.0, grh.dgid.0), (ip.src.octets(), ip.dst.octets()));
    let mut out = [0; 40];
    grh.emit(&mut out).unwrap();
    assert_eq!(out, bytes);
    assert_eq!(ud_header_v6(&ip), bytes);
    bytes[0] = 0x4f;
    assert_eq!(Grh::parse(&bytes), Err(Error::new("GRH", "version", 4, Wanted::Exactly(6))));
}

#[test]
fn lrh_keeps_reserved_bits_and_refuses_versions() {
    let bytes = [0xa0, 0x5f, 1, 2, 0xfb, 0xcd, 3, 4];
    let (lrh, _) = Lrh::parse(&bytes).unwrap();
    assert_eq!((lrh.reserved2, lrh.reserved5, lrh.packet_len), (3, 0x1f, 0x3cd));
    assert_eq!(lrh.next, NextHeader::Global);
    let mut out = [0; 8];
    lrh.emit(&mut out).unwrap();
    assert_eq!(out, bytes);
    let bad = [0xa1, 0x5f, 1, 2, 0xfb, 0xcd, 3, 4];
    assert_eq!(Lrh::parse(&bad), Err(Error::new("LRH", "version", 1, Wanted::Exactly(0))));
}

#[test]
fn ud_receives_have_the_ipv4_header_in_the_last_20_of_40_bytes() {
    let ip = Ipv4::udp([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let out = ud_header_v4(&ip);
    assert_eq!(out[..20], [0; 20]);
    assert_eq!(Ipv4::parse(&out[20..]).unwrap().0, ip);
}
