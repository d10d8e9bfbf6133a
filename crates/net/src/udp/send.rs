//! How a UDP port sends.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Instant;

use urxe_wire::ROCE_UDP_PORT;

use super::message::Tx;
use super::{UdpPort, interface};
use crate::{PortStats, TxBatch};

/// Segments of one call at most (Linux UDP_MAX_SEGMENTS of 6.12 is 128; older kernels take 64).
const MAX_SEGMENTS: usize = 64;
/// Bytes of one call at most: what one IPv4 datagram could be.
const MAX_RUN: usize = 65_507;

/// Destinations of which is remembered that packets were too long for the way there.
const NARROW: usize = 64;

/// What became of the packets of a call.
enum Sent {
    All,
    /// None, and they are gone if they never can be; else the call was interrupted.
    None {
        gone: bool,
    },
    NoRoom,
    /// None: the host does not take them as a run, for whatever reason.
    NotAsRun,
}

impl UdpPort {
    pub(super) fn send_batch(&self, batch: &mut TxBatch) {
        let mut tx = Tx::default();
        // So many at the front go one by one: as a run they were refused.
        let mut alone = 0_usize;
        while !batch.is_empty() {
            let flow = batch.packets[0].flow;
            let max = if alone == 0 && self.uses_gso(flow.dst) { MAX_SEGMENTS } else { 1 };
            let n = batch.run(0, max, MAX_RUN);
            match self.send_run(batch, &mut tx, n) {
                Sent::All if alone == 0 => {}
                Sent::All => {
                    alone -= 1;
                    self.refuse_gso(flow.dst);
                }
                Sent::None { gone } => alone = alone.saturating_sub(usize::from(gone)),
                Sent::NotAsRun => alone = n,
                Sent::NoRoom => return,
            }
        }
    }

    fn uses_gso(&self, dst: IpAddr) -> bool {
        let ours = || self.near.has(dst, Instant::now(), interface::addresses);
        let near = || dst.is_loopback() || dst == self.caps.address || ours();
        !self.gso_refused.load(Ordering::Relaxed) && self.gso.unwrap_or_else(near)
    }

    /// One by one packets go that did not as a run: all others are sent so, too.
    fn refuse_gso(&self, dst: IpAddr) {
        if !self.gso_refused.swap(true, Ordering::Relaxed) {
            let address = self.caps.address;
            tracing::warn!(%address, %dst, "the host refuses segmentation: packets go one by one");
        }
    }

    fn note_narrow(&self, dst: IpAddr) {
        let narrow = &mut *self.narrow.lock();
        if !narrow.contains(&dst) {
            narrow.truncate(NARROW - 1);
            narrow.push_front(dst);
        }
    }

    /// Sends the first `n` packets, a run.
    fn send_run(&self, batch: &mut TxBatch, tx: &mut Tx, n: usize) -> Sent {
        let flow = batch.packets[0].flow;
        let (src_port, socket) = self.source(flow.src_port);
        self.last.store(src_port, Ordering::Relaxed);
        for i in 0..n {
            // Segment i gets IP identification i.
            batch.seal(i, src_port, u16::try_from(i).unwrap_or(0));
        }
        let first = &batch.packets[0].range;
        let last = &batch.packets[n - 1].range;
        let segment = (n > 1).then_some(first.len());
        let bytes = batch.bytes(first.start..last.end);
        let to = SocketAddr::new(flow.dst, ROCE_UDP_PORT);
        let sent = tx.send(socket.as_fd(), to, bytes, segment, &flow);
        PortStats::add(&self.stats.tx_calls, 1);
        match sent {
            Ok(()) => {
                PortStats::add(&self.stats.tx_packets, n as u64);
                for i in 0..n {
                    batch.note_sent_by_host(i, src_port, u16::try_from(i).unwrap_or(0));
                }
                batch.advance(n);
                Sent::All
            }
            Err(e) => self.on_send_error(&e, batch, n),
        }
    }

    /// A packet that can never go is counted and let go: to the peer it is lost.
    fn on_send_error(&self, e: &io::Error, batch: &mut TxBatch, n: usize) -> Sent {
        let counter = match e.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS) => {
                PortStats::add(&self.stats.tx_no_room, 1);
                return Sent::NoRoom;
            }
            Some(libc::EINTR) => return Sent::None { gone: false },
            // Either the host has no segmentation, or a route refuses the packets: alone they tell.
            Some(libc::EINVAL | libc::EIO) if n > 1 => return Sent::NotAsRun,
            Some(libc::EMSGSIZE) => {
                self.note_narrow(batch.packets[0].flow.dst);
                &self.stats.tx_too_long
            }
            _ => &self.stats.tx_unreachable,
        };
        tracing::debug!(error = %e, packets = n, dst = %batch.packets[0].flow.dst, "not sent");
        PortStats::add(counter, n as u64);
        batch.advance(n);
        Sent::None { gone: true }
    }
}
