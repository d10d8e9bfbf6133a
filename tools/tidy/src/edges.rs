//! The arrows between rooms: which workspace crate may depend on which.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::finding::Finding;
use crate::tree::{Tree, folder};

#[cfg(test)]
mod tests;

const PAGE: &str = "docs/architecture.md";

/// What one crate may depend on.
struct Room {
    name: &'static str,
    /// For every kind of dependency: what tests or benches across crates goes to `urxe-tests`.
    may_use: &'static [&'static str],
}

const fn room(name: &'static str, may_use: &'static [&'static str]) -> Room {
    Room { name, may_use }
}

/// Stands for "any crate of the workspace".
const ANY: &str = "*";

/// The whole table. `docs/architecture.md` shows the same, and the check compares the two.
const ROOMS: &[Room] = &[
    room("urxe-wire", &[]),
    room("urxe-memory", &[]),
    room("urxe-engine", &["urxe-memory", "urxe-wire"]),
    room("urxe-net", &["urxe-wire"]),
    room("urxe-cm", &["urxe-wire"]),
    room("urxe-sim", &["urxe-engine", "urxe-memory", "urxe-net", "urxe-wire"]),
    room("urxe", &["urxe-cm", "urxe-engine", "urxe-memory", "urxe-net", "urxe-wire"]),
    room("urxe-lint", &["urxe-wire"]),
    room("urxe-ibverbs", &["urxe"]),
    room("urxe-rdmacm", &["urxe-ibverbs"]),
    room("urxe-cli", &["urxe", "urxe-lint", "urxe-sim", "urxe-wire"]),
    room("urxe-tests", &[ANY]),
    room("rxe-lab", &[]),
    room("tidy", &[]),
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let manifests = manifests(tree, &mut findings);
    let members: Vec<&str> = manifests.iter().map(|manifest| manifest.name.as_str()).collect();
    for manifest in &manifests {
        match ROOMS.iter().find(|room| room.name == manifest.name) {
            Some(room) => manifest.check_edges(room, &members, &mut findings),
            None => findings.push(Finding::new(
                &manifest.path,
                manifest.line_of("name"),
                format!(
                    "crate `{}` has no row in the table of rooms; add it to \
                     tools/tidy/src/edges.rs and {PAGE} with what it may depend on",
                    manifest.name
                ),
            )),
        }
    }
    findings.extend(compare_with_page(tree));
    findings
}

struct Manifest {
    path: String,
    name: String,
    text: String,
    table: Table,
}

/// The manifests of the workspace's packages; `fuzz/` is a workspace of its own.
fn manifests(tree: &Tree, findings: &mut Vec<Finding>) -> Vec<Manifest> {
    let mut manifests = Vec::new();
    for (path, text) in tree.texts() {
        if !path.ends_with("/Cargo.toml") || folder(path) == "fuzz" {
            continue;
        }
        match text.parse::<Table>() {
            Ok(table) => {
                let name = table.get("package").and_then(|package| package.get("name"));
                if let Some(name) = name.and_then(Value::as_str) {
                    let (path, name, text) = (path.to_owned(), name.to_owned(), text.to_owned());
                    manifests.push(Manifest { path, name, text, table });
                }
            }
            Err(error) => findings.push(Finding::new(
                path,
                1,
                format!("not TOML: {}; correct it", error.message()),
            )),
        }
    }
    manifests
}

impl Manifest {
    fn check_edges(&self, room: &Room, members: &[&str], findings: &mut Vec<Finding>) {
        let mut tables = vec![&self.table];
        if let Some(targets) = self.table.get("target").and_then(Value::as_table) {
            tables.extend(targets.values().filter_map(Value::as_table));
        }
        for table in tables {
            for kind in ["dependencies", "build-dependencies", "dev-dependencies"] {
                let Some(wanted) = table.get(kind).and_then(Value::as_table) else { continue };
                for (key, value) in wanted {
                    let package = value.get("package").and_then(Value::as_str).unwrap_or(key);
                    if members.contains(&package) && !room.allows(package) {
                        findings.push(self.forbidden_edge(room, kind, key, package));
                    }
                }
            }
        }
    }

    fn forbidden_edge(&self, room: &Room, kind: &str, key: &str, package: &str) -> Finding {
        let allowed = match room.may_use {
            [] => "no workspace crate".to_owned(),
            some => some.join(", "),
        };
        let what = format!(
            "[{kind}] has `{package}`, but {} may depend on {allowed}; move the code to where it \
             is needed, or change the arrows in {PAGE} and tools/tidy/src/edges.rs",
            self.name
        );
        Finding::new(&self.path, self.line_of(key), what)
    }

    /// The first line that starts with `key`.
    fn line_of(&self, key: &str) -> usize {
        let found = self.text.lines().position(|line| {
            line.trim_start()
                .strip_prefix(key)
                .is_some_and(|rest| rest.starts_with([' ', '.', '=']))
        });
        found.map_or(1, |at| at + 1)
    }
}

impl Room {
    fn allows(&self, package: &str) -> bool {
        self.may_use == [ANY] || self.may_use.contains(&package)
    }

    /// The row's last cell on the page.
    fn cell(&self) -> String {
        match self.may_use {
            [] => "nothing".to_owned(),
            [ANY] => "anything".to_owned(),
            some => some.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        }
    }
}

/// The page's rows are `| `crate` | … | what it may depend on |`.
fn compare_with_page(tree: &Tree) -> Vec<Finding> {
    let mut rows = BTreeMap::new();
    for (at, line) in tree.text(PAGE).unwrap_or("").lines().enumerate() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", name, .., last, ""] = cells[..] else { continue };
        if let Some(name) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) {
            rows.insert(name, (at + 1, last));
        }
    }
    let mut findings = Vec::new();
    for room in ROOMS {
        let want = room.cell();
        match rows.remove(room.name) {
            Some((_, cell)) if cell == want => {}
            Some((line, cell)) => findings.push(Finding::new(
                PAGE,
                line,
                format!(
                    "`{}` may depend on `{cell}`, the check says `{want}`; make them agree",
                    room.name
                ),
            )),
            None => findings.push(Finding::new(
                PAGE,
                1,
                format!("no row for `{}`; add one that ends in `| {want} |`", room.name),
            )),
        }
    }
    findings
}
