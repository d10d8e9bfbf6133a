//! Words that do not belong: one machine's paths, notes for later, tests that are off or wait.

use crate::finding::Finding;
use crate::items::Items;
use crate::sizes::is_shell;
use crate::source::{Source, line_of, words};
use crate::tree::{Tree, extension};

#[cfg(test)]
mod tests;

/// Folders of one developer's machine. Split, so that this file does not hold them.
const PLACES: &[&str] = &[
    concat!("/", "work/"),
    concat!("/", "home/"),
    concat!("/", "root/"),
    concat!("/", "tmp/urxe"),
];

/// What marks a thing left undone.
const NOTES: &[&str] = &["TODO", "FIXME", "XXX"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        places(path, text, &mut findings);
        if extension(path) == "rs" {
            let source = Source::new(text);
            notes(path, &source.comments, &mut findings);
            ignored(path, &source, &mut findings);
            sleeping(path, &source.code, &mut findings);
        } else if matches!(extension(path), "toml" | "yml" | "yaml") || is_shell(path, text) {
            notes(path, &after_hash(text), &mut findings);
        } else if extension(path) == "md" {
            notes(path, &without_code_spans(text), &mut findings);
        }
    }
    findings
}

fn places(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for place in PLACES {
        for (at, _) in text.match_indices(place) {
            let before = text[..at].bytes().next_back().unwrap_or(b' ');
            if before.is_ascii_alphanumeric() || b"_.-~*}/".contains(&before) {
                continue; // inside a longer, relative path or a URL
            }
            let what = format!("`{place}` is a path of one machine; write it relative to the root");
            findings.push(Finding::new(path, line_of(text, at), what));
        }
    }
}

fn notes(path: &str, comments: &str, findings: &mut Vec<Finding>) {
    for note in NOTES {
        for at in words(comments, note) {
            let what = format!("`{note}` in a comment; do it now, or say in docs/ what is missing");
            findings.push(Finding::new(path, line_of(comments, at), what));
        }
    }
}

fn ignored(path: &str, source: &Source, findings: &mut Vec<Finding>) {
    let attributes = source.code.match_indices("#[ignore").map(|(at, _)| at);
    let conditional = words(&source.code, "ignore").filter(|&at| {
        let line_start = source.code[..at].rfind('\n').map_or(0, |newline| newline + 1);
        source.code[line_start..at].contains("cfg_attr(")
    });
    let examples = source.comments.match_indices("```ignore").map(|(at, _)| at);
    for at in attributes.chain(conditional).chain(examples) {
        let what = "an ignored test proves nothing; make it run everywhere or delete it";
        findings.push(Finding::new(path, line_of(&source.code, at), what));
    }
}

/// `thread::sleep` in test code.
fn sleeping(path: &str, code: &str, findings: &mut Vec<Finding>) {
    let whole_file = is_test_file(path);
    let items = Items::new(code);
    for at in words(code, "thread::sleep") {
        if whole_file || items.tests.iter().any(|test| test.contains(&at)) {
            let what = "a test that sleeps is slow or flaky; wait for the event, or pass time in";
            findings.push(Finding::new(path, line_of(code, at), what));
        }
    }
}

/// A Rust file that holds tests only.
pub(crate) fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.split('/').any(|part| part == "tests")
}

/// The comments of a `#` language, in place.
fn after_hash(text: &str) -> String {
    text.lines()
        .map(|line| line.split_once('#').map_or("", |(_, comment)| comment))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Markdown less what stands in backquotes: there it is quoted, not left undone.
fn without_code_spans(text: &str) -> String {
    let mut fenced = false;
    text.lines()
        .map(|line| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            if fence || fenced {
                return String::new();
            }
            line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
        })
        .collect::<Vec<_>>()
        .join("\n")
}
