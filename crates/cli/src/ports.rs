//! `urxe ports`: the addresses of this host that a device can have.

use std::io::Write;

use clap::Args;
use serde::Serialize;
use urxe::{Holder, Interface, Mtu};
use urxe_wire::Gid;

use crate::command::{Done, Failure};
use crate::dissect::{Palette, paint};
use crate::host::{self, CAP_NET_RAW, PortState};

#[cfg(test)]
mod tests;

/// How to show the addresses.
#[derive(Debug, Args)]
#[command(after_help = "\
Beside 127.0.0.1, every address of 127.0.0.0/8 can be had without being listed.\n\
Exit status: 0 done; 2 bad usage, or the host does not tell.")]
pub struct PortsArgs {
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// An address, and what a device on it could be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Row {
    address: String,
    gid: String,
    interface: String,
    index: u32,
    up: bool,
    mtu: u32,
    /// `None`: too small for any.
    path_mtu: Option<u32>,
    /// What `--port udp` would meet.
    udp: String,
    /// What `--port raw:INTERFACE` would meet.
    raw: String,
    /// Those who share it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shared_by: Vec<Sharer>,
    /// Packets to QP1 that were for none of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    unrouted: Option<u32>,
}

/// A process that shares an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Sharer {
    slot: u8,
    process: u32,
    program: String,
}

/// Lists them.
pub(crate) fn run(
    args: &PortsArgs,
    palette: &Palette,
    out: &mut dyn Write,
) -> Result<Done, Failure> {
    let all = urxe::interfaces().map_err(|e| format!("listing the interfaces: {e}"))?;
    let rights = host::has_capability(CAP_NET_RAW);
    let holders = host::holders();
    let state = |of: &Interface| host::port_state(of.address, holders.as_deref());
    let rows = all.iter().map(|interface| row(interface, &state(interface), rights));
    if args.json {
        for row in rows {
            serde_json::to_writer(&mut *out, &row)?;
            writeln!(out)?;
        }
    } else {
        table(&rows.collect::<Vec<_>>(), palette, out)?;
    }
    Ok(Done::Well)
}

fn row(interface: &Interface, port: &PortState, rights: Option<bool>) -> Row {
    let Interface { name, index, mtu, address, up, ethernet } = interface;
    let link_local = matches!(address, std::net::IpAddr::V6(a) if a.is_unicast_link_local());
    let udp = match port {
        PortState::Taken => "taken".to_owned(),
        PortState::Shared(sharing) => format!("shared by {}", sharing.holders.len()),
        PortState::Unknown => "unknown".to_owned(),
        // Its packets would need the interface beside the address.
        PortState::Free if link_local => "link-local".to_owned(),
        PortState::Free => "free".to_owned(),
    };
    let raw = match (port, rights, ethernet) {
        (_, _, false) => "no Ethernet",
        (_, Some(false), _) => "no rights",
        (PortState::Taken | PortState::Shared(_), ..) => "taken",
        (_, None, _) => "unknown",
        (_, Some(true), _) => "yes",
    };
    Row {
        address: address.to_string(),
        gid: Gid::from(*address).to_string(),
        interface: name.clone(),
        index: *index,
        up: *up,
        mtu: *mtu,
        path_mtu: Mtu::largest_for_link(*mtu).map(Mtu::bytes),
        udp,
        raw: raw.to_owned(),
        shared_by: match port {
            PortState::Shared(sharing) => sharing.holders.iter().map(sharer).collect(),
            _ => Vec::new(),
        },
        unrouted: match port {
            PortState::Shared(sharing) => Some(sharing.unrouted),
            _ => None,
        },
    }
}

/// Where its process is not to be seen, it is 0.
fn sharer(&Holder { slot, pid }: &Holder) -> Sharer {
    Sharer { slot, process: pid, program: host::program(pid).unwrap_or_default() }
}

/// Titles of the columns, and what stands in them.
const TITLES: [&str; 9] =
    ["address", "interface", "index", "link", "MTU", "path MTU", "UDP 4791", "raw", "GID"];

fn cells(row: &Row) -> [String; 9] {
    [
        row.address.clone(),
        row.interface.clone(),
        row.index.to_string(),
        (if row.up { "up" } else { "down" }).to_owned(),
        row.mtu.to_string(),
        row.path_mtu.map_or_else(|| "none".to_owned(), |bytes| bytes.to_string()),
        row.udp.clone(),
        row.raw.clone(),
        row.gid.clone(),
    ]
}

fn table(all: &[Row], palette: &Palette, out: &mut dyn Write) -> std::io::Result<()> {
    let rows: Vec<_> = all.iter().map(cells).collect();
    let widths: [usize; 9] = std::array::from_fn(|at| {
        let longest = rows.iter().map(|row| row[at].len()).max().unwrap_or(0);
        longest.max(TITLES[at].len())
    });
    let line = |cells: [&str; 9]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    writeln!(out, "{}", paint(palette.header, line(TITLES)))?;
    for row in &rows {
        writeln!(out, "{}", line(row.each_ref().map(String::as_str)))?;
    }
    for row in all.iter().filter(|row| !row.shared_by.is_empty()) {
        writeln!(out, "\n{}", paint(palette.header, format!("{} is shared by", row.address)))?;
        for Sharer { slot, process, program } in &row.shared_by {
            let name = if program.is_empty() { "" } else { &format!(" ({program})") };
            match process {
                0 => writeln!(out, "  slot {slot:>2}  a process that is not shown to us")?,
                _ => writeln!(out, "  slot {slot:>2}  process {process}{name}")?,
            }
        }
        if let Some(n @ 1..) = row.unrouted {
            writeln!(out, "  {n} packets to QP1 were for none of them")?;
        }
    }
    Ok(())
}
