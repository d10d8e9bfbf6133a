//! Memory as it should be, and as it is.

use super::{Invariant, Oracle, Verdict};
use crate::plan::Span;

impl Oracle {
    /// Bytes of the model.
    pub(super) fn gather(&self, spans: &[Span]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for span in spans {
            let node = self.plan.regions[span.region].node;
            bytes.extend_from_slice(&self.model[node][self.plan.place(*span)]);
        }
        bytes
    }

    /// Bytes of the buffers.
    pub(super) fn actual(&self, spans: &[Span]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for span in spans {
            let node = self.plan.regions[span.region].node;
            let start = bytes.len();
            bytes.resize(start + span.len as usize, 0);
            let read = self.buffers[node].read(self.plan.place(*span).start, &mut bytes[start..]);
            read.unwrap_or_else(|e| unreachable!("a span outside its buffer: {e}"));
        }
        bytes
    }

    /// Changes the model.
    pub(super) fn scatter(&mut self, spans: &[Span], offset: usize, data: &[u8]) {
        let (mut skip, mut rest) = (offset, data);
        for span in spans {
            let len = span.len as usize;
            if rest.is_empty() {
                return;
            }
            if skip >= len {
                skip -= len;
                continue;
            }
            let (now, later) = rest.split_at((len - skip).min(rest.len()));
            let node = self.plan.regions[span.region].node;
            let start = self.plan.place(*span).start + skip;
            self.model[node][start..start + now.len()].copy_from_slice(now);
            (rest, skip) = (later, 0);
        }
    }

    /// The model takes over what stands in the buffers.
    pub(super) fn adopt(&mut self, spans: &[Span]) {
        let bytes = self.actual(spans);
        self.scatter(spans, 0, &bytes);
    }

    /// Whether the buffers hold `wanted` from `offset` bytes into `spans` on.
    pub(super) fn must_hold(
        &self,
        invariant: Invariant,
        who: &str,
        spans: &[Span],
        offset: usize,
        wanted: &[u8],
    ) -> Verdict {
        let actual = self.actual(spans);
        let got = actual.get(offset..offset + wanted.len()).unwrap_or_default();
        let Some(at) = (0..wanted.len()).find(|&i| got.get(i) != Some(&wanted[i])) else {
            return Ok(());
        };
        let differ = (0..wanted.len()).filter(|&i| got.get(i) != Some(&wanted[i])).count();
        let (got, want) = (got.get(at).copied(), wanted[at]);
        let place = self.name_byte(spans, offset + at);
        self.fail(
            invariant,
            format!(
                "{who}: {differ} of {} bytes differ, the first at offset {at} ({place}): got \
                 {got:02x?}, wanted {want:#04x}",
                wanted.len()
            ),
        )
    }

    fn name_byte(&self, spans: &[Span], offset: usize) -> String {
        let mut skip = offset;
        for span in spans {
            if skip < span.len as usize {
                let region = &self.plan.regions[span.region];
                let addr = self.plan.address(*span) + skip as u64;
                return format!("node {} region {} address {addr:#x}", region.node, span.region);
            }
            skip -= span.len as usize;
        }
        "behind its end".to_owned()
    }

    /// Whether the buffers hold, packet by packet, data or what was there before: in a reliable
    /// message the first packets only (`in_order`), else any.
    pub(super) fn may_hold(
        &mut self,
        who: &str,
        spans: &[Span],
        data: &[u8],
        packet: usize,
        in_order: bool,
    ) -> Verdict {
        let before = self.gather(spans);
        let actual = self.actual(spans);
        let mut placing = true;
        let room = before.len().min(data.len());
        for start in (0..room).step_by(packet.max(1)) {
            let part = start..(start + packet).min(room);
            let (old, new) = (&before[part.clone()], &data[part.clone()]);
            let is = &actual[part];
            let placed = is == new && placing;
            if !placed {
                placing = !in_order;
                if is != old {
                    let at = start + (0..is.len()).find(|&i| is[i] != old[i]).unwrap_or(0);
                    let place = self.name_byte(spans, at);
                    return self.fail(
                        Invariant::Stray,
                        format!(
                            "{who}, which did not complete: the packet at offset {start} is \
                             neither as sent nor as before, from offset {at} on ({place}): got \
                             {:#04x}, before {:#04x}, sent {:#04x}",
                            actual[at], before[at], data[at]
                        ),
                    );
                }
            }
        }
        let tail = &before[room..];
        self.must_hold(Invariant::Stray, who, spans, room, tail)?;
        self.adopt(spans);
        Ok(())
    }
}
