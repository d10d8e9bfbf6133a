//! Rust files that no `mod` reaches: the compiler never sees them, so nothing else would tell.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::finding::Finding;
use crate::items::{Items, ModuleFile};
use crate::source::Source;
use crate::tree::{Tree, folder, join};

#[cfg(test)]
mod tests;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    for root in packages(tree).iter().flat_map(|package| roots(tree, package)) {
        reach(tree, root, &mut reached);
    }
    tree.rust()
        .filter(|(path, _)| !reached.contains(*path))
        .map(|(path, _)| {
            Finding::new(path, 1, "no `mod` reaches this file; name it in its parent or delete it")
        })
        .collect()
}

/// The folders that hold a package, by their manifest.
pub(crate) fn packages(tree: &Tree) -> Vec<&str> {
    let manifests = tree.texts().filter(|(path, _)| path.ends_with("/Cargo.toml"));
    manifests.map(|(path, _)| folder(path)).collect()
}

/// The files at which cargo starts to compile a package: the usual places, and what its
/// manifest names.
pub(crate) fn roots(tree: &Tree, package: &str) -> Vec<String> {
    let mut roots: BTreeSet<String> = tree
        .under(package)
        .filter(|path| path.ends_with(".rs") && is_usual_root(&path[package.len() + 1..]))
        .map(str::to_owned)
        .collect();
    let manifest = tree.text(&format!("{package}/Cargo.toml")).unwrap_or("");
    let manifest = manifest.parse::<Table>().unwrap_or_default();
    for kind in ["lib", "bin", "test", "bench", "example"] {
        let targets = match manifest.get(kind) {
            Some(Value::Array(targets)) => targets.iter().collect(),
            Some(target) => vec![target],
            None => Vec::new(),
        };
        let paths = targets.iter().filter_map(|target| target.get("path")?.as_str());
        roots.extend(paths.filter_map(|path| join(package, path)));
    }
    roots.into_iter().filter(|root| tree.has(root)).collect()
}

/// Whether cargo starts at this file, seen from its package, without being told.
fn is_usual_root(inside: &str) -> bool {
    match inside.split('/').collect::<Vec<_>>()[..] {
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] => true,
        ["src", "bin", ref rest @ ..] | ["tests" | "benches" | "examples", ref rest @ ..] => {
            matches!(rest, [_] | [_, "main.rs"])
        }
        _ => false,
    }
}

/// Follows `mod name;` and `include!` from a crate's root.
fn reach(tree: &Tree, root: String, reached: &mut BTreeSet<String>) {
    let mut open = vec![(root, true)];
    while let Some((path, is_root)) = open.pop() {
        let Some(text) = tree.text(&path) else { continue };
        if !reached.insert(path.clone()) {
            continue;
        }
        let code = Source::new(text).code;
        for module in Items::new(&code).modules {
            let files = module_files(&path, is_root, &module, &text[module.span.clone()]);
            open.extend(files.into_iter().filter(|file| tree.has(file)).map(|file| (file, false)));
        }
        for (at, _) in code.match_indices("include!") {
            let included = quoted(&text[at..]).and_then(|name| join(folder(&path), name));
            open.extend(included.map(|file| (file, false)));
        }
    }
}

/// The files that `mod name;` in `path` can mean; `written` is its text with its attributes.
fn module_files(path: &str, is_root: bool, module: &ModuleFile, written: &str) -> Vec<String> {
    let mut base = children_folder(path, is_root);
    for name in &module.within {
        base = format!("{base}/{name}");
    }
    if written.contains("#[path") {
        let base = if module.within.is_empty() { folder(path) } else { &base };
        return quoted(written).and_then(|there| join(base, there)).into_iter().collect();
    }
    vec![format!("{base}/{}.rs", module.name), format!("{base}/{}/mod.rs", module.name)]
}

/// Where the files of a file's modules lie: beside a root or `mod.rs`, else one folder down.
fn children_folder(path: &str, is_root: bool) -> String {
    if is_root || path.ends_with("/mod.rs") {
        folder(path).to_owned()
    } else {
        path.trim_end_matches(".rs").to_owned()
    }
}

/// The first string literal of a text.
fn quoted(text: &str) -> Option<&str> {
    text.split('"').nth(1)
}
