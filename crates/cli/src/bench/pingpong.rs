//! Eight bytes there and back.

use std::time::{Duration, Instant};

use urxe::{Arm, SendOp};

use super::case::{Op, Wait};
use super::peer::Peer;
use super::side::{PATIENCE, Remote, Side, Spec, good, spin};
use super::work::{Run, Sample, round_trips};
use crate::command::Failure;

/// Bytes of a message.
const LEN: usize = 8;
/// Where what is sent stands, and where what comes.
const OUT: usize = 0;
const IN: usize = 64;
/// Receives that are posted at a time.
const RECEIVES: usize = 64;
/// Every so many sends one makes a completion.
const SIGNALED: u64 = 32;

/// A ping-pong that is set up.
pub(super) struct PingPong {
    side: Side,
    id: u32,
    remote: Remote,
    wait: Wait,
}

impl PingPong {
    pub(super) fn new(
        op: Op,
        wait: Wait,
        settings: &[String],
        peer: &mut Peer,
    ) -> Result<Self, Failure> {
        let spec = Spec {
            mtu: 4096,
            qps: 1,
            bytes: 128,
            sends: 128,
            receives: if op == Op::Send { RECEIVES } else { 0 },
            receive: (IN, LEN),
            events: wait == Wait::Event,
            settings: settings.to_vec(),
            ..Spec::default()
        };
        let side = Side::open(&spec)?;
        let (id, ends, remote) = peer.open(&spec)?;
        side.connect(&ends)?;
        peer.connect(id, side.ends())?;
        Ok(Self { side, id, remote, wait })
    }
}

impl Run for PingPong {
    fn round(&mut self, peer: &mut Peer, time: Duration) -> Result<Sample, Failure> {
        let writes = self.wait == Wait::Memory;
        clear(&self.side)?;
        peer.answer(self.id, writes.then(|| self.side.remote()))?;
        let mut player = Player::new(&self.side, writes.then_some(self.remote));
        let (start, mut nanos) = (Instant::now(), Vec::new());
        let mut before = start;
        while before.duration_since(start) < time {
            player.send(player.next)?;
            if !player.take(&mut || peer.has_failed())? {
                break;
            }
            let now = Instant::now();
            nanos.push(u64::try_from(now.duration_since(before).as_nanos())?);
            before = now;
        }
        player.settle()?;
        peer.stop()?;
        Ok(round_trips(nanos))
    }

    fn end(self: Box<Self>, peer: &mut Peer) -> Result<(), Failure> {
        peer.close(self.id)
    }
}

/// What an earlier round left is no message of the next.
pub(super) fn clear(side: &Side) -> Result<(), Failure> {
    Ok(side.mr.write(IN, &[0; LEN])?)
}

/// The other side: answers until it is stopped.
pub(super) fn answer(
    side: &Side,
    writes: Option<Remote>,
    mut stopped: impl FnMut() -> bool,
) -> Result<(), Failure> {
    let mut player = Player::new(side, writes);
    loop {
        let number = player.next;
        if !player.take(&mut stopped)? {
            return player.settle();
        }
        player.send(number)?;
    }
}

/// One side of a game.
struct Player<'a> {
    side: &'a Side,
    /// Where a WRITE goes to; none for SENDs.
    writes: Option<Remote>,
    /// The number that comes next.
    next: u8,
    sent: u64,
    /// Completions of sends that were not taken yet.
    open: u64,
}

impl<'a> Player<'a> {
    const fn new(side: &'a Side, writes: Option<Remote>) -> Self {
        Self { side, writes, next: 1, sent: 0, open: 0 }
    }

    fn send(&mut self, number: u8) -> Result<(), Failure> {
        self.side.mr.write(OUT, &[number; LEN])?;
        self.sent += 1;
        match self.writes {
            // As perftest's ib_write_lat does: each WRITE is signaled and waited for.
            Some(Remote { addr, rkey }) => {
                let op = SendOp::Write { remote: addr + IN as u64, rkey, imm: None };
                self.side.post(0, op, (OUT, LEN), true)?;
                self.open += 1;
                self.settle()
            }
            None => {
                let signaled = self.sent.is_multiple_of(SIGNALED);
                if signaled {
                    self.settle()?;
                    self.open += 1;
                }
                self.side.post(0, SendOp::Send { imm: None }, (OUT, LEN), signaled)
            }
        }
    }

    /// Takes the completions of sends that are to come.
    fn settle(&mut self) -> Result<(), Failure> {
        while self.open > 0 {
            let done = spin(|| Ok(self.side.sends.poll_one()?), || false)?;
            if let Some(done) = done {
                good(&done)?;
                self.open -= 1;
            }
        }
        Ok(())
    }

    /// Waits for the next message and looks at it; false if it was stopped before.
    fn take(&mut self, stopped: &mut dyn FnMut() -> bool) -> Result<bool, Failure> {
        let came = match (self.writes, &self.side.channel) {
            (Some(_), _) => {
                // The last byte is placed last.
                let (mr, next) = (&self.side.mr, self.next);
                let look = || Ok((mr.load(IN + LEN - 1)? == next).then_some(()));
                spin(look, stopped)?.is_some()
            }
            (None, None) => {
                let done = spin(|| Ok(self.side.receives.poll_one()?), stopped)?;
                done.as_ref().map(good).transpose()?.is_some()
            }
            (None, Some(_)) => self.sleep(stopped)?,
        };
        if came {
            let mut got = [0; LEN];
            self.side.mr.read(IN, &mut got)?;
            if got != [self.next; LEN] {
                return Err(format!("message {} came as {got:?}", self.next).into());
            }
            if self.writes.is_none() {
                self.side.post_receive(0)?;
            }
            // 0 is what stands there before the first.
            self.next = self.next.checked_add(1).unwrap_or(1);
        }
        Ok(came)
    }

    /// Sleeps until a receive completes.
    fn sleep(&self, stopped: &mut dyn FnMut() -> bool) -> Result<bool, Failure> {
        const LOOK_UP: Duration = Duration::from_millis(20);
        let (cq, since) = (&self.side.receives, Instant::now());
        let channel = self.side.channel.as_ref().ok_or("no channel to sleep on")?;
        loop {
            if let Some(done) = cq.poll_one()? {
                good(&done)?;
                return Ok(true);
            }
            if channel.wait_event(LOOK_UP)?.is_some() {
                cq.req_notify(Arm::Next)?;
            } else if stopped() {
                return Ok(false);
            } else if since.elapsed() > PATIENCE {
                let seconds = PATIENCE.as_secs();
                return Err(format!("no completion event within {seconds} s").into());
            }
        }
    }
}
