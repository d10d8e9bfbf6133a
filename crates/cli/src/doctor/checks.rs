//! The checks, one a function.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::path::Path;

use urxe::{Config, Context, Error, Mtu, PortCaps, PortError, PortKind, Sharing};
use urxe_wire::ROCE_UDP_PORT;

use super::report::Check;
use super::trial::Seen;
use crate::host::{self, CAP_NET_ADMIN, CAP_NET_RAW, Holder, Owners, RdmaDevice};
use crate::log;
use crate::programs::LIBRARY;

/// Variables that are no device's.
const OTHERS: [&str; 4] = [log::VARIABLE, LIBRARY, "URXE_REPORT", "URXE_WC_SL"];

/// Bytes that a port asks for, to send and to receive in (urxe-net's default).
const BUFFER: u64 = 4 << 20;

/// The `URXE_*` variables of the environment.
pub(super) fn settings() -> Check {
    let set: Vec<_> = std::env::vars_os()
        .filter_map(|(name, value)| {
            let name = name.to_string_lossy().into_owned();
            name.starts_with("URXE_").then(|| (name, value.to_string_lossy().into_owned()))
        })
        .collect();
    settings_of(&set, Config::from_env().err())
}

pub(super) fn settings_of(set: &[(String, String)], error: Option<Error>) -> Check {
    const WHAT: &str = "settings";
    if let Some(error) = error {
        return Check::problem(WHAT, format!("URXE_{error}"), "change it, or unset it");
    }
    let known = |name: &str| {
        let setting = name.strip_prefix("URXE_").unwrap_or_default().to_ascii_lowercase();
        Config::NAMES.contains(&setting.as_str()) || OTHERS.contains(&name)
    };
    let unknown: Vec<_> = set.iter().map(|(n, _)| n.as_str()).filter(|n| !known(n)).collect();
    if !unknown.is_empty() {
        let found = format!("{} is no setting: it does nothing", unknown.join(", "));
        return Check::warning(WHAT, found, "`urxe devinfo --help` names them all");
    }
    match set {
        [] => Check::ok(WHAT, "no URXE_* variable is set"),
        all => {
            let all: Vec<_> = all.iter().map(|(name, value)| format!("{name}={value}")).collect();
            Check::ok(WHAT, all.join(" "))
        }
    }
}

/// Whether the device could be opened.
pub(super) fn address(opened: &Result<Context, Error>) -> Check {
    const WHAT: &str = "address";
    match opened {
        Ok(context) => {
            let PortCaps { interface, kind, .. } = context.port_caps();
            let address = context.address();
            Check::ok(WHAT, format!("{address} on {interface}, {kind} port: opened"))
        }
        Err(error @ Error::Port(PortError::NotOurs(address))) if address.is_loopback() => {
            Check::problem(WHAT, error.to_string(), "here it is not: ip link set lo up")
        }
        // It says what to do.
        Err(error) => Check::problem(WHAT, error.to_string(), ""),
    }
}

/// Who has UDP port 4791.
#[derive(Debug, Default)]
pub(super) struct Holders {
    pub(super) sockets: Vec<Holder>,
    pub(super) owners: Owners,
    /// Those of the addresses that processes of this user share.
    pub(super) shared: Vec<(IpAddr, Sharing)>,
}

impl Holders {
    /// Looks before the device of the doctor is there.
    pub(super) fn look() -> Self {
        let mut sockets = host::holders().unwrap_or_default();
        let addresses: BTreeSet<_> = sockets.iter().map(|holder| holder.address).collect();
        let sharing = |address| Some((address, urxe::who_shares(address).ok()??));
        let shared: Vec<_> = addresses.into_iter().filter_map(sharing).collect();
        sockets.retain(|holder| !shared.iter().any(|(address, _)| *address == holder.address));
        let inodes: Vec<_> = sockets.iter().map(|holder| holder.inode).collect();
        let owners = if inodes.is_empty() { Owners::default() } else { host::owners(&inodes) };
        Self { sockets, owners, shared }
    }

    /// A line for each address.
    fn all(&self) -> Vec<String> {
        let mut all: Vec<_> = self.sockets.iter().map(|holder| self.one(holder)).collect();
        all.dedup();
        all.extend(self.shared.iter().map(|(address, sharing)| {
            let one = |&urxe::Holder { slot, pid }: &urxe::Holder| {
                let name = host::program(pid).map_or_else(String::new, |name| format!("{name}, "));
                match pid {
                    0 => format!("a process that is not shown to us, in slot {slot}"),
                    _ => format!("{name}process {pid}, in slot {slot}"),
                }
            };
            let holders: Vec<_> = sharing.holders.iter().map(one).collect();
            format!("{address}: shared by {}", holders.join("; by "))
        }));
        all
    }

    fn one(&self, holder: &Holder) -> String {
        let Holder { address, inode } = holder;
        let all = if address.is_unspecified() { "all addresses" } else { "" };
        let address =
            if all.is_empty() { address.to_string() } else { format!("{all} ({address})") };
        let who = match (self.owners.of.get(inode), self.owners.hidden) {
            (Some((name, pid)), _) => format!("{name}, process {pid}"),
            (None, true) => "a process that is not shown to us".to_owned(),
            (None, false) => "the kernel, as rdma_rxe does".to_owned(),
        };
        format!("{address} by {who}")
    }
}

/// Tells who has UDP port 4791; a problem only if the device could not be opened for it.
pub(super) fn port_4791(holders: &Holders, in_the_way: bool) -> Check {
    const WHAT: &str = "UDP port 4791";
    let all = holders.all();
    if all.is_empty() {
        return Check::ok(WHAT, "free on all addresses");
    }
    let found = format!("taken on {}", all.join("; on "));
    if !in_the_way {
        return Check::ok(WHAT, found);
    }
    let unseen = holders.sockets.iter().any(|h| !holders.owners.of.contains_key(&h.inode));
    let everywhere = holders.sockets.iter().any(|holder| holder.address.is_unspecified());
    let mut advice = match everywhere {
        true => "stop it: while it runs, no address is left".to_owned(),
        false => "stop it, or give another address by --addr".to_owned(),
    };
    if unseen && holders.owners.hidden {
        advice.push_str("; to see whose it is, run as root (CAP_SYS_PTRACE)");
    }
    Check::warning(WHAT, found, advice)
}

/// The kernel's own RDMA devices.
pub(super) fn rdma() -> Vec<Check> {
    let rxe = Path::new("/sys/module/rdma_rxe").exists();
    rdma_of(rxe, &host::rdma_devices(Path::new("/sys/class/infiniband")))
}

pub(super) fn rdma_of(rxe_loaded: bool, devices: &[RdmaDevice]) -> Vec<Check> {
    const RXE: &str = "rdma_rxe";
    const HARDWARE: &str = "RDMA hardware";
    let on = |devices: &[&RdmaDevice]| {
        let one = |d: &&RdmaDevice| match &d.interface {
            Some(interface) => format!("{} on {interface}", d.name),
            None => d.name.clone(),
        };
        devices.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let (software, hardware): (Vec<_>, Vec<_>) = devices.iter().partition(|d| d.software);
    let rxe = match (rxe_loaded, software.as_slice()) {
        (false, []) => Check::ok(RXE, "not loaded"),
        (true, []) => Check::ok(RXE, "loaded, but has no device"),
        (_, some) => Check::warning(
            RXE,
            format!("{}: it takes UDP port 4791 of all addresses", on(some)),
            format!("rdma link delete {}, or rmmod rdma_rxe", some[0].name),
        ),
    };
    let hardware = match hardware.as_slice() {
        [] => Check::ok(HARDWARE, "none"),
        some => Check::warning(
            HARDWARE,
            format!("{}: it takes RoCEv2 packets to its interface before urxe sees them", on(some)),
            "give urxe an address of another interface, or of loopback",
        ),
    };
    vec![rxe, hardware]
}

/// Whether the link carries the usual path MTU.
pub(super) fn mtu(interface: &str, link_mtu: u32) -> Check {
    const WHAT: &str = "MTU";
    let Some(path) = Mtu::largest_for_link(link_mtu) else {
        // The port could not have been opened.
        return Check::problem(WHAT, format!("{interface} has {link_mtu}: too small"), "raise it");
    };
    let found = format!("{interface} has {link_mtu}: path MTU {}", path.bytes());
    if path >= Mtu::B1024 {
        return Check::ok(WHAT, found);
    }
    let least =
        (Mtu::B1024.bytes()..).find(|&link| Mtu::largest_for_link(link) >= Some(Mtu::B1024));
    let least = least.unwrap_or(link_mtu);
    let advice = format!("peers often ask for 1024: ip link set {interface} mtu {least}, or more");
    Check::warning(WHAT, found, advice)
}

/// How much may wait in a socket.
pub(super) fn buffers(name: &'static str) -> Check {
    buffers_of(name, host::sysctl(name), host::has_capability(CAP_NET_ADMIN) == Some(true))
}

pub(super) fn buffers_of(name: &'static str, most: Option<u64>, admin: bool) -> Check {
    match most {
        _ if admin => Check::ok(name, format!("{BUFFER} bytes, by the right CAP_NET_ADMIN")),
        None => Check::ok(name, "not to be seen in this network namespace"),
        Some(most) if most >= BUFFER => Check::ok(name, format!("{most} bytes")),
        Some(most) => Check::warning(
            name,
            format!("{most} bytes, a port asks for {BUFFER}: bursts of packets may be lost"),
            format!("sysctl -w {name}={BUFFER}"),
        ),
    }
}

/// Whether there are IPv6 addresses.
pub(super) fn ipv6() -> Check {
    match UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)) {
        Ok(_) => Check::ok("IPv6", "available"),
        Err(e) => Check::warning(
            "IPv6",
            format!("::1 cannot be used: {}", crate::capture::without_code(&e)),
            "urxe works with IPv4 alone; for IPv6: sysctl -w net.ipv6.conf.all.disable_ipv6=0",
        ),
    }
}

/// Whether whole frames can be sent.
pub(super) fn raw_rights(config: &Config) -> Check {
    raw_rights_of(host::has_capability(CAP_NET_RAW) == Some(true), &config.port)
}

pub(super) fn raw_rights_of(has: bool, port: &PortKind) -> Check {
    const WHAT: &str = "CAP_NET_RAW";
    match (has, port) {
        (true, PortKind::Udp) => Check::ok(WHAT, "held: --port raw:INTERFACE can be used"),
        (true, PortKind::Raw(_)) => Check::ok(
            WHAT,
            "held: --port raw:INTERFACE can be used; with udp ports of this host it cannot talk",
        ),
        (false, PortKind::Udp) => Check::ok(WHAT, "not held; only --port raw:INTERFACE needs it"),
        (false, PortKind::Raw(name)) => {
            Check::problem(WHAT, "not held", PortError::NoRights(name.clone()).to_string())
        }
    }
}

/// Whether there are descriptors for more than a few devices: open before and after the first.
pub(super) fn descriptors(open: Option<(usize, usize)>) -> Check {
    descriptors_of(host::limit("Max open files"), open)
}

pub(super) fn descriptors_of(most: Option<u64>, open: Option<(usize, usize)>) -> Check {
    const WHAT: &str = "file descriptors";
    /// Devices that should fit.
    const DEVICES: u64 = 4;
    let Some(most) = most else {
        return Check::ok(WHAT, "without limit, or the limit is not to be seen");
    };
    let Some((before, after)) = open else {
        return Check::ok(WHAT, format!("at most {most}"));
    };
    let one = after.saturating_sub(before) as u64;
    let found = format!("at most {most}; a device takes {one}, each completion channel one more");
    if most >= before as u64 + one * DEVICES {
        return Check::ok(WHAT, found);
    }
    Check::warning(WHAT, found, format!("ulimit -n {}", before as u64 + one * DEVICES))
}

/// Whether many packets go and come in one call.
pub(super) fn offload(caps: &PortCaps, seen: &Seen) -> [Check; 2] {
    const SLOW: &str = "urxe works, but far slower; Linux 5.0 or later has it";
    let (send, receive) = ("send offload", "receive offload");
    let sent = format!("{} packets in {} calls", seen.sent.tx_packets, seen.sent.tx_calls);
    let send = match (caps.gso, seen.sent.tx_calls < seen.sent.tx_packets) {
        (true, true) => Check::ok(send, format!("{sent} (UDP_SEGMENT)")),
        (true, false) => Check::warning(send, format!("UDP_SEGMENT does nothing: {sent}"), SLOW),
        (false, _) => Check::ok(send, format!("off by setting: {sent}")),
    };
    let came = format!("{} packets in {} datagrams", seen.came.rx_packets, seen.came.rx_runs);
    let receive = match (caps.gro, seen.came.rx_runs < seen.came.rx_packets) {
        (_, true) => Check::ok(receive, format!("{came} (UDP_GRO)")),
        // What was sent one by one is not gathered on loopback.
        (true, false) if seen.sent.tx_calls >= seen.sent.tx_packets => {
            Check::ok(receive, "on, but nothing was sent that it could gather")
        }
        (true, false) => Check::warning(receive, format!("UDP_GRO does nothing: {came}"), SLOW),
        (false, false) => Check::warning(receive, "the kernel has no UDP_GRO", SLOW),
    };
    [send, receive]
}

const _: () = assert!(ROCE_UDP_PORT == 4791, "the texts say so");
