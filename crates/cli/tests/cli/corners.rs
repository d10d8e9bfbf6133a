//! What `dissect` shows of frames at the edge of what can be read.

use serde_json::Value;
use urxe_cli::dissect::{Filter, Options};
use urxe_wire::{
    Deth, Ext, Feth, FlushLevel, FlushScope, LinkType, MAD_LEN, Network, Packet, QKey, Qpn, Reth,
};

use crate::made::{ethernet, on_link, packet, pcap, sealed, shown};

fn verbose() -> Options {
    Options { verbose: true, ..Options::default() }
}

fn json() -> Options {
    Options { json: true, ..Options::default() }
}

/// The objects of a file's frames.
fn objects(file: &[u8]) -> Vec<Value> {
    let text = shown(file, &json());
    let lines = text.lines().take_while(|line| !line.starts_with("--"));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn send() -> Packet<'static> {
    packet("RC_SEND_ONLY", 1, Ext::NONE, b"abcdefgh")
}

/// The zeros that fill a short Ethernet frame are no BTH, whether IP or UDP ends before them.
#[test]
fn ethernet_padding_is_no_bth() {
    let mut empty = sealed(send());
    empty.truncate(42);
    empty[16..18].copy_from_slice(&[0, 28]);
    empty[38..40].copy_from_slice(&[0, 8]);
    empty.resize(60, 0);
    let mut udp_only = empty.clone();
    udp_only[16..18].copy_from_slice(&[0, 46]);
    for frame in [empty, udp_only] {
        let file = ethernet(&[frame]);
        let text = shown(&file, &Options::default());
        assert!(text.contains("broken") && !text.contains("RC_SEND_FIRST"), "{text}");
        let object = &objects(&file)[0];
        assert_eq!((&object["src"], &object["opcode"]), (&"10.0.0.1".into(), &Value::Null));
        let filter = "qp=0".parse::<Filter>().unwrap();
        let text = shown(&file, &Options { filter, ..Options::default() });
        assert!(text.starts_with("--"), "{text}");
    }
}

#[test]
fn the_footer_is_bounded_and_led_by_the_frequent() {
    let to_port = |port: u16| {
        let mut frame = sealed(send());
        frame[36..38].copy_from_slice(&port.to_be_bytes());
        frame
    };
    let mut frames: Vec<_> = (0..100).map(to_port).collect();
    frames.extend([to_port(50), to_port(50)]);
    let text = shown(&ethernet(&frames), &Options::default());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 14, "{text}");
    assert_eq!(lines[0], "-- 102 frames, 0 RoCEv2 packets, 102 skipped");
    assert_eq!(lines[1], "  skipped 3: UDP port 50");
    assert_eq!(lines[13], "  and 88 frames of other kinds");
}

#[test]
fn lengths_of_802_3_are_one_kind() {
    let of_length = |len: u16| {
        let mut frame = sealed(send());
        frame[12..14].copy_from_slice(&len.to_be_bytes());
        frame
    };
    let text = shown(&ethernet(&[38, 0, 0x5ff].map(of_length)), &Options::default());
    assert!(text.ends_with("skipped 3: 802.3 frame\n"), "{text}");
}

/// Cut at each length, a native packet's CRC and pad are right or not seen, never wrong.
#[test]
fn what_was_cut_is_not_judged() {
    let native =
        on_link(packet("RC_SEND_ONLY", 1, Ext::NONE, b"abcde"), LinkType::Infiniband, true);
    let frame = sealed(native);
    let original = u32::try_from(frame.len()).unwrap();
    let cut = |less: usize| {
        let frames = [(&frame[..frame.len() - less], original)];
        shown(&pcap(false, false, 247, &frames), &verbose())
    };
    for less in 0..=9 {
        let text = cut(less);
        assert!(!text.contains("wrong, wanted"), "{text}");
        let unseen = text.matches("not seen: the frame is cut short").count();
        // VCRC of two bytes, ICRC of four, pad of three.
        assert_eq!(unseen, [0, 1, 1, 2, 2, 2, 2, 3, 3, 3][less], "{text}");
    }
}

#[test]
fn ipv4_options_are_shown() {
    let mut packet = send();
    let Network::Ipv4 { header, udp, .. } = packet.network else { unreachable!() };
    packet.network = Network::Ipv4 { header, options: &[0x94, 4, 0, 0], udp };
    let file = ethernet(&[sealed(packet)]);
    let text = shown(&file, &verbose());
    assert!(text.contains("94 04 00 00               options          94040000"), "{text}");
    assert_eq!(objects(&file)[0]["ipv4"]["options"], "94040000");
}

#[test]
fn a_mad_that_is_no_good_cm_message_keeps_its_bytes() {
    let deth = Deth { qkey: QKey::GSI, reserved: 0, src_qp: Qpn::GSI };
    let ext = Ext { deth: Some(deth), ..Ext::NONE };
    let mut mad = [0x5a; MAD_LEN];
    mad[..4].copy_from_slice(&[1, 7, 9, 3]);
    let mut performance = mad;
    performance[1] = 4;
    let frames = [&mad[..], &performance, &mad[..28], &mad[..20]].map(|mad| {
        let mut packet = packet("UD_SEND_ONLY", 1, ext, mad);
        packet.roce.bth.dest_qp = Qpn::GSI;
        sealed(packet)
    });
    let file = ethernet(&frames);
    let text = shown(&file, &verbose());
    assert_eq!(text.matches("MAD data  232 bytes at 86").count(), 2, "{text}");
    assert!(text.contains("MAD data  4 bytes at 86"), "{text}");
    assert!(text.contains("payload  20 bytes at 62"), "{text}");
    let objects = objects(&file);
    assert_eq!(objects[0]["mad"]["class_version"], 9);
    assert_eq!(objects[1]["mad_data"]["data"], "5a".repeat(232));
    assert_eq!(objects[2]["mad_data"]["data"], "5a5a5a5a");
}

#[test]
fn all_placement_bits_of_a_flush_are_shown() {
    let reth = Reth { va: 0, rkey: 1, dma_len: 8 };
    let feth = Feth::new(FlushScope::Range, FlushLevel::from_bits(0b1101));
    let ext = Ext { feth: Some(feth), reth: Some(reth), ..Ext::NONE };
    let file = ethernet(&[sealed(packet("RC_FLUSH", 1, ext, &[]))]);
    let text = shown(&file, &verbose());
    assert!(text.contains("13 (global visibility and reserved bits 0xc)"), "{text}");
}

/// What is broken after a native packet's addresses still has them, and its BTH.
#[test]
fn a_broken_native_packet_has_its_ends_and_bth() {
    for (global, src, bth) in [(true, "fd00::1", 48), (false, "lid 5", 8)] {
        let mut frame = sealed(on_link(send(), LinkType::Infiniband, global));
        frame[bth] = 0x1f;
        let len = u32::try_from(frame.len()).unwrap();
        let file = pcap(false, false, 247, &[(&frame[..], len)]);
        let object = &objects(&file)[0];
        assert_eq!((&object["src"], &object["opcode"]), (&src.into(), &"0x1f".into()));
        assert_eq!((&object["psn"], &object["dest_qp"]), (&1.into(), &0x11.into()));
        let filter = "psn=1".parse::<Filter>().unwrap();
        let text = shown(&file, &Options { filter, ..Options::default() });
        assert!(text.contains("broken  BTH opcode"), "{text}");
    }
}

#[test]
fn a_short_native_frame_asks_for_no_range_upside_down() {
    let frame = [0, 2, 0, 7, 0, 3, 0, 5];
    let text = shown(&pcap(false, false, 247, &[(&frame[..], 8)]), &Options::default());
    assert!(text.contains("lid 5 → lid 7"), "{text}");
    assert!(text.contains("length: got 8, wanted at least 14"), "{text}");
}

/// A frame that claims to be longer than any packet is read as far as it is there.
#[test]
fn a_huge_original_length_hides_nothing() {
    let good = sealed(send());
    let mut tcp = good.clone();
    tcp[23] = 6;
    let frames = [(&good[..], u32::MAX), (&tcp[..], u32::MAX), (&good[..60], 65_600)];
    let text = shown(&pcap(false, false, 1, &frames), &Options::default());
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].contains("RC_SEND_ONLY") && lines[0].contains("icrc ok"), "{text}");
    assert!(lines[1].contains("RC_SEND_ONLY") && lines[1].contains("icrc cut"), "{text}");
    assert!(lines[2].starts_with("-- 3 frames, 2 RoCEv2 packets"), "{text}");
    assert!(text.contains("skipped 1: TCP"), "{text}");
}
