//! What the host says of itself under /proc and /sys; reading it needs no rights.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use urxe::Sharing;
use urxe_wire::ROCE_UDP_PORT;

#[cfg(test)]
mod tests;

/// Bits of a set of capabilities (Linux include/uapi/linux/capability.h).
pub(crate) const CAP_NET_ADMIN: u32 = 12;
/// As above.
pub(crate) const CAP_NET_RAW: u32 = 13;

/// Whether this process has a capability in effect; `None` where the host does not tell.
pub(crate) fn has_capability(bit: u32) -> Option<bool> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(effective(&status)? >> bit & 1 == 1)
}

/// The set of capabilities in effect, of /proc/PID/status.
fn effective(status: &str) -> Option<u64> {
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

/// The soft limit called `name` of this process; `None` for none, or where the host does not tell.
pub(crate) fn limit(name: &str) -> Option<u64> {
    soft_limit(&fs::read_to_string("/proc/self/limits").ok()?, name)
}

fn soft_limit(limits: &str, name: &str) -> Option<u64> {
    let rest = limits.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// A setting of the kernel, as `net.core.rmem_max`; `None` where it is not to be seen here.
pub(crate) fn sysctl(name: &str) -> Option<u64> {
    let path = Path::new("/proc/sys").join(name.replace('.', "/"));
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Whether UDP port 4791 of an address can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PortState {
    Free,
    Taken,
    /// Processes of this user share it, and more can.
    Shared(Sharing),
    /// The host does not tell.
    Unknown,
}

/// What UDP port 4791 of an address is, by those who have it. It is only looked at: who tried to
/// have it would take it from one who comes at the same moment.
pub(crate) fn port_state(address: IpAddr, holders: Option<&[Holder]>) -> PortState {
    let Some(holders) = holders else { return PortState::Unknown };
    // A socket of all IPv6 addresses has those of IPv4 too, unless it says otherwise, which the
    // host's tables do not show.
    let all = |of: IpAddr| of.is_unspecified() && (of.is_ipv6() || address.is_ipv4());
    if !holders.iter().any(|holder| holder.address == address || all(holder.address)) {
        return PortState::Free;
    }
    urxe::who_shares(address).ok().flatten().map_or(PortState::Taken, PortState::Shared)
}

/// A socket that has UDP port 4791.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Of this address; of all if it is unspecified.
    pub(crate) address: IpAddr,
    /// Its socket's number.
    pub(crate) inode: u64,
}

/// Who has UDP port 4791 in this network namespace; `None` where the host does not tell.
pub(crate) fn holders() -> Option<Vec<Holder>> {
    let mut all = held(&fs::read_to_string("/proc/net/udp").ok()?);
    // A host without IPv6 has no such table.
    all.extend(held(&fs::read_to_string("/proc/net/udp6").unwrap_or_default()));
    Some(all)
}

/// The sockets of port 4791 in a table as /proc/net/udp is one.
fn held(table: &str) -> Vec<Holder> {
    table.lines().skip(1).filter_map(holder).collect()
}

fn holder(line: &str) -> Option<Holder> {
    let fields: Vec<_> = line.split_whitespace().collect();
    let (address, port) = fields.get(1)?.split_once(':')?;
    if u16::from_str_radix(port, 16).ok()? != ROCE_UDP_PORT {
        return None;
    }
    Some(Holder { address: address_of(address)?, inode: fields.get(9)?.parse().ok()? })
}

/// An address as the kernel's tables have it: words of 32 bits in the host's order, hexadecimal.
fn address_of(hex: &str) -> Option<IpAddr> {
    let mut octets = Vec::with_capacity(16);
    for at in (0..hex.len()).step_by(8) {
        let word = u32::from_str_radix(hex.get(at..at + 8)?, 16).ok()?;
        octets.extend(word.to_ne_bytes());
    }
    if let Ok(v4) = <[u8; 4]>::try_from(octets.as_slice()) {
        return Some(Ipv4Addr::from(v4).into());
    }
    let v6 = <[u8; 16]>::try_from(octets.as_slice()).ok()?;
    Some(Ipv6Addr::from(v6).into())
}

/// Whose sockets are whose.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// Name and number of the process, by the socket's number.
    pub(crate) of: BTreeMap<u64, (String, u32)>,
    /// Some processes did not show their descriptors.
    pub(crate) hidden: bool,
}

/// Looks for the processes that have sockets of these numbers.
pub(crate) fn owners(inodes: &[u64]) -> Owners {
    let mut owners = Owners::default();
    let Ok(processes) = fs::read_dir("/proc") else {
        return owners;
    };
    for process in processes.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(descriptors) = fs::read_dir(process.path().join("fd")) else {
            owners.hidden = true;
            continue;
        };
        for descriptor in descriptors.flatten() {
            let Some(inode) = socket_number(&descriptor.path()).filter(|n| inodes.contains(n))
            else {
                continue;
            };
            owners.of.insert(inode, (program(pid).unwrap_or_default(), pid));
        }
    }
    owners
}

/// The name of a process's program.
pub(crate) fn program(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim().to_owned())
}

/// The number of the socket that a descriptor of /proc/PID/fd is.
fn socket_number(descriptor: &Path) -> Option<u64> {
    let target = fs::read_link(descriptor).ok()?;
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// An RDMA device of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RdmaDevice {
    pub(crate) name: String,
    /// The interface it is on, where the kernel shows it.
    pub(crate) interface: Option<String>,
    /// It is made of software: rdma_rxe or siw.
    pub(crate) software: bool,
}

/// The RDMA devices of the kernel below `root`, /sys/class/infiniband.
pub(crate) fn rdma_devices(root: &Path) -> Vec<RdmaDevice> {
    let Ok(entries) = fs::read_dir(root) else {
        return Vec::new();
    };
    let mut all: Vec<_> = entries.flatten().map(|entry| rdma_device(&entry.path())).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn rdma_device(path: &Path) -> RdmaDevice {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    // rdma_rxe and siw tell their interface here (Linux drivers/infiniband/sw).
    let parent = fs::read_to_string(path.join("parent")).ok().map(|text| text.trim().to_owned());
    let software = parent.is_some();
    let below = || {
        let mut found = fs::read_dir(path.join("device/net")).ok()?;
        Some(found.next()?.ok()?.file_name().to_string_lossy().into_owned())
    };
    RdmaDevice { name, interface: parent.or_else(below), software }
}

/// Descriptors that this process has open.
pub(crate) fn open_descriptors() -> Option<usize> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count())
}
