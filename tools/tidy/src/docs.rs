//! Pages that nobody can find, and links that lead nowhere.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::tree::{Tree, extension, folder, join};

#[cfg(test)]
mod tests;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut linked = BTreeSet::new();
    for (path, text) in tree.texts().filter(|(path, _)| extension(path) == "md") {
        let entry = matches!(path, "README.md" | "CONTRIBUTING.md") || folder(path) == "docs";
        for (line, link) in links(text) {
            let target = join(folder(path), link).filter(|to| tree.has(to) || tree.has_folder(to));
            match target {
                Some(target) if entry && target != path => drop(linked.insert(target)),
                Some(_) => {}
                None => findings.push(Finding::new(
                    path,
                    line,
                    format!("link to `{link}`, which does not exist; correct or remove it"),
                )),
            }
        }
    }
    for path in tree.under("docs").filter(|path| !linked.contains(*path)) {
        findings.push(Finding::new(
            path,
            1,
            "nothing links here; link it from README.md, CONTRIBUTING.md or another page, or \
             delete it",
        ));
    }
    findings
}

/// The relative links of a Markdown text with their lines, less their `#anchor`s.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        for part in line.split("](").skip(1) {
            let link = part.split([')', ' ']).next().unwrap_or("");
            let link = link.split('#').next().unwrap_or("");
            if !link.is_empty() && !link.contains(':') {
                found.push((at + 1, link));
            }
        }
    }
    found
}
