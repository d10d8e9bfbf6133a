//! Packets that are at hand, not in a file: as lines and as JSON, like those of a file.

use std::time::Duration;

use super::json::Record;
use super::line::{Columns, write_line};
use super::outcome::Outcome;
use super::style::Palette;
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
    /// Lines in these colours.
    #[must_use]
    pub fn new(palette: Palette) -> Self {
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

/// All fields of an IP packet, as `--json` gives them.
///
/// # Errors
/// Where a number cannot be written as JSON, which none of a packet's is.
pub fn fields_of_ip(
    number: u64,
    time: Duration,
    packet: &[u8],
) -> Result<serde_json::Value, serde_json::Error> {
    let mut scratch = Vec::new();
    let frame = frame(number, time, packet);
    let outcome = Outcome::of(&frame, &mut scratch);
    serde_json::from_str(&serde_json::to_string(&Record { frame: &frame, outcome: &outcome })?)
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
