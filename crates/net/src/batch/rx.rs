//! Packets that came.

use std::net::IpAddr;

use urxe_wire::{ICRC_LEN, IcrcPrefix, Verdict};

use super::Flow;
use crate::raw::Came;
use crate::{IcrcMode, PortStats, frame};

/// What one call brought: one datagram, or several of one size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) flow: Flow,
    pub(crate) start: usize,
    pub(crate) len: usize,
    /// Bytes of each datagram but the last.
    pub(crate) stride: usize,
    /// Bytes of link, IP and UDP headers before `start`; none where the port does not see them.
    pub(crate) headers: usize,
    /// How many segments went before the first one here: identifications count them.
    pub(crate) nth: u16,
    /// What a tap calls the first datagram; the others follow.
    pub(crate) record: Option<Record>,
}

/// A packet in a tap's file: comments go to it by this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record(pub(crate) u64);

/// Packets that came.
#[derive(Debug)]
pub struct RxBatch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) slot: usize,
    /// Where a raw port notes what came, so as not to allocate.
    pub(crate) came: Vec<Came>,
}

/// A packet that came, its ICRC looked at.
#[derive(Clone, Copy, Debug)]
pub struct RxPacket<'a> {
    /// Where from, and how.
    pub flow: Flow,
    /// BTH to ICRC.
    pub bytes: &'a [u8],
    /// What the ICRC says; `Ok` where it was not looked at.
    pub verdict: Verdict,
    /// What a tap on the port calls it.
    pub record: Option<Record>,
}

/// One datagram of an arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) flow: Flow,
    /// What the port saw before the BTH: of the arrival's first datagram, and as long as all of
    /// them together.
    pub(crate) headers: &'a [u8],
    /// BTH to ICRC.
    pub(crate) bytes: &'a [u8],
    pub(crate) nth: u16,
    pub(crate) record: Option<Record>,
}

/// Bytes of the largest datagram, or run of datagrams, that one call brings, with its headers.
pub(crate) const SLOT: usize = 65_536 + 64;
/// A BTH and an ICRC.
const SHORTEST: usize = 16;

impl RxBatch {
    /// A batch that one call fills with at most `slots` datagrams or runs of them.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let bytes = vec![0; slots.max(1) * SLOT];
        let (arrivals, came) = (Vec::with_capacity(slots), Vec::with_capacity(slots));
        Self { bytes, arrivals, slot: SLOT, came }
    }

    /// Gives each packet with its verdict, bad ones too, and counts.
    pub fn for_each(&self, mode: IcrcMode, stats: &PortStats, mut f: impl FnMut(RxPacket<'_>)) {
        for segment in self.segments() {
            if segment.bytes.len() < SHORTEST {
                PortStats::add(&stats.rx_short, 1);
                continue;
            }
            let verdict = segment.judge(mode);
            match verdict {
                Verdict::Ok => {}
                Verdict::OkSolvedId(_) => PortStats::add(&stats.rx_icrc_solved, 1),
                Verdict::Bad { .. } => PortStats::add(&stats.rx_icrc_bad, 1),
            }
            let Segment { flow, bytes, record, .. } = segment;
            f(RxPacket { flow, bytes, verdict, record });
        }
    }

    /// How many packets to `dst` that came in runs are `stray`.
    pub(crate) fn strays(&self, stray: impl Fn(&[u8]) -> bool, dst: IpAddr) -> u64 {
        let runs = self.arrivals.iter().filter(|a| a.len > a.stride && a.flow.dst == dst);
        let packets = runs.flat_map(|a| self.bytes[a.start..a.start + a.len].chunks(a.stride));
        packets.filter(|packet| stray(packet)).count() as u64
    }

    /// All datagrams.
    pub(crate) fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        self.arrivals.iter().flat_map(|arrival| {
            let headers = &self.bytes[arrival.start - arrival.headers..arrival.start];
            let all = &self.bytes[arrival.start..arrival.start + arrival.len];
            (0_u16..).zip(all.chunks(arrival.stride.max(1))).map(move |(i, bytes)| Segment {
                flow: arrival.flow,
                headers,
                bytes,
                nth: arrival.nth.wrapping_add(i),
                record: arrival.record.map(|Record(first)| Record(first + u64::from(i))),
            })
        })
    }

    /// As [`Self::push`], of a datagram that came by itself.
    pub(crate) fn push_alone(&mut self, flow: Flow, bytes: &[u8]) -> bool {
        self.push(&Segment { flow, headers: &[], bytes, nth: 0, record: None })
    }

    /// Copies a datagram in behind those that are here; says whether it had room.
    pub(crate) fn push(&mut self, segment: &Segment<'_>) -> bool {
        let from = self.arrivals.last().map_or(0, |last| last.start + last.len);
        let start = from + segment.headers.len();
        let end = start + segment.bytes.len();
        let Some(room) = self.bytes.get_mut(from..end) else {
            return false;
        };
        let (headers, bytes) = room.split_at_mut(segment.headers.len());
        headers.copy_from_slice(segment.headers);
        bytes.copy_from_slice(segment.bytes);
        self.arrivals.push(Arrival {
            flow: segment.flow,
            start,
            len: segment.bytes.len(),
            stride: segment.bytes.len(),
            headers: segment.headers.len(),
            nth: segment.nth,
            record: segment.record,
        });
        true
    }
}

impl Segment<'_> {
    /// What the ICRC says.
    pub(crate) fn judge(&self, mode: IcrcMode) -> Verdict {
        if mode == IcrcMode::Off {
            return Verdict::Ok;
        }
        match self.look() {
            // A host gathers what comes in a row: segments that were numbered, or packets of a
            // socket without segmentation, whose identification is 0.
            Verdict::OkSolvedId(0) => Verdict::Ok,
            Verdict::OkSolvedId(_) if mode == IcrcMode::Strict => BAD,
            verdict => verdict,
        }
    }

    /// What the ICRC says, and under which identification if that is not its place in the run.
    pub(crate) fn look(&self) -> Verdict {
        let len = u16::try_from(self.bytes.len()).unwrap_or(0);
        if !self.headers.is_empty() {
            // All that the ICRC covers was seen: there is nothing to solve for.
            return match frame::prefix(self.headers, self.nth, len) {
                Some(prefix) => prefix.verify(self.bytes),
                None => BAD,
            };
        }
        let Flow { src, dst, src_port, .. } = self.flow;
        let prefix = IcrcPrefix::socket(src, dst, src_port, self.nth, len);
        prefix.map_or(BAD, |prefix| prefix.verify_hidden_id(self.bytes))
    }
}

const BAD: Verdict = Verdict::Bad { got: [0; ICRC_LEN], computed: [0; ICRC_LEN] };
