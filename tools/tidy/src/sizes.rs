//! Lengths of files and lines.

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::{Tree, extension};

#[cfg(test)]
mod tests;

/// Lines of a Rust file.
const MAX_LINES: usize = 600;
/// Characters of a line of Rust, TOML or shell.
const MAX_COLUMNS: usize = 100;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        let rust = extension(path) == "rs";
        if rust {
            let lines = text.lines().count();
            if lines > MAX_LINES {
                let what = format!("{lines} lines, {MAX_LINES} allowed; split the file by purpose");
                findings.push(Finding::new(path, MAX_LINES + 1, what));
            }
        }
        if !rust && extension(path) != "toml" && !is_shell(path, text) {
            continue;
        }
        let in_string = if rust { Source::new(text).begins_in_string } else { Vec::new() };
        for (at, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            let data = in_string.get(at) == Some(&true) || is_link(line);
            if columns > MAX_COLUMNS && !data {
                let what = format!("{columns} columns, {MAX_COLUMNS} allowed; break the line");
                findings.push(Finding::new(path, at + 1, what));
            }
        }
    }
    findings
}

/// A shell script by its name or by its first line.
pub(crate) fn is_shell(path: &str, text: &str) -> bool {
    let first = text.lines().next().unwrap_or("");
    extension(path) == "sh" || (first.starts_with("#!") && first.ends_with("sh"))
}

/// A link cannot be broken over lines.
fn is_link(line: &str) -> bool {
    line.contains("://")
}
