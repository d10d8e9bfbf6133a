//! Gives the library its name, its version nodes, the library that it needs, and its place in the
//! directory that programs search.

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let map = here.join("librdmacm.map");
    println!("cargo:rerun-if-changed=librdmacm.map");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librdmacm.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={}", map.display());
    // Programs may take their own `dlclose` of it for the end; a call may still be inside.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    let needed = stand_in(&out)?;
    println!("cargo:rustc-cdylib-link-arg=-Wl,--no-as-needed");
    println!("cargo:rustc-cdylib-link-arg={}", needed.display());
    println!("cargo:rustc-cdylib-link-arg=-Wl,--as-needed");
    // target/PROFILE/build/urxe-rdmacm-HASH/out
    let profile = out.ancestors().nth(3).ok_or("OUT_DIR is not where cargo puts it")?;
    link(&profile.join("verbs"))?;
    Ok(())
}

/// An empty library with the name of the one that ours needs: to be linked with, so that a program
/// that asks for librdmacm.so.1 alone gets libibverbs.so.1 too. Cargo builds ours in no order that
/// could be relied on.
fn stand_in(out: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let library = out.join("libibverbs.so.1");
    let cc = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = Command::new(&cc);
    command.args(["-shared", "-nostdlib", "-Wl,-soname,libibverbs.so.1", "-o"]).arg(&library);
    command.args(["-x", "c", "/dev/null"]);
    let status = command.status().map_err(|error| format!("{cc}: {error}"))?;
    if !status.success() {
        return Err(format!("{cc} made no empty library: {status}").into());
    }
    Ok(library)
}

/// `target/PROFILE/verbs/librdmacm.so.1`, for LD_LIBRARY_PATH.
fn link(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    match symlink("../librdmacm.so", directory.join("librdmacm.so.1")) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
