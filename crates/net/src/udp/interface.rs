//! The host's interfaces and addresses.

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::PortError;
use crate::netlink::Netlink;

/// An address of the host, and the interface it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// Its MTU, bytes.
    pub mtu: u32,
    /// The address.
    pub address: IpAddr,
    /// Whether it is up.
    pub up: bool,
    /// Whether it carries Ethernet frames, as a raw port needs; loopback does.
    pub ethernet: bool,
}

/// All addresses of the host, in its order.
///
/// # Errors
/// Where the host does not tell.
pub fn interfaces() -> std::io::Result<Vec<Interface>> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: writes a list to `list`, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // Not /sys, which shows the namespace that it was mounted in.
    let netlink = Netlink::open();
    let mut all = Vec::new();
    let mut next = list;
    while !next.is_null() {
        // SAFETY: an entry of the list, which lives until it is freed.
        let entry = unsafe { &*next };
        next = entry.ifa_next;
        let Some(address) = address_of(entry.ifa_addr) else {
            continue;
        };
        // SAFETY: the name of an entry is a C string.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        // SAFETY: as above.
        let index = unsafe { libc::if_nametoindex(entry.ifa_name) };
        let name = name.to_string_lossy().into_owned();
        let up = entry.ifa_flags & u32::try_from(libc::IFF_UP).unwrap_or(1) != 0;
        let link = netlink.as_ref().ok().and_then(|n| n.link(index).ok());
        let (mtu, ethernet) = link.map_or((1500, false), |l| (l.mtu, l.is_ethernet()));
        all.push(Interface { name, index, mtu, address, up, ethernet });
    }
    // SAFETY: the list came from getifaddrs and nothing of it is used any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(all)
}

fn address_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: not null; every socket address starts with its family.
    let family = i32::from(unsafe { (*address).sa_family });
    match family {
        libc::AF_INET => {
            // SAFETY: of this family, so of this layout.
            let v4 = unsafe { &*address.cast::<libc::sockaddr_in>() };
            Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: of this family, so of this layout.
            let v6 = unsafe { &*address.cast::<libc::sockaddr_in6>() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// The interface that an address of ours is on; all of 127.0.0.0/8 is on the loopback one.
pub(crate) fn of(address: IpAddr) -> Result<Interface, PortError> {
    let all = interfaces().map_err(PortError::socket("getifaddrs", address))?;
    let near =
        |i: &&Interface| i.address == address || (address.is_loopback() && i.address.is_loopback());
    all.iter().find(near).cloned().ok_or(PortError::NotOurs(address))
}

/// Whether the interface called `name` is up and still has `address`.
pub(crate) fn check(address: IpAddr, name: &str) -> Result<(), PortError> {
    if address.is_loopback() {
        // Always there, and to ask takes descriptors.
        return Ok(());
    }
    let interface = of(address)?;
    if !interface.up {
        return Err(PortError::Down(interface.name));
    }
    if interface.name != name && !name.is_empty() {
        return Err(PortError::NotOurs(address));
    }
    Ok(())
}

/// Whether an address is of this host.
pub(super) fn is_ours(address: IpAddr) -> bool {
    interfaces().is_ok_and(|all| all.iter().any(|i| i.address == address))
}
