//! The raw port: whole Ethernet frames on a packet socket (AF_PACKET).
//!
//! It sees and sets all that the ICRC covers, VLAN tag and IP identification included, and so
//! checks each packet in full. It needs CAP_NET_RAW. The kernel keeps the address and routes for
//! it: it is asked for the next hop, and the port asks the link for neighbours the kernel does not
//! know. What goes to an address of this host itself goes over the loopback interface.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use socket2::Socket;
use urxe_wire::{Mac, Mtu};

use crate::netlink::{Netlink, Route};
use crate::sys::{self, Epoll, Timer};
use crate::udp::Interface;
use crate::{Port, PortCaps, PortError, PortStats, RxBatch, TxBatch};

mod discover;
pub(crate) mod filter;
mod message;
mod neighbour;
mod open;
mod receive;
mod send;
mod socket;

pub(crate) use message::Came;
use neighbour::{Knows, Ways};

/// The tag of the VLAN that a port is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct VlanTag {
    /// VLAN, 1 to 4094; 0 gives frames a priority only.
    pub id: u16,
    /// Priority (PCP), 0 to 7.
    pub priority: u8,
}

/// Not a VLAN tag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no VLAN: write its number, 0 to 4094, or number:priority with priority 0 to 7")]
pub struct NotAVlan(String);

impl FromStr for VlanTag {
    type Err = NotAVlan;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || NotAVlan(text.to_owned());
        let (id, priority) = text.split_once(':').unwrap_or((text, "0"));
        let (id, priority) = (id.parse(), priority.parse());
        let (Ok(id @ 0..=4094), Ok(priority @ 0..=7)) = (id, priority) else {
            return Err(bad());
        };
        Ok(Self { id, priority })
    }
}

/// The IPv4 identifications of what a port sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IpId {
    /// 0, 1, 2 and so on.
    #[default]
    Counter,
    /// Always this one.
    Fixed(u16),
    /// Random ones of this seed.
    Random(u64),
}

impl fmt::Display for IpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter => f.write_str("counter"),
            Self::Fixed(id) => write!(f, "{id}"),
            Self::Random(_) => f.write_str("random"),
        }
    }
}

/// Not a kind of identifications.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no IP identification: write counter, random, or a number from 0 to 65535")]
pub struct NotAnIpId(String);

impl FromStr for IpId {
    type Err = NotAnIpId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "counter" => Ok(Self::Counter),
            "random" => Ok(Self::Random(0)),
            number => number.parse().map(Self::Fixed).map_err(|_| NotAnIpId(text.to_owned())),
        }
    }
}

/// What a [`RawPort`] is opened with.
#[derive(Clone, Debug)]
pub struct RawConfig {
    /// Our address, one that the host has.
    pub address: IpAddr,
    /// The interface, if not the one that has the address.
    pub interface: Option<String>,
    /// The VLAN, where the interface is not a VLAN's itself.
    pub vlan: Option<VlanTag>,
    /// IPv4 identifications.
    pub ip_id: IpId,
    /// Whether UDP over IPv6 has a checksum; hardware and rxe send 0. Over IPv4 it is always 0.
    pub udp6_checksum: bool,
    /// The path MTU to be able to carry; `None` takes the largest that fits.
    pub mtu: Option<Mtu>,
    /// Bytes that may wait in each socket's buffers; the host may allow less.
    pub buffer: usize,
}

impl RawConfig {
    /// A port of `address`, without VLAN, with buffers of 4 MiB.
    #[must_use]
    pub const fn new(address: IpAddr) -> Self {
        Self {
            address,
            interface: None,
            vlan: None,
            ip_id: IpId::Counter,
            udp6_checksum: false,
            mtu: None,
            buffer: 4 << 20,
        }
    }
}

/// A port on packet sockets.
#[derive(Debug)]
pub struct RawPort {
    caps: PortCaps,
    config: RawConfig,
    index: u32,
    /// Our hardware address on it.
    mac: Mac,
    /// The index of the loopback interface.
    loopback: u32,
    sender: Socket,
    /// At our interface, then at the loopback one if that is another.
    receivers: Vec<Socket>,
    /// Whose turn it is to be received from first.
    turn: AtomicUsize,
    /// What is heard of neighbours.
    hearer: Socket,
    /// Holds the UDP port; also what joins groups.
    holder: Socket,
    kernel: Kernel,
    ways: Mutex<Ways>,
    groups: RwLock<Vec<IpAddr>>,
    epoll: Epoll,
    timer: Timer,
    /// How many identifications have been used.
    ids: AtomicU64,
    /// Set once the interface has been removed.
    gone: AtomicBool,
    stats: PortStats,
}

/// The kernel, asked about one interface.
#[derive(Debug)]
struct Kernel {
    netlink: Netlink,
    index: u32,
    /// The kernel knows nobody on a VLAN of which it has no interface.
    knows_neighbours: bool,
}

impl Knows for Kernel {
    fn route(&self, to: IpAddr) -> io::Result<Route> {
        self.netlink.route(to, self.index)
    }

    fn neighbour(&self, of: IpAddr) -> Option<Mac> {
        self.netlink.neighbour(of, self.index).filter(|_| self.knows_neighbours)
    }
}

impl RawPort {
    /// Lets in what the filter shall let in now.
    fn set_filters(&self, groups: &[IpAddr]) -> io::Result<()> {
        let address = self.caps.address;
        for (socket, vlan) in self.receivers.iter().zip([self.config.vlan, None]) {
            sys::attach_filter(socket, &filter::roce(address, vlan, !groups.is_empty()))?;
        }
        Ok(())
    }

    fn gone(&self) -> io::Error {
        let what = format!(
            "interface {} is gone: bring it back and open the port anew",
            self.caps.interface
        );
        io::Error::new(io::ErrorKind::NotFound, what)
    }
}

impl Port for RawPort {
    fn caps(&self) -> &PortCaps {
        &self.caps
    }

    fn send(&self, batch: &mut TxBatch) -> io::Result<()> {
        self.send_batch(batch)
    }

    fn recv(&self, batch: &mut RxBatch) -> io::Result<usize> {
        self.receive_batch(batch)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.fd()
    }

    fn wait_writable(&self, timeout_ms: i32) -> io::Result<()> {
        sys::wait_writable(self.sender.as_fd(), timeout_ms)
    }

    fn join(&self, group: IpAddr) -> Result<(), PortError> {
        let address = self.caps.address;
        if !group.is_multicast() {
            return Err(PortError::NotAGroup { group, address });
        }
        let groups = &mut *self.groups.write();
        if groups.contains(&group) {
            return Ok(());
        }
        // The kernel tells the routers, and opens the hardware's filter.
        match (group, address) {
            (IpAddr::V4(group), IpAddr::V4(address)) => {
                self.holder.join_multicast_v4(&group, &address)
            }
            (IpAddr::V6(group), IpAddr::V6(_)) => self.holder.join_multicast_v6(&group, self.index),
            _ => return Err(PortError::NotAGroup { group, address }),
        }
        .map_err(PortError::socket("joining", group))?;
        groups.push(group);
        self.set_filters(groups).map_err(PortError::socket("SO_ATTACH_FILTER", group))
    }

    fn leave(&self, group: IpAddr) -> Result<(), PortError> {
        let groups = &mut *self.groups.write();
        let at = groups.iter().position(|g| *g == group).ok_or(PortError::NotJoined(group))?;
        groups.swap_remove(at);
        match (group, self.caps.address) {
            (IpAddr::V4(group), IpAddr::V4(us)) => self.holder.leave_multicast_v4(&group, &us),
            (IpAddr::V6(group), _) => self.holder.leave_multicast_v6(&group, self.index),
            _ => Ok(()),
        }
        .map_err(PortError::socket("leaving", group))?;
        self.set_filters(groups).map_err(PortError::socket("SO_ATTACH_FILTER", group))
    }

    fn route_mtu(&self, to: IpAddr) -> Option<u32> {
        self.kernel.netlink.path_mtu(self.caps.address, to)
    }

    fn stats(&self) -> &PortStats {
        &self.stats
    }

    fn check(&self) -> Result<(), PortError> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(PortError::NoInterface(self.caps.interface.clone()));
        }
        match self.kernel.netlink.link(self.index) {
            Ok(link) if link.up => Ok(()),
            Ok(_) => Err(PortError::Down(self.caps.interface.clone())),
            Err(_) => Err(PortError::NoInterface(self.caps.interface.clone())),
        }
    }

    fn next_deadline(&self) -> Option<std::time::Duration> {
        let now = std::time::Instant::now();
        self.ways.lock().deadline().map(|at| at.saturating_duration_since(now))
    }
}

/// The interface that a port of `config` is on.
fn interface_of(config: &RawConfig) -> Result<Interface, PortError> {
    let address = config.address;
    let Some(name) = &config.interface else {
        // Of loopback's addresses the host lists one only.
        return Ok(Interface { address, ..crate::udp::interface::of(address)? });
    };
    let all = crate::udp::interfaces().map_err(PortError::socket("getifaddrs", address))?;
    let of_name = |i: &&Interface| i.name == *name;
    let near =
        |i: &&Interface| i.address == address || (address.is_loopback() && i.address.is_loopback());
    if let Some(found) = all.iter().find(|i| of_name(i) && near(i)) {
        return Ok(Interface { address, ..found.clone() });
    }
    let Some(first) = all.iter().find(of_name) else {
        return Err(PortError::NoInterface(name.clone()));
    };
    let (interface, has) = (name.clone(), first.address);
    Err(PortError::NotOfInterface { address, interface, has })
}

#[cfg(test)]
mod tests;
