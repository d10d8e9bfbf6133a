//! Reading capture files: pcap and pcapng, in both byte orders, from a file or a pipe.
//!
//! The reader streams: it holds one frame at a time, and a length field in the file never makes it
//! allocate more than the file really has. It is our own because the crates at hand cannot do what
//! `dissect` owes: pcap-file 2.0 refuses every frame that a snap length cut short and tells no file
//! offset; pcap-parser 0.17 takes no if_tsresol that is a power of two and reads if_tsoffset in
//! little-endian order only. Both are small formats; the tests compare with pcap-file.

mod error;
mod pcap;
mod pcapng;
mod source;
mod time;

#[cfg(test)]
mod tests;

use std::io::Read;

use urxe_wire::LinkType;

pub use error::{CaptureError, Problem};
pub(crate) use error::{printable, without_code};
pub use time::Timestamp;

use pcap::Pcap;
use pcapng::PcapNg;
use source::Source;

/// A frame longer than this is taken for a damaged length field, bytes. Real ones are at most some
/// 64 KiB (GSO), and capture tools stop at 256 KiB.
pub const MAX_FRAME: u32 = 16 << 20;

/// One frame of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its number in the file, from 1. Blocks of a pcapng file that hold no packet are not
    /// counted, though some of them have a number in Wireshark.
    pub number: u64,
    /// When it was captured; pcapng's simple packet blocks do not say.
    pub time: Option<Timestamp>,
    /// How many digits of a second the file's clock has, 6 or 9. In a pcapng file that of the
    /// finest interface so far counts.
    pub time_digits: usize,
    /// The link type (<https://www.tcpdump.org/linktypes.html>) of the interface it was seen on.
    pub link: u16,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// How long the frame was on the link, bytes; more than `bytes.len()` if a snap length cut it.
    pub original_len: u32,
}

impl Frame<'_> {
    /// Whether a snap length cut the frame short.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.bytes.len() < self.original_len as usize
    }

    /// The link type, if it is one that is read. BSDs number raw IP on their own.
    #[must_use]
    pub fn link_type(&self) -> Option<LinkType> {
        match self.link {
            12 | 14 => Some(LinkType::RawIp),
            code => LinkType::from_pcap(code.into()),
        }
    }
}

/// A capture file being read.
pub struct Capture<R> {
    source: Source<R>,
    format: Format,
    frames: u64,
}

enum Format {
    Pcap(Pcap),
    PcapNg(PcapNg),
}

/// Where a frame's bytes are, and what the file says of them.
struct Record {
    time: Option<Timestamp>,
    link: u16,
    /// The range of the bytes in the source's buffer.
    start: usize,
    len: usize,
    original_len: u32,
}

impl<R: Read> Capture<R> {
    /// Reads the head of a capture file; `name` is what errors call it.
    ///
    /// # Errors
    /// Where the input cannot be read, is empty, or is no pcap or pcapng file.
    pub fn new(name: &str, input: R) -> Result<Self, CaptureError> {
        let mut source = Source::new(name, input);
        let magic = source.magic()?;
        let format = if magic == pcapng::SECTION_HEADER {
            Format::PcapNg(PcapNg::open(&mut source)?)
        } else if let Some(layout) = pcap::Layout::of_magic(magic) {
            Format::Pcap(Pcap::open(&mut source, layout)?)
        } else {
            return Err(source.error_at(0, Problem::Foreign { magic }));
        };
        Ok(Self { source, format, frames: 0 })
    }

    /// The next frame; `None` at the end of the file.
    ///
    /// # Errors
    /// Where the file is cut off or damaged, or reading fails. There is nothing to be had after it.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, CaptureError> {
        let record = match &mut self.format {
            Format::Pcap(f) => f.next(&mut self.source, self.frames + 1)?,
            Format::PcapNg(f) => f.next(&mut self.source)?,
        };
        let Some(record) = record else { return Ok(None) };
        self.frames += 1;
        Ok(Some(Frame {
            number: self.frames,
            time: record.time,
            time_digits: match &self.format {
                Format::Pcap(f) => f.time_digits(),
                Format::PcapNg(f) => f.time_digits(),
            },
            link: record.link,
            bytes: &self.source.buffer()[record.start..record.start + record.len],
            original_len: record.original_len,
        }))
    }
}
