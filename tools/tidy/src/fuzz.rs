//! Each fuzz target has its file and its corpus, and each file and corpus its target.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::finding::Finding;
use crate::tree::{Tree, join};

#[cfg(test)]
mod tests;

const MANIFEST: &str = "fuzz/Cargo.toml";
const TARGETS: &str = "fuzz/fuzz_targets";
const CORPUS: &str = "fuzz/corpus";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let manifest = tree.text(MANIFEST).unwrap_or("").parse::<Table>();
    let manifest = match manifest {
        Ok(manifest) => manifest,
        Err(error) => {
            let what = format!("not TOML: {}; correct it", error.message());
            return vec![Finding::new(MANIFEST, 1, what)];
        }
    };
    let mut findings = Vec::new();
    let mut names = BTreeSet::new();
    let mut files = BTreeSet::new();
    for target in manifest.get("bin").and_then(Value::as_array).into_iter().flatten() {
        let name = target.get("name").and_then(Value::as_str).unwrap_or("");
        let path = target.get("path").and_then(Value::as_str).map_or_else(
            || format!("{TARGETS}/{name}.rs"),
            |path| join("fuzz", path).unwrap_or_default(),
        );
        if !tree.has(&path) {
            let what = format!("target `{name}` has no file {path}; write it or drop the target");
            findings.push(Finding::new(MANIFEST, 1, what));
        }
        if !tree.has_folder(&format!("{CORPUS}/{name}")) {
            let what = format!("target `{name}` has no {CORPUS}/{name}/; add a first input");
            findings.push(Finding::new(MANIFEST, 1, what));
        }
        names.insert(name);
        files.insert(path);
    }
    for path in tree.under(TARGETS).filter(|path| !files.contains(*path)) {
        let what = format!("no target in {MANIFEST} names this file; add one or delete it");
        findings.push(Finding::new(path, 1, what));
    }
    let corpora: BTreeSet<&str> = tree
        .under(CORPUS)
        .filter_map(|path| path[CORPUS.len() + 1..].split_once('/').map(|(name, _)| name))
        .collect();
    for name in corpora.difference(&names) {
        let what = format!("no target in {MANIFEST} is called `{name}`; add it or delete these");
        findings.push(Finding::new(&format!("{CORPUS}/{name}"), 1, what));
    }
    findings
}
