//! From what a case says to something that can be run.

use std::time::Duration;

use super::case::{Unit, Work};
use super::idle::{Remembering, Resting};
use super::peer::Peer;
use super::pingpong::PingPong;
use super::raw::{Echo, Sending, Tcp};
use super::stats::{float, percentile};
use super::stream::Streaming;
use crate::command::Failure;

/// What a round gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) value: f64,
    /// More of it, by name.
    pub(super) more: Vec<(&'static str, f64)>,
}

/// What a rate is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    Bytes,
    Messages,
}

/// Something set up, round by round.
pub(super) trait Run {
    /// Runs it for about so long.
    fn round(&mut self, peer: &mut Peer, time: Duration) -> Result<Sample, Failure>;

    /// Takes it down.
    fn end(self: Box<Self>, _: &mut Peer) -> Result<(), Failure> {
        Ok(())
    }
}

/// A bound that is not run.
struct Fixed(f64);

impl Run for Fixed {
    fn round(&mut self, _: &mut Peer, _: Duration) -> Result<Sample, Failure> {
        Ok(Sample { value: self.0, more: Vec::new() })
    }
}

/// Sets it up.
pub(super) fn prepare(
    work: Work,
    unit: Unit,
    settings: &[String],
    peer: &mut Peer,
) -> Result<Box<dyn Run>, Failure> {
    let counts = if unit == Unit::MessagesPerSecond { Counts::Messages } else { Counts::Bytes };
    Ok(match work {
        Work::Stream(stream) => Box::new(Streaming::new(stream, counts, settings, peer)?),
        Work::PingPong(op, wait) => Box::new(PingPong::new(op, wait, settings, peer)?),
        Work::IdleCpu { qps } => Box::new(Resting::new(qps, settings, peer)?),
        Work::IdleMemory { qps } => Box::new(Remembering { qps, settings: settings.to_vec() }),
        Work::Datagrams(datagrams) => Box::new(Sending { datagrams, counts }),
        Work::Tcp => Box::new(Tcp),
        Work::Echo { bytes, spins } => Box::new(Echo { bytes, spins }),
        Work::Fixed(bound) => Box::new(Fixed(bound)),
    })
}

/// Round trips, nanoseconds each: their median, and how long the slow ones took.
pub(super) fn round_trips(mut nanos: Vec<u64>) -> Sample {
    nanos.sort_unstable();
    let at = |permille| float(percentile(&nanos, permille));
    let more = vec![("p50", at(500)), ("p99", at(990)), ("p99.9", at(999))];
    Sample { value: at(500), more }
}
