//! The capture file that a command reads.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use super::Failure;
use crate::capture::{printable, without_code};
use crate::dissect::Filter;
use crate::ending::Readable;

/// A capture that is open.
pub(super) struct Input {
    /// What errors call it.
    pub(super) name: String,
    pub(super) reader: Box<dyn Read>,
    /// It is the standard input.
    pub(super) stdin: bool,
    /// Its length, bytes, where it has one.
    pub(super) len: Option<u64>,
}

/// Opens a file; `-` is the standard input.
pub(super) fn open(path: &Path) -> Result<Input, Failure> {
    if path.as_os_str() == "-" {
        let name = "standard input".to_owned();
        // Not through a buffer: what waits there does not show when the descriptor is waited for.
        let stdin = io::stdin().as_fd().try_clone_to_owned();
        let stdin = stdin.map_err(|e| format!("{name}: {}", without_code(&e)))?;
        let reader = Box::new(Readable(File::from(stdin)));
        return Ok(Input { name, reader, stdin: true, len: None });
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(|e| {
        let (file, why) = (printable(&name), without_code(&e));
        format!("{file}: {why}; give a pcap or pcapng file")
    })?;
    let len = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|data| data.len());
    Ok(Input { name, reader: Box::new(Readable(file)), stdin: false, len })
}

/// All of `--filter` in one.
pub(super) fn joined(parts: &[Filter]) -> Filter {
    let mut filter = Filter::default();
    for part in parts {
        filter.add(part.clone());
    }
    filter
}
