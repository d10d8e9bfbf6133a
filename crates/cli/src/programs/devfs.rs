//! Files of a device at the paths where hardware has them, for programs that look there and not in
//! the library: UCX wants `/dev/infiniband/uverbs0` and the kind of the GIDs under
//! `/sys/class/infiniband`. They are made in a mount namespace that only the program has, if need
//! be under a user namespace, which needs no privileges.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use urxe::Address;

/// The device's names, as the library has them.
const DEVICE: &str = "urxe0";
const NODE: &str = "uverbs0";

/// The interface whose device it is.
pub(super) fn interface(address: Address) -> String {
    let address = match address {
        Address::Of(address) => address,
        Address::Loopback => IpAddr::from([127, 0, 0, 1]),
    };
    let all = urxe::interfaces().unwrap_or_default();
    let own = all.into_iter().find(|one| one.address == address);
    own.map_or_else(|| "lo".to_owned(), |own| own.name)
}

/// The command by which this one tries out in a process of its own what [`enter`] does: what fails
/// half way leaves a process where it should run nothing.
pub(crate) const TRIAL: &str = "try-devfs";

/// Whether [`enter`] would succeed.
///
/// # Errors
/// Why not.
pub(super) fn trial(interface: &str) -> Result<(), String> {
    let me = std::env::current_exe().map_err(|e| format!("where this command is: {e}"))?;
    let tried = Command::new(me).args([TRIAL, interface]).stdin(Stdio::null()).output();
    let tried = tried.map_err(|e| format!("a trial of it: {e}"))?;
    if tried.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&tried.stderr);
    Err(said.trim().trim_start_matches("error: ").to_owned())
}

/// Goes where the files are. Gives what could not be served, and why.
///
/// # Errors
/// Where the host lets us make no namespaces, or no mounts in them.
pub(super) fn enter(interface: &str) -> Result<Vec<String>, String> {
    own_mounts()?;
    let stage = Stage::make().map_err(|e| format!("a place for files of a device: {e}"))?;
    let mut unserved = Vec::new();
    let dev = stage.copy(Path::new("/dev"), &["infiniband"], &mut unserved);
    dev.and_then(|dev| node(&dev).and_then(|()| over(&dev, "/dev")))
        .map_err(|e| format!("/dev/infiniband/{NODE} cannot be served: {e}"))?;
    let class = stage.copy(Path::new("/sys/class"), &["infiniband"], &mut unserved);
    let class = class.and_then(|class| {
        describe(&class.join("infiniband").join(DEVICE), interface)?;
        over(&class, "/sys/class")
    });
    if let Err(e) = class {
        unserved.push(format!("/sys/class/infiniband cannot be served: {e}"));
    }
    Ok(unserved)
}

/// Makes the mounts of this process its own.
fn own_mounts() -> Result<(), String> {
    let (uid, gid) = (geteuid(), getegid());
    let refused = |what: &str, e: &dyn std::fmt::Display| {
        format!(
            "{what}: {e}; it takes root, or user namespaces (sysctl \
             kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns), \
             and in a container its leave"
        )
    };
    if unshare(CloneFlags::CLONE_NEWNS).is_err() {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)
            .map_err(|e| refused("namespaces", &e))?;
        // The program stays who it was. A group may be mapped once nobody can leave groups.
        for (file, text) in [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("{uid} {uid} 1")),
            ("gid_map", format!("{gid} {gid} 1")),
        ] {
            fs::write(Path::new("/proc/self").join(file), text)
                .map_err(|e| refused(&format!("/proc/self/{file}"), &e))?;
        }
    }
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
        .map_err(|e| refused("private mounts", &e))
}

/// Where new directories are put together.
struct Stage(PathBuf);

impl Stage {
    fn make() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("urxe-devfs-{}", std::process::id()));
        fs::create_dir(&path)?;
        let stage = Self(path);
        let kind = Some("tmpfs");
        mount(kind, &stage.0, kind, MsFlags::MS_NOSUID, Some("mode=0755"))?;
        Ok(stage)
    }

    /// A directory with the entries of `from`, but those called `without`.
    fn copy(&self, from: &Path, without: &[&str], lost: &mut Vec<String>) -> io::Result<PathBuf> {
        let to = self.0.join(from.file_name().unwrap_or_default());
        fs::create_dir(&to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            if without.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            let (old, new) = (entry.path(), to.join(entry.file_name()));
            if let Err(e) = the_same(&old, &new, entry.file_type()?) {
                lost.push(format!("{} is not to be seen by the program: {e}", old.display()));
            }
        }
        Ok(to)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What was put over other directories stays.
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
        let _ = fs::remove_dir(&self.0);
    }
}

fn the_same(old: &Path, new: &Path, kind: fs::FileType) -> io::Result<()> {
    if kind.is_symlink() {
        return symlink(fs::read_link(old)?, new);
    }
    if kind.is_dir() {
        fs::create_dir(new)?;
    } else {
        fs::write(new, "")?;
    }
    bind(old, new)
}

fn bind(old: &Path, new: &Path) -> io::Result<()> {
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    Ok(mount(Some(old), new, None::<&str>, flags, None::<&str>)?)
}

fn over(new: &Path, old: &str) -> io::Result<()> {
    bind(new, Path::new(old))
}

/// A character device that everybody may read and write, which is all that is looked at.
fn node(dev: &Path) -> io::Result<()> {
    let directory = dev.join("infiniband");
    fs::create_dir(&directory)?;
    let node = directory.join(NODE);
    fs::write(&node, "")?;
    bind(Path::new("/dev/null"), &node)
}

/// What sysfs says of an RDMA device; its GIDs are for each process to ask the library for.
fn describe(device: &Path, interface: &str) -> io::Result<()> {
    for (name, text) in [
        ("node_type", "1: CA"),
        ("node_desc", DEVICE),
        ("fw_ver", env!("CARGO_PKG_VERSION")),
        ("ports/1/state", "4: ACTIVE"),
        ("ports/1/phys_state", "5: LinkUp"),
        ("ports/1/link_layer", "Ethernet"),
        ("ports/1/pkeys/0", "0xffff"),
        ("ports/1/gid_attrs/types/0", "RoCE v2"),
        ("ports/1/gid_attrs/ndevs/0", interface),
    ] {
        let file = device.join(name);
        fs::create_dir_all(file.parent().unwrap_or(device))?;
        fs::write(file, format!("{text}\n"))?;
    }
    Ok(())
}
