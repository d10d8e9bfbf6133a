//! A finding in a line.

use std::fmt::Write as _;

use urxe_lint::{Finding, Severity};

use crate::dissect::{Palette, paint};

/// The line of a finding, without its end.
pub(super) fn line(finding: &Finding, time: &str, palette: &Palette) -> String {
    let Finding { frame, rule, severity, what, got, wanted, .. } = finding;
    let style = match severity {
        Severity::Violation => palette.bad,
        Severity::Note => palette.warn,
    };
    let mut out = format!("{}  {}  ", paint(palette.dim, frame), paint(palette.dim, time));
    let _ = write!(out, "{}  {}", paint(style, severity), paint(palette.header, rule));
    if let Some((src, dst)) = finding.ends {
        let _ = write!(out, "  {src} → {dst}");
    }
    if let Some(qpn) = finding.dest_qp {
        let _ = write!(out, "  {} {:#x}", paint(palette.dim, "qp"), qpn.value());
    }
    if let Some(psn) = finding.psn {
        let _ = write!(out, "  {} {psn}", paint(palette.dim, "psn"));
    }
    if let Some(opcode) = finding.opcode {
        let _ = write!(out, "  {}", paint(palette.opcode(opcode), opcode));
    }
    let _ = write!(out, "  {what}: got {got}, wanted {wanted}");
    out
}
