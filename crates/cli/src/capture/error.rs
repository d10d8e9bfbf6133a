//! Why a capture file cannot be read (on), in one line.

use std::{error::Error, fmt, io};

/// What is wrong with a capture file, and where.
#[derive(Debug)]
pub struct CaptureError {
    /// The file.
    pub name: String,
    /// Where the part that is wrong begins, bytes from the file's start.
    pub offset: u64,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a capture file.
#[derive(Debug)]
pub enum Problem {
    /// There is not a byte in it.
    Empty,
    /// Its first bytes are of no capture format.
    Foreign {
        /// The first four bytes.
        magic: [u8; 4],
    },
    /// It ends in the middle of something.
    Cut {
        /// Of what.
        what: &'static str,
        /// How many bytes of it are there.
        got: u64,
        /// How many it should have.
        wanted: u64,
    },
    /// A field holds what it cannot hold.
    Field {
        /// The part of the file it belongs to.
        what: &'static str,
        /// The field.
        field: &'static str,
        /// Its value.
        got: u64,
        /// What would have been right.
        wanted: String,
    },
    /// The system would not give its bytes.
    Read(io::Error),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, offset, problem } = self;
        let name = printable(name);
        let good = if *offset == 0 { "" } else { " what came before is good," };
        match problem {
            Problem::Empty => {
                write!(f, "{name}: the file is empty, wanted a pcap or pcapng capture; ")?;
                f.write_str("check that the capture was stopped cleanly and written here")
            }
            Problem::Foreign { magic } => foreign(f, &name, *magic),
            Problem::Cut { what, got, wanted } => {
                write!(f, "{name}: cut off in {what} at byte {offset}: ")?;
                write!(f, "got {got} of {wanted} bytes;{good} ")?;
                f.write_str(again(*offset))
            }
            Problem::Field { what, field, got, wanted } => {
                write!(f, "{name}: damaged in {what} at byte {offset}: ")?;
                write!(f, "{field} is {got}, wanted {wanted};{good} ")?;
                f.write_str(again(*offset))
            }
            Problem::Read(e) => {
                write!(f, "{name}: reading failed at byte {offset}: {}", without_code(e))
            }
        }
    }
}

impl Error for CaptureError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.problem {
            Problem::Read(e) => Some(e),
            _ => None,
        }
    }
}

/// What to do about a file that is good up to `offset`.
fn again(offset: u64) -> &'static str {
    match offset {
        0 => "copy or record the file again",
        _ => "copy or record the file again for the rest",
    }
}

/// A name with its control characters escaped, so that a terminal shows and does not obey them.
pub(crate) fn printable(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// Other formats by their first bytes, and the way from each to one that is read.
const KNOWN: [(&[u8], &str, &str); 6] = [
    (&[0x1f, 0x8b], "gzip-compressed", "gunzip -c FILE | urxe dissect -"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd-compressed", "zstd -dc FILE | urxe dissect -"),
    (&[0xfd, b'7', b'z', b'X'], "xz-compressed", "xz -dc FILE | urxe dissect -"),
    (b"BZh", "bzip2-compressed", "bunzip2 -c FILE | urxe dissect -"),
    (b"PK", "a zip archive", "unzip -p FILE | urxe dissect -"),
    (b"snoo", "a snoop capture", "editcap -F pcap FILE NEW.pcap"),
];

fn foreign(f: &mut fmt::Formatter<'_>, name: &str, magic: [u8; 4]) -> fmt::Result {
    if let Some((_, what, way)) = KNOWN.iter().find(|(head, ..)| magic.starts_with(head)) {
        return write!(f, "{name}: {what}, wanted a pcap or pcapng capture; try: {way}");
    }
    let [a, b, c, d] = magic;
    write!(f, "{name}: no capture file: begins with {a:02x} {b:02x} {c:02x} {d:02x} at byte 0, ")?;
    f.write_str("wanted pcap (d4 c3 b2 a1 and its kin) or pcapng (0a 0d 0d 0a); ")?;
    f.write_str("record with `tcpdump -w FILE` or convert with `editcap -F pcap`")
}

/// An I/O error's words without Rust's "(os error N)".
pub(crate) fn without_code(e: &io::Error) -> String {
    let text = e.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}
