//! `#![forbid(unsafe_code)]` at the root of each crate that has no business with raw memory.

use toml::{Table, Value};

use crate::finding::Finding;
use crate::modules::{packages, roots};
use crate::source::Source;
use crate::tree::Tree;

#[cfg(test)]
mod tests;

/// Crates that hold unsafe code by purpose; the lint `undocumented_unsafe_blocks` watches them.
const MAY_BE_UNSAFE: &[&str] = &["urxe-memory", "urxe-net", "urxe-ibverbs", "urxe-rdmacm"];
/// Its tests may need an allocator of their own, if they say so.
const MAY_DECLARE: &str = "urxe-tests";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages(tree) {
        let Some(name) = package_name(tree, package) else { continue };
        if package == "fuzz" || MAY_BE_UNSAFE.contains(&name.as_str()) {
            continue;
        }
        let sources = format!("{package}/src/");
        for root in roots(tree, package) {
            if root.starts_with(&sources) {
                findings.extend(check_root(tree, &root, name == MAY_DECLARE));
            }
        }
    }
    findings
}

fn check_root(tree: &Tree, root: &str, may_declare: bool) -> Option<Finding> {
    let code = Source::new(tree.text(root)?).code;
    let declares = ["#![expect(unsafe_code, reason", "#![allow(unsafe_code, reason"];
    let forbids = code.contains("#![forbid(unsafe_code)]");
    let declared = may_declare && declares.iter().any(|text| code.contains(text));
    (!forbids && !declared).then(|| {
        let what = "no `#![forbid(unsafe_code)]`; add it: unsafe code lives in urxe-memory, \
                    urxe-net, urxe-ibverbs and urxe-rdmacm";
        Finding::new(root, 1, what)
    })
}

fn package_name(tree: &Tree, package: &str) -> Option<String> {
    let manifest = tree.text(&format!("{package}/Cargo.toml"))?.parse::<Table>().ok()?;
    manifest.get("package")?.get("name").and_then(Value::as_str).map(str::to_owned)
}
