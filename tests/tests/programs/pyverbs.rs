//! pyverbs' own suite: each of its cases as pyverbs.txt has it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cases::Case;
use crate::place::{Place, Side};
use crate::process::{Running, tail};
use crate::{Ended, Why};

/// Where Debian's package has it.
const SUITE: &str = "/usr/share/doc/rdma-core/tests";
pub const COMMAND: &str = "/usr/bin/python3 tests/run_tests.py --dev urxe0 --gid 0 -v";
/// So many must pass, whatever the table says.
const AT_LEAST: usize = 130;
/// What of a reason to skip a case lies with the host, so that elsewhere it may pass.
const OF_THE_HOST: [&str; 2] = ["huge pages", "dmabuf"];

/// What each case came to: `passed`, or `skipped: ` and why.
type Table = BTreeMap<String, String>;

pub fn run(case: &Case, place: &Place, folder: &Path) -> Ended {
    let suite = unpack(folder)?;
    let mut command = place.urxe(Side::Server, case.flags, &case.words())?;
    command.current_dir(&suite).env("PYTHONDONTWRITEBYTECODE", "1");
    let done = Running::start(command, "pyverbs", folder)?.end()?;
    let seen = table(&done.text);
    let wanted = fs::read_to_string(page()).map_err(|e| format!("pyverbs.txt: {e}"))?;
    let changed = changed(&read(&wanted), &seen);
    if !changed.is_empty() && !std::env::args().any(|word| word == "--bless") {
        let text = tail(&done.text);
        return Err(Why::Wrong(format!("not as in pyverbs.txt:\n{}\n{text}", changed.join("\n"))));
    }
    let passed = seen.values().filter(|came| *came == "passed").count();
    if passed < AT_LEAST {
        return Err(Why::Wrong(format!("{passed} passed, wanted {AT_LEAST}")));
    }
    done.success()?;
    Ok(())
}

/// A copy that can be run: the package's files are partly gzipped.
fn unpack(folder: &Path) -> Result<PathBuf, Why> {
    if !Path::new(SUITE).join("run_tests.py").exists() {
        let package = "package python3-pyverbs, with its documentation";
        return Err(Why::Missing(format!("{SUITE} is not there ({package})")));
    }
    let suite = folder.join("pyverbs");
    let _ = fs::remove_dir_all(&suite);
    let copied = fs::create_dir_all(&suite).and_then(|()| {
        let script = "cp -r \"$0\" \"$1\" && gunzip \"$1\"/tests/*.gz";
        Command::new("sh").args(["-c", script, SUITE]).arg(&suite).output()
    });
    let output = copied.map_err(|e| format!("a copy of {SUITE}: {e}"))?;
    if output.status.success() {
        Ok(suite)
    } else {
        Err(Why::Wrong(format!("a copy: {}", String::from_utf8_lossy(&output.stderr))))
    }
}

/// Reads what unittest says: a case's name and class; then, behind dots or on a line of its own if
/// the case said something itself, the outcome.
fn table(text: &str) -> Table {
    let mut table = Table::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some((test, rest)) = line.split_once(" (tests.")
            && test.starts_with("test_")
            && let Some((class, _)) = rest.split_once(')')
        {
            // Newer Pythons have the method in it, too.
            let class = class.strip_suffix(&format!(".{test}")).unwrap_or(class);
            name = format!("{class}.{test}");
        }
        let outcome = line.rsplit_once(" ... ").map_or(line, |(_, outcome)| outcome);
        let came = match outcome.strip_prefix("skipped ") {
            Some(why) => format!("skipped: {}", why.trim_matches(['\'', '"'])),
            None if outcome == "ok" => "passed".to_owned(),
            None if matches!(outcome, "FAIL" | "ERROR") => format!("failed: {outcome}"),
            None => continue,
        };
        if !name.is_empty() {
            table.insert(std::mem::take(&mut name), came);
        }
    }
    table
}

/// The checked-in table.
fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/pyverbs.txt")
}

fn read(page: &str) -> Table {
    let lines = page.lines().filter_map(|line| line.split_once(": "));
    lines.map(|(name, came)| (name.to_owned(), came.to_owned())).collect()
}

fn changed(wanted: &Table, seen: &Table) -> Vec<String> {
    let mut changed = Vec::new();
    for (name, came) in wanted {
        let now = seen.get(name).map_or("not run", String::as_str);
        let host = OF_THE_HOST.iter().any(|why| came.contains(why));
        if now != came && !(host && (now == "passed" || now.starts_with("skipped: "))) {
            changed.push(format!("{name}: {now}, wanted {came}"));
        }
    }
    let new = seen.iter().filter(|(name, _)| !wanted.contains_key(*name));
    changed.extend(new.map(|(name, came)| format!("{name}: {came}, wanted no such case")));
    changed
}

/// Writes the table of the last run, if there was one.
pub fn bless(folder: &Path) -> Option<PathBuf> {
    let seen = table(&fs::read_to_string(folder.join("pyverbs.txt")).ok()?);
    let mut text = String::new();
    for (name, came) in &seen {
        writeln!(text, "{name}: {came}").expect("a string takes all");
    }
    fs::write(page(), text).expect("pyverbs.txt can be written");
    Some(page())
}

/// How many passed and were skipped in the checked-in table.
pub fn counts() -> (usize, usize) {
    let table = read(&fs::read_to_string(page()).unwrap_or_default());
    let passed = table.values().filter(|came| *came == "passed").count();
    (passed, table.values().filter(|came| came.starts_with("skipped: ")).count())
}
