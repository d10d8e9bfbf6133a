//! Where the library is.

use std::env;
use std::path::{Path, PathBuf};

use super::LIBRARY;
use crate::command::Failure;

/// The name that programs ask the loader for.
const NAME: &str = "libibverbs.so.1";

/// The directory that has the library: the one given, or one beside this command.
pub(super) fn find(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let given = given.map(Path::to_owned).or_else(|| env::var_os(LIBRARY).map(PathBuf::from));
    if let Some(directory) = given {
        let whole = directory.canonicalize().unwrap_or_else(|_| directory.clone());
        return if whole.join(NAME).exists() { plain(whole) } else { Err(missing(&[directory])) };
    }
    let me = env::current_exe().map_err(|e| format!("where this command is: {e}"))?;
    let places = places(&me);
    match places.iter().find(|place| place.join(NAME).exists()) {
        Some(place) => plain(place.clone()),
        None => Err(missing(&places)),
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

fn missing(places: &[PathBuf]) -> Failure {
    let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    format!(
        "{NAME} is not in {}; build it with `cargo build --release`, or say where it is with \
         --library",
        places.join(" nor ")
    )
    .into()
}
