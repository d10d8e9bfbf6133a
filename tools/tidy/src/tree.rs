//! The files under check, read once.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

#[cfg(test)]
mod tests;

/// Folders that a walk leaves out; git leaves them out by `.gitignore`.
const NOT_OURS: &[&str] = &[".git", "target", "artifacts", "coverage", "mutants.out"];

/// Every file of the repository by its path from the root, with `/` between folders.
/// A file that is not UTF-8 (a capture, a corpus entry) is known by name only.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    files: BTreeMap<String, Option<String>>,
}

impl Tree {
    /// Reads the repository that holds the current folder.
    pub(crate) fn read() -> io::Result<Self> {
        let root = find_root(&std::env::current_dir()?)?;
        let paths = match list_with_git(&root) {
            Some(paths) => paths,
            None => walk(&root)?,
        };
        let mut files = BTreeMap::new();
        for path in paths {
            let full = root.join(&path);
            // A link's target is checked under its own name; a file deleted but not yet
            // committed is gone.
            if !full.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
                continue;
            }
            let bytes = std::fs::read(&full)
                .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
            files.insert(path, as_text(bytes));
        }
        Ok(Self { root, files })
    }

    /// A tree in memory, for the checks' own tests.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|&(path, text)| (path.to_owned(), as_text(text.as_bytes().to_vec())))
            .collect();
        Self { root: PathBuf::new(), files }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Whether any file lies under the folder `path`.
    pub(crate) fn has_folder(&self, path: &str) -> bool {
        self.under(path).next().is_some()
    }

    /// All paths, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The paths under a folder, in order.
    pub(crate) fn under<'a>(&'a self, folder: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        self.paths().filter(move |path| path.starts_with(&prefix))
    }

    /// A file's text, if it exists and is text.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// All text files, in order.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// All Rust files, in order.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| extension(path) == "rs")
    }
}

/// What stands after the last dot of a path's last part; empty if there is none.
pub(crate) fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// The folder of a path; empty for a file in the root.
pub(crate) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// `relative` seen from `folder`, with `.` and `..` taken out; `None` if it leaves the root.
pub(crate) fn join(folder: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn as_text(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// The nearest folder, from `start` upwards, whose `Cargo.toml` holds the workspace.
fn find_root(start: &Path) -> io::Result<PathBuf> {
    start
        .ancestors()
        .find(|folder| {
            std::fs::read_to_string(folder.join("Cargo.toml"))
                .is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
        })
        .map(Path::to_path_buf)
        .ok_or_else(|| {
            let what = format!("{}: no workspace here or above; run in it", start.display());
            io::Error::new(io::ErrorKind::NotFound, what)
        })
}

/// What git tracks, and what it would track if added now: a fault shows before the commit.
fn list_with_git(root: &Path) -> Option<Vec<String>> {
    let listed = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let listed = String::from_utf8(listed.stdout).ok()?;
    Some(listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

/// The same by hand, for a source archive or a machine without git.
fn walk(root: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if !entry.file_type()?.is_dir() {
                found.push(path);
            } else if !NOT_OURS.contains(&name.as_str()) {
                folders.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
