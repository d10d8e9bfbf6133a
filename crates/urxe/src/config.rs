//! What a device is opened with; flags and `URXE_*` variables set the same.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use urxe_engine::{Caps, Profile};
use urxe_net::IcrcMode;
use urxe_net::impair::Impairment;
use urxe_net::raw::{IpId, VlanTag};
use urxe_wire::Mtu;

use crate::observe::ToStderr;
use crate::{Error, Observer};

/// Which address a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Address {
    /// The next free one of 127.0.0.0/8.
    #[default]
    Loopback,
    /// This one, which must be the host's.
    Of(IpAddr),
}

/// What a device sends and receives through.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum PortKind {
    /// UDP sockets: no privileges.
    #[default]
    Udp,
    /// Whole frames on this interface: needs CAP_NET_RAW.
    Raw(String),
}

/// What a device is opened with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our address (`URXE_ADDR`).
    pub address: Address,
    /// What it sends and receives through (`URXE_PORT`: udp, or raw:INTERFACE).
    pub port: PortKind,
    /// Bytes that may wait in each socket's buffers; the host may allow less (`URXE_BUFFER`: 4096
    /// to 1073741824).
    pub buffer: usize,
    /// Where to write what passes, as pcapng (`URXE_PCAP`). `%p` in it stands for the process's id.
    /// A second device of the process adds `-2` to the name, and so on.
    pub pcap: Option<PathBuf>,
    /// Faults of the link, as `loss=1%,tx.delay=2ms` (`URXE_FAULTS`; and, each adding one,
    /// `URXE_LOSS`, `URXE_DUP`, `URXE_REORDER`, `URXE_CORRUPT`, `URXE_DELAY`, `URXE_JITTER`,
    /// `URXE_RATE`).
    pub faults: String,
    /// Path MTU to be able to carry (`URXE_MTU`: 256 to 4096); `None` takes what fits the link.
    pub mtu: Option<Mtu>,
    /// Manners (`URXE_PROFILE`: strict, rxe, connectx).
    pub profile: Profile,
    /// How the ICRC of what arrives is looked at (`URXE_ICRC`: strict, solve, off).
    pub icrc: IcrcMode,
    /// Segmentation offload (`URXE_GSO`: on, off, auto): `None` for addresses of this host only.
    pub gso: Option<bool>,
    /// Whether other processes of the user may have devices of the same address (`URXE_SHARED`: on,
    /// off, auto): `None` for addresses that are not loopback's. Only with UDP sockets. The first
    /// process starts a broker, a process of its own that ends with the last one; a device then has
    /// 2^18 of the QPNs.
    pub shared: Option<bool>,
    /// The VLAN of a raw port (`URXE_VLAN`: its number, 0 to 4094, or number:priority); `None`: its
    /// frames have no tag.
    pub vlan: Option<VlanTag>,
    /// IPv4 identifications of a raw port (`URXE_IP_ID`: counter, random, 0 to 65535); `None`
    /// counts. Random ones with the seed 0 start from [`Self::seed`].
    pub ip_id: Option<IpId>,
    /// Whether a raw port puts a checksum on UDP over IPv6 (`URXE_UDP6_CHECKSUM`: on, off).
    pub udp6_checksum: bool,
    /// Limits.
    pub caps: Caps,
    /// PSNs a QP may have in flight (`URXE_WINDOW`: 4 to 4194304).
    pub window: u32,
    /// Whether a line of each packet goes to the standard error, with the process's id
    /// (`URXE_TRACE`: on, off). An observer takes its place: whoever sets one shows packets in its
    /// own way.
    pub trace: bool,
    /// Who looks on; no variable sets it.
    pub observer: Option<Arc<dyn Observer>>,
    /// How long the device's thread sleeps at most before it looks up, though nothing wakes it; no
    /// variable sets it. A second finds an interface that is gone soon enough; tests of what wakes
    /// the thread give more.
    pub look_up: Duration,
    /// Where keys and PSNs start (`URXE_SEED`); `None` takes the time.
    pub seed: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            address: Address::Loopback,
            port: PortKind::Udp,
            buffer: 4 << 20,
            pcap: None,
            faults: String::new(),
            mtu: None,
            profile: Profile::STRICT,
            icrc: IcrcMode::Solve,
            gso: None,
            shared: None,
            vlan: None,
            ip_id: None,
            udp6_checksum: false,
            caps: Caps::default(),
            window: 256,
            trace: false,
            observer: None,
            look_up: Duration::from_secs(1),
            seed: None,
        }
    }
}

fn wrong(name: &str, value: &str, problem: impl Into<String>) -> Error {
    Error::Setting { name: name.into(), value: value.into(), problem: problem.into() }
}

fn port_kind(name: &str, value: &str) -> Result<PortKind, Error> {
    match (value, value.strip_prefix("raw:")) {
        ("udp", _) => Ok(PortKind::Udp),
        (_, Some(interface)) if !interface.is_empty() => Ok(PortKind::Raw(interface.to_owned())),
        _ => Err(wrong(name, value, "wanted udp, or raw: and an interface, as raw:eth0")),
    }
}

/// `None` for auto.
fn switch(name: &str, value: &str) -> Result<Option<bool>, Error> {
    match value {
        "auto" => Ok(None),
        "on" => Ok(Some(true)),
        "off" => Ok(Some(false)),
        _ => Err(wrong(name, value, "wanted on, off or auto")),
    }
}

fn on_off(name: &str, value: &str) -> Result<bool, Error> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(wrong(name, value, "wanted on or off")),
    }
}

impl Config {
    /// What [`Self::set`] knows: each is a variable with `URXE_` before it, in capitals.
    pub const NAMES: [&'static str; 23] = [
        "addr",
        "port",
        "mtu",
        "profile",
        "icrc",
        "gso",
        "window",
        "seed",
        "pcap",
        "loss",
        "dup",
        "reorder",
        "corrupt",
        "delay",
        "jitter",
        "rate",
        "faults",
        "buffer",
        "shared",
        "trace",
        "vlan",
        "ip_id",
        "udp6_checksum",
    ];

    /// The default, changed by `URXE_*` variables of the environment.
    ///
    /// # Errors
    /// Where a variable cannot be read; the error names it and says what is wanted.
    pub fn from_env() -> Result<Self, Error> {
        let mut config = Self::default();
        // Other variables may hold what is no text.
        for (name, value) in std::env::vars_os() {
            if let Some(setting) = name.to_str().and_then(|name| name.strip_prefix("URXE_")) {
                config.set_os(setting, &value)?;
            }
        }
        Ok(config)
    }

    /// As [`Self::set`], of a value that need be no text; a file's name is kept as it is.
    ///
    /// # Errors
    /// Where the value cannot be read.
    pub fn set_os(&mut self, name: &str, value: &OsStr) -> Result<(), Error> {
        if name.eq_ignore_ascii_case("pcap") {
            self.pcap = Some(value.into());
            return Ok(());
        }
        self.set(name, &value.to_string_lossy())
    }

    /// Sets what `name` names: the part of a variable behind `URXE_`, in any case. A name that is
    /// none of a device's is left alone.
    ///
    /// # Errors
    /// Where the value cannot be read.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let number = |wanted: &str| {
            let parsed = value.parse::<u64>();
            parsed.map_err(|_| wrong(name, value, format!("not a number; wanted {wanted}")))
        };
        let lower = name.to_ascii_lowercase();
        if !Self::NAMES.contains(&lower.as_str()) {
            return Ok(());
        }
        match lower.as_str() {
            "addr" if value == "auto" => self.address = Address::Loopback,
            "addr" => {
                let problem = "wanted an IP address of this host, or auto";
                let address: IpAddr = value.parse().map_err(|_| wrong(name, value, problem))?;
                self.address = Address::Of(address);
            }
            "mtu" => {
                let bytes = u32::try_from(number("256 to 4096")?).unwrap_or(u32::MAX);
                let problem = "wanted 256, 512, 1024, 2048 or 4096";
                self.mtu = Some(Mtu::from_bytes(bytes).map_err(|_| wrong(name, value, problem))?);
            }
            "profile" => {
                let problem = "wanted strict, rxe or connectx";
                self.profile =
                    Profile::by_name(value).ok_or_else(|| wrong(name, value, problem))?;
            }
            "icrc" => self.icrc = value.parse().map_err(|e| wrong(name, value, format!("{e}")))?,
            "gso" => self.gso = switch(name, value)?,
            "shared" => self.shared = switch(name, value)?,
            "window" => {
                let n = number("4 to 4194304")?;
                let fits = u32::try_from(n).ok().filter(|n| (4..=1 << 22).contains(n));
                self.window = fits.ok_or_else(|| wrong(name, value, "wanted 4 to 4194304"))?;
            }
            "vlan" => {
                let tag = value.parse();
                self.vlan = Some(tag.map_err(|e| wrong(name, value, format!("{e}")))?);
            }
            "ip_id" => {
                let kind = value.parse();
                self.ip_id = Some(kind.map_err(|e| wrong(name, value, format!("{e}")))?);
            }
            "udp6_checksum" => self.udp6_checksum = on_off(name, value)?,
            "port" => self.port = port_kind(name, value)?,
            "buffer" => {
                let fits = Some(number("4096 to 1073741824")?)
                    .filter(|n| (4096..=1 << 30).contains(n))
                    .and_then(|n| usize::try_from(n).ok());
                let problem = "wanted 4096 to 1073741824";
                self.buffer = fits.ok_or_else(|| wrong(name, value, problem))?;
            }
            "trace" => self.trace = on_off(name, value)?,
            "pcap" => self.pcap = Some(value.into()),
            "faults" => self.add_faults(name, value, value)?,
            "loss" | "reorder" | "corrupt" | "delay" | "jitter" | "rate" => {
                self.add_faults(name, value, &format!("{lower}={value}"))?;
            }
            "dup" => self.add_faults(name, value, &format!("duplicate={value}"))?,
            "seed" => self.seed = Some(number("0 to 18446744073709551615")?),
            _ => unreachable!("a name of NAMES without its setting"),
        }
        Ok(())
    }

    fn add_faults(&mut self, name: &str, value: &str, faults: &str) -> Result<(), Error> {
        let joined = if self.faults.is_empty() {
            faults.to_owned()
        } else {
            format!("{},{faults}", self.faults)
        };
        joined.parse::<Impairment>().map_err(|e| wrong(name, value, e.to_string()))?;
        self.faults = joined;
        Ok(())
    }

    /// The faults of the link, if there are any.
    pub(crate) fn impairment(&self) -> Result<Option<Impairment>, Error> {
        if self.faults.is_empty() {
            return Ok(None);
        }
        let mut faults: Impairment =
            self.faults.parse().map_err(|e| wrong("FAULTS", &self.faults, format!("{e}")))?;
        if let Some(seed) = self.seed
            && faults.seed == 0
        {
            faults.seed = seed;
        }
        Ok(Some(faults))
    }

    /// Who looks on, if anybody does.
    pub(crate) fn looks_on(&self) -> Option<Arc<dyn Observer>> {
        let trace = || self.trace.then(|| Arc::new(ToStderr) as Arc<dyn Observer>);
        self.observer.clone().or_else(trace)
    }

    /// The addresses to try, in order.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let (one, many) = match self.address {
            Address::Of(address) => (Some(address), 0),
            Address::Loopback => (None, LAST_LOOPBACK),
        };
        let loopback = (1..=many).map(|n| IpAddr::V4(Ipv4Addr::new(127, 0, 0, n)));
        one.into_iter().chain(loopback)
    }
}

/// The last octet of the loopback addresses tried.
pub(crate) const LAST_LOOPBACK: u8 = 254;

#[cfg(test)]
mod tests;
