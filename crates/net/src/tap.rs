//! A tap: writes what passes a port to a pcapng file, with the reasons the driver knows.
//!
//! Packets of a port that sees whole frames are written so; those of a UDP port get the IP and UDP
//! headers that the ICRC says they had. A packet is held back a little before it is written, so
//! that a comment can still go to it: received ones by their [`Record`], ones to be sent with
//! [`TxBatch::comment_last`]. A disk that is full costs the file, never the traffic.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use urxe_wire::Verdict;

use crate::batch::Segment;
use crate::port::pass_on;
use crate::{Port, Record, RxBatch, TxBatch, frame};

mod file;
#[cfg(test)]
mod tests;

pub use file::Direction;

use file::TapFile;

/// Tells the time, since 1970.
type Clock = Box<dyn Fn() -> Duration + Send + Sync>;

/// A port whose packets are written to a file too.
#[derive(Debug)]
pub struct Tap<P> {
    port: P,
    shared: Arc<Shared>,
}

struct Shared {
    file: Mutex<TapFile>,
    clock: Clock,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(&self.file).finish()
    }
}

/// Writes beside the packets of a [`Tap`], from anywhere.
#[derive(Clone, Debug)]
pub struct TapHandle(Arc<Shared>);

impl<P: Port> Tap<P> {
    /// Taps `port`, and writes to a new file at `path`; an old one is overwritten. `clock` gives
    /// the time since 1970.
    ///
    /// # Errors
    /// Where the file cannot be made or written.
    pub fn create(
        port: P,
        path: &Path,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::new(port, File::create(path)?, clock)
    }

    /// As [`Self::create`], and writes to `out`.
    ///
    /// # Errors
    /// Where nothing can be written to it.
    pub fn new(
        port: P,
        out: impl Write + Send + 'static,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let file = Mutex::new(TapFile::new(Box::new(out), port.caps())?);
        Ok(Self { port, shared: Arc::new(Shared { file, clock: Box::new(clock) }) })
    }

    /// What writes comments.
    #[must_use]
    pub fn handle(&self) -> TapHandle {
        TapHandle(Arc::clone(&self.shared))
    }

    /// The port that is tapped.
    pub const fn port(&self) -> &P {
        &self.port
    }
}

impl<P> Drop for Tap<P> {
    fn drop(&mut self) {
        self.shared.file.lock().flush();
    }
}

impl TapHandle {
    /// Writes `text` beside a packet that was received: why it was dropped, say. False if the
    /// packet has been written without it already.
    pub fn comment(&self, record: Record, text: &str) -> bool {
        self.0.file.lock().comment(record, text)
    }

    /// As [`Self::comment`], of the packet that passed last in a direction.
    pub fn comment_last(&self, direction: Direction, text: &str) -> bool {
        self.0.file.lock().comment_last(direction, text)
    }

    /// Writes all that was held back.
    pub fn flush(&self) {
        self.0.file.lock().flush();
    }

    /// Packets written or to be written, and packets lost because the file failed.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        self.0.file.lock().counts()
    }

    /// Why the file is written no longer, if it is not.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.0.file.lock().failure()
    }
}

impl<P: Port> Port for Tap<P> {
    pass_on! {
        self => self.port;
        caps fd wait_writable join leave route_mtu is_narrow serve stats check
    }

    fn send(&self, batch: &mut TxBatch) -> io::Result<()> {
        let above = batch.record.replace(Vec::new());
        // Until they are written no answer to them is, though one may come at once.
        let mut file = self.shared.file.lock();
        let now = (self.shared.clock)();
        let done = self.port.send(batch);
        let sent = std::mem::replace(&mut batch.record, above).unwrap_or_default();
        for packet in &sent {
            file.add(now, Direction::Sent, packet.frame.clone(), packet.comment.as_deref());
        }
        if let Some(above) = &mut batch.record {
            above.extend(sent);
        }
        done
    }

    fn recv(&self, batch: &mut RxBatch) -> io::Result<usize> {
        // What two threads get is written in the order in which it came.
        let mut file = self.shared.file.lock();
        let n = self.port.recv(batch)?;
        if n == 0 {
            file.tend((self.shared.clock)());
            return Ok(0);
        }
        let now = (self.shared.clock)();
        let mut next = file.next_record();
        for arrival in &mut batch.arrivals {
            arrival.record = Some(next);
            next.0 += arrival.len.div_ceil(arrival.stride.max(1)) as u64;
        }
        for segment in batch.segments() {
            file.add(now, Direction::Received, whole(&segment), None);
        }
        Ok(n)
    }

    /// Also when what was held back is to be written.
    fn next_deadline(&self) -> Option<Duration> {
        let due = self.shared.file.try_lock().and_then(|file| file.due());
        let own = due.map(|at| at.saturating_sub((self.shared.clock)()));
        own.into_iter().chain(self.port.next_deadline()).min()
    }
}

/// A datagram with the headers it had, as far as they are known.
fn whole(segment: &Segment<'_>) -> Vec<u8> {
    let (flow, bytes) = (&segment.flow, segment.bytes);
    if !segment.headers.is_empty() {
        let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        let headers = frame::headers_of_segment(segment.headers, segment.nth, len);
        let headers = headers.unwrap_or_else(|| segment.headers.to_vec());
        return [&headers, bytes].concat();
    }
    let id = match segment.look() {
        Verdict::OkSolvedId(id) => id,
        Verdict::Ok | Verdict::Bad { .. } => segment.nth,
    };
    let headers = frame::headers(None, flow, flow.src_port, id, true, bytes);
    [headers.as_ref().map_or(&[][..], |h| h.bytes()), bytes].concat()
}
