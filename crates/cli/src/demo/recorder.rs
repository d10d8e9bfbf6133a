//! Looks on at two devices and remembers each packet, when it left and when it arrived.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use urxe::{Observer, Passage};
use urxe_wire::{Bth, ICRC_LEN, Opcode, Qpn, Repr};

use super::frame::ip_packet;

/// A packet that was sent.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    /// When it left, since the demo began.
    pub(super) left: Duration,
    /// When it arrived; `None` if it was lost on its way.
    pub(super) arrived: Option<Duration>,
    /// From whom.
    pub(super) src: IpAddr,
    /// To whom.
    pub(super) dst: IpAddr,
    /// The IP packet, with a right ICRC.
    pub(super) frame: Vec<u8>,
    /// Why it was sent, or what became of it, where that is not plain.
    pub(super) notes: Vec<String>,
    /// Which step of the demo it belongs to.
    pub(super) step: usize,
}

/// The memory of what passed.
#[derive(Debug)]
pub(super) struct Recorder {
    start: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    packets: Vec<Packet>,
    /// Transport bytes of each packet, without the ICRC, to know it again when it arrives.
    bytes: Vec<Vec<u8>>,
    /// Requests seen before: they are sent again.
    seen: BTreeMap<(IpAddr, Qpn, u32, u8), usize>,
    step: usize,
}

impl Default for Recorder {
    fn default() -> Self {
        Self { start: Instant::now(), inner: Mutex::default() }
    }
}

impl Recorder {
    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // What is remembered stays good if another thread panicked.
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Since the demo began.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// What comes from now on belongs to `step`.
    pub(super) fn begin(&self, step: usize) {
        let mut inner = self.lock();
        inner.step = step;
        inner.seen.clear();
    }

    /// The packets of `step`, in the order in which they left.
    pub(super) fn of(&self, step: usize) -> Vec<Packet> {
        self.lock().packets.iter().filter(|p| p.step == step).cloned().collect()
    }

    /// All packets.
    pub(super) fn all(&self) -> Vec<Packet> {
        self.lock().packets.clone()
    }
}

/// Whether an opcode is one that a peer answers.
fn is_request(opcode: Opcode) -> bool {
    opcode.info().is_some_and(|i| i.direction == urxe_wire::Direction::Request)
}

impl Observer for Recorder {
    fn packet(&self, passage: &Passage<'_>) {
        let now = self.now();
        let inner = &mut *self.lock();
        let Some((covered, _)) = passage.bytes.split_last_chunk::<ICRC_LEN>() else {
            return;
        };
        if passage.sent {
            inner.sent(now, passage, covered);
        } else {
            inner.arrived(now, passage, covered);
        }
    }
}

impl Inner {
    fn sent(&mut self, now: Duration, passage: &Passage<'_>, covered: &[u8]) {
        let mut notes = Vec::new();
        if let Ok((bth, _)) = Bth::parse(passage.bytes)
            && is_request(bth.opcode)
        {
            let key = (passage.flow.src, bth.dest_qp, bth.psn.value(), bth.opcode.0);
            let times = self.seen.entry(key).or_default();
            *times += 1;
            if *times > 1 {
                notes.push(format!("sent again, time {times}"));
            }
        }
        self.packets.push(Packet {
            left: now,
            arrived: None,
            src: passage.flow.src,
            dst: passage.flow.dst,
            frame: ip_packet(passage),
            notes,
            step: self.step,
        });
        self.bytes.push(covered.to_vec());
    }

    fn arrived(&mut self, now: Duration, passage: &Passage<'_>, covered: &[u8]) {
        let known = self.packets.iter_mut().zip(&self.bytes).rev().find(|(p, bytes)| {
            p.arrived.is_none() && p.src == passage.flow.src && bytes.as_slice() == covered
        });
        let Some((packet, _)) = known else {
            return;
        };
        packet.arrived = Some(now);
        if let Err(why) = passage.fate {
            let rule = why.rule();
            let rule = if rule.is_empty() { String::new() } else { format!(" ({rule})") };
            packet.notes.push(format!("dropped: {why}{rule}"));
        }
    }
}
