//! The capture file that a command reads.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::Failure;
use crate::capture::{printable, without_code};
use crate::dissect::Filter;

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
        let (name, reader) = ("standard input".to_owned(), Box::new(io::stdin().lock()));
        return Ok(Input { name, reader, stdin: true, len: None });
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(|e| {
        let (file, why) = (printable(&name), without_code(&e));
        format!("{file}: {why}; give a pcap or pcapng file")
    })?;
    let len = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|data| data.len());
    Ok(Input { name, reader: Box::new(file), stdin: false, len })
}

/// All of `--filter` in one.
pub(super) fn joined(parts: &[Filter]) -> Filter {
    let mut filter = Filter::default();
    for part in parts {
        filter.add(part.clone());
    }
    filter
}
