use urxe_wire::{ICRC_LEN, LinkType, Packet, Verdict};

use super::*;
use crate::raw::VlanTag;
use crate::testing::packet;

fn flow(v6: bool) -> Flow {
    let (src, dst) = if v6 { ("fd00::1", "fd00::2") } else { ("10.0.0.1", "10.0.0.2") };
    Flow {
        src: src.parse().unwrap(),
        dst: dst.parse().unwrap(),
        src_port: 0xd123,
        traffic_class: 0x6a,
        hop_limit: 33,
        flow_label: if v6 { 0x54321 } else { 0 },
    }
}

/// A whole frame, sealed for identification `id`.
fn made(v6: bool, vlan: Option<VlanTag>, id: u16, checksum: bool, len: usize) -> Vec<u8> {
    let flow = flow(v6);
    let mut transport = packet(7, len);
    let all = u16::try_from(transport.len() + ICRC_LEN).unwrap();
    let prefix = IcrcPrefix::socket(flow.src, flow.dst, flow.src_port, id, all).unwrap();
    transport.extend(prefix.compute(&transport));
    let link = LinkHeader { dst: Mac([2; 6]), src: Mac([4; 6]), vlan };
    let headers = headers(Some(&link), &flow, flow.src_port, id, checksum, &transport).unwrap();
    [headers.bytes(), &transport].concat()
}

const TAG: Option<VlanTag> = Some(VlanTag { id: 77, priority: 5 });

#[test]
fn a_made_frame_is_right_in_every_field() {
    for (v6, vlan, checksum) in
        [(false, None, false), (false, TAG, true), (true, None, false), (true, TAG, true)]
    {
        let frame = made(v6, vlan, 0xbeef, checksum, 100);
        let packet = Packet::parse(LinkType::Ethernet, &frame).unwrap();
        assert_eq!(packet.icrc_verdict(), Verdict::Ok);
        let mut sealed = packet;
        sealed.seal().unwrap();
        assert_eq!(sealed, packet, "lengths, checksums, ethertypes");
        assert_eq!(packet.udp().unwrap().checksum != 0, checksum);
        assert_eq!(packet.vlans.tags().len(), usize::from(vlan.is_some()));
        let parsed = parse(&frame).map_err(|_| ()).unwrap();
        assert_eq!(parsed.flow, flow(v6));
        assert_eq!((parsed.headers, parsed.len), (frame.len() - 116, 116));
    }
}

#[test]
fn the_prefix_of_headers_is_what_the_whole_packet_says() {
    for v6 in [false, true] {
        let frame = made(v6, TAG, 9, false, 64);
        let (headers, transport) = frame.split_at(frame.len() - 80);
        let len = u16::try_from(transport.len()).unwrap();
        assert_eq!(prefix(headers, 0, len).unwrap().verify(transport), Verdict::Ok);
        assert_eq!(prefix(headers, 1, len).unwrap().verify(transport).is_ok(), v6, "no ID in IPv6");
    }
}

#[test]
fn segments_that_came_together_are_told_apart() {
    // Segment 3 of a run that came with the headers of its first, as long as three of them.
    let (first, third) = (made(false, None, 0xffff, false, 512), made(false, None, 1, false, 40));
    let mut together = first[..42].to_vec();
    let total = 20 + 8 + 2 * 528_u16;
    together[16..18].copy_from_slice(&total.to_be_bytes());
    together[38..40].copy_from_slice(&(total - 20).to_be_bytes());
    assert_eq!(prefix(&together, 2, 56).unwrap().verify(&third[42..]), Verdict::Ok);
    assert_eq!(headers_of_segment(&together, 2, 56).unwrap(), third[..42]);
    let v6 = made(true, TAG, 0, false, 40);
    assert_eq!(headers_of_segment(&v6[..66], 5, 56).unwrap(), v6[..66]);
}

#[test]
fn what_is_wrong_with_a_frame_is_told_apart() {
    let good = made(false, None, 1, false, 16);
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = good.clone();
        change(&mut frame);
        parse(&frame).map(|_| ()).unwrap_err()
    };
    assert_eq!(refused(&|f| f[24] ^= 1), NotOurs::IpChecksum);
    let fragment = refused(&|f| {
        f[20] = 0x20;
        let (mut ip, _) = Ipv4::parse(&f[14..]).unwrap();
        ip.checksum = ip.right_checksum(&[]);
        ip.emit(&mut f[14..]).unwrap();
    });
    assert_eq!(fragment, NotOurs::Fragment);
    assert_eq!(refused(&|f| f[39] += 1), NotOurs::Malformed, "UDP length");
    for len in 0..good.len() {
        let cut = parse(&good[..len]).map(|_| ()).unwrap_err();
        assert_eq!(cut, NotOurs::Malformed, "cut to {len}");
    }
    // What pads a short frame is not of the packet.
    let padded = parse(&[&good[..], &[0; 9]].concat()).map_err(|_| ()).unwrap();
    assert_eq!(padded.len, 32);
}

#[test]
fn families_that_do_not_match_make_no_headers() {
    let mixed = Flow { dst: "fd00::2".parse().unwrap(), ..flow(false) };
    assert!(headers(None, &mixed, 1, 0, false, &[0; 20]).is_none());
    assert!(headers(None, &flow(false), 1, 0, false, &[0; 65_530]).is_none(), "too long");
}
