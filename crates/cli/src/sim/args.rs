//! The options of `urxe sim`, and how a replay writes them again.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use urxe_sim::fault::{Fault, FaultKind};
use urxe_sim::link::{Burst, LinkConfig, Marking};
use urxe_sim::{Profile, Rate, Settings, Share, Topology};
use urxe_wire::{Mtu, Opcode, Psn, Qpn};

use crate::units;

/// What to simulate.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Shares are percentages (5%) or fractions (0.05); times have units (5us). All chance comes from the \
seed: the same options give the same run, byte for byte.

Exit status: 0 all is well; 1 a seed failed; 2 bad usage, or a file that cannot be written.")]
pub struct SimArgs {
    /// How many seeds to run
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = at_least_one())]
    pub seeds: u64,
    /// The first of them
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub first_seed: u64,
    /// NICs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = up_to(64))]
    pub nodes: u16,
    /// Pairs of QPs
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = up_to(1024))]
    pub qps: u16,
    /// Work requests
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = count(100_000))]
    pub ops: u32,
    /// A link between any two nodes, or a switch
    #[arg(long, value_enum, value_name = "SHAPE", default_value = "mesh")]
    pub topology: Shape,
    /// Packets lost, each by itself
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub loss: Share,
    /// Losses that come together: how often a burst begins, how often it ends, and what is lost in
    /// it, a step each packet
    #[arg(long, value_name = "ENTER,LEAVE[,LOSS]", value_parser = burst)]
    pub burst: Option<Burst>,
    /// Packets that arrive twice
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub dup: Share,
    /// Packets held back behind later ones
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub reorder: Share,
    /// Packets with flipped bits
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub corrupt: Share,
    /// Time that each packet takes; with --jitter, --hold and what --queue takes at --rate at most
    /// 1s
    #[arg(long, value_name = "TIME", default_value = "5us", value_parser = units::duration)]
    pub delay: Duration,
    /// More time, random up to this; the order stays
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = units::duration)]
    pub jitter: Duration,
    /// How long reordered packets and second copies are held back at most
    #[arg(long, value_name = "TIME", default_value = "50us", value_parser = units::duration)]
    pub hold: Duration,
    /// Bits a second of each link
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub rate: Option<u64>,
    /// Bytes that wait for the rate; more are lost
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = units::size)]
    pub queue: u64,
    /// Mark packets CE that find more bytes waiting, and let QPs control their rate: all above one
    /// size, or from one size to another a share that grows to that given
    #[arg(long, value_name = "FROM[,TO,SHARE]", value_parser = marking)]
    pub ecn: Option<Marking>,
    /// Cut two nodes off from each other once, for so long
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub partition: Option<Duration>,
    /// Path MTU of all QPs; drawn from the seed if not given
    #[arg(long, value_name = "BYTES", value_parser = mtu)]
    pub mtu: Option<Mtu>,
    /// Manners of all NICs: strict, rxe, connectx; drawn from the seed if not given
    #[arg(long, value_name = "NAME", value_parser = profile)]
    pub profile: Option<Profile>,
    /// A fault that names its packets: drop, dup, corrupt or delay=TIME, then after a colon any of
    /// opcode=NAME, qp=N, psn=N, nth=N, joined with commas
    #[arg(long = "fault", value_name = "WHAT[:WHICH]", value_parser = fault)]
    pub faults: Vec<FaultText>,
    /// No mistakes, no deregistration, no QP torn down
    #[arg(long)]
    pub no_trouble: bool,
    /// Only these work requests of one seed
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub only_ops: Option<Vec<usize>>,
    /// Write the packets of the first failing run, or of the only run, to this file
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// One JSON object a line: each seed, then the sum
    #[arg(long)]
    pub json: bool,
    /// Seeds run at a time; as many as there are processors if not given
    #[arg(short, long, value_name = "N", value_parser = up_to(1024))]
    pub jobs: Option<u16>,
}

/// How the nodes are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// A link between any two nodes
    Mesh,
    /// A link from each node to a switch
    Star,
}

/// A fault and how it was written.
#[derive(Clone, Debug)]
pub struct FaultText {
    text: String,
    fault: Fault,
}

fn at_least_one() -> RangedU64ValueParser {
    RangedU64ValueParser::new().range(1..)
}

fn up_to(most: u64) -> RangedU64ValueParser<u16> {
    RangedU64ValueParser::new().range(1..=most)
}

fn count(most: u64) -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=most)
}

fn burst(text: &str) -> Result<Burst, String> {
    let parts: Vec<&str> = text.split(',').collect();
    let share = |s: &str| Share::from_str(s.trim()).map_err(|e| e.to_string());
    match parts[..] {
        [enter, leave] => {
            Ok(Burst { enter: share(enter)?, leave: share(leave)?, loss: Share::WHOLE })
        }
        [enter, leave, loss] => {
            Ok(Burst { enter: share(enter)?, leave: share(leave)?, loss: share(loss)? })
        }
        _ => Err(format!("`{text}` is no burst: write two or three shares, such as 1%,25%,100%")),
    }
}

fn marking(text: &str) -> Result<Marking, String> {
    let parts: Vec<&str> = text.split(',').collect();
    match parts[..] {
        [bytes] => Ok(Marking::above(units::size(bytes)?)),
        [from, to, most] => {
            let (from, to) = (units::size(from)?, units::size(to)?);
            if to < from {
                return Err(format!("`{text}`: marking ends at {to} bytes, before it starts"));
            }
            let most = Share::from_str(most.trim()).map_err(|e| e.to_string())?;
            Ok(Marking { from, to, most })
        }
        _ => Err(format!("`{text}` is no marking: write 20K, or from, to and share: 5K,200K,1%")),
    }
}

fn mtu(text: &str) -> Result<Mtu, String> {
    let found = text.parse().ok().and_then(|bytes| Mtu::from_bytes(bytes).ok());
    found.ok_or_else(|| format!("`{text}` is no path MTU: 256, 512, 1024, 2048 or 4096"))
}

fn profile(text: &str) -> Result<Profile, String> {
    Profile::by_name(text)
        .ok_or_else(|| format!("no profile is called `{text}`: strict, rxe or connectx"))
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn fault(text: &str) -> Result<FaultText, String> {
    let (what, which) = text.split_once(':').unwrap_or((text, ""));
    let kind = match what.split_once('=') {
        None if what == "drop" => FaultKind::Drop,
        None if what == "dup" => FaultKind::Duplicate,
        None if what == "corrupt" => FaultKind::Corrupt,
        Some(("delay", time)) => {
            let time = units::duration(time)?;
            if time > LinkConfig::SLOWEST {
                let most = LinkConfig::SLOWEST;
                return Err(format!("`{what}`: a packet can be held back by {most:?} at most"));
            }
            FaultKind::Delay(time)
        }
        _ => return Err(format!("`{what}` is no fault: drop, dup, corrupt or delay=TIME")),
    };
    let mut fault = Fault::all(kind);
    for term in which.split(',').filter(|t| !t.is_empty()) {
        let (key, value) = term.split_once('=').unwrap_or((term, ""));
        let count = || number(value).ok_or_else(|| format!("`{term}`: `{value}` is no number"));
        let psn = |n: u32| {
            (n < 1 << 24)
                .then_some(n)
                .ok_or_else(|| format!("`{term}` is out of range: 0 to {}", (1 << 24) - 1))
        };
        match key {
            "qp" => fault.qpn = Some(Qpn::new(psn(count()?)?)),
            "psn" => fault.psn = Some(Psn::new(psn(count()?)?)),
            "nth" => fault.nth = Some(count()?),
            "opcode" => {
                let opcode = Opcode::from_name(value);
                let unknown = || format!("`{term}`: no opcode `{value}`; such as RC_SEND_ONLY");
                fault.opcode = Some(opcode.ok_or_else(unknown)?);
            }
            _ => return Err(format!("`{term}` names no packet: opcode=, qp=, psn=, nth=")),
        }
    }
    Ok(FaultText { text: text.to_owned(), fault })
}

impl SimArgs {
    /// The settings of a run.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let link = LinkConfig {
            loss: self.loss,
            burst: self.burst,
            duplicate: self.dup,
            reorder: self.reorder,
            corrupt: self.corrupt,
            delay: self.delay,
            jitter: self.jitter,
            hold: self.hold,
            rate: self.rate.map(Rate::from_bps),
            queue: self.queue,
            marking: self.ecn,
        };
        Settings {
            nodes: self.nodes.into(),
            qps: self.qps.into(),
            ops: self.ops as usize,
            topology: match self.topology {
                Shape::Mesh => Topology::Mesh,
                Shape::Star => Topology::Star,
            },
            link,
            faults: self.faults.iter().map(|f| f.fault).collect(),
            partition: self.partition,
            mtu: self.mtu,
            profile: self.profile,
            trouble: !self.no_trouble,
        }
    }

    /// The operations that were asked for.
    #[must_use]
    pub fn only(&self) -> Option<BTreeSet<usize>> {
        self.only_ops.as_ref().map(|ids| ids.iter().copied().collect())
    }

    /// The command that runs `only` of a seed again.
    #[must_use]
    pub fn replay(&self, seed: u64, only: &BTreeSet<usize>) -> String {
        let mut line = format!("urxe sim --first-seed {seed} --seeds 1");
        let mut add = |name: &str, value: String| line.push_str(&format!(" --{name} {value}"));
        add("nodes", self.nodes.to_string());
        add("qps", self.qps.to_string());
        add("ops", self.ops.to_string());
        if self.topology == Shape::Star {
            add("topology", "star".to_owned());
        }
        for (name, share) in [
            ("loss", self.loss),
            ("dup", self.dup),
            ("reorder", self.reorder),
            ("corrupt", self.corrupt),
        ] {
            if !share.is_none() {
                add(name, share.to_string());
            }
        }
        if let Some(Burst { enter, leave, loss }) = self.burst {
            add("burst", format!("{enter},{leave},{loss}"));
        }
        for (name, time) in [("delay", self.delay), ("jitter", self.jitter), ("hold", self.hold)] {
            add(name, format!("{}ns", time.as_nanos()));
        }
        if let Some(rate) = self.rate {
            add("rate", rate.to_string());
            add("queue", self.queue.to_string());
        }
        if let Some(Marking { from, to, most }) = self.ecn {
            add("ecn", format!("{from},{to},{most}"));
        }
        if let Some(time) = self.partition {
            add("partition", format!("{}ns", time.as_nanos()));
        }
        if let Some(mtu) = self.mtu {
            add("mtu", mtu.bytes().to_string());
        }
        if let Some(profile) = self.profile {
            add("profile", profile.name.to_owned());
        }
        for fault in &self.faults {
            add("fault", fault.text.clone());
        }
        if self.no_trouble {
            line.push_str(" --no-trouble");
        }
        let ids: Vec<String> = only.iter().map(ToString::to_string).collect();
        line.push_str(&format!(" --only-ops {}", ids.join(",")));
        line
    }
}
