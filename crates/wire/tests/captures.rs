//! Every packet of the golden captures, which kernel rxe sent and computed the ICRCs of.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs::{self, File};

use pcap_file::pcap::PcapReader;
use urxe_wire::{LinkType, Network, Packet, Verdict};

/// Packets per capture, so that a missing or cut file fails.
const CAPTURES: [(&str, usize); 19] = [
    ("atomic_cas", 10),
    ("atomic_faa", 10),
    ("atomic_write", 6),
    ("invalid_request", 6),
    ("loss_send", 475),
    ("rc_ipv6", 18),
    ("rc_pingpong", 50),
    ("read_bw", 55),
    ("read_resume", 25),
    ("remote_access", 6),
    ("rnr_nak", 98),
    ("rping", 29),
    ("send_invalidate", 5),
    ("srq", 54),
    ("uc_pingpong", 18),
    ("ud_pingpong", 6),
    ("udaddy", 6),
    ("write_bw", 55),
    ("write_imm", 8),
];

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/captures");

/// Calls `check` on each frame of each capture, with the file's name.
fn each_frame(check: impl Fn(&str, &[u8])) {
    for (name, wanted) in CAPTURES {
        let file = File::open(format!("{FOLDER}/{name}.pcap")).unwrap();
        let mut reader = PcapReader::new(file).unwrap();
        assert_eq!(u32::from(reader.header().datalink), LinkType::Ethernet.to_pcap(), "{name}");
        let mut got = 0;
        while let Some(frame) = reader.next_packet() {
            check(name, &frame.unwrap().data);
            got += 1;
        }
        assert_eq!(got, wanted, "packets of {name}");
    }
}

#[test]
fn no_capture_is_left_out() {
    let pcaps = fs::read_dir(FOLDER)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "pcap"));
    assert_eq!(pcaps.count(), CAPTURES.len());
}

#[test]
fn every_packet_emits_the_bytes_it_was_parsed_from() {
    each_frame(|name, frame| {
        let packet = Packet::parse(LinkType::Ethernet, frame).unwrap();
        let mut out = vec![0; packet.len()];
        assert_eq!(packet.emit(&mut out), Ok(frame.len()), "{name}");
        assert_eq!(out, frame, "{name}");
    });
}

#[test]
fn every_icrc_is_right_in_full_and_with_the_id_hidden() {
    each_frame(|name, frame| {
        let packet = Packet::parse(LinkType::Ethernet, frame).unwrap();
        assert_eq!(packet.icrc_verdict(), Verdict::Ok, "{name}");
        let wanted = match packet.network {
            Network::Ipv4 { header, .. } if header.id != 0 => Verdict::OkSolvedId(header.id),
            _ => Verdict::Ok,
        };
        assert_eq!(packet.icrc_verdict_hidden_id(), wanted, "{name}");
    });
}

#[test]
fn sealing_changes_nothing_the_kernel_filled_in() {
    each_frame(|name, frame| {
        let packet = Packet::parse(LinkType::Ethernet, frame).unwrap();
        let mut sealed = packet;
        sealed.seal().unwrap();
        assert_eq!(sealed, packet, "{name}");
    });
}
