//! The engine and the codec by themselves: what a packet costs without a socket.

use std::hint::black_box;
use std::io::Write;
use std::net::Ipv4Addr;
use std::time::Instant;

use indicatif::ProgressBar;
use perf_event::events::Hardware;
use perf_event::{Builder, Counter};
use serde::Serialize;
use urxe_sim::load::{Load, Shape, Way};
use urxe_wire::{Bth, Ext, IcrcPrefix, Opcode, Psn, Qpn, Repr, Roce, emit_headers};

use super::Effort;
use super::side::pattern;
use super::stats::{float, median};
use crate::command::Failure;
use crate::dissect::{Palette, paint};

#[cfg(test)]
mod tests;

/// Something small that is done over and over.
struct Stage {
    name: String,
    step: Box<dyn FnMut()>,
}

/// What it costs.
#[derive(Debug, Serialize)]
struct Cost {
    stage: String,
    /// The median of the rounds.
    ns: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<f64>,
}

/// Measures all stages in turn, round by round.
pub(super) fn run(
    effort: Effort,
    json: bool,
    palette: &Palette,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut counter = Builder::new().kind(Hardware::INSTRUCTIONS).build().ok();
    let mut stages = stages()?;
    let bar = if json { ProgressBar::hidden() } else { ProgressBar::new(effort.rounds.into()) };
    let mut figures = vec![(Vec::new(), Vec::new()); stages.len()];
    for _ in 0..effort.rounds {
        for (stage, (nanos, instructions)) in stages.iter_mut().zip(&mut figures) {
            let (ns, counted) = measure(&mut stage.step, effort, counter.as_mut());
            nanos.push(ns);
            instructions.extend(counted);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if !json {
        let head = format!("{:<34} {:>9} {:>13}", "stage", "ns", "instructions");
        writeln!(out, "{}", paint(palette.header, head))?;
    }
    for (Stage { name: stage, .. }, (nanos, counted)) in stages.into_iter().zip(figures) {
        let instructions = (!counted.is_empty()).then(|| median(&counted));
        let cost = Cost { stage, ns: median(&nanos), instructions };
        if json {
            serde_json::to_writer(&mut *out, &cost)?;
            writeln!(out)?;
        } else {
            let instructions = cost.instructions.map_or("-".into(), |n| format!("{n:.0}"));
            writeln!(out, "{:<34} {:>9.1} {instructions:>13}", cost.stage, cost.ns)?;
        }
    }
    if counter.is_none() && !json {
        let why = "This host counts no instructions for us; tools/engine-cost does, by callgrind.";
        writeln!(out, "{}", paint(palette.dim, why))?;
    }
    Ok(())
}

/// Steps between two looks at the clock.
const STEPS: u32 = 64;

/// Nanoseconds and instructions of a step.
fn measure(
    step: &mut dyn FnMut(),
    effort: Effort,
    mut counter: Option<&mut Counter>,
) -> (f64, Option<f64>) {
    let (start, mut steps) = (Instant::now(), 0);
    if let Some(counter) = &mut counter {
        // What cannot be counted is not shown.
        let _ = counter.reset().and_then(|()| counter.enable());
    }
    let nanos = loop {
        (0..STEPS).for_each(|_| step());
        steps += STEPS;
        let time = start.elapsed();
        // Stages are short: a tenth of what a transfer needs is enough for each.
        if time >= effort.time / 10 {
            break time.as_secs_f64() * 1e9;
        }
    };
    let counted = counter.and_then(|counter| {
        counter.disable().ok()?;
        counter.read().ok().filter(|n| *n > 0)
    });
    (nanos / f64::from(steps), counted.map(|n| float(n) / f64::from(steps)))
}

fn stages() -> Result<Vec<Stage>, Failure> {
    let mut stages = Vec::new();
    for bytes in [64, 4096] {
        for way in [Way::Send, Way::Write, Way::Receive, Way::Written] {
            let mut load = Load::new(&Shape { bytes, copies: true, ..Shape::of(way) });
            let name = format!("engine: {}, {bytes} B and its ACK", way.name());
            stages.push(Stage { name, step: Box::new(move || load.step()) });
        }
    }
    for bytes in [64, 1024, 4096] {
        stages.extend(icrc(bytes)?);
    }
    stages.extend(headers()?);
    Ok(stages)
}

const SRC: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const DST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A packet with a right ICRC, and what that is computed from beside the packet.
fn packet(bytes: usize) -> Result<(Vec<u8>, IcrcPrefix), Failure> {
    let payload = pattern(1, bytes);
    let opcode = Opcode::from_name("RC_RDMA_WRITE_MIDDLE").ok_or("no such opcode")?;
    let roce = Roce::new(Bth::new(opcode, Qpn::new(0x11), Psn::new(7)), Ext::NONE, &payload);
    let mut packet = vec![0; roce.len()];
    roce.emit(&mut packet)?;
    let prefix = IcrcPrefix::socket_v4(SRC, DST, 0xc123, 0, u16::try_from(packet.len())?);
    let covered = packet.len() - 4;
    let icrc = prefix.compute(&packet[..covered]);
    packet[covered..].copy_from_slice(&icrc);
    Ok((packet, prefix))
}

fn icrc(bytes: usize) -> Result<[Stage; 2], Failure> {
    let (sent, prefix) = packet(bytes)?;
    let (came, len) = (sent.clone(), u16::try_from(sent.len())?);
    let send = move || {
        let covered = &black_box(&sent)[..sent.len() - 4];
        black_box(prefix.compute(covered));
    };
    let receive = move || {
        let prefix = IcrcPrefix::socket_v4(SRC, DST, 0xc123, 0, len);
        black_box(prefix.verify_hidden_id(black_box(&came)));
    };
    let stage = |what, step| Stage { name: format!("ICRC: {what}, {bytes} B"), step };
    Ok([stage("send", Box::new(send) as _), stage("receive", Box::new(receive) as _)])
}

fn headers() -> Result<[Stage; 2], Failure> {
    let (bytes, _) = packet(64)?;
    let (bth, _) = Bth::parse(&bytes)?;
    let (mut out, ext) = ([0; 64], Ext::NONE);
    let emit = move || {
        black_box(emit_headers(black_box(&bth), black_box(&ext), black_box(&mut out)).is_ok());
    };
    let parse = move || {
        black_box(Roce::parse(black_box(&bytes)).is_ok());
    };
    let stage = |name: &str, step| Stage { name: name.into(), step };
    let parse = stage("codec: packet parsed", Box::new(parse) as _);
    Ok([stage("codec: BTH written", Box::new(emit) as _), parse])
}
