//! The port of a device: what the configuration asks for, one around the other.

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use urxe_net::impair::{Impaired, Impairment};
use urxe_net::raw::{RawConfig, RawPort};
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

fn udp(config: &Config) -> Result<UdpPort, Error> {
    for address in config.candidates() {
        let Config { mtu, gso, buffer, .. } = *config;
        let shared = config.shared.unwrap_or(!address.is_loopback());
        let udp = UdpConfig { address, mtu, gso, buffer, shared };
        match UdpPort::open(&udp) {
            Ok(port) => return Ok(port),
            Err(PortError::Taken(_)) if config.address == Address::Loopback => {}
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
    let Config { mtu, buffer, .. } = *config;
    let raw = RawConfig { interface, mtu, buffer, ..RawConfig::new(address) };
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
    match path.to_str() {
        Some(text) => text.replace("%p", &std::process::id().to_string()).into(),
        None => path.to_owned(),
    }
}

/// The name of a capture file that no other device of this process writes to: `a.pcapng`, then
/// `a-2.pcapng`.
fn free_name(path: &Path) -> PathBuf {
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
    free
}

fn tapped(port: Box<dyn Port>, path: &Path) -> Result<Link, Error> {
    let path = &free_name(&of_this_process(path));
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let tap = Tap::create(port, path, clock).map_err(|e| Error::Setting {
        name: "PCAP".into(),
        value: path.display().to_string(),
        problem: format!("{e}; give a file that can be written"),
    })?;
    let handle = tap.handle();
    Ok(Link { port: Box::new(tap), tap: Some(handle) })
}

#[cfg(test)]
mod tests;
