//! `urxe lint`: what of a capture breaks the protocol's rules.

mod args;
mod json;
mod summary;
mod text;

use std::io::{Read, Write};

use urxe_lint::{Finding, Frame, Lint, Options, Rule, Severity};

pub use args::{LintArgs, LintProfile};
pub use summary::Summary;

use crate::capture::{Capture, Timestamp};
use crate::dissect::{Filter, Palette, Stop, Subject, TimeStyle};

/// What to show of the findings, and how.
#[derive(Clone, Debug)]
pub struct View {
    /// Findings about which packets to show.
    pub filter: Filter,
    /// One JSON object a line in place of text.
    pub json: bool,
    /// What times count from; JSON has absolute ones always.
    pub time: TimeStyle,
    /// No notes.
    pub violations_only: bool,
    /// Colours.
    pub palette: Palette,
    /// Hand out each finding at once, not when a buffer is full.
    pub live: bool,
}

impl Default for View {
    fn default() -> Self {
        Self {
            filter: Filter::default(),
            json: false,
            time: TimeStyle::Relative,
            violations_only: false,
            palette: Palette::PLAIN,
            live: false,
        }
    }
}

/// Writes what is found in `capture` to `out`; `summary` holds what was seen even if this fails.
///
/// # Errors
/// Where the file is cut off or damaged, after all that came before was judged; where `out` fails.
pub fn lint<R: Read, W: Write>(
    capture: &mut Capture<R>,
    options: Options,
    view: &View,
    out: &mut W,
    summary: &mut Summary,
) -> Result<(), Stop> {
    let mut judge = Lint::new(options);
    let mut printer = Printer { view, first: None, before: None, digits: 6 };
    let ended = loop {
        let frame = match capture.next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => break Ok(()),
            Err(e) => break Err(Stop::from(e)),
        };
        printer.first = printer.first.or(frame.time);
        printer.digits = frame.time_digits;
        let Some(link) = frame.link_type() else {
            summary.other_links += 1;
            continue;
        };
        let found = judge.frame(&Frame {
            number: frame.number,
            time: frame.time.and_then(|time| i64::try_from(time.0).ok()),
            link,
            bytes: frame.bytes,
            original_len: frame.original_len,
        });
        summary.shown += printer.write(&found, out)?;
    };
    summary.shown += printer.write(&judge.finish(), out)?;
    out.flush()?;
    summary.totals = judge.totals();
    summary.totals.frames += summary.other_links;
    summary.totals.others += summary.other_links;
    ended
}

/// Writes findings.
struct Printer<'a> {
    view: &'a View,
    first: Option<Timestamp>,
    before: Option<Timestamp>,
    digits: usize,
}

impl Printer<'_> {
    /// How many of them it shows.
    fn write<W: Write>(&mut self, found: &[Finding], out: &mut W) -> Result<u64, Stop> {
        let mut shown = 0;
        for finding in found.iter().filter(|finding| self.view.shows(finding)) {
            let mut line = if self.view.json {
                serde_json::to_string(&json::Record(finding)).map_err(std::io::Error::from)?
            } else {
                text::line(finding, &self.time(finding), &self.view.palette)
            };
            line.push('\n');
            out.write_all(line.as_bytes())?;
            shown += 1;
        }
        if shown != 0 && self.view.live {
            out.flush()?;
        }
        Ok(shown)
    }

    fn time(&mut self, finding: &Finding) -> String {
        let Some(time) = finding.time.map(|time| Timestamp(time.into())) else {
            return "-".to_owned();
        };
        let before = self.before.replace(time).unwrap_or(time);
        match self.view.time {
            TimeStyle::Absolute => time.utc(self.digits),
            TimeStyle::Delta => time.since(before).seconds(self.digits),
            TimeStyle::Relative => time.since(self.first.unwrap_or(time)).seconds(self.digits),
        }
    }
}

impl View {
    fn shows(&self, finding: &Finding) -> bool {
        if self.violations_only && finding.severity != Severity::Violation {
            return false;
        }
        if self.filter.is_empty() {
            return true;
        }
        let (Some(dest_qp), Some(psn)) = (finding.dest_qp, finding.psn) else { return false };
        let Some(opcode) = finding.opcode else {
            return self.filter.matches_unseen(dest_qp, finding.src_qp, psn);
        };
        self.filter.matches(&Subject { opcode, dest_qp, src_qp: finding.src_qp, psn })
    }
}

/// The rules, one a line: name, weight, source, and what it says.
#[must_use]
pub fn rules() -> String {
    let mut out = String::new();
    for rule in Rule::ALL {
        let (id, weight, source) = (rule.id(), rule.severity(), rule.source());
        out.push_str(&format!("{id:<18} {weight:<9}  {} ({source})\n", rule.says()));
    }
    out
}

/// The rules, an object a line.
#[must_use]
pub fn rules_json() -> String {
    let line = |rule: &Rule| {
        let object = serde_json::json!({
            "rule": rule.id(),
            "severity": rule.severity().to_string(),
            "source": rule.source(),
            "says": rule.says(),
        });
        format!("{object}\n")
    };
    Rule::ALL.iter().map(line).collect()
}
