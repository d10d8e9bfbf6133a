//! What a guest boots into: modules, tools, their libraries and the agent, in one archive.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::LabError;
use crate::cache::{Cache, Kernel};
use crate::command::text;
use crate::cpio::Archive;
use crate::modules;

const MODULES: &[&str] = &[
    "rdma_rxe",
    "ib_uverbs",
    "rdma_ucm",
    "ib_umad",
    "virtio_net",
    "crc32_generic",
    "crc32_pclmul",
    // Faults of both directions: what comes in passes an ifb.
    "sch_netem",
    "sch_ingress",
    "cls_matchall",
    "act_mirred",
    "ifb",
];

/// Programs, as paths of the packages that hold them.
const PROGRAMS: &[&str] = &[
    // busybox's own shell would take its own `ip` and `tc` before these.
    "bin/dash",
    "bin/ip",
    "sbin/tc",
    "usr/bin/rdma",
    "usr/bin/ibv_devinfo",
    "usr/bin/ibv_rc_pingpong",
    "usr/bin/ibv_srq_pingpong",
    "usr/bin/ibv_uc_pingpong",
    "usr/bin/ibv_ud_pingpong",
    "usr/bin/ib_atomic_bw",
    "usr/bin/ib_read_bw",
    "usr/bin/ib_send_bw",
    "usr/bin/ib_write_bw",
    "usr/bin/rping",
    "usr/bin/ucmatose",
    "usr/bin/udaddy",
];

/// What the C library loads when a thread ends by itself, as rping's do.
const LOADED: &str = "libgcc_s.so.1";

/// The agent's files.
const AGENT: &[(&str, &str)] = &[
    ("agent.c", include_str!("../agent/agent.c")),
    ("agent.h", include_str!("../agent/agent.h")),
    ("flush.c", include_str!("../agent/flush.c")),
    ("memory.c", include_str!("../agent/memory.c")),
    ("objects.c", include_str!("../agent/objects.c")),
    ("packet.c", include_str!("../agent/packet.c")),
    ("words.c", include_str!("../agent/words.c")),
    ("words.h", include_str!("../agent/words.h")),
    ("work.c", include_str!("../agent/work.c")),
];

const INIT: &str = include_str!("../agent/init");
const PROVIDER: &str = "etc/libibverbs.d/rxe.driver";
/// The folder of libraries, in packages and in the guest.
const LIBRARIES: &str = "lib/x86_64-linux-gnu";

/// The archive, made unless one of the same parts is there.
pub(crate) fn image(cache: &Cache, kernel: &Kernel) -> Result<PathBuf, LabError> {
    let mut sum = crc32fast::Hasher::new();
    let parts = AGENT.iter().flat_map(|(name, content)| [*name, content]);
    let lists = MODULES.iter().chain(PROGRAMS).copied().chain([LOADED]);
    for part in parts.chain(lists).chain([INIT, &kernel.version]) {
        sum.update(part.as_bytes());
    }
    let path = cache.path(&format!("guest-{:08x}.cpio", sum.finalize()));
    if !path.exists() {
        let bytes = build(cache, kernel)?;
        let new = path.with_extension(format!("new.{}", std::process::id()));
        std::fs::write(&new, bytes).map_err(LabError::file(&new))?;
        std::fs::rename(&new, &path).map_err(LabError::file(&path))?;
        cache.sweep("guest-", |rest| path.ends_with(format!("guest-{rest}")));
    }
    Ok(path)
}

fn build(cache: &Cache, kernel: &Kernel) -> Result<Vec<u8>, LabError> {
    let tools = cache.tools()?;
    let agent = agent(cache, &tools)?;
    let mut archive = Archive::default();
    let folders = ["bin", "etc", "etc/libibverbs.d", "lib", "lib64", "modules", "usr", "usr/bin"];
    folders.iter().for_each(|folder| archive.folder(folder));
    let provider_of = format!("usr/{LIBRARIES}/libibverbs");
    for folder in [LIBRARIES, "usr/lib", &format!("usr/{LIBRARIES}"), &provider_of] {
        archive.folder(folder);
    }
    archive.file("init", INIT.as_bytes());
    archive.file("bin/busybox", &read(&tools.join("bin/busybox"))?);
    archive.link("bin/sh", "/usr/bin/dash");
    archive.file("usr/bin/agent", &read(&agent)?);
    archive.file(PROVIDER, &read(&tools.join(PROVIDER))?);
    let mut elves: Vec<PathBuf> = PROGRAMS.iter().map(|path| tools.join(path)).collect();
    for program in &elves {
        archive.file(&format!("usr/bin/{}", name(program)), &read(program)?);
    }
    for provider in entries(&tools.join(&provider_of))? {
        if name(&provider).starts_with("librxe") {
            archive.file(&format!("{provider_of}/{}", name(&provider)), &read(&provider)?);
            elves.push(provider);
        }
    }
    elves.push(agent);
    let loaded = tools.join(LIBRARIES).join(LOADED);
    archive.file(&format!("{LIBRARIES}/{LOADED}"), &read(&loaded)?);
    elves.push(loaded);
    for library in libraries(&tools, elves)? {
        archive.file(&format!("{LIBRARIES}/{}", name(&library)), &read(&library)?);
    }
    archive.link("lib64/ld-linux-x86-64.so.2", &format!("/{LIBRARIES}/ld-linux-x86-64.so.2"));
    let mut order = String::new();
    for (module, code) in modules::closure(&kernel.modules, MODULES)? {
        archive.file(&format!("modules/{module}.ko"), &code);
        order.push_str(&module);
        order.push('\n');
    }
    archive.file("modules/order", order.as_bytes());
    Ok(archive.finish())
}

/// Compiles the agent against the guests' libibverbs.
fn agent(cache: &Cache, tools: &Path) -> Result<PathBuf, LabError> {
    let folder = cache.path(&format!("agent.{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(LabError::file(&folder))?;
    let mut compile = Command::new("gcc");
    compile.args(["-O1", "-g0", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-o", "agent"]);
    for (name, content) in AGENT {
        let path = folder.join(name);
        std::fs::write(&path, content).map_err(LabError::file(&path))?;
        if path.extension().is_some_and(|end| end == "c") {
            compile.arg(name);
        }
    }
    compile.arg("-I").arg(tools.join("usr/include"));
    let usr = tools.join("usr").join(LIBRARIES);
    let plain = tools.join(LIBRARIES);
    compile.arg("-L").arg(&usr).arg("-l:libibverbs.so.1");
    // What libibverbs needs in its turn.
    compile.arg(format!("-Wl,-rpath-link,{}:{}", usr.display(), plain.display()));
    text(compile.current_dir(&folder))?;
    let done = cache.path("agent");
    std::fs::rename(folder.join("agent"), &done).map_err(LabError::file(&done))?;
    std::fs::remove_dir_all(&folder).map_err(LabError::file(&folder))?;
    Ok(done)
}

/// The libraries that programs need, and those that these need.
fn libraries(tools: &Path, mut of: Vec<PathBuf>) -> Result<BTreeSet<PathBuf>, LabError> {
    let mut found = BTreeSet::new();
    while let Some(elf) = of.pop() {
        let told = text(Command::new("readelf").args(["--dynamic", "--wide"]).arg(&elf))?;
        let needed = told.lines().filter(|line| line.contains("(NEEDED)"));
        for line in needed {
            let library = line.split(['[', ']']).nth(1).unwrap_or_default();
            let places = [tools.join(LIBRARIES), tools.join("usr").join(LIBRARIES)];
            let paths = places.iter().map(|place| place.join(library));
            let Some(path) = paths.into_iter().find(|path| path.exists()) else {
                let problem = format!("{} needs {library}, which is in no package", elf.display());
                return Err(LabError::CannotRun(problem));
            };
            if found.insert(path.clone()) {
                of.push(path);
            }
        }
    }
    Ok(found)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<Vec<u8>, LabError> {
    std::fs::read(path).map_err(LabError::file(path))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let entries = std::fs::read_dir(folder).map_err(LabError::file(folder))?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
}
