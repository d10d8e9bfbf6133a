//! Where the kernel and the tools of the guests come from: Debian's packages, fetched once and
//! unpacked beside the build. Nothing is installed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::LabError;
use crate::command::text;

/// What the guests' programs are in, with what those packages depend on.
const TOOLS: &[&str] = &[
    "busybox-static",
    "dash",
    "ibverbs-providers",
    "ibverbs-utils",
    "iproute2",
    "libibverbs-dev",
    "librdmacm1",
    "perftest",
    "rdmacm-utils",
];

/// Where what was fetched and built is kept.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// A kernel that guests boot.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// As `uname -r` says it.
    pub version: String,
    pub(crate) image: PathBuf,
    pub(crate) modules: PathBuf,
}

impl Cache {
    /// The folder that `URXE_LAB_CACHE` names, or one in the workspace's target folder.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn open() -> Result<Self, LabError> {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/rxe-lab");
        let root = std::env::var_os("URXE_LAB_CACHE").map_or(beside, PathBuf::from);
        std::fs::create_dir_all(&root).map_err(LabError::file(&root))?;
        let root = root.canonicalize().map_err(LabError::file(&root))?;
        Ok(Self { root })
    }

    /// A path in it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Removes what is called `prefix` and something that `keep` does not want.
    pub(crate) fn sweep(&self, prefix: &str, keep: impl Fn(&str) -> bool) {
        let entries = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.strip_prefix(prefix).is_some_and(|rest| !keep(rest)) {
                // What cannot be removed only takes room.
                let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
            }
        }
    }

    /// Debian's newest kernel of the series that has rxe with FLUSH and ATOMIC WRITE.
    ///
    /// # Errors
    /// Where there is none, or it cannot be fetched.
    pub fn kernel(&self) -> Result<Kernel, LabError> {
        let root = self.unpacked("kernel", || Ok(vec![newest_kernel()?]))?;
        let modules = only_entry(&root.join("lib/modules"))?;
        let version = modules.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Kernel { image: root.join(format!("boot/vmlinuz-{version}")), version, modules })
    }

    /// A tree of the guests' programs and their libraries.
    pub(crate) fn tools(&self) -> Result<PathBuf, LabError> {
        let sum = crc32fast::hash(TOOLS.join(" ").as_bytes());
        self.unpacked(&format!("tools-{sum:08x}"), || {
            let without = ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"];
            let mut ask = Command::new("apt-cache");
            ask.args(["depends", "--recurse", "--important"]);
            ask.args(without.iter().map(|kind| format!("--no-{kind}"))).args(TOOLS);
            let answer = text(&mut ask)?;
            let names = answer.lines().filter(|line| line.starts_with(char::is_alphanumeric));
            let names: BTreeSet<&str> = names.collect();
            let missing: Vec<_> = TOOLS.iter().filter(|tool| !names.contains(*tool)).collect();
            if missing.is_empty() {
                return Ok(names.into_iter().map(str::to_owned).collect());
            }
            Err(LabError::CannotRun(format!("apt knows no {missing:?}; it wants Debian 12")))
        })
    }

    /// The tree of some packages: fetched if it is not there. A folder appears under its name only
    /// when all is in it.
    fn unpacked(
        &self,
        name: &str,
        packages: impl Fn() -> Result<Vec<String>, LabError>,
    ) -> Result<PathBuf, LabError> {
        let done = self.path(name);
        if done.exists() {
            return Ok(done);
        }
        let work = self.path(&format!("{name}.{}", std::process::id()));
        let tree = work.join("tree");
        std::fs::create_dir_all(&tree).map_err(LabError::file(&tree))?;
        let fetched = fetch(&work, &packages).or_else(|_| {
            // The lists may be old, or none yet.
            text(Command::new("apt-get").args(["-qq", "update"])).map_err(unreachable_debian)?;
            fetch(&work, &packages).map_err(unreachable_debian)
        });
        let unpacked = fetched.and_then(|files| {
            files.iter().try_for_each(|file| {
                text(Command::new("dpkg").arg("-x").args([file, &tree])).map(drop)
            })
        });
        let moved = unpacked.and_then(|()| {
            // Someone else may have been quicker.
            std::fs::rename(&tree, &done)
                .or_else(|error| if done.exists() { Ok(()) } else { Err(error) })
                .map_err(LabError::file(&done))
        });
        std::fs::remove_dir_all(&work).map_err(LabError::file(&work))?;
        moved.map(|()| done)
    }
}

fn unreachable_debian(error: LabError) -> LabError {
    match error {
        LabError::Command { .. } => {
            LabError::CannotRun(format!("Debian's packages cannot be fetched: {error}"))
        }
        other => other,
    }
}

/// Downloads packages into a folder, and gives their files.
fn fetch(
    folder: &Path,
    packages: &impl Fn() -> Result<Vec<String>, LabError>,
) -> Result<Vec<PathBuf>, LabError> {
    let mut command = Command::new("apt-get");
    command.args(["-qq", "download"]).args(packages()?).current_dir(folder);
    text(&mut command)?;
    let entries = std::fs::read_dir(folder).map_err(LabError::file(folder))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| path.extension().is_some_and(|end| end == "deb")).collect())
}

/// The package of the newest 6.12 kernel.
fn newest_kernel() -> Result<String, LabError> {
    let pattern = r"^linux-image-6\.12\.[0-9]+\+deb12-amd64$";
    let found = text(Command::new("apt-cache").args(["search", "--names-only", pattern]))?;
    let names = found.lines().filter_map(|line| line.split_whitespace().next());
    let number = |name: &&str| name.split(['.', '+']).nth(2).and_then(|n| n.parse::<u32>().ok());
    let newest = names.max_by_key(number).map(str::to_owned);
    newest.ok_or_else(|| {
        let problem = "apt knows no linux-image-6.12.*+deb12-amd64; it wants Debian 12's lists";
        LabError::Command { command: "apt-cache search".to_owned(), output: problem.to_owned() }
    })
}

fn only_entry(folder: &Path) -> Result<PathBuf, LabError> {
    let mut entries = std::fs::read_dir(folder).map_err(LabError::file(folder))?;
    let entry = entries.next().and_then(Result::ok).map(|entry| entry.path());
    entry.ok_or_else(|| LabError::file(folder)(std::io::ErrorKind::NotFound.into()))
}
