//! The port of a device: what the configuration asks for, one around the other.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use urxe_net::impair::{Impaired, Impairment};
use urxe_net::raw::{IpId, RawConfig, RawPort, VlanTag};
use urxe_net::tap::{Tap, TapHandle};
use urxe_net::udp::{UdpConfig, UdpPort};
use urxe_net::{Port, PortError};

use crate::config::{Address, LAST_LOOPBACK, PortKind};
use crate::{Config, Error};

/// A port, and the tap on it if there is one.
pub(crate) struct Link {
    pub(crate) port: Box<dyn Port>,
    pub(crate) tap: Option<TapHandle>,
}

impl Link {
    pub(crate) fn open(config: &Config) -> Result<Self, Error> {
        check_settings(config)?;
        let plain: Box<dyn Port> = match &config.port {
            PortKind::Udp => Box::new(udp(config)?),
            PortKind::Raw(interface) => Box::new(raw(config, interface)?),
        };
        let faulty = match config.impairment()? {
            None => plain,
            Some(faults) => impaired(plain, &faults)?,
        };
        match &config.pcap {
            None => Ok(Self { port: faulty, tap: None }),
            Some(path) => tapped(faulty, path),
        }
    }
}

/// What only another kind of port has is refused, not left aside.
fn check_settings(config: &Config) -> Result<(), Error> {
    let refuse = |name: &str, value: String, problem: &str| {
        Err(Error::Setting { name: name.into(), value, problem: problem.into() })
    };
    let of_raw = "only a raw port sets this: give --port raw:INTERFACE too";
    let of_udp = "a raw port has no such thing: leave it out, or take --port udp";
    match config {
        Config { port: PortKind::Udp, vlan: Some(VlanTag { id, priority }), .. } => {
            refuse("VLAN", format!("{id}:{priority}"), of_raw)
        }
        Config { port: PortKind::Udp, ip_id: Some(kind), .. } => {
            refuse("IP_ID", kind.to_string(), of_raw)
        }
        Config { port: PortKind::Udp, udp6_checksum: true, .. } => {
            refuse("UDP6_CHECKSUM", "on".into(), of_raw)
        }
        Config { port: PortKind::Raw(_), shared: Some(true), .. } => {
            refuse("SHARED", "on".into(), of_udp)
        }
        Config { port: PortKind::Raw(_), gso: Some(true), .. } => {
            refuse("GSO", "on".into(), of_udp)
        }
        _ => Ok(()),
    }
}

fn udp(config: &Config) -> Result<UdpPort, Error> {
    for address in config.candidates() {
        let Config { mtu, gso, buffer, .. } = *config;
        let shared = config.shared.unwrap_or(!address.is_loopback());
        let udp = UdpConfig { address, mtu, gso, buffer, shared };
        match UdpPort::open(&udp) {
            Ok(port) => return Ok(port),
            Err(PortError::Taken(_) | PortError::OtherUser { .. })
                if config.address == Address::Loopback => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(Error::NoFreeAddress { tried: LAST_LOOPBACK })
}

fn raw(config: &Config, interface: &str) -> Result<RawPort, Error> {
    let address = match config.address {
        Address::Of(address) => address,
        Address::Loopback => first_address(interface)?,
    };
    let interface = Some(interface.to_owned());
    let Config { mtu, buffer, vlan, udp6_checksum, ip_id, .. } = *config;
    let ip_id = match ip_id.unwrap_or_default() {
        IpId::Random(0) => IpId::Random(config.seed.unwrap_or_else(crate::device::now_as_seed)),
        given => given,
    };
    let raw = RawConfig { address, interface, vlan, ip_id, udp6_checksum, mtu, buffer };
    Ok(RawPort::open(&raw)?)
}

/// The first address of an interface, IPv4 before IPv6.
fn first_address(interface: &str) -> Result<std::net::IpAddr, Error> {
    let all = urxe_net::udp::interfaces().map_err(Error::host("listing the interfaces"))?;
    let mut on_it: Vec<_> = all.iter().filter(|i| i.name == interface).collect();
    on_it.sort_by_key(|i| !i.address.is_ipv4());
    on_it.first().map(|i| i.address).ok_or_else(|| Error::Setting {
        name: "PORT".into(),
        value: format!("raw:{interface}"),
        problem: "no such interface, or it has no address; `urxe ports` lists them".into(),
    })
}

fn impaired(port: Box<dyn Port>, faults: &Impairment) -> Result<Box<dyn Port>, Error> {
    let start = Instant::now();
    let clock = move || start.elapsed();
    let port = Impaired::new(port, faults, clock).map_err(Error::host("a timer for faults"))?;
    Ok(Box::new(port))
}

/// Files that devices of this process write to.
static TAPPED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The path with this process's id for each `%p`, so that several processes can be given one name.
#[must_use]
pub fn of_this_process(path: &Path) -> PathBuf {
    let mut rest = path.as_os_str().as_bytes();
    let mut name = Vec::with_capacity(rest.len());
    while let Some((&first, behind)) = rest.split_first() {
        if let Some(behind) = rest.strip_prefix(b"%p") {
            name.extend_from_slice(std::process::id().to_string().as_bytes());
            rest = behind;
        } else {
            name.push(first);
            rest = behind;
        }
    }
    OsString::from_vec(name).into()
}

/// The name of a capture file that no other device of this process writes to: `a.pcapng`, then
/// `a-2.pcapng`.
fn free_name(path: &Path) -> FileName {
    let mut taken = TAPPED.lock();
    let mut free = path.to_owned();
    let mut n = 1;
    while taken.contains(&free) {
        n += 1;
        let mut name = path.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-{n}"));
        if let Some(extension) = path.extension() {
            name.push(".");
            name.push(extension);
        }
        free = path.with_file_name(name);
    }
    taken.push(free.clone());
    FileName(free)
}

/// The name of a capture file, taken as long as this lives.
struct FileName(PathBuf);

impl Drop for FileName {
    fn drop(&mut self) {
        TAPPED.lock().retain(|taken| *taken != self.0);
    }
}

fn tapped(port: Box<dyn Port>, path: &Path) -> Result<Link, Error> {
    let name = free_name(&of_this_process(path));
    let path = name.0.clone();
    let clock = move || {
        // The tap has the name as long as it has the clock.
        let FileName(_) = &name;
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    };
    let tap = Tap::create(port, &path, clock).map_err(|e| Error::Setting {
        name: "PCAP".into(),
        value: path.display().to_string(),
        problem: format!("{e}; give a file that can be written"),
    })?;
    let handle = tap.handle();
    Ok(Link { port: Box::new(tap), tap: Some(handle) })
}

#[cfg(test)]
mod tests;
