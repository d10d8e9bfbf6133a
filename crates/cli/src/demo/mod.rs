//! `urxe demo`: two NICs on loopback, every operation, and what went over the link.

pub(crate) mod frame;
mod memory;
mod page;
mod pcapng;
mod place;
mod recorder;
mod steps;
mod story;
mod world;

use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use urxe::{Config, Context, Mtu};

use crate::capture::without_code;
use crate::common::Common;
use crate::dissect::{Palette, paint};
use crate::ending::{self, Ended as Signalled};
use place::Places;
use recorder::{Eye, Packet, Recorder};
use steps::{STEPS, Step};
use story::Told;
use world::{Fault, USUAL, Who, World};

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
    /// What happens in it.
    pub(crate) story: &'static str,
    pub(crate) passed: bool,
    /// What was seen, or what went wrong.
    pub(crate) result: String,
    pub(crate) packets: usize,
    pub(crate) lost: usize,
    pub(crate) micros: u128,
}

/// All that is known when the demo has ended.
struct Ended {
    reports: Vec<Report>,
    /// When each step began, and the addresses of alice and bob in it.
    settings: Vec<(Duration, [IpAddr; 2])>,
    mtu: Mtu,
    packets: Vec<Packet>,
    /// What is told of each packet.
    told: Vec<Told>,
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
    let mut config = args.common.config()?;
    let mut places = Places::of(&mut config)?;
    let calm = open(&config, &mut places, &recorder)?;
    // A loss that was asked for stays, as a fault is given once.
    let names = config.faults.split(',').map(|fault| fault.split('=').next().unwrap_or(fault));
    if !names.map(str::trim).any(|name| matches!(name, "loss" | "tx.loss")) {
        config.set("FAULTS", "tx.loss=5%")?;
    }
    let rough = open(&config, &mut places, &recorder)?;
    if !args.common.json {
        intro(out, palette, &calm)?;
    }
    let (mut reports, mut settings) = (Vec::new(), Vec::new());
    for (nth, step) in STEPS.iter().enumerate() {
        recorder.begin(nth);
        let world = if step.lossy { &rough } else { &calm };
        let start = recorder.now();
        let outcome = (step.run)(world);
        let took = recorder.now().saturating_sub(start);
        if ending::signal().is_some() {
            let steps = STEPS.len();
            return Err(Signalled::after(format!("{nth} of {steps} steps; no file is written")));
        }
        world.settle();
        let packets = recorder.of(nth);
        let told = story::tell(&packets, &recorder.pairs(nth), world.full());
        let report = report(nth, step, outcome, &packets, took);
        if args.common.json {
            serde_json::to_writer(&mut *out, &report)?;
            writeln!(out)?;
        } else {
            show(out, palette, args, &report, (&packets, &told), start)?;
        }
        reports.push(report);
        settings.push((start, world.addresses()));
    }
    let (mtu, packets, told) = (calm.mtu, Vec::new(), Vec::new());
    let mut ended = Ended { reports, settings, mtu, packets, told };
    for nth in 0..STEPS.len() {
        let packets = recorder.of(nth);
        ended.told.extend(story::tell(&packets, &recorder.pairs(nth), calm.full()));
        ended.packets.extend(packets);
    }
    finish(args, palette, out, &recorder, &ended)
}

/// Two devices of the same kind.
fn open(config: &Config, places: &mut Places, recorder: &Arc<Recorder>) -> Result<World, Failure> {
    let mut device = |who| -> Result<Arc<Context>, Failure> {
        let eye = Arc::new(Eye { who, recorder: Arc::clone(recorder) });
        let observer = Some(crate::trace::both(config.observer.clone(), eye));
        Ok(Arc::new(places.open(&Config { observer, ..config.clone() })?))
    };
    let (alice, bob) = (device(Who::Alice)?, device(Who::Bob)?);
    let carried = alice.query_port().active_mtu.min(bob.query_port().active_mtu);
    // Who asks for a greater one wants to see it.
    let mtu = if config.mtu.is_some() { carried } else { carried.min(USUAL) };
    Ok(World { alice, bob, recorder: Arc::clone(recorder), mtu })
}

/// Writes the files, and says so.
fn finish(
    args: &DemoArgs,
    palette: &Palette,
    out: &mut dyn Write,
    recorder: &Recorder,
    ended: &Ended,
) -> Result<usize, Failure> {
    let failed = ended.reports.iter().filter(|r| !r.passed).count();
    std::fs::create_dir_all(&args.out).map_err(|e| told(&args.out, &e))?;
    let pcap = args.out.join("demo.pcapng");
    pcapng::write(&pcap, &ended.packets, &ended.told).map_err(|e| told(&pcap, &e))?;
    let html = args.out.join("demo.html");
    page::write(&html, recorder, ended).map_err(|e| told(&html, &e))?;
    let passed = ended.reports.len() - failed;
    let (pcap, html) = (pcap.display(), html.display());
    if args.common.json {
        let (html, pcap) = (html.to_string(), pcap.to_string());
        let end =
            serde_json::json!({ "passed": passed, "failed": failed, "html": html, "pcapng": pcap });
        writeln!(out, "{end}")?;
    } else {
        writeln!(out, "{html}  every packet as a picture; open it in a browser")?;
        writeln!(out, "{pcap}  the same for `urxe dissect` or Wireshark")?;
        let style = if failed == 0 { palette.good } else { palette.bad };
        writeln!(out, "{}", paint(style, format!("{passed} passed, {failed} failed")))?;
    }
    Ok(failed)
}

fn told(path: &std::path::Path, e: &std::io::Error) -> Failure {
    let (path, why) = (path.display(), without_code(e));
    format!("{path}: {why}; give a directory that can be written to by --out").into()
}

fn intro(out: &mut dyn Write, palette: &Palette, world: &World) -> std::io::Result<()> {
    let [a, b] = world.addresses().map(|address| paint(palette.address, address));
    let [alice, bob] = world.addresses();
    let who = match alice == bob {
        true => format!("alice and bob share {a}, their QPNs tell whose a packet is"),
        false => format!("alice is {a} and bob is {b}"),
    };
    writeln!(out, "Two RoCEv2 NICs in this process: {who}, UDP port 4791.\n")
}

fn report(
    step: usize,
    spec: &Step,
    ended: Result<String, Fault>,
    packets: &[Packet],
    took: Duration,
) -> Report {
    let passed = ended.is_ok();
    let result = ended.unwrap_or_else(|fault| fault.0);
    let lost = packets.iter().filter(|p| p.arrived.is_none()).count();
    let (title, look, story) = (spec.title, spec.look, spec.story);
    let micros = took.as_micros();
    Report { step, title, look, story, passed, result, packets: packets.len(), lost, micros }
}

fn show(
    out: &mut dyn Write,
    palette: &Palette,
    args: &DemoArgs,
    report: &Report,
    (packets, told): (&[Packet], &[Told]),
    start: Duration,
) -> std::io::Result<()> {
    let title = format!("{:2}. {}", report.step + 1, report.title);
    writeln!(out, "{}  {}", paint(palette.header, title), paint(palette.dim, report.look))?;
    let frames = packets.iter().take(args.packets).map(|p| p.frame.as_slice());
    let mut lines = crate::dissect::Lines::new(*palette, frames);
    for (packet, told) in packets.iter().zip(told).take(args.packets) {
        let time = packet.left.saturating_sub(start);
        let mut line = lines.of_ip(time, &packet.frame);
        for note in told.notes() {
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
