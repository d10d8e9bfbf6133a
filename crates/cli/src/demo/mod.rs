//! `urxe demo`: two NICs on loopback, every operation, and what went over the link.

mod frame;
mod page;
mod pcapng;
mod recorder;
mod steps;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use urxe::{Config, Context};

use crate::common::Common;
use crate::dissect::{Palette, paint};
use recorder::{Packet, Recorder};
use steps::{STEPS, Step, World};

/// Where the demo puts its files, and how it tells.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 all passed; 1 something failed; 2 bad usage.")]
pub struct DemoArgs {
    /// Directory for demo.pcapng and demo.html
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Packets of each step to show; the files hold all
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub packets: usize,
    /// Settings of both devices.
    #[command(flatten)]
    pub common: Common,
}

/// What came of a step.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) step: usize,
    pub(crate) title: &'static str,
    pub(crate) look: &'static str,
    pub(crate) passed: bool,
    /// What was seen, or what went wrong.
    pub(crate) result: String,
    pub(crate) packets: usize,
    pub(crate) lost: usize,
    pub(crate) micros: u128,
}

/// Why the demo could not run at all.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// Runs all steps; gives how many failed.
pub(crate) fn run(
    args: &DemoArgs,
    palette: &Palette,
    out: &mut dyn Write,
) -> Result<usize, Failure> {
    let recorder = Arc::new(Recorder::default());
    let config = args.common.config()?;
    let open = |lossy: bool| -> Result<World, Failure> {
        let mut config = Config { observer: Some(recorder.clone()), ..config.clone() };
        if lossy {
            config.set("FAULTS", "tx.loss=5%")?;
        }
        Ok(World { alice: Context::open(&config)?, bob: Context::open(&config)? })
    };
    let calm = open(false)?;
    let rough = open(true)?;
    let mut reports = Vec::new();
    if !args.common.json {
        intro(out, palette, &calm)?;
    }
    for (nth, step) in STEPS.iter().enumerate() {
        recorder.begin(nth);
        let world = if step.lossy { &rough } else { &calm };
        let start = recorder.now();
        let ended = (step.run)(world);
        let took = recorder.now().saturating_sub(start);
        let packets = recorder.of(nth);
        let report = report(nth, step, ended, &packets, took);
        if args.common.json {
            serde_json::to_writer(&mut *out, &report)?;
            writeln!(out)?;
        } else {
            show(out, palette, args, &report, &packets, start)?;
        }
        reports.push(report);
    }
    let failed = reports.iter().filter(|r| !r.passed).count();
    let all = recorder.all();
    std::fs::create_dir_all(&args.out).map_err(|e| told(&args.out, &e))?;
    let pcap = args.out.join("demo.pcapng");
    pcapng::write(&pcap, &all).map_err(|e| told(&pcap, &e))?;
    let html = args.out.join("demo.html");
    page::write(&html, &all, &reports).map_err(|e| told(&html, &e))?;
    let passed = reports.len() - failed;
    if args.common.json {
        let end = serde_json::json!({ "passed": passed, "failed": failed });
        writeln!(out, "{end}")?;
    } else {
        let (pcap, html) = (pcap.display(), html.display());
        writeln!(out, "{html}  every packet as a picture; open it in a browser")?;
        writeln!(out, "{pcap}  the same for `urxe dissect` or Wireshark")?;
        let style = if failed == 0 { palette.good } else { palette.bad };
        writeln!(out, "{}", paint(style, format!("{passed} passed, {failed} failed")))?;
    }
    Ok(failed)
}

fn told(path: &std::path::Path, e: &std::io::Error) -> Failure {
    format!("{}: {e}; give a directory that can be written to by --out", path.display()).into()
}

fn intro(out: &mut dyn Write, palette: &Palette, world: &World) -> std::io::Result<()> {
    let (a, b) = (world.alice.address(), world.bob.address());
    writeln!(
        out,
        "Two RoCEv2 NICs in this process: alice is {} and bob is {}, UDP port 4791.\n",
        paint(palette.address, a),
        paint(palette.address, b)
    )
}

fn report(
    step: usize,
    spec: &Step,
    ended: Result<String, steps::Fault>,
    packets: &[Packet],
    took: Duration,
) -> Report {
    let passed = ended.is_ok();
    let result = ended.unwrap_or_else(|fault| fault.0);
    let lost = packets.iter().filter(|p| p.arrived.is_none()).count();
    let (title, look, micros) = (spec.title, spec.look, took.as_micros());
    Report { step, title, look, passed, result, packets: packets.len(), lost, micros }
}

fn show(
    out: &mut dyn Write,
    palette: &Palette,
    args: &DemoArgs,
    report: &Report,
    packets: &[Packet],
    start: Duration,
) -> std::io::Result<()> {
    let title = format!("{:2}. {}", report.step + 1, report.title);
    writeln!(out, "{}  {}", paint(palette.header, title), paint(palette.dim, report.look))?;
    let mut lines = crate::dissect::Lines::new(*palette);
    for packet in packets.iter().take(args.packets) {
        let time = packet.left.saturating_sub(start);
        let mut line = lines.of_ip(time, &packet.frame);
        let lost = packet.arrived.is_none().then_some("lost on its way");
        for note in packet.notes.iter().map(String::as_str).chain(lost) {
            line.push_str("  ");
            line.push_str(&paint(palette.warn, note).to_string());
        }
        writeln!(out, "    {line}")?;
    }
    if packets.len() > args.packets {
        let more = packets.len() - args.packets;
        writeln!(out, "    {}", paint(palette.dim, format!("… and {more} packets more")))?;
    }
    let (mark, style) = if report.passed { ("✓", palette.good) } else { ("✗", palette.bad) };
    writeln!(out, "  {} {}\n", paint(style, mark), report.result)
}
