//! What the host dropped because a socket's buffer was full.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use socket2::Socket;

use crate::{PortStats, sys};

/// How often the host is asked.
const EVERY: Duration = Duration::from_millis(10);

/// Packets dropped at the sockets of a port.
#[derive(Debug)]
pub(super) struct Drops {
    opened: Instant,
    /// When they were read last, nanoseconds.
    read_at: AtomicU64,
    /// Those of the main socket before it was this port's: a shared one has had others.
    before: u64,
    /// Those of groups that were left.
    left: AtomicU64,
}

impl Drops {
    pub(super) fn new(main: &Socket) -> io::Result<Self> {
        let before = u64::from(sys::drops(main)?);
        Ok(Self {
            opened: Instant::now(),
            read_at: AtomicU64::new(0),
            before,
            left: AtomicU64::new(0),
        })
    }

    /// Reads them if it is time to, or `now`.
    pub(super) fn count(
        &self,
        main: &Socket,
        groups: &[(IpAddr, Socket)],
        stats: &PortStats,
        now: bool,
    ) {
        let at = u64::try_from(self.opened.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let since = at.saturating_sub(self.read_at.load(Ordering::Relaxed));
        if !now && u128::from(since) < EVERY.as_nanos() {
            return;
        }
        self.read_at.store(at, Ordering::Relaxed);
        // What cannot be read now is read the next time.
        let of = |socket| sys::drops(socket).map_or(0, u64::from);
        let groups: u64 = groups.iter().map(|(_, socket)| of(socket)).sum();
        let all = of(main) + groups + self.left.load(Ordering::Relaxed);
        stats.rx_overrun.fetch_max(all.saturating_sub(self.before), Ordering::Relaxed);
    }

    /// A socket is about to be closed.
    pub(super) fn keep(&self, socket: &Socket) {
        let all = sys::drops(socket).map_or(0, u64::from);
        self.left.fetch_add(all, Ordering::Relaxed);
    }
}
