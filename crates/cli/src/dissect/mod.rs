//! `urxe dissect`: the RoCEv2 packets of a capture file, one a line.

mod cm;
mod ends;
mod fields;
mod filter;
mod json;
mod line;
mod live;
mod outcome;
mod style;
mod summary;
mod verbose;
mod words;

use std::io::{self, Read, Write};

use clap::ValueEnum;

pub(crate) use cm::write_message;
pub use filter::{Filter, FilterError, Subject};
pub(crate) use json::{Message, exact};
pub use live::Lines;
pub(crate) use live::layout_of_ip;
pub use style::{Palette, paint};
pub use summary::Summary;
pub(crate) use words::syndrome;

use crate::capture::{Capture, CaptureError, Frame, Timestamp};
use json::Record;
use line::Columns;
use outcome::{Outcome, RocePacket};

/// The fields of a CM message that is at hand, not in a file.
pub(crate) fn message_fields(message: &urxe_wire::CmMessage) -> fields::HeaderFields {
    cm::message(0, message)
}

/// What times count from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TimeStyle {
    /// The file's first frame
    #[default]
    Relative,
    /// The packet shown before
    Delta,
    /// 1970; a UTC date and time
    Absolute,
}

/// What to show, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Every field of every header.
    pub verbose: bool,
    /// The payload's bytes.
    pub hex: bool,
    /// One JSON object a line in place of text.
    pub json: bool,
    /// What times count from; JSON has absolute ones always.
    pub time: TimeStyle,
    /// Which packets to show.
    pub filter: Filter,
    /// Colours.
    pub palette: Palette,
    /// Hand out each packet at once, not when a buffer is full.
    pub live: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            verbose: false,
            hex: false,
            json: false,
            time: TimeStyle::Relative,
            filter: Filter::default(),
            palette: Palette::PLAIN,
            live: false,
        }
    }
}

/// Why dissecting stopped before the file's end.
#[derive(Debug)]
pub enum Stop {
    /// The file is cut off or damaged.
    Capture(CaptureError),
    /// The output takes no more.
    Write(io::Error),
}

impl From<CaptureError> for Stop {
    fn from(e: CaptureError) -> Self {
        Self::Capture(e)
    }
}

impl From<io::Error> for Stop {
    fn from(e: io::Error) -> Self {
        Self::Write(e)
    }
}

/// Writes the packets of `capture` to `out`, and counts all frames in `summary`, which holds what
/// was seen even if this fails.
///
/// # Errors
/// Where the file is cut off or damaged, after all that came before; where `out` fails.
pub fn dissect<R: Read, W: Write>(
    capture: &mut Capture<R>,
    options: &Options,
    out: &mut W,
    summary: &mut Summary,
) -> Result<(), Stop> {
    let mut view = View::new(options);
    let mut scratch = Vec::new();
    loop {
        let frame = match capture.next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(e) => {
                out.flush()?;
                return Err(e.into());
            }
        };
        let outcome = Outcome::of(&frame, &mut scratch);
        summary.add(&outcome);
        view.see(&frame);
        if !view.lets_through(&outcome) {
            continue;
        }
        summary.shown += u64::from(matches!(outcome, Outcome::Roce(_)));
        view.text.clear();
        if options.json {
            view.write_json(&frame, &outcome)?;
        } else {
            view.write_text(&frame, &outcome);
        }
        out.write_all(view.text.as_bytes())?;
        if options.live {
            out.flush()?;
        }
    }
    out.flush()?;
    Ok(())
}

/// What showing one packet needs to know of those before it.
struct View<'a> {
    options: &'a Options,
    columns: Columns,
    first: Option<Timestamp>,
    shown_before: Option<Timestamp>,
    text: String,
}

impl<'a> View<'a> {
    fn new(options: &'a Options) -> Self {
        Self {
            options,
            columns: Columns::default(),
            first: None,
            shown_before: None,
            text: String::new(),
        }
    }

    fn see(&mut self, frame: &Frame<'_>) {
        self.first = self.first.or(frame.time);
    }

    /// What is no RoCEv2 is counted, not shown; what has no field to filter by goes unless all do.
    fn lets_through(&self, outcome: &Outcome<'_>) -> bool {
        if matches!(outcome, Outcome::Skipped(_)) {
            return false;
        }
        let filter = &self.options.filter;
        filter.is_empty() || outcome.subject().is_some_and(|subject| filter.matches(&subject))
    }

    fn write_json(&mut self, frame: &Frame<'_>, outcome: &Outcome<'_>) -> io::Result<()> {
        self.text = serde_json::to_string(&Record { frame, outcome })?;
        self.text.push('\n');
        Ok(())
    }

    fn write_text(&mut self, frame: &Frame<'_>, outcome: &Outcome<'_>) {
        let time = self.time(frame);
        let palette = &self.options.palette;
        line::write_line(&mut self.text, &mut self.columns, palette, frame.number, &time, outcome);
        self.text.push('\n');
        match outcome {
            Outcome::Roce(packet) => self.write_more(packet, frame.bytes),
            // Of what could not be read, the bytes of the whole frame may tell more.
            _ if self.options.hex => verbose::write_hex(&mut self.text, palette, frame.bytes, 0),
            _ => {}
        }
    }

    fn write_more(&mut self, packet: &RocePacket<'_>, frame: &[u8]) {
        let palette = &self.options.palette;
        if self.options.verbose {
            let hex = self.options.hex;
            verbose::write_headers(&mut self.text, palette, packet, frame, hex);
            self.text.push('\n');
        } else if self.options.hex {
            verbose::write_payload(&mut self.text, palette, packet, frame);
        }
    }

    /// The time of a frame that is shown, in the style asked for.
    fn time(&mut self, frame: &Frame<'_>) -> String {
        let Some(time) = frame.time else { return "-".to_owned() };
        let before = self.shown_before.replace(time).unwrap_or(time);
        let digits = frame.time_digits;
        match self.options.time {
            TimeStyle::Absolute => time.utc(digits),
            TimeStyle::Delta => time.since(before).seconds(digits),
            TimeStyle::Relative => time.since(self.first.unwrap_or(time)).seconds(digits),
        }
    }
}
