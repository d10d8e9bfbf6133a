//! The host's interfaces and addresses.

use std::ffi::CStr;
use std::io;
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
pub fn interfaces() -> io::Result<Vec<Interface>> {
    // Not /sys, which shows the namespace that it was mounted in.
    let netlink = Netlink::open()?;
    let mut all = Vec::new();
    each_address(|entry, address| {
        // SAFETY: the name of an entry is a C string.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        // SAFETY: as above.
        let index = unsafe { libc::if_nametoindex(entry.ifa_name) };
        let name = name.to_string_lossy().into_owned();
        let up = entry.ifa_flags & u32::try_from(libc::IFF_UP).unwrap_or(1) != 0;
        let link = netlink.link(index).ok();
        let (mtu, ethernet) = link.map_or((1500, false), |l| (l.mtu, l.is_ethernet()));
        all.push(Interface { name, index, mtu, address, up, ethernet });
    })?;
    Ok(all)
}

/// All addresses of the host.
pub(super) fn addresses() -> io::Result<Vec<IpAddr>> {
    let mut all = Vec::new();
    each_address(|_, address| all.push(address))?;
    Ok(all)
}

fn each_address(mut see: impl FnMut(&libc::ifaddrs, IpAddr)) -> io::Result<()> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: writes a list to `list`, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut next = list;
    while !next.is_null() {
        // SAFETY: an entry of the list, which lives until it is freed.
        let entry = unsafe { &*next };
        next = entry.ifa_next;
        if let Some(address) = address_of(entry.ifa_addr) {
            see(entry, address);
        }
    }
    // SAFETY: the list came from getifaddrs and nothing of it is used any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(())
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

/// Whether the interface called `name` is up and the host still has `address`, as far as that can
/// be known now. Takes no descriptor: a process without a free one still has its port.
pub(crate) fn check(netlink: &Netlink, address: IpAddr, name: &str) -> Result<(), PortError> {
    if address.is_loopback() {
        // Always there.
        return Ok(());
    }
    match netlink.link_named(name) {
        Ok(link) if !link.up => return Err(PortError::Down(name.to_owned())),
        Ok(_) => {}
        Err(e) if is_shortage(&e) => return Ok(()),
        Err(e) if e.raw_os_error() == Some(libc::ENODEV) => {
            return Err(PortError::NoInterface(name.to_owned()));
        }
        Err(e) => return Err(PortError::socket("RTM_GETLINK", address)(e)),
    }
    match netlink.is_local(address) {
        Ok(true) => Ok(()),
        Err(e) if is_shortage(&e) => Ok(()),
        Ok(false) | Err(_) => Err(PortError::NotOurs(address)),
    }
}

/// Whether the host says with an error that it has not enough of something now.
pub(crate) fn is_shortage(e: &io::Error) -> bool {
    let errors = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS, libc::EAGAIN];
    e.kind() == io::ErrorKind::Interrupted || e.raw_os_error().is_some_and(|e| errors.contains(&e))
}
