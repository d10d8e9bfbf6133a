//! What is said of failures, and the sum.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use urxe_sim::plan::Plan;
use urxe_sim::{Outcome, Run, shrink};

use super::seeds::{SeedResult, quietly, run_of};
use super::{SimArgs, SimError};
use crate::dissect::{Palette, paint};

/// Failures that are shrunk; of more only the seed is told.
const SHRUNK: u64 = 3;
/// Runs that shrinking one failure may take.
const TRIES: usize = 1000;
/// Lines of the trace that are shown.
const LAST: usize = 24;

/// Writes what came of the seeds.
pub(super) struct Report<'a, W> {
    args: &'a SimArgs,
    palette: &'a Palette,
    out: &'a mut W,
    failures: u64,
}

impl<'a, W: Write> Report<'a, W> {
    pub(super) fn new(args: &'a SimArgs, palette: &'a Palette, out: &'a mut W) -> Self {
        Self { args, palette, out, failures: 0 }
    }

    /// Tells of one seed, if there is anything to tell.
    pub(super) fn seed(&mut self, result: &SeedResult) -> Result<(), SimError> {
        let Some(violation) = &result.violation else {
            if self.args.json {
                self.line(result, None)?;
            }
            return self.only_pcap(result.seed);
        };
        self.failures += 1;
        if self.failures > SHRUNK {
            if self.args.json {
                return self.line(result, None);
            }
            writeln!(self.out, "seed {}: {violation}", result.seed)?;
            return Ok(());
        }
        let run = run_of(self.args, result.seed);
        let (only, outcome) = smallest(&run, violation.invariant);
        let file = self.pcap_name(result.seed);
        write_pcap(&outcome, &file)?;
        let replay = self.args.replay(result.seed, &only);
        if self.args.json {
            return self.line(result, Some((&only, &replay, &file)));
        }
        self.tell(result.seed, &only, &outcome)?;
        writeln!(self.out, "  its packets: {}", file.display())?;
        writeln!(self.out, "  replay: {replay}")?;
        Ok(())
    }

    fn tell(
        &mut self,
        seed: u64,
        only: &BTreeSet<usize>,
        outcome: &Outcome,
    ) -> Result<(), SimError> {
        let failed = paint(self.palette.bad, "failed");
        let violation = outcome.violation.as_ref().map(ToString::to_string).unwrap_or_default();
        writeln!(self.out, "seed {seed} {failed}: {violation}")?;
        let (kept, all) = (only.len(), outcome.plan.ops.len());
        writeln!(self.out, "  it takes {kept} of {all} operations:")?;
        for &id in only {
            writeln!(self.out, "    {}", outcome.plan.describe(id))?;
        }
        for deed in &outcome.plan.deeds {
            writeln!(self.out, "    at {:?}: {:?}", deed.at, deed.what)?;
        }
        let records = outcome.trace.records();
        let last = &records[records.len().saturating_sub(LAST)..];
        writeln!(self.out, "  the last {} of {} events on the links:", last.len(), records.len())?;
        for record in last {
            writeln!(self.out, "    {record}")?;
        }
        Ok(())
    }

    fn line(
        &mut self,
        result: &SeedResult,
        shrunk: Option<(&BTreeSet<usize>, &str, &Path)>,
    ) -> Result<(), SimError> {
        let stats = &result.stats;
        let mut object = json!({
            "seed": result.seed,
            "ok": result.violation.is_none(),
            "good": stats.good,
            "failed": stats.failed,
            "packets": stats.packets,
            "retransmitted": stats.retransmitted,
            "bad_icrc": stats.bad_icrc,
            "nanos": stats.nanos,
            "hash": format!("{:016x}", result.hash),
        });
        if let Some(violation) = &result.violation {
            object["invariant"] = json!(violation.invariant.text());
            object["what"] = json!(violation.what);
        }
        if let Some((only, replay, file)) = shrunk {
            object["only_ops"] = json!(only);
            object["replay"] = json!(replay);
            object["pcap"] = json!(file.display().to_string());
        }
        writeln!(self.out, "{object}")?;
        self.out.flush()?;
        Ok(())
    }

    /// The sum; gives how many failed.
    pub(super) fn sum(self, results: &[SeedResult]) -> Result<u64, SimError> {
        let (seeds, failures) = (results.len(), self.failures);
        let total = |f: fn(&SeedResult) -> u64| results.iter().map(f).sum::<u64>();
        let good = total(|r| r.stats.good as u64);
        let failed = total(|r| r.stats.failed as u64);
        let packets = total(|r| r.stats.packets);
        let again = total(|r| r.stats.retransmitted);
        if self.args.json {
            let object = json!({
                "seeds": seeds, "failures": failures, "good": good, "failed": failed,
                "packets": packets, "retransmitted": again,
            });
            writeln!(self.out, "{object}")?;
        } else {
            writeln!(
                self.out,
                "{good} operations done, {failed} failed as they had to; {packets} packets, \
                 {again} of them sent again"
            )?;
            writeln!(self.out, "{seeds} seeds, {failures} failures")?;
        }
        self.out.flush()?;
        Ok(failures)
    }

    fn pcap_name(&self, seed: u64) -> PathBuf {
        let named = self.args.pcap.clone().filter(|_| self.failures <= 1);
        named.unwrap_or_else(|| PathBuf::from(format!("urxe-sim-{seed}.pcap")))
    }

    /// The capture of the only run, if one was asked for.
    fn only_pcap(&self, seed: u64) -> Result<(), SimError> {
        match &self.args.pcap {
            Some(file) if self.args.seeds == 1 => {
                let run = Run { keep_trace: true, ..run_of(self.args, seed) };
                write_pcap(&run.go(), file)
            }
            _ => Ok(()),
        }
    }
}

/// The fewest operations that still fail, and their run with its packets.
fn smallest(run: &Run, invariant: urxe_sim::Invariant) -> (BTreeSet<usize>, Outcome) {
    quietly(|| {
        let count = Plan::draw(run.seed, &run.settings).ops.len();
        let all = run.only.clone().unwrap_or_else(|| (0..count).collect());
        let only = shrink(run, invariant, all, TRIES);
        let shrunk = Run { only: Some(only.clone()), keep_trace: true, ..run.clone() };
        (only, shrunk.go())
    })
}

fn write_pcap(outcome: &Outcome, file: &Path) -> Result<(), SimError> {
    let write = || {
        let mut out = BufWriter::new(File::create(file)?);
        outcome.trace.write_pcap(&mut out)?;
        out.flush()
    };
    write().map_err(|why| SimError::Pcap { file: file.display().to_string(), why })
}
