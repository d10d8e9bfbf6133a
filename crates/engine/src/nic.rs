//! The NIC: its objects, and the way of a packet from the port to a QP.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use urxe_memory::Memory;
use urxe_wire::{Bth, Qpn, Repr};

use crate::ah::Ah;
use crate::attr::Limits;
use crate::config::{NicConfig, Profile};
use crate::cq::{Cq, Pushed};
use crate::dcqcn::NotificationPoint;
use crate::line::{Held, Line};
use crate::path::{Received, Transmit};
use crate::qp::{Cx, Qp, schedule};
use crate::reason::{Count, Counters, Drop};
use crate::rq::Srq;
use crate::table::Table;
use crate::time::{Deadline, Time};
use crate::timers::Timers;
use crate::types::{AsyncEvent, Completion, CqCause, Event, XrcdId};

mod counts;
mod error;
mod objects;
mod verbs;

pub use counts::ObjectCounts;
pub use error::VerbsError;
pub use objects::{CqInfo, QpInfo, QpInit, SrqInit};

/// QPNs of one NIC: 18 bits under the slot.
const INDEX_BITS: u32 = 18;
/// Where the timer queue holds QP1, whatever the slot: an index no other QP has.
const GSI_TIMER: usize = 1;
/// Packets a QP may send before the next one has its turn.
const QUANTUM: u8 = 32;

/// A NIC. `Sync`: each QP has a lock of its own (order: QP, SRQ, CQ); look-ups are shared.
#[derive(Debug)]
pub struct Nic {
    pub(crate) config: NicConfig,
    pub(crate) memory: Memory,
    pub(crate) counters: Counters,
    pub(crate) limits: Limits,
    /// That of the configuration, for the QPs.
    pub(crate) profile: Arc<Profile>,
    pub(crate) qps: Table<Qp>,
    pub(crate) gsi: RwLock<Option<Arc<Qp>>>,
    pub(crate) cqs: Table<Cq>,
    pub(crate) srqs: Table<Srq>,
    pub(crate) ahs: Table<Ah>,
    pub(crate) xrcds: Table<()>,
    pub(crate) groups: RwLock<BTreeMap<IpAddr, Vec<Qpn>>>,
    timers: Mutex<Timers>,
    /// QPs that have something to send, in the order of their turns.
    pub(crate) line: Line,
    events: Mutex<VecDeque<Event>>,
    notifications: Mutex<NotificationPoint<(IpAddr, Qpn)>>,
}

impl Nic {
    /// The NIC's configuration.
    #[must_use]
    pub const fn config(&self) -> &NicConfig {
        &self.config
    }

    /// PDs, regions and windows.
    #[must_use]
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// What it counts.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The index of a QPN in tables and timers; `None` if it is none of this NIC's.
    fn index(&self, qpn: Qpn) -> Option<usize> {
        let slot = qpn.value() >> INDEX_BITS;
        let index = qpn.value() & ((1 << INDEX_BITS) - 1);
        (slot == u32::from(self.config.slot)).then_some(index as usize)
    }

    pub(crate) fn find_qp(&self, qpn: Qpn) -> Option<Arc<Qp>> {
        if qpn == Qpn::GSI {
            return self.gsi.read().clone();
        }
        self.qps.get(self.index(qpn)?)
    }

    pub(crate) fn xrc_srq(&self, srqn: u32, xrcd: Option<XrcdId>) -> Option<Arc<Srq>> {
        let srq = self.srqs.get(srqn as usize)?;
        let same = srq.xrc.as_ref().is_some_and(|(domain, _)| Some(*domain) == xrcd);
        same.then_some(srq)
    }

    /// Takes a packet in and sends what it brings about. Infallible: drops are counted.
    pub fn receive(&self, now: Time, packet: &Received<'_>, out: &mut impl Transmit) {
        // What became of it is counted; a caller that wants to know accepts it.
        let _ = self.accept(now, packet, out);
        self.pump(now, out);
    }

    /// Takes a packet in; its answers wait for [`Self::pump`]. For batches: one ACK then stands
    /// for many packets.
    ///
    /// # Errors
    /// Why it was dropped, which is counted.
    pub fn accept(
        &self,
        now: Time,
        packet: &Received<'_>,
        out: &mut impl Transmit,
    ) -> Result<(), Drop> {
        self.counters.add(Count::RxPackets, 1);
        self.counters.add(Count::RxBytes, packet.bytes.len() as u64);
        let Ok((bth, _)) = Bth::parse(packet.bytes) else {
            return Err(self.dropped(packet, Drop::Malformed));
        };
        if bth.dest_qp == Qpn::MULTICAST {
            return self.accept_multicast(now, packet, &bth, out);
        }
        if packet.dst.is_multicast() {
            // IBA 9.6.1.1.1: what goes to a group names no QP.
            return Err(self.dropped(packet, Drop::WrongAddress));
        }
        match self.find_qp(bth.dest_qp) {
            Some(qp) => self.hand(now, &qp, packet, &bth, out),
            None => Err(self.dropped(packet, Drop::NoSuchQp)),
        }
    }

    fn hand(
        &self,
        now: Time,
        qp: &Qp,
        packet: &Received<'_>,
        bth: &Bth,
        out: &mut impl Transmit,
    ) -> Result<(), Drop> {
        let mut cx = Cx { nic: self, qp, now, out };
        let Some(mut inner) = qp.lock() else {
            return Err(self.dropped(packet, Drop::NoSuchQp));
        };
        let fate = inner.on_packet(&mut cx, packet, bth);
        inner.settle(&mut cx);
        schedule(&cx);
        fate
    }

    /// IBA 10.5.2.1: each QP attached to the group gets the datagram.
    fn accept_multicast(
        &self,
        now: Time,
        packet: &Received<'_>,
        bth: &Bth,
        out: &mut impl Transmit,
    ) -> Result<(), Drop> {
        let groups = self.groups.read();
        let listeners = groups.get(&packet.dst).map_or(&[][..], Vec::as_slice);
        if listeners.is_empty() {
            return Err(self.dropped(packet, Drop::NoListener));
        }
        // Dropped is what no listener took; each one's reason is counted.
        let mut fate = Err(Drop::NoListener);
        for &qpn in listeners {
            if let Some(qp) = self.find_qp(qpn) {
                let taken = self.hand(now, &qp, packet, bth, out);
                if fate.is_err() {
                    fate = taken;
                }
            }
        }
        fate
    }

    fn dropped(&self, packet: &Received<'_>, why: Drop) -> Drop {
        self.counters.dropped(why);
        tracing::debug!(src = %packet.src, rule = why.rule(), why = why.name(), "dropped");
        why
    }

    /// Whether QPs wait to send: call [`Self::pump`] when the sink has room again.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.line.is_empty()
    }

    /// Lets each QP that has something to send have its turn, until none has or the sink is full.
    pub fn pump(&self, now: Time, out: &mut impl Transmit) {
        loop {
            let room = out.room();
            if room == 0 {
                return;
            }
            let (qp, was_held) = match self.line.next() {
                Some(qpn) => {
                    let Some(qp) = self.find_qp(qpn) else { continue };
                    qp.place.hold();
                    (qp, false)
                }
                None => match out.held().and_then(Held::next) {
                    Some(qp) => (qp, true),
                    None => return,
                },
            };
            let mut cx = Cx { nic: self, qp: &qp, now, out };
            let more = qp.lock().and_then(|mut inner| inner.run(&mut cx, QUANTUM));
            let gathered = was_held || out.room() != room;
            match out.held().filter(|_| gathered) {
                Some(held) => held.note(qp, more),
                None => qp.place.let_go(&self.line, qp.qpn, more),
            }
        }
    }

    /// Lets a QP that is about to be destroyed send what it owes, whoever has its turn just now:
    /// that one may come too late.
    pub fn last_turn(&self, id: Qpn, now: Time, out: &mut impl Transmit) {
        let Some(qp) = self.find_qp(id) else { return };
        let mut cx = Cx { nic: self, qp: &qp, now, out };
        if let Some(mut inner) = qp.lock() {
            let _ = inner.run(&mut cx, QUANTUM);
        }
    }

    /// The packets that a sink gathered have left, or never will: the QPs it holds may send again.
    pub fn release(&self, held: &mut Held) {
        held.let_go(&self.line);
    }

    /// Does what has come due: retries, ends of waits, rate changes.
    pub fn expire(&self, now: Time, out: &mut impl Transmit) {
        loop {
            let Some(index) = self.timers.lock().pop_expired(now) else {
                break;
            };
            if let Some(qp) = self.qp_of_timer(index) {
                let mut cx = Cx { nic: self, qp: &qp, now, out };
                let Some(mut inner) = qp.lock() else { continue };
                inner.disarmed();
                inner.expire(&mut cx);
                inner.settle(&mut cx);
                schedule(&cx);
            }
        }
        self.pump(now, out);
    }

    /// Whether a QP may be waiting for an answer, or for a time: never wrongly not.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.timers.lock().peek().is_some()
    }

    /// When [`Self::expire`] has something to do next, at the earliest, and what.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Deadline> {
        loop {
            let (index, at) = self.timers.lock().peek()?;
            let Some(qp) = self.qp_of_timer(index) else {
                self.timers.lock().set(index, None);
                continue;
            };
            let deadline = {
                let Some(mut inner) = qp.lock() else { continue };
                let deadline = inner.next_deadline(qp.qpn);
                if deadline.is_none_or(|d| d.at > at) {
                    // The entry is older than what the QP waits for now.
                    inner.rearm_from(self, qp.qpn, deadline.map(|d| d.at));
                    continue;
                }
                deadline
            };
            return deadline;
        }
    }

    fn qp_of_timer(&self, index: usize) -> Option<Arc<Qp>> {
        if index == GSI_TIMER { self.gsi.read().clone() } else { self.qps.get(index) }
    }

    /// The index of a QPN in the timers.
    fn timer_index(&self, qpn: Qpn) -> Option<usize> {
        if qpn == Qpn::GSI { Some(GSI_TIMER) } else { self.index(qpn) }
    }

    pub(crate) fn set_timer(&self, qpn: Qpn, at: Option<Time>) {
        if let Some(index) = self.timer_index(qpn) {
            self.timers.lock().set(index, at);
        }
    }

    /// Makes room for a new QP's timer and its place in the line, so that neither allocates.
    pub(crate) fn reserve(&self, qpn: Qpn) {
        if let Some(index) = self.timer_index(qpn) {
            self.timers.lock().reserve(index);
            self.line.reserve(index + 1);
        }
    }

    /// The next thing that happened, oldest first.
    pub fn take_event(&self) -> Option<Event> {
        self.events.lock().pop_front()
    }

    pub(crate) fn tell(&self, event: AsyncEvent) {
        tracing::debug!(?event, "event");
        self.events.lock().push_back(Event::Async(event));
    }

    /// Adds a completion; false if it was lost to a full CQ, so that its QP must go to error.
    pub(crate) fn complete(&self, cq: &Cq, completion: Completion, solicited: bool) -> bool {
        match cq.push(completion, solicited) {
            Pushed::Quiet => true,
            Pushed::Notify => {
                self.events.lock().push_back(Event::Completion(cq.id));
                true
            }
            Pushed::Overflowed => {
                self.counters.add(Count::CqOverflow, 1);
                self.tell(AsyncEvent::CqErr(cq.id, CqCause::Overflow));
                false
            }
            Pushed::Lost => {
                self.counters.add(Count::CqOverflow, 1);
                false
            }
        }
    }

    pub(crate) fn cnp_is_due(&self, now: Time, dst: IpAddr, peer: Qpn) -> bool {
        self.notifications.lock().on_ce(now, (dst, peer))
    }
}
