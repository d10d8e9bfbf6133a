//! What urxe-wire reads in the golden captures, and what it emits, against what tshark reads.
//!
//! `tools/tshark-oracle` writes the table. Every column of every RoCEv2 packet must agree; where
//! tshark is wrong, [`QUIRKS`] says what it shows instead, and that too must be what is there.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail as the test does")]

mod made;
mod ours;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;

use urxe_cli::capture::Capture;
use urxe_wire::{LinkType, Operation, Packet};

use table::{COLUMNS, Table};

/// The captures and how many RoCEv2 packets each holds; there is nothing else in them. All but
/// [`MADE`] are golden.
const CAPTURES: [(&str, u64); 20] = [
    ("atomic_cas", 10),
    ("atomic_faa", 10),
    ("atomic_write", 6),
    ("invalid_request", 6),
    ("loss_send", 475),
    ("opcodes", 37),
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

/// The capture of packets that urxe-wire has emitted, one of each opcode: the golden ones hold none
/// of XRC, for example.
const MADE: &str = "opcodes";

/// A column where tshark 4.0 is wrong: what it shows, given our value, and why.
type Quirk = (&'static str, fn(&str) -> String, &'static str);

const QUIRKS: [Quirk; 4] = [
    ("infiniband.immdt", twice, "each ImmDt is added to the tree twice"),
    ("infiniband.ieth", twice, "each IETH is added to the tree twice"),
    (
        "infiniband.cm.req.prim_flowlabel",
        |ours| hex(ours).map_or_else(String::new, |label| format!("{:#010x}", label >> 8)),
        "the 20-bit flow label is shifted right by eight bits too many",
    ),
    (
        "infiniband.cm.req.prim_pktrate",
        // Our value stands for the word that flow label and rate share.
        |ours| hex(ours).map_or_else(String::new, |word| format!("{:#010x}", word >> 24 & 0x3f)),
        "the packet rate is taken from the first byte of its word, not from the last",
    ),
];

fn twice(ours: &str) -> String {
    if ours.is_empty() { String::new() } else { format!("{ours},{ours}") }
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Whether tshark 4.0 shows nothing there: it does not know ATOMIC WRITE, and reads only its BTH.
fn unread(packet: &Packet<'_>, column: &str) -> bool {
    let info = packet.roce.bth.opcode.info();
    let behind = column == "data.len"
        || column.starts_with("infiniband.") && !column.starts_with("infiniband.bth.");
    behind && info.is_some_and(|info| info.operation == Operation::AtomicWrite)
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Where a capture is.
fn capture(name: &str) -> PathBuf {
    root().join(if name == MADE { "oracle" } else { "captures" }).join(format!("{name}.pcap"))
}

fn table() -> Table {
    let path = root().join("oracle/tshark.tsv");
    Table::parse(&std::fs::read_to_string(path).expect("tests/oracle/tshark.tsv is checked in"))
}

#[test]
fn every_field_of_every_packet_is_as_tshark_reads_it() {
    let table = table();
    let mut compared = BTreeMap::new();
    let mut differences = Vec::new();
    for (name, _) in CAPTURES {
        let mut capture = Capture::new(name, File::open(capture(name)).unwrap()).unwrap();
        while let Some(frame) = capture.next_frame().unwrap() {
            let link = LinkType::from_pcap(frame.link.into()).unwrap();
            let packet = Packet::parse(link, frame.bytes)
                .unwrap_or_else(|e| panic!("{name}, frame {}: {e}", frame.number));
            assert!(packet.icrc_verdict().is_ok(), "{name}, frame {}", frame.number);
            let ours = ours::row(&frame, &packet);
            let theirs = table.row(name, frame.number);
            for (column, theirs) in theirs {
                let ours = ours.get(column).map_or("", String::as_str);
                let ours = if unread(&packet, column) { "" } else { ours };
                let quirk = QUIRKS.iter().find(|(name, ..)| *name == column);
                let wanted = quirk.map_or_else(|| ours.to_owned(), |(_, shown, _)| shown(ours));
                if wanted != theirs {
                    let number = frame.number;
                    differences.push(format!("{name} {number} {column}: {wanted} / {theirs}"));
                }
            }
            *compared.entry(name).or_insert(0) += 1;
        }
    }
    assert!(differences.is_empty(), "ours / tshark's:\n{}", differences.join("\n"));
    assert_eq!(compared, BTreeMap::from(CAPTURES));
}

#[test]
fn the_table_has_a_row_for_each_frame_of_each_capture_and_no_other() {
    let table = table();
    assert_eq!(table.counts(), CAPTURES.map(|(name, n)| (name.to_owned(), n)).into());
    for entry in std::fs::read_dir(root().join("captures")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let listed = CAPTURES.iter().any(|(listed, _)| *listed == name && *listed != MADE);
        let is_capture = path.extension().is_some_and(|e| e == "pcap");
        assert_eq!(is_capture, listed, "{name}: run tools/tshark-oracle and list it here");
    }
}

/// A column that is always empty on both sides would compare nothing.
#[test]
fn every_column_is_filled_by_some_packet() {
    let empty: BTreeSet<_> = table().empty_columns().into_iter().collect();
    assert_eq!(empty, BTreeSet::new());
    for (column, _, why) in QUIRKS {
        assert!(COLUMNS.contains(&column) && !empty.contains(column), "{column}: {why}");
    }
}

/// The made capture is what urxe-wire emits today. `tools/tshark-oracle` has it written anew.
#[test]
fn the_made_capture_is_up_to_date() {
    let made = made::every_opcode();
    if std::env::var_os("URXE_WRITE_MADE_CAPTURE").is_some() {
        std::fs::write(capture(MADE), &made).unwrap();
    }
    let there = std::fs::read(capture(MADE)).unwrap();
    assert!(there == made, "run tools/tshark-oracle and look at the change");
}
