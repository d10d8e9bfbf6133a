//! Where the libraries are.

use std::env;
use std::path::{Path, PathBuf};

use super::LIBRARY;
use crate::command::Failure;

/// The names that programs ask the loader for. One works only with the other of the same build.
const NAMES: [&str; 2] = ["libibverbs.so.1", "librdmacm.so.1"];

/// The first that is not there.
fn lacks(directory: &Path) -> Option<&'static str> {
    NAMES.into_iter().find(|name| !directory.join(name).exists())
}

/// The directory that has the libraries: the one given, or one beside this command.
pub(super) fn find(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let given = given.map(Path::to_owned).or_else(|| env::var_os(LIBRARY).map(PathBuf::from));
    if let Some(directory) = given {
        let whole = directory.canonicalize().unwrap_or_else(|_| directory.clone());
        return match lacks(&whole) {
            None => plain(whole),
            Some(name) => Err(missing(name, &[directory])),
        };
    }
    let me = env::current_exe().map_err(|e| format!("where this command is: {e}"))?;
    let places = places(&me);
    match places.iter().find(|place| lacks(place).is_none()) {
        Some(place) => plain(place.clone()),
        None => Err(missing(places.iter().find_map(|p| lacks(p)).unwrap_or(NAMES[0]), &places)),
    }
}

/// Where cargo puts it, and where a package or an archive would.
fn places(me: &Path) -> Vec<PathBuf> {
    let beside = me.parent().unwrap_or(Path::new("/"));
    let above = beside.parent().unwrap_or(Path::new("/"));
    vec![beside.join("verbs"), above.join("lib/urxe")]
}

/// The loader splits its list of directories at these.
fn plain(directory: PathBuf) -> Result<PathBuf, Failure> {
    if directory.to_string_lossy().contains([':', ';']) {
        let shown = directory.display();
        return Err(format!("{shown}: no directory with : or ; can be searched; move it").into());
    }
    Ok(directory)
}

fn missing(name: &str, places: &[PathBuf]) -> Failure {
    let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    format!(
        "{name} is not in {}; build it with `cargo build --release`, or say where it is with \
         --library",
        places.join(" nor ")
    )
    .into()
}
