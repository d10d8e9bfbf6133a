//! The cases: what is measured, and against what.

use serde::{Deserialize, Serialize};

use super::targets::names;

#[cfg(test)]
mod tests;

/// A verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Op {
    Write,
    Read,
    Send,
}

impl Op {
    const ALL: [Self; 3] = [Self::Write, Self::Read, Self::Send];

    const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Send => "send",
        }
    }

    /// Bytes of a packet beside its payload, BTH to ICRC, where the message is one packet.
    const fn overhead(self) -> usize {
        match self {
            Self::Write => BTH + RETH + ICRC,
            Self::Read | Self::Send => BTH + ICRC,
        }
    }
}

const BTH: usize = 12;
const RETH: usize = 16;
const ICRC: usize = 4;

/// How messages are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Wait {
    /// Both sides poll their CQ.
    Poll,
    /// Both sides sleep until a completion event.
    Event,
    /// Both sides look at their memory until the peer's WRITE is there, and call nothing meanwhile.
    Memory,
}

/// A stream of messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stream {
    pub(super) op: Op,
    pub(super) size: usize,
    pub(super) mtu: u16,
    pub(super) qps: usize,
    /// Messages of a QP that are under way.
    pub(super) depth: usize,
    /// Whether all up to the next completion are posted in one go.
    pub(super) listed: bool,
    /// Faults of the sender's link; `loss=0%` is a link that could have some.
    pub(super) faults: &'static str,
}

impl Stream {
    const fn of(op: Op, size: usize, mtu: u16) -> Self {
        let depth = match size {
            0..=4096 => 64,
            4097..=65536 => 16,
            _ => 4,
        };
        Self { op, size, mtu, qps: 1, depth, listed: false, faults: "" }
    }

    /// Every so many messages one makes a completion.
    pub(super) const fn signaled(&self) -> usize {
        if self.depth >= 64 { 16 } else { 1 }
    }

    /// The same packets as datagrams.
    const fn datagrams(&self, offload: bool) -> Datagrams {
        let mtu = self.mtu as usize;
        let payload = if self.size < mtu { self.size } else { mtu };
        let overhead = if self.size > mtu { BTH + ICRC } else { self.op.overhead() };
        Datagrams { payload, bytes: payload + overhead, offload }
    }
}

/// Raw UDP: datagrams of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagrams {
    /// Bytes of one that count.
    pub(super) payload: usize,
    pub(super) bytes: usize,
    /// Whether the host takes and gives runs of them (`UDP_SEGMENT`, `UDP_GRO`).
    pub(super) offload: bool,
}

/// Something that is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Work {
    Stream(Stream),
    /// There and back, 8 bytes.
    PingPong(Op, Wait),
    /// What idle connected QPs take of the two processes' time, the worse of the two.
    IdleCpu {
        qps: usize,
    },
    /// What an idle connected QP takes of memory.
    IdleMemory {
        qps: usize,
    },
    Datagrams(Datagrams),
    Tcp,
    /// Datagrams of so many bytes there and back.
    Echo {
        bytes: usize,
        spins: bool,
    },
    /// Not run: a bound.
    Fixed(f64),
}

/// What a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    BytesPerSecond,
    MessagesPerSecond,
    /// There and back, nanoseconds.
    RoundTrip,
    /// Of one core's time.
    Core,
    Bytes,
}

/// What is measured beside it, in the same rounds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rival {
    /// Its name in JSON and in the table of targets.
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    pub(super) work: Work,
}

const fn rival(name: &'static str, text: &'static str, work: Work) -> Rival {
    Rival { name, text, work }
}

/// A case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) work: Work,
    pub(super) rivals: Vec<Rival>,
    /// Whether `--quick` runs it.
    pub(super) quick: bool,
}

const MTUS: [u16; 2] = [4096, 1024];
const SIZES: [(&str, usize); 6] = [
    ("64", 64),
    ("1K", 1 << 10),
    ("4K", 4 << 10),
    ("64K", 64 << 10),
    ("1M", 1 << 20),
    ("8M", 8 << 20),
];

/// All cases.
pub(super) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for mtu in MTUS {
        for op in Op::ALL {
            cases.extend(SIZES.map(|(text, size)| bandwidth(Stream::of(op, size, mtu), text)));
        }
    }
    cases.extend([4, 16, 64].map(many_qps));
    cases.extend([("rate.write.64", false), ("rate.write.64.list", true)].map(rate));
    cases.extend([Wait::Poll, Wait::Event, Wait::Memory].map(latency));
    cases.extend([("0.1%", "loss=0.1%"), ("1%", "loss=1%")].map(goodput));
    cases.extend(idle());
    cases
}

fn against_datagrams(stream: &Stream) -> Vec<Rival> {
    let raw = |offload| Work::Datagrams(stream.datagrams(offload));
    vec![
        rival(names::RAW, "raw UDP, GSO and GRO", raw(true)),
        rival(names::PLAIN, "raw UDP without", raw(false)),
    ]
}

fn bandwidth(stream: Stream, size: &str) -> Case {
    let mut rivals = against_datagrams(&stream);
    rivals.push(rival(names::TCP, "one TCP stream", Work::Tcp));
    if stream.op != Op::Write {
        let write = Work::Stream(Stream { op: Op::Write, ..stream });
        rivals.push(rival(names::WRITE, "WRITE of the same size", write));
    }
    Case {
        name: format!("{}.{size}.mtu{}", stream.op.name(), stream.mtu),
        unit: Unit::BytesPerSecond,
        work: Work::Stream(stream),
        rivals,
        quick: size == "64K" && (stream.mtu == 4096 || stream.op == Op::Write),
    }
}

/// 64 KiB WRITEs on several QPs.
fn many_qps(qps: usize) -> Case {
    let one = Stream::of(Op::Write, 64 << 10, 4096);
    let many = Stream { qps, depth: (one.depth / qps).max(2), ..one };
    let mut rivals = against_datagrams(&one);
    rivals.push(rival(names::ONE_QP, "one QP", Work::Stream(one)));
    let name = format!("qps.write.64K.x{qps}");
    let work = Work::Stream(many);
    Case { name, unit: Unit::BytesPerSecond, work, rivals, quick: qps == 64 }
}

/// 64-byte WRITEs, each posted by itself or 16 in one go.
fn rate((name, listed): (&str, bool)) -> Case {
    let stream = Stream { listed, ..Stream::of(Op::Write, 64, 4096) };
    let rivals = against_datagrams(&stream);
    let (name, work) = (name.into(), Work::Stream(stream));
    Case { name, unit: Unit::MessagesPerSecond, work, rivals, quick: true }
}

fn latency(wait: Wait) -> Case {
    let (op, name) = match wait {
        Wait::Poll => (Op::Send, "latency.send.poll"),
        Wait::Event => (Op::Send, "latency.send.event"),
        Wait::Memory => (Op::Write, "latency.write.memory"),
    };
    let bytes = 8 + op.overhead();
    let rivals = vec![
        rival(names::SPIN, "UDP ping-pong, spinning", Work::Echo { bytes, spins: true }),
        rival(names::BLOCK, "UDP ping-pong, blocking", Work::Echo { bytes, spins: false }),
    ];
    let work = Work::PingPong(op, wait);
    Case { name: name.into(), unit: Unit::RoundTrip, work, rivals, quick: true }
}

fn goodput((share, faults): (&str, &'static str)) -> Case {
    let lossy = Stream { faults, ..Stream::of(Op::Write, 64 << 10, 4096) };
    let whole = Work::Stream(Stream { faults: "loss=0%", ..lossy });
    Case {
        name: format!("goodput.loss.{share}"),
        unit: Unit::BytesPerSecond,
        work: Work::Stream(lossy),
        rivals: vec![rival(names::NO_LOSS, "the same link without loss", whole)],
        quick: true,
    }
}

/// QPs at rest.
const IDLE: usize = 1000;

fn idle() -> [Case; 2] {
    let case = |name: &str, unit, work, rival| Case {
        name: name.into(),
        unit,
        work,
        rivals: vec![rival],
        quick: true,
    };
    [
        case(
            "idle.cpu",
            Unit::Core,
            Work::IdleCpu { qps: IDLE },
            rival(names::CORE, "one core", Work::Fixed(1.0)),
        ),
        case(
            "idle.memory",
            Unit::Bytes,
            Work::IdleMemory { qps: IDLE },
            rival(names::FOUR_K, "4 KiB", Work::Fixed(4096.0)),
        ),
    ]
}

/// Those whose names contain one of `parts`; all where none is given.
pub(super) fn chosen(parts: &[String], quick: bool) -> Result<Vec<Case>, String> {
    let all = all();
    if let Some(part) = parts.iter().find(|part| !all.iter().any(|c| c.name.contains(*part))) {
        return Err(format!("no case has `{part}` in its name; --list names them"));
    }
    let wanted = |case: &Case| {
        if parts.is_empty() {
            !quick || case.quick
        } else {
            parts.iter().any(|part| case.name.contains(part))
        }
    };
    Ok(all.into_iter().filter(wanted).collect())
}
