use urxe_wire::{Bth, Opcode, Psn, Qpn};

use super::*;

fn path(v6: bool) -> Path {
    let (src, dst) = if v6 { ("fd00::1", "fd00::2") } else { ("10.0.0.1", "10.0.0.2") };
    Path {
        src: src.parse().unwrap(),
        dst: dst.parse().unwrap(),
        src_port: 0xc123,
        traffic_class: 0x62,
        hop_limit: 63,
        flow_label: 0x54321,
    }
}

fn made(v6: bool) -> Vec<u8> {
    let mut bth = Bth::new(Opcode::from_name("RC_SEND_ONLY").unwrap(), Qpn::new(0x11), Psn::new(7));
    bth.pad = 3;
    let mut header = [0; 12];
    bth.emit(&mut header).unwrap();
    let mut frame = vec![1, 2, 3];
    build(&path(v6), &header, &Payload::Bytes(b"hello"), 3, &mut frame);
    frame
}

#[test]
fn what_is_built_opens_with_all_that_the_engine_asks() {
    for v6 in [false, true] {
        let frame = made(v6);
        let received = open(&frame).unwrap();
        let path = path(v6);
        assert_eq!((received.src, received.dst), (path.src, path.dst));
        assert_eq!((received.src_port, received.hop_limit), (path.src_port, path.hop_limit));
        assert_eq!(received.traffic_class, path.traffic_class);
        assert_eq!(received.bytes, transport(&frame));
        assert_eq!(&received.bytes[12..17], b"hello");
    }
}

/// Only fields that the ICRC leaves out, and no checksum guards, may differ in what still opens.
#[test]
fn each_flipped_bit_is_refused_or_harmless() {
    for (v6, survivors) in [(false, 8), (true, 8 + 20 + 8 + 8)] {
        let good = made(v6);
        let mut survived = 0;
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            if let Ok(received) = open(&bad) {
                survived += 1;
                let mut bytes = received.bytes.to_vec();
                // FECN, BECN and the reserved bits beside them.
                bytes[4] = good[good.len() - bytes.len() + 4];
                assert_eq!(bytes, transport(&good), "bit {bit}, IPv6 {v6}");
            }
        }
        assert_eq!(survived, survivors, "IPv6 {v6}");
    }
}

#[test]
fn a_mark_keeps_the_packet_good() {
    for v6 in [false, true] {
        let mut frame = made(v6);
        assert_eq!(ecn(&frame), Ecn::Ect0);
        assert!(mark_ce(&mut frame));
        assert_eq!(ecn(&frame), Ecn::Ce);
        assert_eq!(open(&frame).unwrap().traffic_class, 0x63);
        let incapable = Path { traffic_class: 0, ..path(v6) };
        build(&incapable, &[0; 12], &Payload::None, 0, &mut frame);
        assert!(!mark_ce(&mut frame), "not ECN-capable");
    }
}

#[test]
fn refusals_say_why() {
    let good = made(false);
    let with = |at: usize, xor: u8| {
        let mut bad = good.clone();
        bad[at] ^= xor;
        open(&bad).map(|_| ())
    };
    assert_eq!(with(0, 0x10), Err(Refused::NotRoce));
    assert_eq!(with(23, 1), Err(Refused::NotRoce), "another port");
    assert_eq!(with(8, 1), Err(Refused::IpChecksum));
    assert_eq!(with(26, 1), Err(Refused::UdpChecksum));
    assert_eq!(with(45, 1), Err(Refused::Icrc));
    assert_eq!(open(&[]).map(|_| ()), Err(Refused::NotRoce));
}
