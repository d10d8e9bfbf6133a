//! `--trace`: a line of each packet that leaves or arrives, as it does.

use std::fmt::Debug;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use urxe::{Observer, Passage};
use urxe_wire::ICRC_LEN;

use crate::demo::frame::ip_packet;
use crate::dissect::{Lines, Palette, paint};

#[cfg(test)]
mod tests;

/// Writes a line of each packet that passes. Several devices may share one; times count from when
/// it was made.
#[derive(Debug)]
pub(crate) struct Trace<W> {
    start: Instant,
    palette: Palette,
    inner: Mutex<(Lines, W)>,
}

impl<W: Write> Trace<W> {
    /// A trace that writes to `out`.
    pub(crate) fn new(palette: Palette, out: W) -> Self {
        let inner = Mutex::new((Lines::of_stream(palette), out));
        Self { start: Instant::now(), palette, inner }
    }
}

impl<W: Write + Send + Debug> Observer for Trace<W> {
    fn packet(&self, passage: &Passage<'_>) {
        let time = passage.at.saturating_duration_since(self.start);
        let frame = frame(passage);
        // What is written stays good if another thread panicked.
        let (lines, out) = &mut *self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let line = lines.of_ip(time, &frame);
        let way = if passage.sent { "out" } else { "in " };
        let note = note(passage).map(|(bad, text)| {
            let style = if bad { self.palette.bad } else { self.palette.warn };
            format!("  {}", paint(style, text))
        });
        let note = note.unwrap_or_default();
        // If nobody reads any more, the traffic goes on.
        let _ = writeln!(out, "{} {line}{note}", paint(self.palette.dim, way));
    }
}

/// The IP packet; where its ICRC is wrong, with the wrong one.
fn frame(passage: &Passage<'_>) -> Vec<u8> {
    let mut frame = ip_packet(passage);
    if !passage.verdict.is_ok()
        && let Some(came) = passage.bytes.last_chunk::<ICRC_LEN>()
        && let Some(icrc) = frame.last_chunk_mut::<ICRC_LEN>()
    {
        *icrc = *came;
    }
    frame
}

/// Why it left, or what became of it; and whether that is a fault.
fn note(passage: &Passage<'_>) -> Option<(bool, String)> {
    if let Some(why) = passage.why {
        return Some((false, why.to_string()));
    }
    let why = passage.fate.err()?;
    if !passage.verdict.is_ok() {
        return Some((true, "dropped: wrong ICRC".to_owned()));
    }
    let rule = if why.rule().is_empty() { String::new() } else { format!(" ({})", why.rule()) };
    Some((true, format!("dropped: {why}{rule}")))
}

/// Two who look on.
#[derive(Debug)]
struct Both(Arc<dyn Observer>, Arc<dyn Observer>);

impl Observer for Both {
    fn packet(&self, passage: &Passage<'_>) {
        self.0.packet(passage);
        self.1.packet(passage);
    }
}

/// Who looks on already, and one more.
pub(crate) fn both(
    first: Option<Arc<dyn Observer>>,
    second: Arc<dyn Observer>,
) -> Arc<dyn Observer> {
    match first {
        Some(first) => Arc::new(Both(first, second)),
        None => second,
    }
}
