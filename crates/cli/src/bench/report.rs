//! The table, and the same as JSON.

use std::io::{self, Write};

use serde_json::json;

use super::row::{Ratio, Row};
use super::targets::Bound;
use crate::dissect::{Palette, paint};

#[cfg(test)]
mod tests;

/// Columns of a bar.
const BAR: usize = 20;

/// Writes rows as they come, and counts what is missed.
pub(super) struct Report<'a> {
    json: bool,
    palette: Palette,
    out: &'a mut dyn Write,
    missed: Vec<String>,
    failed: usize,
}

impl<'a> Report<'a> {
    pub(super) fn new(json: bool, palette: Palette, out: &'a mut dyn Write) -> Self {
        Self { json, palette, out, missed: Vec::new(), failed: 0 }
    }

    pub(super) fn head(&mut self) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let head = format!(
            "{:<22} {:>11}  {:<26} {:>11} {:>7}",
            "case", "median", "beside, in the same rounds", "median", "ratio"
        );
        writeln!(self.out, "{}", paint(self.palette.header, head))
    }

    pub(super) fn row(&mut self, row: &Row) -> io::Result<()> {
        self.missed.extend(row.missed());
        if self.json {
            serde_json::to_writer(&mut *self.out, row)?;
            return self.end_of_line();
        }
        let mut left = format!("{:<22} {:>11}", row.case, row.of.show(row.value.value));
        for ratio in &row.ratios {
            let baseline = ratio.baseline.map(|its| row.of.show(its)).unwrap_or_default();
            let Ratio { text, ratio: number, target, met, .. } = ratio;
            let bar = bar(*number, *target);
            let (style, word) = match met {
                None => (self.palette.dim, String::new()),
                Some(true) => (self.palette.good, target_text(*target)),
                Some(false) => (self.palette.bad, format!("{} missed", target_text(*target))),
            };
            let line = format!("{left}  {text:<26} {baseline:>11} {number:>7.3}  ");
            writeln!(self.out, "{line}{}", paint(style, format!("{bar} {word}").trim_end()))?;
            left = format!("{:34}", "");
        }
        if !row.more.is_empty() {
            let each = row.more.iter().map(|(name, n)| format!("{name} {}", row.of.show(*n)));
            let each = each.collect::<Vec<_>>().join(", ");
            writeln!(self.out, "{left}  {}", paint(self.palette.dim, each))?;
        } else if row.ratios.is_empty() {
            writeln!(self.out, "{left}")?;
        }
        self.out.flush()
    }

    /// A case that could not be run to its end.
    pub(super) fn failed(&mut self, case: &str, why: &str) -> io::Result<()> {
        self.failed += 1;
        if self.json {
            write!(self.out, "{}", json!({ "case": case, "failed": why }))?;
            return self.end_of_line();
        }
        writeln!(self.out, "{case:<22} {}", paint(self.palette.bad, format!("failed: {why}")))?;
        self.out.flush()
    }

    fn end_of_line(&mut self) -> io::Result<()> {
        writeln!(self.out)?;
        self.out.flush()
    }

    /// The sum; gives how many cases failed, and how many targets were missed.
    pub(super) fn end(self, host: &Host) -> io::Result<(usize, usize)> {
        let Self { json, palette, out, missed, failed } = self;
        if json {
            let Host { cpus, load, optimised } = host;
            let host = json!({ "cpus": cpus, "load": load, "optimised": optimised });
            writeln!(out, "{}", json!({ "missed": missed, "failed": failed, "host": host }))?;
        } else {
            for what in host.warnings() {
                writeln!(out, "{}", paint(palette.warn, what))?;
            }
            for what in &missed {
                writeln!(out, "{}", paint(palette.bad, format!("missed: {what}")))?;
            }
        }
        out.flush()?;
        Ok((failed, missed.len()))
    }
}

/// What a reader must know of the host to believe the figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Host {
    pub(super) cpus: usize,
    /// Of the minute before the bench began: what else wanted to run.
    pub(super) load: Option<f64>,
    pub(super) optimised: bool,
}

impl Host {
    fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        if !self.optimised {
            all.push("This is a debug build: its figures mean nothing.".into());
        }
        if self.cpus < 2 {
            all.push("One CPU: two processes cannot run at once; latencies mean nothing.".into());
        }
        if let Some(load) = self.load.filter(|load| *load > 0.5) {
            let cpus = self.cpus;
            all.push(format!(
                "The machine was busy before this began (load {load:.1}, {cpus} CPUs): trust the \
                 ratios a little, the figures not at all."
            ));
        }
        all
    }
}

fn target_text(target: Option<Bound>) -> String {
    target.map(|bound| bound.to_string()).unwrap_or_default()
}

/// A bar as long as the ratio, with a mark at the bound; full at 1, or at what is greatest.
fn bar(ratio: f64, target: Option<Bound>) -> String {
    let mark = match target {
        Some(Bound::AtLeast(bound) | Bound::AtMost(bound)) => Some(bound),
        None => None,
    };
    let full = mark.unwrap_or(0.0).max(1.0).max(ratio.min(4.0));
    let mark = mark.map(|bound| columns(bound / full));
    let filled = columns(ratio / full);
    let column = |at| match (Some(at) == mark.map(|m| m.saturating_sub(1)), at < filled) {
        (true, _) => '┃',
        (false, true) => '█',
        (false, false) => '░',
    };
    (0..BAR).map(column).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to BAR: a cast of a float saturates, of NaN is 0"
)]
fn columns(share: f64) -> usize {
    let columns = (share * super::stats::count(BAR)).round();
    (columns as usize).min(BAR)
}
