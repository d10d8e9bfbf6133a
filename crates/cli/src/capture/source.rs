//! Bytes from a reader, with the file offset that errors tell.

use std::io::{BufReader, ErrorKind, Read};

use super::error::{CaptureError, Problem};

/// How much is read, and at most allocated ahead of what the file turns out to have, bytes.
const CHUNK: usize = 64 << 10;

/// A reader that counts where it is, with one buffer for the record at hand.
pub(super) struct Source<R> {
    name: String,
    input: BufReader<R>,
    offset: u64,
    buffer: Vec<u8>,
}

impl<R: Read> Source<R> {
    pub(super) fn new(name: &str, input: R) -> Self {
        let input = BufReader::with_capacity(CHUNK, input);
        Self { name: name.to_owned(), input, offset: 0, buffer: Vec::new() }
    }

    /// Where the next byte will come from.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes of the record at hand.
    pub(super) fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// The file's first four bytes.
    pub(super) fn magic(&mut self) -> Result<[u8; 4], CaptureError> {
        let mut magic = [0; 4];
        match self.fill(&mut magic)? {
            0 => Err(self.error_at(0, Problem::Empty)),
            4 => Ok(magic),
            got => Err(self.cut(0, "the file's magic number", got, 4)),
        }
    }

    /// Fills `out`; the record whose `what` it is began at `start`.
    pub(super) fn exact(
        &mut self,
        out: &mut [u8],
        start: u64,
        what: &'static str,
    ) -> Result<(), CaptureError> {
        let got = self.fill(out)?;
        if got < out.len() {
            return Err(self.cut(start, what, got, out.len() as u64));
        }
        Ok(())
    }

    /// Fills `out`, or gives `false` if the file ends right here.
    pub(super) fn exact_or_end(
        &mut self,
        out: &mut [u8],
        what: &'static str,
    ) -> Result<bool, CaptureError> {
        let start = self.offset;
        match self.fill(out)? {
            0 => Ok(false),
            got if got < out.len() => Err(self.cut(start, what, got, out.len() as u64)),
            _ => Ok(true),
        }
    }

    /// Puts the next `len` bytes into the buffer.
    pub(super) fn load(
        &mut self,
        len: usize,
        start: u64,
        what: &'static str,
    ) -> Result<(), CaptureError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut have = 0;
        // A step at a time: a length that the file does not back with bytes costs one step.
        while have < len {
            let step = (len - have).min(CHUNK);
            buffer.resize(have + step, 0);
            let got = self.fill(&mut buffer[have..])?;
            have += got;
            if got < step {
                return Err(self.cut(start, what, have, len as u64));
            }
        }
        buffer.truncate(len);
        self.buffer = buffer;
        Ok(())
    }

    /// Reads past `len` bytes.
    pub(super) fn skip(
        &mut self,
        len: u64,
        start: u64,
        what: &'static str,
    ) -> Result<(), CaptureError> {
        let copied = std::io::copy(&mut self.input.by_ref().take(len), &mut std::io::sink());
        let got = copied.map_err(|e| self.error(Problem::Read(e)))?;
        self.offset += got;
        if got < len {
            return Err(self.error_at(start, Problem::Cut { what, got, wanted: len }));
        }
        Ok(())
    }

    /// An error about what begins at `offset`.
    pub(super) fn error_at(&self, offset: u64, problem: Problem) -> CaptureError {
        CaptureError { name: self.name.clone(), offset, problem }
    }

    fn error(&self, problem: Problem) -> CaptureError {
        self.error_at(self.offset, problem)
    }

    fn cut(&self, start: u64, what: &'static str, got: usize, wanted: u64) -> CaptureError {
        self.error_at(start, Problem::Cut { what, got: got as u64, wanted })
    }

    /// Reads until `out` is full or the file ends; gives how much there was.
    fn fill(&mut self, out: &mut [u8]) -> Result<usize, CaptureError> {
        let mut have = 0;
        while have < out.len() {
            match self.input.read(&mut out[have..]) {
                Ok(0) => break,
                Ok(n) => {
                    have += n;
                    self.offset += n as u64;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(self.error(Problem::Read(e))),
            }
        }
        Ok(have)
    }
}
