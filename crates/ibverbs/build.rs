//! Gives the library its name, its version nodes and the directory that programs search for it.

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let map = here.join("libibverbs.map");
    println!("cargo:rerun-if-changed=libibverbs.map");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libibverbs.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={}", map.display());
    // A thread of the library runs until the process ends: `dlclose` must not unmap its code.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // target/PROFILE/build/urxe-ibverbs-HASH/out
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let profile = out.ancestors().nth(3).ok_or("OUT_DIR is not where cargo puts it")?;
    link(&profile.join("verbs"))?;
    Ok(())
}

/// `target/PROFILE/verbs/libibverbs.so.1`, for LD_LIBRARY_PATH.
fn link(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    match symlink("../libibverbs.so", directory.join("libibverbs.so.1")) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
