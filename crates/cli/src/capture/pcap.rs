//! The classic pcap format (<https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html>).

use std::io::Read;

use super::{MAX_FRAME, Record, error::CaptureError, error::Problem, source::Source, time};

const HEAD: &str = "the pcap header";
const RECORD: &str = "a pcap record";

/// What the magic number says of the rest.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    big_endian: bool,
    nanoseconds: bool,
    /// Bytes of a record's header: the "modified" pcap of old Linux tools has eight more.
    record_header: usize,
}

impl Layout {
    pub(super) fn of_magic(magic: [u8; 4]) -> Option<Self> {
        let (big_endian, word) = match magic[0] {
            0xa1 => (true, u32::from_be_bytes(magic)),
            _ => (false, u32::from_le_bytes(magic)),
        };
        let layout = |nanoseconds, record_header| Self { big_endian, nanoseconds, record_header };
        match word {
            0xa1b2_c3d4 => Some(layout(false, 16)),
            0xa1b2_3c4d => Some(layout(true, 16)),
            0xa1b2_cd34 => Some(layout(false, 24)),
            _ => None,
        }
    }

    fn word(self, bytes: &[u8], at: usize) -> u32 {
        let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
    }
}

/// A pcap file after its header.
pub(super) struct Pcap {
    layout: Layout,
    link: u16,
}

impl Pcap {
    /// Reads the header after its magic number.
    pub(super) fn open<R: Read>(
        source: &mut Source<R>,
        layout: Layout,
    ) -> Result<Self, CaptureError> {
        let mut head = [0; 20];
        source.exact(&mut head, 0, HEAD)?;
        let version = layout.word(&head, 0);
        let major = if layout.big_endian { version >> 16 } else { version & 0xffff };
        if major != 2 {
            let wanted = "2".to_owned();
            let got = u64::from(major);
            let problem = Problem::Field { what: HEAD, field: "major version", got, wanted };
            return Err(source.error_at(0, problem));
        }
        // The high half may tell of a frame check sequence; no header says where one would be, and
        // the IP length keeps it out of the packet.
        let [.., b2, b1] = layout.word(&head, 16).to_be_bytes();
        Ok(Self { layout, link: u16::from_be_bytes([b2, b1]) })
    }

    /// Reads record `number`.
    pub(super) fn next<R: Read>(
        &self,
        source: &mut Source<R>,
        number: u64,
    ) -> Result<Option<Record>, CaptureError> {
        let Self { layout, link } = *self;
        let start = source.offset();
        let mut head = [0; 24];
        let head = &mut head[..layout.record_header];
        if !source.exact_or_end(head, "a pcap record header")? {
            return Ok(None);
        }
        let captured = layout.word(head, 8);
        if captured > MAX_FRAME {
            let wanted = format!("at most {MAX_FRAME} (record {number})");
            let got = u64::from(captured);
            let problem = Problem::Field { what: RECORD, field: "captured length", got, wanted };
            return Err(source.error_at(start, problem));
        }
        source.load(captured as usize, start, RECORD)?;
        let (seconds, fraction) = (layout.word(head, 0), layout.word(head, 4));
        let unit = if layout.nanoseconds { 1 } else { 1000 };
        Ok(Some(Record {
            time: Some(time::Timestamp::from_parts(seconds, fraction, unit)),
            link,
            start: 0,
            len: captured as usize,
            original_len: layout.word(head, 12),
        }))
    }

    pub(super) fn time_digits(&self) -> usize {
        if self.layout.nanoseconds { 9 } else { 6 }
    }
}
