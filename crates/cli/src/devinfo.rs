//! `urxe devinfo`: a device, opened and described.

use std::io::Write;

use clap::Args;
use serde_json::{Value, json};
use urxe::{Caps, Config, Context, IcrcMode, PortState};

use crate::command::{Done, Failure};
use crate::common::Common;
use crate::dissect::{Palette, paint};

/// Which device to describe.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 done; 2 bad usage, or the device cannot be opened.")]
pub struct DevinfoArgs {
    /// Settings of the device
    #[command(flatten)]
    pub common: Common,
}

/// Opens the device and describes it.
pub(crate) fn run(
    args: &DevinfoArgs,
    palette: &Palette,
    out: &mut dyn Write,
) -> Result<Done, Failure> {
    let config = args.common.config()?;
    let context = Context::open(&config)?;
    if args.common.json {
        writeln!(out, "{}", object(&config, &context))?;
    } else {
        text(&config, &context, palette, out)?;
    }
    Ok(Done::Well)
}

/// The limits by name; a new one does not compile before it is here.
fn limits(caps: Caps) -> [(&'static str, u64); 13] {
    let Caps {
        max_qp,
        max_wr,
        max_sge,
        max_inline,
        max_cq,
        max_cqe,
        max_srq,
        max_ah,
        max_pd,
        max_mr,
        max_mw,
        max_rd_atomic,
        max_mcast_qp_attach,
    } = caps;
    [
        ("max_qp", max_qp.into()),
        ("max_wr", max_wr.into()),
        ("max_sge", max_sge.into()),
        ("max_inline", max_inline.into()),
        ("max_cq", max_cq.into()),
        ("max_cqe", max_cqe.into()),
        ("max_srq", max_srq.into()),
        ("max_ah", max_ah.into()),
        ("max_pd", max_pd.into()),
        ("max_mr", max_mr.into()),
        ("max_mw", max_mw.into()),
        ("max_rd_atomic", max_rd_atomic.into()),
        ("max_mcast_qp_attach", max_mcast_qp_attach.into()),
    ]
}

fn state(state: &PortState) -> String {
    match state {
        PortState::Active => "active".to_owned(),
        PortState::Down { why } => format!("down: {why}"),
    }
}

const fn icrc(mode: IcrcMode) -> &'static str {
    match mode {
        IcrcMode::Solve => "solve",
        IcrcMode::Strict => "strict",
        IcrcMode::Off => "off",
    }
}

fn object(config: &Config, context: &Context) -> Value {
    let (port, caps) = (context.query_port(), context.port_caps());
    let limits = limits(context.query_device());
    let limits: serde_json::Map<_, _> =
        limits.into_iter().map(|(name, n)| (name.to_owned(), n.into())).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "address": context.address(),
        "gids": port.gids.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "interface": port.interface,
        "link_mtu": port.link_mtu,
        "path_mtu": port.active_mtu.bytes(),
        "max_path_mtu": port.max_mtu.bytes(),
        "port": caps.kind,
        "state": state(&port.state),
        "profile": context.profile().name,
        "icrc": icrc(config.icrc),
        "slot": caps.slot,
        "gso": caps.gso,
        "gso_everywhere": config.gso == Some(true),
        "gro": caps.gro,
        "sees_ip_header": caps.sees_ip_header,
        "window": config.window,
        "faults": config.faults,
        "pcap": config.pcap.as_ref().map(|path| path.display().to_string()),
        "limits": limits,
    })
}

fn text(
    config: &Config,
    context: &Context,
    palette: &Palette,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let (port, caps) = (context.query_port(), context.port_caps());
    let profile = context.profile().name;
    writeln!(out, "{}", paint(palette.header, concat!("urxe ", env!("CARGO_PKG_VERSION"))))?;
    let mut line = |label: &str, value: &str| {
        writeln!(out, "  {}  {value}", paint(palette.dim, format!("{label:<19}")))
    };
    line("address", &context.address().to_string())?;
    for (index, gid) in port.gids.iter().enumerate() {
        line(&format!("GID {index}"), &format!("{gid}  RoCEv2"))?;
    }
    line("interface", &format!("{}, MTU {}", port.interface, port.link_mtu))?;
    line("port", &format!("{}, {}", caps.kind, state(&port.state)))?;
    if let Some(slot) = caps.slot {
        let first = u32::from(slot) << 18;
        let range = format!("QPNs {first:#08x} to {:#08x}", first + 0x3_ffff);
        line("shared address", &format!("slot {slot} of 1 to {}: {range}", urxe::SEATS))?;
    }
    line("path MTU", &format!("{} of at most {}", port.active_mtu.bytes(), port.max_mtu.bytes()))?;
    line("profile", profile)?;
    line("window", &format!("{} PSNs of a QP in flight", config.window))?;
    line("ICRC", &format!("{}, {}", icrc(config.icrc), seen(caps.sees_ip_header)))?;
    line("send offload", segments(caps.gso, config.gso))?;
    line("receive offload", if caps.gro { "yes" } else { "no" })?;
    if !config.faults.is_empty() {
        line("faults", &config.faults)?;
    }
    if let Some(path) = &config.pcap {
        line("capture", &path.display().to_string())?;
    }
    for (name, n) in limits(context.query_device()) {
        line(name, &n.to_string())?;
    }
    Ok(())
}

const fn seen(whole: bool) -> &'static str {
    if whole { "the IP header is seen" } else { "the IP identification is not seen" }
}

const fn segments(can: bool, asked: Option<bool>) -> &'static str {
    match (can, asked) {
        (false, _) => "no",
        (true, Some(true)) => "yes, to all addresses",
        (true, _) => "yes, to addresses of this host",
    }
}
