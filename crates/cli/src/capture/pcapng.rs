//! The pcapng format (<https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html>).

use std::io::Read;

use super::{
    MAX_FRAME, Record, Timestamp,
    error::{CaptureError, Problem},
    source::Source,
};

/// The type of a section header block; the same in both byte orders.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const SECTION: &str = "a section header block";
const INTERFACE: &str = "an interface description block";
const ENHANCED: &str = "an enhanced packet block";
const SIMPLE: &str = "a simple packet block";
const OBSOLETE: &str = "a packet block";
const OTHER: &str = "a block";

/// More interfaces than this in a section are taken for damage: they must all be remembered.
const MAX_INTERFACES: usize = 1 << 16;
/// Around a block's body: type, total length, and the length again.
const FRAMING: u32 = 12;
/// A block that is held whole may have this much beside the frame: its own fields and options.
const MAX_BLOCK: u32 = MAX_FRAME + (1 << 20);

/// What an interface description says that a frame needs.
#[derive(Clone, Copy)]
struct Interface {
    link: u16,
    snap_len: u32,
    resolution: u8,
    offset: i64,
}

/// A pcapng file after its first section header.
pub(super) struct PcapNg {
    big_endian: bool,
    interfaces: Vec<Interface>,
    time_digits: usize,
}

impl PcapNg {
    /// Reads the first section header after its type.
    pub(super) fn open<R: Read>(source: &mut Source<R>) -> Result<Self, CaptureError> {
        let mut file = Self { big_endian: false, interfaces: Vec::new(), time_digits: 6 };
        file.section(source, 0)?;
        Ok(file)
    }

    pub(super) fn time_digits(&self) -> usize {
        self.time_digits
    }

    /// Reads up to the next frame.
    pub(super) fn next<R: Read>(
        &mut self,
        source: &mut Source<R>,
    ) -> Result<Option<Record>, CaptureError> {
        loop {
            let start = source.offset();
            let mut kind = [0; 4];
            if !source.exact_or_end(&mut kind, OTHER)? {
                return Ok(None);
            }
            if kind == SECTION_HEADER {
                self.section(source, start)?;
                continue;
            }
            let what = match self.word(&kind, 0) {
                1 => INTERFACE,
                2 => OBSOLETE,
                3 => SIMPLE,
                6 => ENHANCED,
                _ => OTHER,
            };
            let mut len = [0; 4];
            source.exact(&mut len, start, what)?;
            let len = self.word(&len, 0);
            if what == OTHER {
                let body = body_len(source, start, what, len, u32::MAX)?;
                source.skip(u64::from(body), start, what)?;
                self.trailer(source, start, what, len)?;
                continue;
            }
            let body = body_len(source, start, what, len, MAX_BLOCK)?;
            source.load(body as usize, start, what)?;
            self.trailer(source, start, what, len)?;
            let block = Block { source, start, what };
            match what {
                INTERFACE => self.interface(&block)?,
                ENHANCED => return self.enhanced(&block).map(Some),
                SIMPLE => return self.simple(&block).map(Some),
                _ => return self.obsolete(&block).map(Some),
            }
        }
    }

    /// Reads a section header after its type. What follows may be in the other byte order.
    fn section<R: Read>(&mut self, source: &mut Source<R>, start: u64) -> Result<(), CaptureError> {
        let mut head = [0; 8];
        source.exact(&mut head, start, SECTION)?;
        self.big_endian = match head[4..] {
            [0x1a, 0x2b, 0x3c, 0x4d] => true,
            [0x4d, 0x3c, 0x2b, 0x1a] => false,
            _ => {
                let got = u32::from_be_bytes([head[4], head[5], head[6], head[7]]).into();
                let wanted = "439041101 (1a2b3c4d) in either byte order".to_owned();
                let problem =
                    Problem::Field { what: SECTION, field: "byte-order magic", got, wanted };
                return Err(source.error_at(start, problem));
            }
        };
        self.interfaces.clear();
        let len = self.word(&head, 0);
        let body = body_len(source, start, SECTION, len, u32::MAX)?;
        if body < 16 {
            return Err(bad_length(source, start, SECTION, len, "at least 28"));
        }
        let mut version = [0; 4];
        source.exact(&mut version, start, SECTION)?;
        let major = self.half(&version, 0);
        if major != 1 {
            let (got, wanted) = (major.into(), "1".to_owned());
            let problem = Problem::Field { what: SECTION, field: "major version", got, wanted };
            return Err(source.error_at(start, problem));
        }
        source.skip(u64::from(body - 8), start, SECTION)?;
        self.trailer(source, start, SECTION, len)
    }

    /// Reads the length that ends a block; if it is not the one that began it, all framing is lost.
    fn trailer<R: Read>(
        &self,
        source: &mut Source<R>,
        start: u64,
        what: &'static str,
        len: u32,
    ) -> Result<(), CaptureError> {
        let mut again = [0; 4];
        source.exact(&mut again, start, what)?;
        let got = self.word(&again, 0);
        if got != len {
            let (got, wanted) = (got.into(), format!("{len} as at its start"));
            let problem = Problem::Field { what, field: "length at its end", got, wanted };
            return Err(source.error_at(start, problem));
        }
        Ok(())
    }

    fn interface<R: Read>(&mut self, block: &Block<'_, R>) -> Result<(), CaptureError> {
        let body = block.at_least(8)?;
        if self.interfaces.len() == MAX_INTERFACES {
            let got = MAX_INTERFACES as u64 + 1;
            return Err(block.bad(
                "number of interfaces",
                got,
                format!("at most {MAX_INTERFACES}"),
            ));
        }
        let mut interface = Interface {
            link: self.half(body, 0),
            snap_len: self.word(body, 4),
            resolution: 6,
            offset: 0,
        };
        let mut options = &body[8..];
        while options.len() >= 4 {
            let (code, len) = (self.half(options, 0), usize::from(self.half(options, 2)));
            let value = &options[4..];
            // An option that does not fit ends the list: no frame depends on what follows.
            let Some(value) = value.get(..len) else { break };
            match (code, len) {
                (0, _) => break,
                (9, 1) => interface.resolution = value[0],
                (14, 8) => interface.offset = self.double(value),
                _ => {}
            }
            let next = 4 + len.next_multiple_of(4);
            options = options.get(next..).unwrap_or_default();
        }
        // 2^-20 s is about a microsecond.
        let coarsest = if interface.resolution & 0x80 == 0 { 6 } else { 0x80 | 20 };
        if interface.resolution > coarsest {
            self.time_digits = 9;
        }
        self.interfaces.push(interface);
        Ok(())
    }

    fn enhanced<R: Read>(&self, block: &Block<'_, R>) -> Result<Record, CaptureError> {
        let body = block.at_least(20)?;
        let interface = self.interface_of(block, self.word(body, 0))?;
        self.stamped(block, interface, 20)
    }

    fn obsolete<R: Read>(&self, block: &Block<'_, R>) -> Result<Record, CaptureError> {
        let body = block.at_least(20)?;
        let interface = self.interface_of(block, self.half(body, 0).into())?;
        self.stamped(block, interface, 20)
    }

    /// A frame of a block that has time, captured and original length before `start`.
    fn stamped<R: Read>(
        &self,
        block: &Block<'_, R>,
        interface: Interface,
        start: usize,
    ) -> Result<Record, CaptureError> {
        let body = block.source.buffer();
        let captured = self.word(body, start - 8);
        let len = block.frame_len(captured, body.len() - start)?;
        let ticks =
            u64::from(self.word(body, start - 16)) << 32 | u64::from(self.word(body, start - 12));
        Ok(Record {
            time: Some(Timestamp::from_ticks(ticks, interface.resolution, interface.offset)),
            link: interface.link,
            start,
            len,
            original_len: self.word(body, start - 4),
        })
    }

    fn simple<R: Read>(&self, block: &Block<'_, R>) -> Result<Record, CaptureError> {
        let body = block.at_least(4)?;
        let interface = self.interface_of(block, 0)?;
        let original_len = self.word(body, 0);
        let captured = match interface.snap_len {
            0 => original_len,
            snap_len => original_len.min(snap_len),
        };
        let len = block.frame_len(captured, body.len() - 4)?;
        Ok(Record { time: None, link: interface.link, start: 4, len, original_len })
    }

    fn interface_of<R: Read>(
        &self,
        block: &Block<'_, R>,
        id: u32,
    ) -> Result<Interface, CaptureError> {
        self.interfaces.get(id as usize).copied().ok_or_else(|| {
            let wanted = match self.interfaces.len() {
                0 => "an interface description before it".to_owned(),
                n => format!("at most {}, the last one described", n - 1),
            };
            block.bad("interface number", id.into(), wanted)
        })
    }

    fn half(&self, bytes: &[u8], at: usize) -> u16 {
        let two = [bytes[at], bytes[at + 1]];
        if self.big_endian { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) }
    }

    fn word(&self, bytes: &[u8], at: usize) -> u32 {
        let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
    }

    fn double(&self, bytes: &[u8]) -> i64 {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[..8]);
        if self.big_endian { i64::from_be_bytes(eight) } else { i64::from_le_bytes(eight) }
    }
}

/// A block whose body is in the source's buffer.
struct Block<'a, R> {
    source: &'a Source<R>,
    start: u64,
    what: &'static str,
}

impl<R: Read> Block<'_, R> {
    fn at_least(&self, needed: u32) -> Result<&[u8], CaptureError> {
        let body = self.source.buffer();
        if body.len() < needed as usize {
            let wanted = format!("at least {}", needed + FRAMING);
            return Err(self.bad("length", body.len() as u64 + u64::from(FRAMING), wanted));
        }
        Ok(body)
    }

    fn frame_len(&self, captured: u32, room: usize) -> Result<usize, CaptureError> {
        let most = room.min(MAX_FRAME as usize);
        if captured as usize > most {
            return Err(self.bad("captured length", captured.into(), format!("at most {most}")));
        }
        Ok(captured as usize)
    }

    fn bad(&self, field: &'static str, got: u64, wanted: String) -> CaptureError {
        let problem = Problem::Field { what: self.what, field, got, wanted };
        self.source.error_at(self.start, problem)
    }
}

fn bad_length<R: Read>(
    source: &Source<R>,
    start: u64,
    what: &'static str,
    len: u32,
    wanted: &str,
) -> CaptureError {
    let (got, wanted) = (len.into(), wanted.to_owned());
    source.error_at(start, Problem::Field { what, field: "length", got, wanted })
}

/// The length of a block's body, given the block's own.
fn body_len<R: Read>(
    source: &Source<R>,
    start: u64,
    what: &'static str,
    len: u32,
    most: u32,
) -> Result<u32, CaptureError> {
    if len < FRAMING || !len.is_multiple_of(4) {
        return Err(bad_length(source, start, what, len, "a multiple of 4 from 12 up"));
    }
    if len > most {
        return Err(bad_length(source, start, what, len, &format!("at most {most}")));
    }
    Ok(len - FRAMING)
}
