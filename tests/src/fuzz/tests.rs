use std::{fs, path::Path};

use urxe_wire::{CmMessage, cm::CmAttribute};

/// The UDP payloads of a capture, without ICRC: pcap header 24, then per record 16, Ethernet 14,
/// IPv4 20, UDP 8.
fn packets(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("captures").join(name);
    let pcap = fs::read(path).unwrap();
    let mut found = vec![];
    let mut rest = &pcap[24..];
    while let Some((record, after)) = rest.split_at_checked(16) {
        let len = u32::from_le_bytes(record[8..12].try_into().unwrap());
        let (frame, after) = after.split_at(usize::try_from(len).unwrap());
        found.push(frame[42..frame.len() - 4].to_vec());
        rest = after;
    }
    found
}

#[test]
fn mad_holds_for_every_captured_mad_and_each_byte_of_it_changed() {
    let mut taken = vec![];
    for packet in ["rping.pcap", "udaddy.pcap"].into_iter().flat_map(packets) {
        // To QP1 as UD SEND only: BTH 12, DETH 8, then the MAD.
        if packet[0] != 0x64 || packet[5..8] != [0, 0, 1] {
            continue;
        }
        let mut mad = packet[20..].to_vec();
        super::mad(&mad);
        super::mad(&mad[..200]);
        taken.push(CmMessage::parse(&mad).unwrap().1.attribute());
        for at in 0..mad.len() {
            for byte in [0, 0xff, mad[at] ^ 1, mad[at] ^ 0x80] {
                let before = std::mem::replace(&mut mad[at], byte);
                super::mad(&mad);
                mad[at] = before;
            }
        }
    }
    let order = [
        CmAttribute::Req,
        CmAttribute::Rep,
        CmAttribute::Rtu,
        CmAttribute::Dreq,
        CmAttribute::Drep,
        CmAttribute::SidrReq,
        CmAttribute::SidrRep,
    ];
    assert_eq!(taken, order);
}

/// All captures; and the head of each with every byte changed, cut at every length.
#[test]
fn pcap_holds_for_every_capture_and_each_changed_byte_of_its_head() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("captures");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "pcap") {
            continue;
        }
        count += 1;
        let mut file = fs::read(path).unwrap();
        super::pcap(&file);
        // File header and first packet; a longer packet's payload is all alike.
        file.truncate(24 + 16 + 110);
        for at in 0..file.len() {
            super::pcap(&file[..at]);
            for byte in [0, 0xff, file[at] ^ 1, file[at] ^ 0x80] {
                let before = std::mem::replace(&mut file[at], byte);
                super::pcap(&file);
                super::pcap(&file[40..]);
                file[at] = before;
            }
        }
    }
    assert_eq!(count, 19);
}

/// Bytes that look random and are the same in every run.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[test]
fn the_engine_holds_under_programs_made_of_noise() {
    for seed in 0..300 {
        super::engine(&noise(seed, 3000));
    }
}

/// Decisions of all kinds, from a generator that is always the same.
#[test]
fn lint_holds_for_many_conversations() {
    let mut state = 1_u64;
    let mut byte = || {
        // A linear congruential generator (Knuth, MMIX); its high bits are good enough.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    for _ in 0..200 {
        let decisions: Vec<u8> = (0..2000).map(|_| byte()).collect();
        super::lint(&decisions);
    }
}

#[test]
fn the_connection_manager_holds_under_conversations_made_of_noise() {
    for seed in 0..300 {
        super::cm(&noise(seed, 3000));
    }
}
