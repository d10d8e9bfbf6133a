use std::io;

use serde::de::IgnoredAny;
use urxe_cli::capture::Capture;
use urxe_cli::dissect::{Options, Palette, Summary, dissect};

/// The link types that frames are tried on: each kind that is read, and one that is not.
const LINKS: [u32; 8] = [1, 101, 113, 276, 247, 12, 229, 105];

/// Any bytes are dissected in all styles, once as a capture file and once as a frame of one: the
/// first byte chooses its link type and how much a snap length cut off. Each style sees the same.
///
/// # Panics
/// Where two styles count differently, or a line of JSON is no JSON.
pub fn pcap(data: &[u8]) {
    file(data);
    if let Some((&choice, frame)) = data.split_first() {
        file(&around(frame, LINKS[usize::from(choice & 7)], u32::from(choice >> 3)));
    }
}

/// A capture file of one frame, `cut` bytes of which were not captured.
fn around(frame: &[u8], link: u32, cut: u32) -> Vec<u8> {
    let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    let head = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link];
    let record = [1, 2, len, len.saturating_add(cut)];
    let words = head.into_iter().chain(record);
    words.flat_map(u32::to_le_bytes).chain(frame.iter().copied()).collect()
}

fn file(data: &[u8]) {
    let lines = Options { palette: Palette::COLOURED, ..Options::default() };
    let fields = Options { verbose: true, hex: true, ..Options::default() };
    let json = Options { json: true, ..Options::default() };
    let seen = show(data, &lines, &mut io::sink());
    assert_eq!(show(data, &fields, &mut io::sink()), seen);
    let mut text = Vec::new();
    assert_eq!(show(data, &json, &mut text), seen);
    for line in text.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        serde_json::from_slice::<IgnoredAny>(line).expect("each line is an object");
    }
}

/// What was counted, and whether the file was read to its end.
fn show(data: &[u8], options: &Options, out: &mut impl io::Write) -> Option<(Summary, bool)> {
    let mut capture = Capture::new("fuzz", data).ok()?;
    let mut summary = Summary::default();
    let whole = dissect(&mut capture, options, out, &mut summary).is_ok();
    drop(summary.to_string());
    Some((summary, whole))
}
