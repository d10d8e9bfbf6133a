//! Snapshot files whose test is gone: a later reader would trust what nothing compares.

use crate::finding::Finding;
use crate::tree::Tree;

#[cfg(test)]
mod tests;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in tree.paths() {
        if path.ends_with(".snap.new") {
            let what =
                "a snapshot not yet judged; accept it with `cargo insta review` or delete it";
            findings.push(Finding::new(path, 1, what));
        } else if path.ends_with(".snap") {
            findings.extend(orphan(tree, path));
        }
    }
    findings
}

/// The finding for a snapshot that no test can have made.
fn orphan(tree: &Tree, path: &str) -> Option<Finding> {
    let text = tree.text(path).unwrap_or("");
    let Some(source) = text.lines().find_map(|line| line.strip_prefix("source: ")) else {
        return Some(Finding::new(path, 1, "no `source:` line; let insta write it again"));
    };
    let source = source.trim().trim_matches('"');
    let Some(test) = tree.text(source) else {
        let what = format!("its test file {source} is gone; delete the snapshot");
        return Some(Finding::new(path, 2, what));
    };
    let name = snapshot_name(path);
    (!test.contains(name)).then(|| {
        let what = format!("{source} has no `{name}`; delete the snapshot, or name it literally");
        Finding::new(path, 2, what)
    })
}

/// `name` of `crate__module__name@suffix-2.snap`, as the test spells it.
fn snapshot_name(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".snap");
    let name = file.rsplit("__").next().unwrap_or(file);
    let name = name.split('@').next().unwrap_or(name);
    match name.rsplit_once('-') {
        Some((head, count)) if count.bytes().all(|byte| byte.is_ascii_digit()) => head,
        _ => name,
    }
}
