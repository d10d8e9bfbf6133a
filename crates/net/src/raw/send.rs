//! How a raw port sends.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Instant;

use urxe_wire::Mac;

use super::message::{self, CALL, Out};
use super::neighbour::{Way, Ways};
use super::{IpId, RawPort, discover};
use crate::frame::{self, LinkHeader};
use crate::impair::mix;
use crate::{Flow, PortStats, TxBatch};

/// What becomes of a packet.
enum Goal {
    /// It leaves.
    Leave(Out),
    /// It waits for a neighbour that was asked for.
    Wait(IpAddr, Out),
    /// It has no way, or no form.
    Nowhere,
    /// Its neighbour is silent.
    Silent,
}

impl RawPort {
    pub(super) fn send_batch(&self, batch: &mut TxBatch) -> io::Result<()> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(self.gone());
        }
        let now = Instant::now();
        let ways = &mut *self.ways.lock();
        if ways.deadline().is_some() {
            self.hear(ways, now)?;
        }
        while !batch.is_empty() && self.send_some(batch, ways, now)? {}
        // What was asked for on the way.
        self.settle(ways, now)
    }

    /// Sends what can leave from the front of the batch, or else does away with its first packet;
    /// says whether to go on.
    fn send_some(&self, batch: &mut TxBatch, ways: &mut Ways, now: Instant) -> io::Result<bool> {
        let mut outs = [Out::default(); CALL];
        let mut n = 0;
        while n < outs.len().min(batch.len()) {
            match self.goal(batch, n, ways, now) {
                Goal::Leave(out) => {
                    outs[n] = out;
                    n += 1;
                    continue;
                }
                // After those before it.
                _ if n != 0 => break,
                Goal::Wait(neighbour, out) => {
                    batch.note_sent(0, out.headers.bytes());
                    let body = batch.bytes(batch.packets[0].range.clone());
                    ways.wait(neighbour, [out.headers.bytes(), body].concat());
                    PortStats::add(&self.stats.tx_packets, 1);
                }
                Goal::Nowhere => PortStats::add(&self.stats.tx_unreachable, 1),
                Goal::Silent => PortStats::add(&self.stats.tx_no_neighbour, 1),
            }
            batch.advance(1);
            return Ok(true);
        }
        PortStats::add(&self.stats.tx_calls, 1);
        match message::send(self.sender.as_fd(), &outs[..n], batch) {
            Ok(n) => {
                PortStats::add(&self.stats.tx_packets, n as u64);
                for (i, out) in outs.iter().enumerate().take(n) {
                    batch.note_sent(i, out.headers.bytes());
                }
                batch.advance(n);
                Ok(true)
            }
            Err(e) => self.on_send_error(&e, batch),
        }
    }

    /// Seals the packet at `i` and says what becomes of it.
    fn goal(&self, batch: &mut TxBatch, i: usize, ways: &mut Ways, now: Instant) -> Goal {
        let flow = batch.packets[i].flow;
        let way = match flow.dst.is_multicast() {
            true => Way::Link(discover::group_mac(flow.dst)),
            false if self.index == self.loopback => Way::Local,
            false => ways.to(flow.dst, now, &self.kernel),
        };
        let (src, vlan) = (self.mac, self.config.vlan);
        let here = LinkHeader { dst: Mac([0; 6]), src: Mac([0; 6]), vlan: None };
        let (index, link) = match way {
            Way::Local if self.index == self.loopback => (self.index, LinkHeader { vlan, ..here }),
            Way::Local => (self.loopback, here),
            Way::Link(dst) => (self.index, LinkHeader { dst, src, vlan }),
            Way::Ask(_) => (self.index, LinkHeader { src, vlan, ..here }),
            Way::NoRoute => return Goal::Nowhere,
            Way::Absent => return Goal::Silent,
        };
        let Some(headers) = self.seal(batch, i, &flow, &link) else {
            return Goal::Nowhere;
        };
        let out = Out { headers, index };
        match way {
            Way::Ask(neighbour) => Goal::Wait(neighbour, out),
            _ => Goal::Leave(out),
        }
    }

    fn seal(
        &self,
        batch: &mut TxBatch,
        i: usize,
        flow: &Flow,
        link: &LinkHeader,
    ) -> Option<frame::Headers> {
        let id = self.next_id();
        batch.seal(i, flow.src_port, id);
        let transport = batch.bytes(batch.packets[i].range.clone());
        let checksum = self.config.udp6_checksum && flow.dst.is_ipv6();
        frame::headers(Some(link), flow, flow.src_port, id, checksum, transport)
    }

    /// The identification of the next packet.
    fn next_id(&self) -> u16 {
        let nth = |seed: u64| seed.wrapping_add(self.ids.fetch_add(1, Ordering::Relaxed));
        let [low, high, ..] = match self.config.ip_id {
            IpId::Fixed(id) => return id,
            IpId::Counter => nth(0),
            IpId::Random(seed) => mix(nth(mix(seed))),
        }
        .to_le_bytes();
        u16::from_le_bytes([low, high])
    }

    /// A packet that can never go is counted and let go: to the peer it is lost.
    fn on_send_error(&self, e: &io::Error, batch: &mut TxBatch) -> io::Result<bool> {
        let counter = match e.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS) => {
                PortStats::add(&self.stats.tx_no_room, 1);
                return Ok(false);
            }
            Some(libc::EINTR) => return Ok(true),
            Some(libc::EMSGSIZE) => &self.stats.tx_too_long,
            _ => {
                self.check_gone()?;
                &self.stats.tx_unreachable
            }
        };
        tracing::debug!(error = %e, dst = %batch.packets[0].flow.dst, "not sent");
        PortStats::add(counter, 1);
        batch.advance(1);
        Ok(true)
    }

    /// An interface that is down comes back; one that was removed does not.
    pub(super) fn check_gone(&self) -> io::Result<()> {
        if self.kernel.netlink.link(self.index).is_ok() {
            return Ok(());
        }
        self.gone.store(true, Ordering::Relaxed);
        Err(self.gone())
    }

    /// Sends what became due of neighbours, and sets the timer for what will.
    pub(super) fn settle(&self, ways: &mut Ways, now: Instant) -> io::Result<()> {
        for frame in ways.out.drain(..) {
            if let Err(e) = message::send_frame(&self.sender, &frame, self.index) {
                // Lost, as any packet may be; a request is made again.
                tracing::debug!(error = %e, "frame to or for a neighbour not sent");
                PortStats::add(&self.stats.tx_unreachable, 1);
            }
        }
        PortStats::add(&self.stats.tx_no_neighbour, std::mem::take(&mut ways.dropped));
        let deadline = ways.deadline();
        if ways.armed != deadline {
            ways.armed = deadline;
            self.timer.set(deadline.map(|at| at.saturating_duration_since(now)))?;
        }
        Ok(())
    }
}
