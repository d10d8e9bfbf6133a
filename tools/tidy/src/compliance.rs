//! Writes `docs/compliance.md`: which rule is kept where, and which test says so.

use std::fmt::Write;

use crate::citations::{Cited, Rule, collect};
use crate::finding::Finding;
use crate::tree::Tree;

#[cfg(test)]
mod tests;

/// The generated page.
pub(crate) const PAGE: &str = "docs/compliance.md";
/// Its hand-written last part.
const NOTES: &str = "docs/compliance-notes.md";

const HEAD: &str = "# Compliance

Written by `cargo run -p tidy -- compliance` from the citations in the code; do not edit.
Each line is a rule of the InfiniBand Architecture Specification, volume 1 (its RoCE annexes
included), by its id alone: where the code keeps it, and which tests fail if it does not.
";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    if tree.text(PAGE) == Some(render(tree).as_str()) {
        return Vec::new();
    }
    let what = "out of date with the citations; run `cargo run -p tidy -- compliance`";
    vec![Finding::new(PAGE, 1, what)]
}

/// The page for the tree as it stands. File and test names only: line numbers would churn.
pub(crate) fn render(tree: &Tree) -> String {
    let rules = collect(tree);
    let tested = rules.values().filter(|cited| !cited.tests.is_empty()).count();
    let mut page = String::from(HEAD);
    let _ = write!(page, "\nRules cited: {}, of these by a test: {tested}.\n\n", rules.len());
    page.push_str("| rule | code | tests |\n|---|---|---|\n");
    for (rule, cited) in &rules {
        row(&mut page, rule, cited);
    }
    let notes = tree.text(NOTES).unwrap_or("");
    let _ = write!(page, "\n## Not done\n\nFrom [compliance-notes.md](compliance-notes.md).\n");
    for line in notes.lines().skip_while(|line| line.starts_with("# ")) {
        page.push_str(line);
        page.push('\n');
    }
    page
}

fn row(page: &mut String, rule: &Rule, cited: &Cited) {
    let code: Vec<String> = cited.code.iter().map(|file| format!("`{file}`")).collect();
    let tests: Vec<String> = cited
        .tests
        .iter()
        .map(|(file, names)| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let colon = if names.is_empty() { "" } else { ": " };
            format!("`{file}`{colon}{}", names.join(", "))
        })
        .collect();
    let _ = writeln!(page, "| {} | {} | {} |", rule.id, cell(&code), cell(&tests));
}

fn cell(parts: &[String]) -> String {
    if parts.is_empty() { "none".to_owned() } else { parts.join("<br>") }
}
