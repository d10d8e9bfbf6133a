use super::*;
use crate::{Error, Wanted};

fn emitted<R: Repr>(header: &R) -> Vec<u8> {
    let mut out = vec![0; R::LEN];
    assert_eq!(header.emit(&mut out), Ok(R::LEN));
    out
}

#[test]
fn ethernet() {
    let bytes = *b"\xe4\x1d\x2d\xab\x2b\xc2\x7c\xfe\x90\x64\x3b\x32\x08\x00";
    let (header, rest) = Ethernet::parse(&bytes).unwrap();
    assert_eq!(header.dst.to_string(), "e4:1d:2d:ab:2b:c2");
    assert_eq!(header.src.to_string(), "7c:fe:90:64:3b:32");
    assert_eq!((header.ethertype, rest), (ethertype::IPV4, &[][..]));
    assert_eq!(emitted(&header), bytes);
    assert_eq!(
        Ethernet::parse(&bytes[..13]),
        Err(Error::new("Ethernet", "length", 13, Wanted::AtLeast(14)))
    );
}

#[test]
fn vlan_tag() {
    let tag = Vlan { priority: 5, drop_eligible: true, id: 0x123, ethertype: ethertype::IPV6 };
    assert_eq!(emitted(&tag), [0xb1, 0x23, 0x86, 0xdd]);
    assert_eq!(Vlan::parse(&[0xb1, 0x23, 0x86, 0xdd]), Ok((tag, &[][..])));
    assert!([0x8100, 0x88a8, 0x9100].into_iter().all(ethertype::is_vlan));
    assert!(!ethertype::is_vlan(ethertype::IPV4));
}

#[test]
fn cooked() {
    let sll = Sll {
        packet_type: 4,
        device_type: 1,
        address_len: 6,
        address: [2, 0, 0, 0, 0, 1, 9, 9],
        ethertype: ethertype::IPV4,
    };
    let bytes = [0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 9, 9, 8, 0];
    assert_eq!(emitted(&sll), bytes);
    assert_eq!(Sll::parse(&bytes).unwrap().0, sll);
    let sll2 = Sll2 {
        ethertype: ethertype::IPV4,
        reserved: 0,
        interface: 7,
        device_type: 772,
        packet_type: 0,
        address_len: 6,
        address: [0; 8],
    };
    let bytes = [8, 0, 0, 0, 0, 0, 0, 7, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(emitted(&sll2), bytes);
    assert_eq!(Sll2::parse(&bytes).unwrap().0, sll2);
}
