//! What a run does: drawn whole from a seed before it starts, so that a part of it can be left out
//! and the rest stays as it is.

use std::net::IpAddr;
use std::time::Duration;

use urxe_engine::{Profile, QpKind};
use urxe_memory::{Access, MwType};
use urxe_wire::{AckTimeout, FlushLevel, FlushScope, Mtu, RnrTimer};

pub mod layout;

mod chains;
mod conns;
mod make;
mod ops;
mod slips;

pub use layout::{Region, Span};
pub(crate) use ops::{MAX_INLINE, MAX_SGE};

/// A plan. Objects are known by their place in these lists.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it was drawn from.
    pub seed: u64,
    /// NICs.
    pub nodes: Vec<Node>,
    /// Registered memory.
    pub regions: Vec<Region>,
    /// Words for atomics.
    pub words: Vec<Word>,
    /// Memory windows.
    pub windows: Vec<Window>,
    /// Shared receive queues.
    pub srqs: Vec<Srq>,
    /// Pairs of QPs.
    pub conns: Vec<Conn>,
    /// Send work requests. Those of one QP are posted in this order.
    pub ops: Vec<Op>,
    /// Receive work requests. Those of one queue are posted in this order.
    pub recvs: Vec<Recv>,
    /// What else is done.
    pub deeds: Vec<Deed>,
}

/// A NIC.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Its address.
    pub address: IpAddr,
    /// Its manners.
    pub profile: Profile,
    /// When its program polls.
    pub polling: Polling,
    /// CQs it has.
    pub cqs: usize,
}

/// When a program looks at its CQs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// After everything that happens.
    Eager,
    /// A while after something happened.
    Lazy,
    /// When an armed CQ tells.
    Armed,
}

/// Eight bytes that all peers of a node use atomics on.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// Where.
    pub span: Span,
    /// Whether by compare and swap; else by fetch and add.
    pub swaps: bool,
}

/// A memory window.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Where it is.
    pub node: usize,
    /// Its type.
    pub kind: MwType,
}

/// A shared receive queue.
#[derive(Clone, Copy, Debug)]
pub struct Srq {
    /// Where it is.
    pub node: usize,
    /// Kind of the QPs that use it.
    pub kind: QpKind,
    /// Bytes of each of its receives.
    pub room: u32,
}

/// What comes over a pair of QPs beside the network's faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doom {
    /// Nothing.
    None,
    /// A work request that must fail.
    Slip,
    /// A region it uses is deregistered.
    Dereg,
    /// One of the QPs goes to error, is reset or destroyed.
    Deed,
}

/// A pair of QPs that talk with each other. For XRC side 0 sends and side 1 receives.
#[derive(Clone, Copy, Debug)]
pub struct Conn {
    /// Kind of both; [`QpKind::XrcInit`] is a pair of both XRC kinds.
    pub kind: QpKind,
    /// Where each is; may be the same node.
    pub nodes: [usize; 2],
    /// Path MTU.
    pub mtu: Mtu,
    /// First PSN of each.
    pub psn: [u32; 2],
    /// Local ACK timeout of both.
    pub timeout: AckTimeout,
    /// Retries.
    pub retry: u8,
    /// RNR retries.
    pub rnr_retry: u8,
    /// What RNR NAKs ask for.
    pub rnr_timer: RnrTimer,
    /// READs and atomics outstanding.
    pub rd_atomic: u8,
    /// WQEs of a send queue.
    pub depth: u32,
    /// Every send completes.
    pub sig_all: [bool; 2],
    /// Receives of each come from here.
    pub srq: [Option<usize>; 2],
    /// What each lets its peer do.
    pub access: [Access; 2],
    /// DSCP and ECN of both.
    pub traffic_class: u8,
    /// What comes over it.
    pub doom: Doom,
}

impl Conn {
    /// Whether what is sent arrives once and in order, or the sender is told.
    #[must_use]
    pub const fn reliable(&self) -> bool {
        self.kind.is_reliable()
    }

    /// The kind of one side.
    #[must_use]
    pub const fn kind_of(&self, side: usize) -> QpKind {
        match (self.kind, side) {
            (QpKind::XrcInit, 1) => QpKind::XrcTarget,
            (kind, _) => kind,
        }
    }
}

/// How remote memory is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// By its region's key.
    Region,
    /// By a window's key.
    Window(usize),
    /// By a key that there is not.
    NoKey,
    /// By its region's key, at an address from which half of it lies behind the region.
    PastEnd,
}

/// Remote memory.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// Which.
    pub span: Span,
    /// How it is named.
    pub via: Via,
}

/// What a send work request does.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// SEND, with immediate data if so; with invalidation of a window's key if given.
    Send {
        /// With the operation's own number as immediate data.
        imm: bool,
        /// The window at the peer.
        invalidate: Option<usize>,
    },
    /// WRITE.
    Write {
        /// To where.
        remote: Remote,
        /// With the operation's own number as immediate data.
        imm: bool,
    },
    /// READ.
    Read(Remote),
    /// Fetch and add.
    Add {
        /// The word.
        word: usize,
        /// What is added.
        add: u64,
        /// Added to the address, to be wrong.
        shift: u64,
    },
    /// Compare and swap.
    Swap {
        /// The word.
        word: usize,
        /// Which operation's swapped-in value it expects; `None` is the initial one.
        expects: Option<usize>,
        /// What is swapped in.
        swap: u64,
    },
    /// ATOMIC WRITE.
    AtomicWrite(Remote),
    /// FLUSH.
    Flush {
        /// What.
        remote: Remote,
        /// Range or region.
        scope: FlushScope,
        /// How far.
        level: FlushLevel,
    },
    /// A window of this side opens memory of this side.
    Bind {
        /// The window.
        window: usize,
        /// What it opens.
        span: Span,
        /// Added to the key's low byte for type 2.
        step: u8,
    },
    /// A key of this side is taken away.
    Invalidate {
        /// The window.
        window: usize,
    },
}

impl What {
    /// Whether it takes a receive of the peer.
    #[must_use]
    pub const fn takes_recv(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::Write { imm: true, .. })
    }

    /// Whether no packet tells of it.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        matches!(self, Self::Bind { .. } | Self::Invalidate { .. })
    }
}

/// How a work request ends if the network lets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Well.
    Well,
    /// The local side finds an error: its memory.
    LocalProtection,
    /// Refused: invalid request. The receive completes with a length error if there is one.
    Invalid,
    /// Refused: no access.
    Access,
    /// Refused: the peer's own receive is broken.
    Operational,
}

/// A send work request.
#[derive(Clone, Debug)]
pub struct Op {
    /// Pair of QPs.
    pub conn: usize,
    /// Side that posts it.
    pub side: usize,
    /// Not before this, since the start.
    pub at: Duration,
    /// Not before this operation has completed.
    pub after: Option<usize>,
    /// What it does.
    pub what: What,
    /// Local memory.
    pub local: Vec<Span>,
    /// Its bytes are copied when posting.
    pub inline: bool,
    /// It waits for READs and atomics before it.
    pub fence: bool,
    /// The receiver's event is solicited.
    pub solicited: bool,
    /// It completes if all is well.
    pub signaled: bool,
    /// How it ends.
    pub ends: Ends,
    /// XRC: SRQ at the peer.
    pub srq: Option<usize>,
}

impl Op {
    /// Bytes of its local memory.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.local.iter().map(|s| s.len).sum()
    }

    /// Whether it moves no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Where a receive is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// To the QP of this pair and side.
    Own(usize, usize),
    /// To this SRQ.
    Shared(usize),
}

/// A receive work request.
#[derive(Clone, Debug)]
pub struct Recv {
    /// Where it is posted.
    pub queue: Queue,
    /// The operation it was planned for: without that it is not posted.
    pub op: usize,
    /// When, since the start.
    pub at: Duration,
    /// Its memory.
    pub local: Vec<Span>,
    /// Its memory is named by a key that there is not.
    pub broken: bool,
}

/// What else is done.
#[derive(Clone, Copy, Debug)]
pub struct Deed {
    /// When, since the start.
    pub at: Duration,
    /// What.
    pub what: DeedKind,
}

/// What else is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeedKind {
    /// A region is deregistered.
    Dereg(usize),
    /// A QP goes to error.
    ToError(usize, usize),
    /// A QP is reset.
    Reset(usize, usize),
    /// A QP is destroyed.
    Destroy(usize, usize),
    /// A QP's send queue is drained (SQD), and goes on after a time.
    Drain(usize, usize, Duration),
    /// Two nodes are cut off from each other.
    Cut(usize, usize, Duration),
}

impl DeedKind {
    /// The pair and side of a QP that this ends.
    #[must_use]
    pub const fn qp(self) -> Option<(usize, usize)> {
        match self {
            Self::ToError(c, s) | Self::Reset(c, s) | Self::Destroy(c, s) => Some((c, s)),
            Self::Dereg(_) | Self::Drain(..) | Self::Cut(..) => None,
        }
    }
}

/// Names an operation in a message: `3 (conn 1, side 0)`.
impl Plan {
    /// One line about an operation.
    #[must_use]
    pub fn describe(&self, id: usize) -> String {
        let Some(op) = self.ops.get(id) else {
            return format!("operation {id}");
        };
        let conn = &self.conns[op.conn];
        let (from, to) = (conn.nodes[op.side], conn.nodes[1 - op.side]);
        let mut text = format!(
            "operation {id}: {} pair {} node {from}→{to} {:?} of {} bytes",
            conn.kind_of(op.side),
            op.conn,
            op.what,
            op.len()
        );
        for (is, name) in [
            (op.inline, " inline"),
            (op.fence, " fence"),
            (op.solicited, " solicited"),
            (!op.signaled, " unsignaled"),
        ] {
            if is {
                text.push_str(name);
            }
        }
        if op.ends != Ends::Well {
            text.push_str(&format!(", which must fail ({:?})", op.ends));
        }
        text
    }
}
