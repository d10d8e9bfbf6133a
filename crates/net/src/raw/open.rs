//! How a raw port comes to be.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use parking_lot::{Mutex, RwLock};

use super::discover::Us;
use super::neighbour::Ways;
use super::{Kernel, RawConfig, RawPort, filter, interface_of, socket};
use crate::netlink::Netlink;
use crate::sys::{Epoll, Timer};
use crate::udp::{owner, path_mtu};
use crate::{PortCaps, PortError, PortStats};

/// The loopback interface is the first of every network namespace.
const LOOPBACK: u32 = 1;

impl RawPort {
    /// Opens the port.
    ///
    /// # Errors
    /// Where CAP_NET_RAW is missing, the address is not ours or its UDP port taken, the interface
    /// is none or has no Ethernet frames, or the MTU does not fit.
    pub fn open(config: &RawConfig) -> Result<Self, PortError> {
        let (address, vlan) = (config.address, config.vlan);
        let fail = |call| PortError::socket(call, address);
        let netlink = Netlink::open().map_err(fail("netlink socket"))?;
        netlink.check_own(address)?;
        let interface = &interface_of(config)?;
        let link = netlink.link(interface.index).map_err(fail("RTM_GETLINK"))?;
        if !link.is_ethernet() {
            return Err(PortError::NotEthernet(interface.name.clone()));
        }
        let sender = socket::sender(interface, config.buffer)?;
        let holder = socket::holder(interface).map_err(owner::named)?;
        let mtu = path_mtu(&interface.name, link.mtu, config.mtu)?;
        let mut receivers = Vec::new();
        let ends = [(interface.index, vlan), (LOOPBACK, None)];
        // Loopback itself is one end only.
        for &(index, vlan) in &ends[..if interface.index == LOOPBACK { 1 } else { 2 }] {
            let filter = filter::roce(address, vlan, false);
            receivers.push(socket::receiver(interface, index, &filter, true, config.buffer)?);
        }
        let filter = filter::neighbours(address, vlan);
        let hearer = socket::receiver(interface, interface.index, &filter, false, 1 << 16)?;
        let epoll = Epoll::new().map_err(fail("epoll"))?;
        let timer = Timer::new().map_err(fail("timerfd"))?;
        for fd in receivers.iter().map(AsFd::as_fd).chain([hearer.as_fd(), timer.fd()]) {
            epoll.add(fd).map_err(fail("epoll"))?;
        }
        let caps = PortCaps {
            kind: "raw",
            address,
            interface: interface.name.clone(),
            link_mtu: link.mtu,
            mtu,
            gso: false,
            gro: true,
            sees_ip_header: true,
            slot: None,
        };
        tracing::debug!(?caps, mac = %link.mac, "port open");
        let knows_neighbours = vlan.is_none_or(|tag| tag.id == 0);
        Ok(Self {
            caps,
            config: config.clone(),
            index: interface.index,
            mac: link.mac,
            loopback: LOOPBACK,
            sender,
            receivers,
            turn: AtomicUsize::new(0),
            hearer,
            holder,
            kernel: Kernel { netlink, index: interface.index, knows_neighbours },
            ways: Mutex::new(Ways::new(Us { address, mac: link.mac, vlan })),
            groups: RwLock::default(),
            epoll,
            timer,
            ids: AtomicU64::new(0),
            gone: AtomicBool::new(false),
            stats: PortStats::default(),
        })
    }
}
