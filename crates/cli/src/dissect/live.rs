//! Packets that are at hand, not in a file: as lines and as JSON, like those of a file.

use std::time::Duration;

use super::fields::Field;
use super::line::{Columns, write_line};
use super::outcome::Outcome;
use super::style::Palette;
use super::{verbose, words};
use crate::capture::{Frame, Timestamp};

/// Raw IP (<https://www.tcpdump.org/linktypes.html>).
const RAW_IP: u16 = 101;

/// Lines of packets, one after the other, in columns.
#[derive(Debug)]
pub struct Lines {
    palette: Palette,
    columns: Columns,
    number: u64,
}

impl Lines {
    /// Lines in these colours, in columns as wide as all of `packets` need.
    #[must_use]
    pub fn new<'a>(palette: Palette, packets: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut lines = Self { palette, columns: Columns::NARROW, number: 0 };
        for packet in packets {
            let _ = lines.of_ip(Duration::ZERO, packet);
        }
        lines.number = 0;
        lines
    }

    /// Lines of packets that are yet to come, in columns as for a file's.
    #[must_use]
    pub fn of_stream(palette: Palette) -> Self {
        Self { palette, columns: Columns::default(), number: 0 }
    }

    /// The line of an IP packet that passed at `time`.
    #[must_use]
    pub fn of_ip(&mut self, time: Duration, packet: &[u8]) -> String {
        self.number += 1;
        let mut scratch = Vec::new();
        let frame = frame(self.number, time, packet);
        let outcome = Outcome::of(&frame, &mut scratch);
        let mut out = String::new();
        let seconds = format!("{:.6}", time.as_secs_f64());
        write_line(&mut out, &mut self.columns, &self.palette, self.number, &seconds, &outcome);
        out
    }
}

/// A header of a packet: name, first byte, bytes, and its fields likewise with their texts.
pub(crate) type Layout = (&'static str, usize, usize, Vec<(String, usize, usize, String)>);

/// The headers of an IP packet with the bytes they stand in, counted from the packet's start, as
/// `--verbose` gives them; payload, pad and ICRC too. Empty for what is no RoCEv2 packet.
pub(crate) fn layout_of_ip(packet: &[u8]) -> Vec<Layout> {
    let mut scratch = Vec::new();
    let frame = frame(1, Duration::ZERO, packet);
    let Outcome::Roce(p) = Outcome::of(&frame, &mut scratch) else {
        return Vec::new();
    };
    let mut all: Vec<Layout> = verbose::headers(&p)
        .into_iter()
        .map(|h| {
            let field = |f: Field| (f.name.to_owned(), h.offset + f.at, f.len, f.value.to_string());
            (h.name, h.offset, h.len, h.fields.into_iter().map(field).collect())
        })
        .collect();
    let mut at = p.payload_at();
    let roce = p.roce();
    for (name, len, text) in [
        ("payload", roce.payload.len(), format!("{} bytes", roce.payload.len())),
        ("pad", roce.pad.len(), format!("{} bytes up to a multiple of four", roce.pad.len())),
        ("ICRC", roce.icrc.len(), words::icrc(p.icrc)),
    ] {
        if len > 0 {
            all.push((name, at, len, vec![(name.to_lowercase(), at, len, text)]));
        }
        at += len;
    }
    all
}

fn frame(number: u64, time: Duration, bytes: &[u8]) -> Frame<'_> {
    Frame {
        number,
        time: Some(Timestamp(i128::try_from(time.as_nanos()).unwrap_or(i128::MAX))),
        time_digits: 9,
        link: RAW_IP,
        bytes,
        original_len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
    }
}
