//! The UDP port: no privileges, and a true ICRC.
//!
//! An unconnected socket with `IP_PMTUDISC_DO` sends DF and IP identification 0, so that all the
//! ICRC covers is known. Segmentation offload stamps segment *i* with *i* where the host's own
//! software does it; a network card may stamp otherwise. So it is used only towards addresses of
//! this host unless asked for.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use socket2::Socket;
use urxe_wire::{Mtu, ROCE_UDP_PORT};

use crate::netlink::Netlink;
use crate::shared::{Seat, slot_of};
use crate::sys::{self, Epoll};
use crate::{Port, PortCaps, PortError, PortStats, RxBatch, TxBatch};

mod drops;
pub(crate) mod interface;
mod message;
mod near;
pub(crate) mod owner;
mod send;
mod socket;

pub use interface::{Interface, interfaces};

use drops::Drops;
use message::Rx;
pub(crate) use message::receive_one;
use near::Near;
pub(crate) use socket::{bind, enable_gro, socket_for};
use socket::{open, source_socket};

#[cfg(test)]
mod tests;

/// Source ports beside 4791 itself: flows are spread over them.
const SOURCES: usize = 4;

/// What a [`UdpPort`] is opened with.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// Our address.
    pub address: IpAddr,
    /// The path MTU to be able to carry; `None` takes the largest that fits.
    pub mtu: Option<Mtu>,
    /// Whether runs of packets go to the host in one call: `None` for addresses of this host only.
    pub gso: Option<bool>,
    /// Bytes that may wait in each socket's buffers; the host may allow less.
    pub buffer: usize,
    /// Whether other processes may have ports of this address; see [`crate::shared`].
    pub shared: bool,
}

impl UdpConfig {
    /// A port of `address` alone, with buffers of 4 MiB.
    #[must_use]
    pub const fn new(address: IpAddr) -> Self {
        Self { address, mtu: None, gso: None, buffer: 4 << 20, shared: false }
    }
}

/// A port on UDP sockets.
#[derive(Debug)]
pub struct UdpPort {
    caps: PortCaps,
    gso: Option<bool>,
    /// Receives, and sends what comes from port 4791.
    main: Socket,
    /// Behind the socket, which closes first.
    seat: Option<Seat>,
    /// Send only, each from a port of its own.
    sources: Vec<(u16, Socket)>,
    groups: RwLock<Vec<(IpAddr, Socket)>>,
    near: Near,
    netlink: Netlink,
    epoll: Epoll,
    /// Whose turn it is to be received from first.
    turn: AtomicUsize,
    buffer: usize,
    /// Set once the host refuses segmentation.
    gso_refused: AtomicBool,
    drops: Drops,
    /// Where packets were too long for the way, those it was last.
    narrow: Mutex<VecDeque<IpAddr>>,
    /// The port that was sent from last.
    last: AtomicU16,
    stats: PortStats,
}

impl UdpPort {
    /// Opens the port.
    ///
    /// # Errors
    /// Where the address is not ours or taken, the MTU does not fit, or the host refuses.
    pub fn open(config: &UdpConfig) -> Result<Self, PortError> {
        let address = config.address;
        let netlink = Netlink::open().map_err(PortError::socket("netlink socket", address))?;
        netlink.check_own(address)?;
        let (main, seat) = if config.shared {
            let (main, seat) = Seat::take(address, config.buffer).map_err(owner::named)?;
            (main, Some(seat))
        } else {
            (open(address, ROCE_UDP_PORT, config.buffer).map_err(owner::named)?, None)
        };
        let drops = Drops::new(&main).map_err(PortError::socket("SO_MEMINFO", address))?;
        let interface = interface::of(address)?;
        let (name, link_mtu) = (interface.name, interface.mtu);
        let mtu = path_mtu(&name, link_mtu, config.mtu)?;
        let mut sources = Vec::with_capacity(SOURCES);
        for _ in 0..SOURCES {
            sources.push(source_socket(address, config.buffer)?);
        }
        // Where the address is shared, the broker says whether.
        let gro = if seat.is_some() { socket::is_gathering(&main) } else { enable_gro(&main) };
        let epoll = Epoll::new().map_err(PortError::socket("epoll", address))?;
        epoll.add(main.as_fd()).map_err(PortError::socket("epoll", address))?;
        if let Some(seat) = &seat {
            seat.watch(&epoll).map_err(PortError::socket("epoll", address))?;
        }
        let caps = PortCaps {
            kind: "udp",
            address,
            interface: name,
            link_mtu,
            mtu,
            gso: config.gso != Some(false),
            gro,
            sees_ip_header: false,
            slot: seat.as_ref().map(|seat| seat.slot),
        };
        tracing::debug!(?caps, "port open");
        Ok(Self {
            caps,
            gso: config.gso,
            main,
            seat,
            sources,
            groups: RwLock::default(),
            near: Near::default(),
            netlink,
            epoll,
            turn: AtomicUsize::new(0),
            buffer: config.buffer,
            gso_refused: AtomicBool::new(false),
            drops,
            narrow: Mutex::default(),
            last: AtomicU16::new(ROCE_UDP_PORT),
            stats: PortStats::default(),
        })
    }

    /// The socket of a flow, and the port it sends from.
    fn source(&self, flow_port: u16) -> (u16, &Socket) {
        let nth = usize::from(flow_port) % (self.sources.len() + 1);
        match self.sources.get(nth) {
            Some((port, socket)) => (*port, socket),
            None => (ROCE_UDP_PORT, &self.main),
        }
    }

    /// Packets of one flow that the host gathers may be for several slots, and all are given to the
    /// first one's socket. The others are lost, once: then nothing is gathered any more.
    fn look_for_mixed_runs(&self, batch: &RxBatch) {
        let Some(seat) = &self.seat else { return };
        let strays = batch.strays(|packet| slot_of(packet) != seat.slot, self.caps.address);
        if strays != 0 {
            tracing::debug!(strays, "gathered with others' packets");
            PortStats::add(&self.stats.rx_other_slot, strays);
            seat.mixed();
        }
    }
}

/// The path MTU asked for, or the largest, of an interface of this name and MTU.
pub(crate) fn path_mtu(name: &str, mtu: u32, wanted: Option<Mtu>) -> Result<Mtu, PortError> {
    let interface = || name.to_owned();
    let Some(most) = Mtu::largest_for_link(mtu) else {
        return Err(PortError::MtuTooSmall { interface: interface(), mtu });
    };
    match wanted {
        Some(wanted) if wanted > most => {
            let (wanted, most) = (wanted.bytes(), most.bytes());
            Err(PortError::MtuTooLarge { wanted, interface: interface(), mtu, most })
        }
        other => Ok(other.unwrap_or(most)),
    }
}

impl Port for UdpPort {
    fn caps(&self) -> &PortCaps {
        &self.caps
    }

    fn send(&self, batch: &mut TxBatch) -> io::Result<()> {
        self.send_batch(batch);
        Ok(())
    }

    fn recv(&self, batch: &mut RxBatch) -> io::Result<usize> {
        let mut rx = Rx::new(batch);
        let groups = self.groups.read();
        let all = groups.len() + 1;
        // Another socket is first each time, so that a flood at one does not starve the rest.
        let first = if all == 1 { 0 } else { self.turn.fetch_add(1, Ordering::Relaxed) % all };
        let mut n = 0;
        for turn in first..first + all {
            n += match groups.get(turn % all) {
                Some((group, socket)) => rx.fill(socket.as_fd(), *group)?,
                None => rx.fill(self.main.as_fd(), self.caps.address)?,
            };
        }
        self.drops.count(&self.main, &groups, &self.stats, false);
        drop(groups);
        let mut runs = rx.runs();
        if let Some(seat) = &self.seat {
            let given = seat.attend(&self.epoll, |flow, bytes| batch.push_alone(flow, bytes));
            (n, runs) = (n + given, runs + given);
        }
        if n != 0 {
            PortStats::add(&self.stats.rx_calls, 1);
            PortStats::add(&self.stats.rx_packets, n as u64);
            PortStats::add(&self.stats.rx_runs, runs as u64);
            self.look_for_mixed_runs(batch);
        }
        Ok(n)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.fd()
    }

    fn wait_writable(&self, timeout_ms: i32) -> io::Result<()> {
        // The socket that had no room; where threads send at once, one of those that had none.
        let last = self.last.load(Ordering::Relaxed);
        let source = self.sources.iter().find(|(port, _)| *port == last);
        sys::wait_writable(source.map_or(&self.main, |(_, s)| s).as_fd(), timeout_ms)
    }

    fn join(&self, group: IpAddr) -> Result<(), PortError> {
        let address = self.caps.address;
        if !group.is_multicast() || group.is_ipv4() != address.is_ipv4() {
            return Err(PortError::NotAGroup { group, address });
        }
        let groups = &mut *self.groups.write();
        if groups.iter().any(|(g, _)| *g == group) {
            return Ok(());
        }
        let socket = socket::join(group, address, self.buffer)?;
        self.epoll.add(socket.as_fd()).map_err(PortError::socket("epoll", group))?;
        groups.push((group, socket));
        Ok(())
    }

    fn leave(&self, group: IpAddr) -> Result<(), PortError> {
        let groups = &mut *self.groups.write();
        let at = groups.iter().position(|(g, _)| *g == group);
        let (_, socket) = groups.swap_remove(at.ok_or(PortError::NotJoined(group))?);
        self.drops.keep(&socket);
        Ok(())
    }

    fn route_mtu(&self, to: IpAddr) -> Option<u32> {
        self.netlink.path_mtu(self.caps.address, to)
    }

    fn is_narrow(&self, to: IpAddr) -> bool {
        self.narrow.lock().contains(&to)
    }

    fn next_deadline(&self) -> Option<Duration> {
        self.seat.as_ref().and_then(Seat::next_deadline)
    }

    fn serve(&self, service: u64, on: bool) -> Result<(), PortError> {
        self.seat.as_ref().map_or(Ok(()), |seat| seat.serve(service, on))
    }

    fn stats(&self) -> &PortStats {
        &self.stats
    }

    fn check(&self) -> Result<(), PortError> {
        self.drops.count(&self.main, &self.groups.read(), &self.stats, true);
        interface::check(&self.netlink, self.caps.address, &self.caps.interface)
    }
}
