//! Flags that all commands which open a device have. Each has its `URXE_*` variable.

use std::env;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use clap::Args;
use urxe::{Config, Error};

use crate::command::palette;
use crate::trace::Trace;

/// Settings of a device.
#[derive(Clone, Debug, Default, Args)]
pub struct Common {
    /// Our address; else the next free one of 127.0.0.0/8 [env: URXE_ADDR]
    #[arg(long, value_name = "IP", help_heading = "Device")]
    pub addr: Option<IpAddr>,
    /// Path MTU: 256, 512, 1024, 2048 or 4096; else what the link carries [env: URXE_MTU]
    #[arg(long, value_name = "BYTES", help_heading = "Device")]
    pub mtu: Option<u32>,
    /// Manners: strict, rxe or connectx [env: URXE_PROFILE]
    #[arg(long, value_name = "NAME", help_heading = "Device")]
    pub profile: Option<String>,
    /// How the ICRC of what arrives is checked: strict, solve or off [env: URXE_ICRC]
    #[arg(long, value_name = "HOW", help_heading = "Device")]
    pub icrc: Option<String>,
    /// Segmentation offload: on, off, or auto for addresses of this host only [env: URXE_GSO]
    #[arg(long, value_name = "HOW", help_heading = "Device")]
    pub gso: Option<String>,
    /// Whether other processes may use the same address: on, off, or auto for addresses that are
    /// not loopback's [env: URXE_SHARED]
    #[arg(long, value_name = "HOW", help_heading = "Device")]
    pub shared: Option<String>,
    /// Packets a QP may have in flight: 4 to 4194304 [env: URXE_WINDOW]
    #[arg(long, value_name = "N", help_heading = "Device")]
    pub window: Option<u32>,
    /// Bytes that may wait in each socket's buffers, from 4096; the host may allow less
    /// [env: URXE_BUFFER]
    #[arg(long, value_name = "BYTES", help_heading = "Device")]
    pub buffer: Option<u32>,
    /// What to send and receive through: udp, or raw:INTERFACE for whole frames (needs root or
    /// CAP_NET_RAW) [env: URXE_PORT]
    #[arg(long = "port", value_name = "KIND", help_heading = "Device")]
    pub port: Option<String>,
    /// VLAN of a raw port: its number, 0 to 4094, or number:priority [env: URXE_VLAN]
    #[arg(long, value_name = "TAG", help_heading = "Device")]
    pub vlan: Option<String>,
    /// IPv4 identifications of a raw port: counter, random, or 0 to 65535 always [env: URXE_IP_ID]
    #[arg(long, value_name = "HOW", help_heading = "Device")]
    pub ip_id: Option<String>,
    /// Whether a raw port puts a checksum on UDP over IPv6: on or off [env: URXE_UDP6_CHECKSUM]
    #[arg(long, value_name = "HOW", help_heading = "Device")]
    pub udp6_checksum: Option<String>,
    /// Write what passes to this file, as pcapng with reasons [env: URXE_PCAP]
    #[arg(long, value_name = "FILE", help_heading = "Device")]
    pub pcap: Option<String>,
    /// Packets to lose, each way, such as 1% [env: URXE_LOSS]
    #[arg(long, value_name = "SHARE", help_heading = "Faults of the link")]
    pub loss: Option<String>,
    /// Packets to double [env: URXE_DUP]
    #[arg(long, value_name = "SHARE", help_heading = "Faults of the link")]
    pub dup: Option<String>,
    /// Packets to let others overtake [env: URXE_REORDER]
    #[arg(long, value_name = "SHARE", help_heading = "Faults of the link")]
    pub reorder: Option<String>,
    /// Packets to change a bit of [env: URXE_CORRUPT]
    #[arg(long, value_name = "SHARE", help_heading = "Faults of the link")]
    pub corrupt: Option<String>,
    /// Time that each packet takes more, such as 2ms [env: URXE_DELAY]
    #[arg(long, value_name = "TIME", help_heading = "Faults of the link")]
    pub delay: Option<String>,
    /// Time more, up to this much, drawn for each packet [env: URXE_JITTER]
    #[arg(long, value_name = "TIME", help_heading = "Faults of the link")]
    pub jitter: Option<String>,
    /// Bits per second, such as 1gbit; what is above it queues [env: URXE_RATE]
    #[arg(long, value_name = "RATE", help_heading = "Faults of the link")]
    pub rate: Option<String>,
    /// All faults in one, a direction each if need be:
    /// loss=1%,burst=0.1%:8,tx.delay=2ms,rx.rate=1gbit [env: URXE_FAULTS]
    #[arg(long, value_name = "LIST", help_heading = "Faults of the link")]
    pub faults: Option<String>,
    /// Where random choices start, so that a run can be done again [env: URXE_SEED]
    #[arg(long, value_name = "N", help_heading = "Device")]
    pub seed: Option<u64>,
    /// A line of each packet that leaves or arrives, on the standard error, with the reason
    /// [env: URXE_TRACE]
    #[arg(long, help_heading = "Device")]
    pub trace: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

impl Common {
    /// The device these flags, and the environment behind them, ask for.
    ///
    /// # Errors
    /// Where a value cannot be read; the error says what is wanted.
    pub fn config(&self) -> Result<Config, Error> {
        let variable = |name: &str| format!("URXE_{}", name.to_uppercase());
        self.over(Config::from_env().map_err(|why| as_written(why, variable))?)
    }

    /// As [`Self::config`]; variables that cannot be read are left out.
    pub(crate) fn config_despite_variables(&self) -> Result<Config, Error> {
        let mut config = Config::default();
        for (name, value) in env::vars_os() {
            if let Some(setting) = name.to_str().and_then(|name| name.strip_prefix("URXE_")) {
                let mut changed = config.clone();
                if changed.set_os(setting, &value).is_ok() {
                    config = changed;
                }
            }
        }
        self.over(config)
    }

    /// What the flags make of a configuration.
    fn over(&self, mut config: Config) -> Result<Config, Error> {
        for (name, value) in self.given() {
            let flag = |_: &str| format!("--{}", name.replace('_', "-"));
            config.set(name, &value).map_err(|why| as_written(why, flag))?;
        }
        if config.trace {
            let stderr = io::stderr();
            config.observer = Some(Arc::new(Trace::new(palette(&stderr), stderr)));
        }
        Ok(config)
    }

    /// The settings of a device that flags give, by their names.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        let number = |n: Option<u32>| n.map(|n| n.to_string());
        let all = [
            ("addr", self.addr.map(|a| a.to_string())),
            ("mtu", number(self.mtu)),
            ("profile", self.profile.clone()),
            ("icrc", self.icrc.clone()),
            ("gso", self.gso.clone()),
            ("shared", self.shared.clone()),
            ("window", number(self.window)),
            ("buffer", number(self.buffer)),
            ("port", self.port.clone()),
            ("vlan", self.vlan.clone()),
            ("ip_id", self.ip_id.clone()),
            ("udp6_checksum", self.udp6_checksum.clone()),
            ("pcap", self.pcap.clone()),
            ("loss", self.loss.clone()),
            ("dup", self.dup.clone()),
            ("reorder", self.reorder.clone()),
            ("corrupt", self.corrupt.clone()),
            ("delay", self.delay.clone()),
            ("jitter", self.jitter.clone()),
            ("rate", self.rate.clone()),
            ("faults", self.faults.clone()),
            ("seed", self.seed.map(|n| n.to_string())),
            ("trace", self.trace.then(|| "on".to_owned())),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// Names what is wrong as the user wrote it: a variable, or a flag.
fn as_written(why: Error, written: impl FnOnce(&str) -> String) -> Error {
    match why {
        Error::Setting { name, value, problem } => {
            Error::Setting { name: written(&name), value, problem }
        }
        other => other,
    }
}
