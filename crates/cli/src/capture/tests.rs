//! Capture files, read back; whole ones, cut ones and damaged ones.

use std::{borrow::Cow, time::Duration};

use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption as IfOption,
};
use pcap_file::pcapng::blocks::{
    enhanced_packet::EnhancedPacketBlock, section_header::SectionHeaderBlock,
    simple_packet::SimplePacketBlock, unknown::UnknownBlock,
};
use pcap_file::{DataLink, Endianness, TsResolution, pcap, pcapng};

use super::*;

/// A frame with its own bytes.
#[derive(Debug, PartialEq, Eq)]
struct Owned {
    number: u64,
    time: Option<i128>,
    link: u16,
    bytes: Vec<u8>,
    original_len: u32,
}

/// Reads all; gives the error's text if there is one.
fn read_all(file: &[u8]) -> (Vec<Owned>, Option<String>) {
    let mut capture = match Capture::new("t.pcap", file) {
        Ok(capture) => capture,
        Err(e) => return (Vec::new(), Some(e.to_string())),
    };
    let mut all = Vec::new();
    loop {
        match capture.next_frame() {
            Ok(Some(f)) => all.push(Owned {
                number: f.number,
                time: f.time.map(|t| t.0),
                link: f.link,
                bytes: f.bytes.to_vec(),
                original_len: f.original_len,
            }),
            Ok(None) => return (all, None),
            Err(e) => return (all, Some(e.to_string())),
        }
    }
}

fn whole(file: &[u8]) -> Vec<Owned> {
    let (frames, error) = read_all(file);
    assert_eq!(error, None);
    frames
}

/// Two frames, the second one cut by a snap length of 4, written by pcap-file.
fn pcap(endianness: Endianness, ts_resolution: TsResolution) -> Vec<u8> {
    let header = pcap::PcapHeader {
        datalink: DataLink::ETHERNET,
        endianness,
        ts_resolution,
        snaplen: 4,
        ..Default::default()
    };
    let mut writer = pcap::PcapWriter::with_header(Vec::new(), header).unwrap();
    for (nanoseconds, original, data) in [(1_000_000_007_000, 3, &b"abc"[..]), (4_000, 9, b"wxyz")]
    {
        let time = Duration::from_nanos(nanoseconds);
        writer.write_packet(&pcap::PcapPacket::new(time, original, data)).unwrap();
    }
    writer.into_writer()
}

fn two_frames() -> Vec<Owned> {
    let frame = |number, time, bytes: &[u8], original_len| Owned {
        number,
        time: Some(time),
        link: 1,
        bytes: bytes.to_vec(),
        original_len,
    };
    vec![frame(1, 1_000_000_007_000, b"abc", 3), frame(2, 4_000, b"wxyz", 9)]
}

#[test]
fn reads_pcap_in_both_orders_and_resolutions() {
    for endianness in [Endianness::Big, Endianness::Little] {
        for resolution in [TsResolution::MicroSecond, TsResolution::NanoSecond] {
            assert_eq!(whole(&pcap(endianness, resolution)), two_frames());
        }
    }
}

#[test]
fn tells_a_snap_length_cut() {
    let file = pcap(Endianness::Little, TsResolution::MicroSecond);
    let mut capture = Capture::new("t", &file[..]).unwrap();
    assert!(!capture.next_frame().unwrap().unwrap().is_cut());
    assert!(capture.next_frame().unwrap().unwrap().is_cut());
}

#[test]
fn reads_modified_pcap() {
    let mut file = pcap(Endianness::Little, TsResolution::MicroSecond);
    file[..4].copy_from_slice(&0xa1b2_cd34u32.to_le_bytes());
    // Interface index, protocol, packet type and padding follow each record's header.
    let after_first = 24 + 16 + 3;
    file.splice(after_first + 16..after_first + 16, [0xee; 8]);
    file.splice(40..40, [0xee; 8]);
    assert_eq!(whole(&file), two_frames());
}

fn interface(link: u16, snaplen: u32, options: Vec<IfOption<'static>>) -> pcapng::Block<'static> {
    let linktype = DataLink::from(u32::from(link));
    pcapng::Block::InterfaceDescription(InterfaceDescriptionBlock { linktype, snaplen, options })
}

fn enhanced(id: u32, ticks: u64, data: &'static [u8]) -> pcapng::Block<'static> {
    pcapng::Block::EnhancedPacket(EnhancedPacketBlock {
        interface_id: id,
        // pcap-file writes the nanoseconds of this as the raw ticks.
        timestamp: Duration::from_nanos(ticks),
        original_len: u32::try_from(data.len()).unwrap(),
        data: Cow::Borrowed(data),
        options: Vec::new(),
    })
}

fn pcapng(endianness: Endianness, blocks: &[pcapng::Block<'_>]) -> Vec<u8> {
    let section = SectionHeaderBlock { endianness, ..Default::default() };
    let mut writer = pcapng::PcapNgWriter::with_section_header(Vec::new(), section).unwrap();
    for block in blocks {
        writer.write_block(block).unwrap();
    }
    writer.into_inner()
}

#[test]
fn reads_pcapng_of_several_interfaces() {
    for endianness in [Endianness::Big, Endianness::Little] {
        let file = pcapng(
            endianness,
            &[
                interface(1, 0, vec![]),
                interface(101, 3, vec![IfOption::IfTsResol(9), IfOption::IfTsOffset(10)]),
                pcapng::Block::Unknown(UnknownBlock::new(0x0bad, 16, b"skip")),
                interface(276, 0, vec![IfOption::IfTsResol(0x80 | 10)]),
                enhanced(0, 5, b"micro"),
                enhanced(1, 5, b"nano"),
                enhanced(2, 1536, b"binary"),
                pcapng::Block::SimplePacket(SimplePacketBlock {
                    original_len: 6,
                    data: Cow::Borrowed(b"simple"),
                }),
            ],
        );
        let got = whole(&file);
        let (micro, nano, binary, simple) = (&got[0], &got[1], &got[2], &got[3]);
        assert_eq!((micro.time, micro.link), (Some(5_000), 1));
        assert_eq!((nano.time, nano.link), (Some(10_000_000_005), 101));
        assert_eq!((binary.time, binary.link), (Some(1_500_000_000), 276));
        assert_eq!((simple.time, simple.link, &simple.bytes[..]), (None, 1, &b"simple"[..]));
        assert_eq!(got.len(), 4);
    }
}

#[test]
fn a_simple_packet_is_cut_by_its_interface() {
    // The block holds "abc" and a pad byte, and says the frame was six bytes long.
    let simple = [3, 0, 0, 0, 20, 0, 0, 0, 6, 0, 0, 0, b'a', b'b', b'c', 0, 20, 0, 0, 0];
    let mut file = pcapng(Endianness::Little, &[interface(1, 3, vec![])]);
    file.extend(simple);
    let got = whole(&file);
    assert_eq!((&got[0].bytes[..], got[0].original_len), (&b"abc"[..], 6));
}

#[test]
fn reads_the_obsolete_packet_block() {
    let mut file = pcapng(Endianness::Little, &[interface(1, 0, vec![])]);
    // Interface 0, 7 drops, time 2^32 + 1, "abcd".
    for word in [2, 36, 7 << 16, 1, 1, 4, 4, u32::from_le_bytes(*b"abcd"), 36u32] {
        file.extend(word.to_le_bytes());
    }
    let got = whole(&file);
    assert_eq!((got[0].time, &got[0].bytes[..]), (Some(4_294_967_297_000), &b"abcd"[..]));
}

#[test]
fn a_new_section_may_turn_the_byte_order_and_forgets_the_interfaces() {
    let mut file = pcapng(Endianness::Big, &[interface(1, 0, vec![]), enhanced(0, 1, b"one")]);
    file.extend(pcapng(Endianness::Little, &[interface(101, 0, vec![]), enhanced(0, 2, b"two")]));
    let links: Vec<_> = whole(&file).iter().map(|f| f.link).collect();
    assert_eq!(links, [1, 101]);

    let mut file = pcapng(Endianness::Big, &[interface(1, 0, vec![])]);
    let mut second = pcapng(Endianness::Big, &[interface(1, 0, vec![]), enhanced(0, 2, b"two")]);
    second.drain(28..48); // its interface description
    file.extend(second);
    let error = read_all(&file).1.unwrap();
    assert!(error.contains("interface number is 0, wanted an interface description"), "{error}");
}

/// Every cut of a file gives the frames before it and either a clean end or an error that says so.
#[test]
fn every_cut_is_told() {
    let blocks = [interface(1, 0, vec![]), enhanced(0, 1, b"one"), enhanced(0, 2, b"two")];
    let files = [
        (pcap(Endianness::Big, TsResolution::NanoSecond), vec![24, 43, 63]),
        (pcapng(Endianness::Little, &blocks), vec![28, 48, 84, 120]),
    ];
    for (file, ends) in files {
        assert_eq!(ends.last(), Some(&file.len()));
        for len in 1..file.len() {
            let (frames, error) = read_all(&file[..len]);
            if ends.contains(&len) {
                assert_eq!(error, None, "cut at {len}");
                continue;
            }
            let error = error.unwrap_or_else(|| panic!("cut at {len} was not told"));
            assert!(error.contains("cut off in"), "{error}");
            assert!(frames.len() < 2);
        }
    }
}

#[test]
fn a_cut_says_where() {
    let file = pcap(Endianness::Little, TsResolution::MicroSecond);
    let (frames, error) = read_all(&file[..61]);
    assert_eq!(frames.len(), 1);
    assert_eq!(
        error.unwrap(),
        "t.pcap: cut off in a pcap record at byte 43: got 2 of 4 bytes; \
         what came before is good, copy or record the file again for the rest"
    );
}

/// Nothing came before the first byte, and a name must not steer the terminal.
#[test]
fn a_file_damaged_at_its_start_has_no_good_part_and_its_name_is_escaped() {
    let error = Capture::new("a\u{1b}[31m\n\u{9b}b é", &b"\xa1\xb2"[..]).err().unwrap();
    assert_eq!(
        error.to_string(),
        "a\\u{1b}[31m\\n\\u{9b}b é: cut off in the file's magic number at byte 0: \
         got 2 of 4 bytes; copy or record the file again"
    );
}

#[test]
fn foreign_files_are_named() {
    let told = |file: &[u8]| read_all(file).1.unwrap();
    assert!(told(b"").contains("the file is empty"));
    assert!(told(b"{\"a\":1}").contains("begins with 7b 22 61 22 at byte 0, wanted pcap"));
    assert!(told(&[0x1f, 0x8b, 8, 0]).contains("gunzip -c FILE | urxe dissect -"));
    assert!(told(b"snoop\0\0\0").contains("editcap -F pcap"));
}

#[test]
fn damage_is_told_with_field_value_and_wish() {
    let mut file = pcap(Endianness::Little, TsResolution::MicroSecond);
    file[24 + 8..24 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = read_all(&file).1.unwrap();
    assert!(error.contains("captured length is 4294967295, wanted at most 16777216"), "{error}");

    let mut file = pcap(Endianness::Big, TsResolution::MicroSecond);
    file[5] = 3;
    let error = read_all(&file).1.unwrap();
    assert!(error.contains("major version is 3, wanted 2"), "{error}");

    let blocks = [interface(1, 0, vec![]), enhanced(0, 1, b"one")];
    let damaged = |at: usize, to: u8| {
        let mut file = pcapng(Endianness::Little, &blocks);
        file[at] = to;
        read_all(&file).1.unwrap()
    };
    // Byte-order magic, version, length, the length again, captured length, interface.
    assert!(damaged(8, 0).contains("byte-order magic"));
    assert!(damaged(12, 9).contains("major version is 9, wanted 1"));
    assert!(damaged(52, 35).contains("length is 35, wanted a multiple of 4 from 12 up"));
    assert!(damaged(80, 0).contains("length at its end is 0, wanted 36 as at its start"));
    assert!(damaged(48 + 20, 9).contains("captured length is 9, wanted at most 4"));
    assert!(damaged(48 + 8, 1).contains("interface number is 1, wanted at most 0"));
}

/// A block that claims gigabytes costs what the file holds, not what it claims.
#[test]
fn a_false_length_allocates_little() {
    let mut file = pcap(Endianness::Little, TsResolution::MicroSecond);
    file[24 + 8..24 + 12].copy_from_slice(&MAX_FRAME.to_le_bytes());
    let mut capture = Capture::new("t", &file[..]).unwrap();
    assert!(capture.next_frame().is_err());
    assert!(capture.source.buffer().len() <= 64 << 10);
}

/// What must be remembered or held whole is bounded, whatever the file says.
#[test]
fn what_a_pcapng_file_may_ask_for_is_bounded() {
    let section = pcapng(Endianness::Little, &[]);
    let interface = pcapng(Endianness::Little, &[interface(1, 0, vec![])]).split_off(28);
    let mut file = section.clone();
    file.extend(interface.repeat((1 << 16) + 1));
    let error = read_all(&file).1.unwrap();
    assert!(error.contains("number of interfaces is 65537, wanted at most 65536"), "{error}");

    let mut file = section.clone();
    file.extend([6, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff]);
    let error = read_all(&file).1.unwrap();
    assert!(error.contains("length is 4294967292, wanted at most 17825792"), "{error}");

    // A block of no interest is passed over, however long it says it is.
    let mut file = section;
    file.extend([5, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff, 1, 2, 3]);
    let error = read_all(&file).1.unwrap();
    assert!(error.contains("cut off in a block at byte 28: got 3 of 4294967280"), "{error}");
}

#[test]
fn our_reader_agrees_with_pcap_file_on_the_golden_captures() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/captures");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "pcap") {
            continue;
        }
        files += 1;
        let file = std::fs::read(&path).unwrap();
        let ours = whole(&file);
        let mut theirs = pcap::PcapReader::new(&file[..]).unwrap();
        for frame in &ours {
            let packet = theirs.next_packet().unwrap().unwrap();
            assert_eq!(frame.bytes, &packet.data[..]);
            assert_eq!(frame.original_len, packet.orig_len);
            assert_eq!(frame.time, i128::try_from(packet.timestamp.as_nanos()).ok());
        }
        assert!(theirs.next_packet().is_none());
    }
    assert!(files >= 12);
}

#[test]
fn times_are_written() {
    let t = Timestamp(1_782_086_399_123_456_789);
    assert_eq!(t.utc(6), "2026-06-21 23:59:59.123456");
    assert_eq!(t.seconds(9), "1782086399.123456789");
    assert_eq!(Timestamp(-1_500_000_000).seconds(3), "-1.500");
    assert_eq!(Timestamp(951_782_400 * 1_000_000_000).utc(0), "2000-02-29 00:00:00.");
    assert_eq!(Timestamp(-1).utc(9), "1969-12-31 23:59:59.999999999");
}

#[test]
fn ticks_are_converted_by_the_interfaces_resolution() {
    assert_eq!(Timestamp::from_ticks(3, 6, 0).0, 3_000);
    assert_eq!(Timestamp::from_ticks(3, 0, 1).0, 4_000_000_000);
    assert_eq!(Timestamp::from_ticks(1_999, 12, 0).0, 1);
    assert_eq!(Timestamp::from_ticks(u64::MAX, 127, 0).0, 0);
    assert_eq!(Timestamp::from_ticks(1 << 32, 0x80 | 32, -1).0, 0);
    assert_eq!(Timestamp::from_ticks(u64::MAX, 0xff, 0).0, 0);
    assert_eq!(Timestamp::from_ticks(u64::MAX, 0, 0).0, i128::from(u64::MAX) * 1_000_000_000);
}
