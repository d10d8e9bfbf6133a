//! What passes and happens, as lines or as JSON.

use std::collections::HashSet;
use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use serde::Serialize;
use urxe::{Observer, Passage, Qpn};
use urxe_wire::{CmMessage, MadHeader, Roce};

use super::explain::explain;
use crate::dissect::{Message, Palette, message_fields, paint, write_message};

/// Something to show.
#[derive(Debug)]
pub(super) enum News {
    /// A CM message passed.
    Message(Box<Seen>),
    /// Something happened to us.
    Event { at: Instant, name: &'static str, text: String },
    /// Nothing more comes.
    Over,
}

/// A CM message.
#[derive(Debug)]
pub(super) struct Seen {
    at: Instant,
    sent: bool,
    src: IpAddr,
    dst: IpAddr,
    header: MadHeader,
    message: CmMessage,
    /// Why the device did not take it.
    dropped: Option<String>,
}

/// Looks on, and hands CM messages on.
#[derive(Debug)]
pub(super) struct Watch {
    to: Sender<News>,
}

impl Watch {
    pub(super) const fn new(to: Sender<News>) -> Self {
        Self { to }
    }
}

impl Observer for Watch {
    fn packet(&self, passage: &Passage<'_>) {
        let Ok(packet) = Roce::parse(passage.bytes) else { return };
        if packet.bth.dest_qp != Qpn::GSI {
            return;
        }
        let Ok((header, message)) = CmMessage::parse(packet.payload) else { return };
        let Passage { at, sent, flow, .. } = *passage;
        let dropped = passage.fate.err().map(|why| why.to_string());
        let (src, dst) = (flow.src, flow.dst);
        let seen = Seen { at, sent, src, dst, header, message, dropped };
        // Where nobody reads any more, the traffic goes on.
        let _ = self.to.send(News::Message(Box::new(seen)));
    }
}

/// Shows news as they come.
pub(super) struct Printer {
    json: bool,
    palette: Palette,
    start: Instant,
    /// Messages that have passed, each way.
    passed: HashSet<(bool, IpAddr, u64, u16)>,
}

#[derive(Serialize)]
struct MessageLine<'a> {
    time: f64,
    sent: bool,
    src: IpAddr,
    dst: IpAddr,
    again: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<&'a str>,
    cm: Message<'a>,
    text: &'a str,
}

#[derive(Serialize)]
struct EventLine<'a> {
    time: f64,
    event: &'a str,
    text: &'a str,
}

impl Printer {
    pub(super) fn new(json: bool, palette: Palette) -> Self {
        Self { json, palette, start: Instant::now(), passed: HashSet::new() }
    }

    pub(super) fn print(&mut self, out: &mut dyn Write, news: &News) -> io::Result<()> {
        match news {
            News::Message(seen) => self.message(out, seen)?,
            News::Event { at, name, text } => self.event(out, *at, name, text)?,
            News::Over => {}
        }
        out.flush()
    }

    fn event(&self, out: &mut dyn Write, at: Instant, event: &str, text: &str) -> io::Result<()> {
        let time = at.saturating_duration_since(self.start);
        if self.json {
            let line = EventLine { time: time.as_secs_f64(), event, text };
            serde_json::to_writer(&mut *out, &line)?;
            return writeln!(out);
        }
        let style = match event {
            "refused" | "unreachable" | "failed" => self.palette.bad,
            _ => self.palette.good,
        };
        writeln!(out, "{}  {} {text}", self.seconds(time), paint(style, event))
    }

    fn seconds(&self, time: Duration) -> impl std::fmt::Display + use<> {
        paint(self.palette.dim, format!("{:10.6}", time.as_secs_f64())).to_string()
    }

    fn message(&mut self, out: &mut dyn Write, seen: &Seen) -> io::Result<()> {
        let time = seen.at.saturating_duration_since(self.start);
        let attribute = seen.message.attribute().code();
        let print = (seen.sent, seen.src, seen.header.transaction_id, attribute);
        let again = !self.passed.insert(print);
        let text = explain(&seen.message, seen.sent);
        if self.json {
            let fields = message_fields(&seen.message);
            let line = MessageLine {
                time: time.as_secs_f64(),
                sent: seen.sent,
                src: seen.src,
                dst: seen.dst,
                again,
                dropped: seen.dropped.as_deref(),
                cm: Message::new(&fields),
                text: &text,
            };
            serde_json::to_writer(&mut *out, &line)?;
            return writeln!(out);
        }
        let way = if seen.sent { "→" } else { "←" };
        let peer = if seen.sent { seen.dst } else { seen.src };
        let mut line = String::new();
        write_message(&mut line, &self.palette, &seen.message);
        writeln!(out, "{}  {way} {peer}{line}", self.seconds(time))?;
        let mut say = |text: &str| writeln!(out, "{:14}{}", "", paint(self.palette.dim, text));
        say(&text)?;
        if again {
            say("It went this way before: no answer came in time, or the link doubled it.")?;
        }
        if let Some(why) = &seen.dropped {
            writeln!(out, "{:14}{}", "", paint(self.palette.bad, format!("dropped: {why}")))?;
        }
        Ok(())
    }
}
