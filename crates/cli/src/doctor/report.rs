//! What was found, line by line.

use std::io::{self, Write};

use serde::Serialize;

use crate::command::{Done, Failure};
use crate::dissect::{Palette, paint};

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    Warning,
    Problem,
}

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    check: &'static str,
    state: State,
    /// How it is.
    found: String,
    /// What to do, where there is something to do.
    #[serde(rename = "do", skip_serializing_if = "str::is_empty")]
    advice: String,
}

impl Check {
    /// All is well.
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, state: State::Ok, found: found.into(), advice: String::new() }
    }

    /// It works, but not as well as it could.
    pub(super) fn warning(
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { check, state: State::Warning, found: found.into(), advice: advice.into() }
    }

    /// It does not work.
    pub(super) fn problem(
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { check, state: State::Problem, found: found.into(), advice: advice.into() }
    }

    pub(super) fn is_problem(&self) -> bool {
        self.state == State::Problem
    }
}

/// Writes checks as they come, and counts.
pub(super) struct Report<'a> {
    json: bool,
    palette: Palette,
    out: &'a mut dyn Write,
    warnings: usize,
    problems: usize,
}

/// The width of the names of checks.
const NAMES: usize = 17;

impl<'a> Report<'a> {
    pub(super) fn new(json: bool, palette: Palette, out: &'a mut dyn Write) -> Self {
        Self { json, palette, out, warnings: 0, problems: 0 }
    }

    pub(super) fn head(&mut self) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let title = concat!("urxe ", env!("CARGO_PKG_VERSION"));
        writeln!(self.out, "{}", paint(self.palette.header, title))
    }

    pub(super) fn add(&mut self, check: Check) -> io::Result<()> {
        let Palette { good, warn, bad, dim, .. } = self.palette;
        let (word, style) = match check.state {
            State::Ok => ("ok", good),
            State::Warning => ("warning", warn),
            State::Problem => ("problem", bad),
        };
        self.warnings += usize::from(check.state == State::Warning);
        self.problems += usize::from(check.state == State::Problem);
        if self.json {
            serde_json::to_writer(&mut *self.out, &check)?;
            return writeln!(self.out);
        }
        let name = paint(dim, format!("{:<NAMES$}", check.check));
        writeln!(self.out, "  {}  {name}  {}", paint(style, format!("{word:<7}")), check.found)?;
        if !check.advice.is_empty() {
            let space = 2 + 7 + 2 + NAMES + 2;
            writeln!(self.out, "{:space$}{}", "", paint(style, check.advice))?;
        }
        Ok(())
    }

    pub(super) fn end(self) -> Result<Done, Failure> {
        let Self { json, palette, out, warnings, problems } = self;
        let can = problems == 0;
        if json {
            let end = serde_json::json!({ "ok": can, "warnings": warnings, "problems": problems });
            writeln!(out, "{end}")?;
        } else {
            let count = |n: usize, what: &str| match n {
                0 => format!("no {what}s"),
                1 => format!("1 {what}"),
                n => format!("{n} {what}s"),
            };
            let (problems, warnings) = (count(problems, "problem"), count(warnings, "warning"));
            let (end, style) = if can {
                ("urxe can work here", palette.good)
            } else {
                ("urxe cannot work here as it is", palette.bad)
            };
            writeln!(out, "{}: {problems}, {warnings}", paint(style, end))?;
        }
        Ok(Done::found(!can))
    }
}
