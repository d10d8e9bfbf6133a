//! An end of a connection, ours or the kernel's: what a case needs of either.

use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

use rxe_lab::Completed;
use urxe::{Access, Endpoint, Mtu, Psn, QKey, QpKind, SendFlags, SendOp};

/// Longer than anything takes that is going to happen: the peer is emulated.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// The UDP port that forged packets come from.
pub const FORGER_PORT: u16 = 50_123;
/// Bytes of a usual region: 1 MiB, and something beyond that must not change.
pub const SIZE: usize = (1 << 20) + 4096;

/// All rights but FLUSH's to persistent memory, which needs such memory.
pub const ALL: Access = Access::LOCAL_WRITE
    .union(Access::REMOTE_READ)
    .union(Access::REMOTE_WRITE)
    .union(Access::REMOTE_ATOMIC)
    .union(Access::MW_BIND)
    .union(Access::FLUSH_GLOBAL);

/// A region of a node, as both sides name it.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub index: usize,
    pub addr: u64,
    pub rkey: u32,
}

/// A part of a region.
#[derive(Clone, Debug)]
pub struct Piece {
    pub region: usize,
    pub part: Range<usize>,
}

impl Region {
    pub const fn piece(&self, part: Range<usize>) -> Piece {
        Piece { region: self.index, part }
    }
}

/// What a QP is made with.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub kind: QpKind,
    pub mtu: Mtu,
    /// What the peer may do.
    pub access: Access,
    pub psn: Psn,
    /// READs and atomics outstanding, both ways.
    pub depth: u8,
    pub retries: u8,
    pub rnr_retries: u8,
    /// Receives come from the node's SRQ.
    pub shared: bool,
    /// Every send makes a completion.
    pub signal_all: bool,
    pub qkey: QKey,
}

impl Spec {
    pub const DEFAULT: Self = Self {
        kind: QpKind::Rc,
        mtu: Mtu::B1024,
        access: ALL.difference(Access::MW_BIND),
        psn: Psn::new(0x12_3456),
        depth: 16,
        retries: 7,
        rnr_retries: 7,
        shared: false,
        signal_all: true,
        qkey: QKey(0x1234_5678),
    };
}

impl Default for Spec {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug)]
pub struct Dest {
    pub address: IpAddr,
    pub qpn: u32,
    pub qkey: QKey,
}

/// A side: a device with PDs, regions, QPs (by index, in the order in which they were made), one CQ
/// for all and one SRQ. What fails that must not fail panics, with the reason.
pub trait Node {
    fn name(&self) -> &'static str;
    /// Makes a PD; number 0 is there from the start.
    fn pd(&mut self) -> usize;
    fn register(&mut self, pd: usize, len: usize, access: Access) -> Region;
    /// Makes a window of type 2.
    fn window(&mut self) -> usize;
    /// Makes a QP of PD 0.
    fn qp(&mut self, spec: &Spec) -> usize;
    fn endpoint(&self, qp: usize) -> Endpoint;
    /// To RTS, towards a peer; a UD QP has none.
    fn connect(&mut self, qp: usize, peer: Option<&Endpoint>);
    /// Ends a QP: the peer is met with silence.
    fn destroy(&mut self, qp: usize);
    /// Joins a multicast group.
    fn join(&mut self, qp: usize, group: IpAddr);
    fn post(&mut self, qp: usize, id: u64, op: SendOp, pieces: &[Piece], flags: SendFlags);
    fn datagram(&mut self, qp: usize, id: u64, dest: &Dest, imm: Option<[u8; 4]>, piece: &Piece);
    /// Posts a bind, and gives the window's new key.
    fn bind(&mut self, qp: usize, id: u64, window: usize, piece: &Piece, access: Access) -> u32;
    /// Posts a receive: to the SRQ where the QP has it.
    fn receive(&mut self, qp: usize, id: u64, pieces: &[Piece]);
    /// The next `count` completions, or as many as there were in time.
    fn poll(&mut self, count: usize, patience: Duration) -> Vec<Completed>;
    fn write(&mut self, region: usize, at: usize, bytes: &[u8]);
    fn read(&mut self, region: usize, part: Range<usize>) -> Vec<u8>;
    /// Fills a part with [`pattern`].
    fn fill(&mut self, piece: &Piece, seed: usize);
    /// Where a part is not [`pattern`].
    fn differs(&mut self, piece: &Piece, seed: usize) -> Option<String>;
    /// Sends a datagram to a peer's RoCEv2 port, from its address and [`FORGER_PORT`].
    fn packet(&mut self, to: IpAddr, bytes: &[u8]);
    /// What its device has counted, for messages.
    fn counters(&mut self) -> String;

    /// A signaled request.
    fn send(&mut self, qp: usize, id: u64, op: SendOp, pieces: &[Piece]) {
        self.post(qp, id, op, pieces, SendFlags::SIGNALED);
    }

    /// The next completion.
    fn next(&mut self) -> Completed {
        let got = self.poll(1, PATIENCE);
        got.first().copied().unwrap_or_else(|| {
            panic!("{}: no completion in {PATIENCE:?}; {}", self.name(), self.counters())
        })
    }

    /// The next `count` completions, all good ones.
    fn done(&mut self, count: usize) -> Vec<Completed> {
        let got = self.poll(count, PATIENCE);
        assert!(
            got.len() == count && got.iter().all(|done| done.status == 0),
            "{}: wanted {count} good completions, got {} of {got:?}; {}",
            self.name(),
            got.len(),
            self.counters()
        );
        got
    }

    /// Asserts that a part is [`pattern`].
    fn holds(&mut self, piece: &Piece, seed: usize, what: &str) {
        if let Some(difference) = self.differs(piece, seed) {
            panic!("{what}: {} holds other bytes than were sent: {difference}", self.name());
        }
    }
}

/// Bytes that tell their place and whose they are; the agent makes the same.
pub fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| u8::try_from((i * 7 + seed * 13) % 251).unwrap()).collect()
}
