//! Judges captured RoCEv2 traffic by the protocol's rules.
//!
//! [`Lint`] is fed with the frames of a capture, one after the other, and gives findings: what
//! breaks a [`Rule`], and notes. It reads no file and no clock, and what it keeps is bounded.
//!
//! A capture shows what passed one point. A packet that is missing there may have been lost before
//! it, one that is there may have been lost behind it, and the capture may begin in the middle or
//! show one direction only. So a violation is what none of that explains; [`Options::lossy`] says
//! that the capture itself missed frames, which explains more.
#![forbid(unsafe_code)]

mod cm;
mod fact;
mod flows;
mod message;
mod packet;
mod read;
mod report;
mod requests;
mod resends;
mod responses;
mod rule;
mod window;

use std::collections::BTreeMap;

use urxe_wire::LinkType;

pub use fact::Addr;
pub use report::{Count, Finding};
pub use rule::{Rule, Severity, table};

use cm::Exchanges;
use fact::Fact;
use flows::Flows;
use read::Read;
use report::{Place, Report};

/// Whose known departures are no violations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Nobody's.
    #[default]
    Strict,
    /// Linux' rdma_rxe: MigReq 0, timers in ticks, another NAK after an RNR NAK, ACKs of duplicates
    /// that go back behind READs.
    Rxe,
    /// ConnectX: a CNP with a NAK.
    ConnectX,
}

/// How to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whose departures are known.
    pub profile: Profile,
    /// The capture missed frames: what a missing frame explains is a note.
    pub lossy: bool,
    /// How many findings of one rule a flow may have before more are counted only; 0 is no limit.
    pub at_most: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { profile: Profile::Strict, lossy: false, at_most: 8 }
    }
}

/// A time farther from 0 is as good as none: between two of less there is one that can be told,
/// with some to spare. From 1970 that is until 2116.
const FARTHEST: u64 = (1 << 62) - (1 << 40);

/// A frame of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its number, for findings.
    pub number: u64,
    /// When it was captured, nanoseconds from any point in time.
    pub time: Option<i64>,
    /// What it begins with.
    pub link: LinkType,
    /// Its bytes, as far as they were captured.
    pub bytes: &'a [u8],
    /// How long it was on the link, bytes.
    pub original_len: u32,
}

/// What was seen in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames.
    pub frames: u64,
    /// RoCEv2 packets that were judged.
    pub packets: u64,
    /// Frames of something else.
    pub others: u64,
    /// Frames of which too little was captured, or that were captured before segmentation.
    pub unseen: u64,
    /// Connections both of whose directions were found.
    pub connections: u64,
    /// Flows whose other direction was not found.
    pub single: u64,
    /// What was found, by rule.
    pub counts: BTreeMap<Rule, Count>,
}

impl Totals {
    /// How many violations there are.
    #[must_use]
    pub fn violations(&self) -> u64 {
        self.counts.values().map(|count| count.violations).sum()
    }

    /// How many notes there are.
    #[must_use]
    pub fn notes(&self) -> u64 {
        self.counts.values().map(|count| count.notes).sum()
    }
}

/// A judge of one capture.
#[derive(Debug)]
pub struct Lint {
    report: Report,
    flows: Flows,
    exchanges: Exchanges,
    totals: Totals,
    last_time: Option<i64>,
    scratch: Vec<u8>,
}

impl Lint {
    /// A judge that has seen nothing yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            report: Report::new(options),
            flows: Flows::default(),
            exchanges: Exchanges::default(),
            totals: Totals::default(),
            last_time: None,
            scratch: Vec::new(),
        }
    }

    /// Judges the next frame. Gives what is certain now; it may be about an earlier frame.
    pub fn frame(&mut self, frame: &Frame<'_>) -> Vec<Finding> {
        self.totals.frames += 1;
        let time = frame.time.filter(|time| time.unsigned_abs() <= FARTHEST);
        let frame = &Frame { time, ..*frame };
        self.last_time = self.last_time.max(time);
        let mut scratch = std::mem::take(&mut self.scratch);
        match read::read(frame, &mut scratch) {
            Read::Other => self.totals.others += 1,
            Read::Unseen => self.unseen(frame),
            Read::Bad(error) => packet::malformed(&error, &Place::at(frame), &mut self.report),
            Read::Packet { packet, whole } => {
                if packet::before_segmentation(&packet, whole) {
                    self.unseen(frame);
                } else if let Some(fact) = Fact::of(&packet, frame.number, frame.time) {
                    self.totals.packets += 1;
                    if !packet::intact(&packet, &fact, whole, &mut self.report) {
                        self.scratch = scratch;
                        return self.report.take();
                    }
                    packet::check(&packet, &fact, whole, &mut self.report);
                    if let Some(mad) = packet::mad(&packet, whole, &fact, &mut self.report) {
                        let made = self.exchanges.see(&mad, &fact, &mut self.report);
                        if let Some(connection) = made {
                            self.flows.connect(&connection);
                        }
                    }
                    self.flows.see(&fact, &mut self.report);
                }
            }
        }
        self.scratch = scratch;
        self.report.take()
    }

    /// Judges what only the end of the capture makes certain.
    pub fn finish(&mut self) -> Vec<Finding> {
        self.flows.finish(self.last_time, &mut self.report);
        (self.totals.connections, self.totals.single) = self.flows.counts();
        self.report.take()
    }

    /// What was seen so far; connections are counted at the end.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals { counts: self.report.counts().clone(), ..self.totals.clone() }
    }

    fn unseen(&mut self, frame: &Frame<'_>) {
        self.totals.unseen += 1;
        self.report.lossy = true;
        let place = Place::at(frame);
        let got = format!("{} of {} bytes", frame.bytes.len(), frame.original_len);
        let what = "frame not judged: cut too short, or captured before segmentation";
        self.report.find(Rule::Unseen, &place, what, got, "whole packets as they are on the link");
    }
}
