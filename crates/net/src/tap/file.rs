//! The file that a tap writes: pcapng with times in nanoseconds, directions and comments.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};

use crate::{PortCaps, Record};

/// Which way a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Out of the port.
    Sent,
    /// Into it.
    Received,
}

/// How long a packet is held back for a comment to come.
const HELD_FOR: Duration = Duration::from_millis(100);
/// Packets held back at most.
pub(super) const HELD: usize = 4096;
/// How often at least what was written goes to the system while packets pass; when none do, it goes
/// at once. A program that is killed loses what is younger, and what is held back.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// Bytes of one comment at most; the format has room for 65,535.
const LONGEST: usize = 4096;

type Writer = PcapNgWriter<BufWriter<Box<dyn Write + Send>>>;

/// A packet that is held back.
struct Held {
    record: Record,
    time: Duration,
    direction: Direction,
    frame: Vec<u8>,
    comments: Vec<String>,
}

/// The file.
pub(super) struct TapFile {
    /// `None` after a failure.
    writer: Option<Writer>,
    failure: Option<String>,
    held: VecDeque<Held>,
    next: Record,
    last: [Option<Record>; 2],
    lost: u64,
    flushed: Duration,
    /// Something was written since.
    unflushed: bool,
}

impl fmt::Debug for TapFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failure, held, next, lost, .. } = self;
        let mut f = f.debug_struct("TapFile");
        f.field("packets", &next.0).field("held", &held.len());
        f.field("lost", lost).field("failure", failure).finish()
    }
}

fn io_error(e: PcapError) -> io::Error {
    match e {
        PcapError::IoError(e) => e,
        other => io::Error::other(other),
    }
}

impl TapFile {
    pub(super) fn new(out: Box<dyn Write + Send>, caps: &PortCaps) -> io::Result<Self> {
        let mut writer = PcapNgWriter::new(BufWriter::new(out)).map_err(io_error)?;
        let linktype = if caps.sees_ip_header { DataLink::ETHERNET } else { DataLink::RAW };
        let about = format!("urxe {} port of {}", caps.kind, caps.address);
        let mut options = vec![
            InterfaceDescriptionOption::IfDescription(about.into()),
            // Powers of ten below a second: nanoseconds.
            InterfaceDescriptionOption::IfTsResol(9),
        ];
        if !caps.interface.is_empty() {
            let name = Cow::Owned(caps.interface.clone());
            options.insert(0, InterfaceDescriptionOption::IfName(name));
        }
        let interface = InterfaceDescriptionBlock { linktype, snaplen: 0, options };
        writer.write_pcapng_block(interface).map_err(io_error)?;
        writer.get_mut().flush()?;
        Ok(Self {
            writer: Some(writer),
            failure: None,
            held: VecDeque::new(),
            next: Record(0),
            last: [None; 2],
            lost: 0,
            flushed: Duration::ZERO,
            unflushed: false,
        })
    }

    /// What the next packet will be called.
    pub(super) const fn next_record(&self) -> Record {
        self.next
    }

    /// Adds a packet, and writes those that were held back long enough.
    pub(super) fn add(
        &mut self,
        time: Duration,
        direction: Direction,
        frame: Vec<u8>,
        comment: Option<&str>,
    ) {
        let record = self.next;
        self.next = Record(record.0 + 1);
        self.last[direction as usize] = Some(record);
        if self.writer.is_none() {
            self.lost += 1;
            return;
        }
        let comments = comment.map(shorten).into_iter().collect();
        self.held.push_back(Held { record, time, direction, frame, comments });
        self.tend(time);
    }

    /// Writes what was held back long enough at `now`.
    pub(super) fn tend(&mut self, now: Duration) {
        while let Some(first) = self.held.front()
            && (self.held.len() > HELD || first.time + HELD_FOR <= now)
        {
            self.write_first();
        }
        let idle = self.held.is_empty();
        if self.unflushed && (idle || now.saturating_sub(self.flushed) >= FLUSH_EVERY) {
            self.flushed = now;
            self.hand_over();
        }
    }

    /// When [`Self::tend`] has something to do, if nothing passes before.
    pub(super) fn due(&self) -> Option<Duration> {
        self.held.front().map(|first| first.time + HELD_FOR)
    }

    pub(super) fn comment(&mut self, record: Record, text: &str) -> bool {
        let Some(first) = self.held.front() else {
            return false;
        };
        let at = record.0.checked_sub(first.record.0).and_then(|at| usize::try_from(at).ok());
        let held = at.and_then(|at| self.held.get_mut(at));
        held.map(|held| held.comments.push(shorten(text))).is_some()
    }

    pub(super) fn comment_last(&mut self, direction: Direction, text: &str) -> bool {
        self.last[direction as usize].is_some_and(|record| self.comment(record, text))
    }

    pub(super) fn flush(&mut self) {
        while !self.held.is_empty() {
            self.write_first();
        }
        self.hand_over();
    }

    pub(super) const fn counts(&self) -> (u64, u64) {
        (self.next.0 - self.lost, self.lost)
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    fn hand_over(&mut self) {
        self.unflushed = false;
        if let Some(writer) = &mut self.writer
            && let Err(e) = writer.get_mut().flush()
        {
            self.fail(&e);
        }
    }

    fn write_first(&mut self) {
        let (Some(held), Some(writer)) = (self.held.pop_front(), &mut self.writer) else {
            return;
        };
        // Bits 1 and 0: 01 came in, 10 went out.
        let flags = match held.direction {
            Direction::Received => 1,
            Direction::Sent => 2,
        };
        let mut options = vec![EnhancedPacketOption::Flags(flags)];
        let comments = held.comments.iter().map(|c| Cow::Borrowed(c.as_str()));
        options.extend(comments.map(EnhancedPacketOption::Comment));
        let packet = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: held.time,
            original_len: u32::try_from(held.frame.len()).unwrap_or(u32::MAX),
            data: Cow::Borrowed(&held.frame),
            options,
        };
        self.unflushed = true;
        if let Err(e) = writer.write_pcapng_block(packet).map_err(io_error) {
            self.lost += 1;
            self.fail(&e);
        }
    }

    /// Gives the file up, once.
    fn fail(&mut self, e: &io::Error) {
        self.lost += self.held.len() as u64;
        self.held.clear();
        tracing::error!(error = %e, "the capture file ends here: it cannot be written");
        self.failure = Some(format!("the capture file cannot be written: {e}"));
        // What its buffer holds would fail again.
        if let Some(writer) = self.writer.take() {
            let _ = writer.into_inner().into_parts();
        }
    }
}

/// A comment that fits, whole characters of it.
fn shorten(text: &str) -> String {
    let end = (0..=LONGEST.min(text.len())).rev().find(|&i| text.is_char_boundary(i));
    text[..end.unwrap_or(0)].to_owned()
}
