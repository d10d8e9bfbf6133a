//! Messages one after the other, as many under way as the case says.

use std::time::{Duration, Instant};

use urxe::{Completion, SendOp};

use super::case::{Op, Stream};
use super::peer::Peer;
use super::side::{PATIENCE, Remote, Side, Spec, good};
use super::stats::{count, float, jain};
use super::targets::names;
use super::work::{Counts, Run, Sample};
use crate::command::Failure;

/// Receives that a receiver keeps posted: more than ever are under way.
const RECEIVES: usize = 512;

/// A stream that is set up.
pub(super) struct Streaming {
    side: Side,
    id: u32,
    remote: Remote,
    stream: Stream,
    counts: Counts,
    /// What the data of the next round are made from.
    seed: u64,
}

impl Streaming {
    pub(super) fn new(
        stream: Stream,
        counts: Counts,
        settings: &[String],
        peer: &mut Peer,
    ) -> Result<Self, Failure> {
        let receives = if stream.op == Op::Send { RECEIVES / stream.qps } else { 0 };
        let there = Spec {
            mtu: stream.mtu,
            qps: stream.qps,
            bytes: stream.size,
            receives,
            receive: (0, stream.size),
            settings: settings.to_vec(),
            ..Spec::default()
        };
        let faults = stream.faults.to_owned();
        let here = Spec { sends: stream.depth, receives: 0, faults, ..there.clone() };
        let side = Side::open(&here)?;
        let (id, ends, remote) = peer.open(&there)?;
        side.connect(&ends)?;
        peer.connect(id, side.ends())?;
        Ok(Self { side, id, remote, stream, counts, seed: 0 })
    }

    fn op(&self) -> SendOp {
        let Remote { addr: remote, rkey } = self.remote;
        match self.stream.op {
            Op::Write => SendOp::Write { remote, rkey, imm: None },
            Op::Read => SendOp::Read { remote, rkey },
            Op::Send => SendOp::Send { imm: None },
        }
    }

    /// Posts as many as make one completion.
    fn post(&self, nth: usize) -> Result<(), Failure> {
        let Stream { size, listed, .. } = self.stream;
        let every = self.stream.signaled();
        if listed {
            return self.side.post_list(nth, self.op(), (0, size), every);
        }
        (1..=every).try_for_each(|i| self.side.post(nth, self.op(), (0, size), i == every))
    }

    /// Sends for so long, and until all has arrived.
    fn go(&self, peer: &mut Peer, time: Duration) -> Result<Gone, Failure> {
        let Stream { qps, depth, .. } = self.stream;
        let every = self.stream.signaled();
        let start = Instant::now();
        for _ in 0..depth / every {
            (0..qps).try_for_each(|nth| self.post(nth))?;
        }
        let (mut under_way, mut shares) = (depth / every * qps, vec![0; qps]);
        let (mut done, mut last): (Vec<Completion>, _) = (Vec::new(), start);
        let mut messages = 0;
        while under_way > 0 {
            if self.side.sends.poll(&mut done, 16)? == 0 {
                if self.stream.op == Op::Send && peer.has_failed() {
                    break;
                }
                if last.elapsed() > PATIENCE {
                    let seconds = PATIENCE.as_secs();
                    return Err(format!("no completion within {seconds} s").into());
                }
                continue;
            }
            last = Instant::now();
            let over = last.duration_since(start) >= time;
            for one in done.drain(..) {
                good(&one)?;
                messages += every as u64;
                if over {
                    under_way -= 1;
                } else {
                    let nth = usize::try_from(one.wr_id)?;
                    shares[nth] += 1;
                    self.post(nth)?;
                }
            }
        }
        Ok(Gone { messages, time: start.elapsed(), shares })
    }
}

/// What was done.
struct Gone {
    messages: u64,
    time: Duration,
    /// Completions of each QP in time.
    shares: Vec<u64>,
}

impl Run for Streaming {
    fn round(&mut self, peer: &mut Peer, time: Duration) -> Result<Sample, Failure> {
        self.seed += 1;
        let (seed, size, id) = (self.seed, self.stream.size, self.id);
        match self.stream.op {
            Op::Read => peer.fill(id, seed, size)?,
            Op::Write => self.side.fill(seed, size)?,
            Op::Send => {
                self.side.fill(seed, size)?;
                peer.receive(id)?;
            }
        }
        let gone = self.go(peer, time)?;
        match self.stream.op {
            Op::Read => self.side.check(seed, size)?,
            Op::Write => peer.check(id, seed, size)?,
            Op::Send => {
                peer.stop()?;
                peer.check(id, seed, size)?;
            }
        }
        let per_second = float(gone.messages) / gone.time.as_secs_f64();
        let value = match self.counts {
            Counts::Bytes => per_second * count(size),
            Counts::Messages => per_second,
        };
        let mut more = Vec::new();
        if self.stream.qps > 1 {
            more.push((names::JAIN, jain(&gone.shares)));
        }
        Ok(Sample { value, more })
    }

    fn end(self: Box<Self>, peer: &mut Peer) -> Result<(), Failure> {
        peer.close(self.id)
    }
}
