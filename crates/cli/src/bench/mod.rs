//! `urxe bench`: how fast the data path is, as a ratio to what this machine's plain sockets do in
//! the same minute.

mod case;
mod idle;
mod in_process;
mod peer;
mod pingpong;
mod raw;
mod report;
mod row;
mod side;
mod stats;
mod stream;
mod targets;
mod work;

use std::io::Write;
use std::time::Duration;
use std::{fs, thread};

use clap::{Args, value_parser};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::command::{Done, Failure};
use crate::dissect::Palette;
use crate::ending;
use crate::units;
use case::Case;
use peer::Peer;
use report::{Host, Report};
use row::{Round, Row};
use side::Spec;
use work::{Run, prepare};

/// What to measure, and how long.
#[derive(Debug, Args)]
#[command(after_help = "\
Each case runs between two processes on loopback, in rounds, each beside its baselines in turn. A \
ratio is the median of the rounds' ratios: what else the machine does at the time slows both. All \
data are checked where they arrive. A quiet machine is needed nevertheless.\n\
Exit status: 0 done; 1 with --check, a target was missed; 2 bad usage, or a case failed.")]
pub struct BenchArgs {
    /// Run the cases that have one of these in their names, such as write.64K or latency
    #[arg(value_name = "PART")]
    pub cases: Vec<String>,
    /// The most telling cases only, in short rounds: about 20 seconds
    #[arg(short, long)]
    pub quick: bool,
    /// Rounds of each case [default: 5, with --quick 3]
    #[arg(short, long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// How long one measurement takes, from 1ms [default: 200ms, with --quick 100ms]
    #[arg(short, long, value_name = "TIME", value_parser = measurement)]
    pub time: Option<Duration>,
    /// Exit with 1 if a ratio misses its target
    #[arg(long)]
    pub check: bool,
    /// The cases alone, without what they are compared with: for a profiler to look at
    #[arg(long, conflicts_with = "check")]
    pub alone: bool,
    /// Name the cases, and what each is compared with
    #[arg(long)]
    pub list: bool,
    /// A setting of both devices: window, buffer, icrc, gso, profile or seed
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// The engine and the codec alone, in this process: nanoseconds and, where the CPU counts them
    /// for us, instructions
    #[arg(long, conflicts_with_all = ["check", "list", "set", "cases", "peer", "alone"])]
    pub in_process: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Be the other process
    #[arg(long, hide = true)]
    pub peer: bool,
}

/// Shorter measurements have nothing to count.
const SHORTEST: Duration = Duration::from_millis(1);

fn measurement(text: &str) -> Result<Duration, String> {
    let long = units::duration(text)?;
    if long < SHORTEST {
        return Err(format!("`{text}` is too short to measure anything: at least 1ms"));
    }
    Ok(long)
}

/// How often, and how long.
#[derive(Clone, Copy, Debug)]
struct Effort {
    rounds: u32,
    time: Duration,
}

impl BenchArgs {
    fn effort(&self) -> Effort {
        let (rounds, millis) = if self.quick { (3, 100) } else { (5, 200) };
        let time = self.time.unwrap_or(Duration::from_millis(millis));
        Effort { rounds: self.rounds.unwrap_or(rounds), time }
    }
}

/// Measures, and says whether a target that was to be checked is missed.
pub(crate) fn run(
    args: &BenchArgs,
    palette: &Palette,
    out: &mut dyn Write,
) -> Result<Done, Failure> {
    if args.peer {
        peer::serve(out)?;
        return Ok(Done::Well);
    }
    let effort = args.effort();
    if args.in_process {
        ending::at_once(String::new);
        in_process::run(effort, args.json, palette, out)?;
        return Ok(Done::Well);
    }
    let mut cases = case::chosen(&args.cases, args.quick)?;
    if args.alone {
        cases.iter_mut().for_each(|case| case.rivals.clear());
    }
    if args.list {
        return list(&cases, args.json, out);
    }
    // What is wrong with the settings is told once, not by each case.
    Spec { mtu: 4096, settings: args.set.clone(), ..Spec::default() }.config()?;
    let host = host();
    let bar = progress(&cases, effort, args.json);
    let mut report = Report::new(args.json, *palette, out);
    bar.suspend(|| report.head())?;
    ending::at_once({
        let bar = bar.clone();
        // The devices have no files, and the other process ends with this one.
        move || {
            bar.finish_and_clear();
            String::new()
        }
    });
    for case in &cases {
        bar.set_message(case.name.clone());
        let before = bar.position();
        let row = measure(case, &args.set, effort, &bar);
        bar.set_position(before + steps(case, effort));
        bar.suspend(|| match row {
            Ok(row) => report.row(&row),
            Err(why) => report.failed(&case.name, &why.to_string()),
        })?;
    }
    bar.finish_and_clear();
    match report.end(&host)? {
        (0, missed) => Ok(Done::found(args.check && missed != 0)),
        (1, _) => Err("one case failed".into()),
        (failed, _) => Err(format!("{failed} cases failed").into()),
    }
}

fn list(cases: &[Case], json: bool, out: &mut dyn Write) -> Result<Done, Failure> {
    for case in cases {
        if json {
            let ratio = |to| json!({ "to": to, "target": targets::target(&case.name, to) });
            let ratios: Vec<_> = case.rivals.iter().map(|rival| ratio(rival.name)).collect();
            writeln!(out, "{}", json!({ "case": case.name, "ratios": ratios }))?;
            continue;
        }
        let of = case.rivals.iter().map(|rival| {
            let target = targets::target(&case.name, rival.name);
            target.map_or_else(|| rival.name.into(), |bound| format!("{} {bound}", rival.name))
        });
        writeln!(out, "{:<22} {}", case.name, of.collect::<Vec<_>>().join(", "))?;
    }
    Ok(Done::Well)
}

/// All rounds of a case, with a process of its own at the other side.
fn measure(
    case: &Case,
    settings: &[String],
    effort: Effort,
    bar: &ProgressBar,
) -> Result<Row, Failure> {
    let mut peer = Peer::start()?;
    let mut run = |work| prepare(work, case.unit, settings, &mut peer);
    let mut own = run(case.work)?;
    let mut rivals = Vec::new();
    for rival in &case.rivals {
        rivals.push(run(rival.work)?);
    }
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds {
        let mut go = |run: &mut Box<dyn Run>| {
            let sample = run.round(&mut peer, effort.time);
            bar.inc(1);
            sample
        };
        let own = go(&mut own)?;
        let rivals = rivals.iter_mut().map(&mut go).collect::<Result<_, _>>()?;
        rounds.push(Round { own, rivals });
    }
    for run in rivals.into_iter().chain([own]) {
        run.end(&mut peer)?;
    }
    Ok(Row::of(case, &rounds))
}

/// Measurements of a case.
fn steps(case: &Case, effort: Effort) -> u64 {
    u64::from(effort.rounds) * (1 + case.rivals.len() as u64)
}

fn progress(cases: &[Case], effort: Effort, json: bool) -> ProgressBar {
    if json {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len}, {eta} left  {msg}");
    ProgressBar::new(cases.iter().map(|case| steps(case, effort)).sum())
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn host() -> Host {
    let load = fs::read_to_string("/proc/loadavg").ok();
    Host {
        cpus: thread::available_parallelism().map_or(1, usize::from),
        load: load.and_then(|text| text.split(' ').next()?.parse().ok()),
        optimised: !cfg!(debug_assertions),
    }
}
