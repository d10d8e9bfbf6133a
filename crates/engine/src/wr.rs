//! Work requests, as a program posts them.

use bitflags::bitflags;
use urxe_memory::{Access, Sge};
use urxe_wire::{FlushLevel, FlushScope, QKey, Qpn};

use crate::types::AhId;

bitflags! {
    /// How a send work request is to be done (`enum ibv_send_flags`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct SendFlags: u32 {
        /// Wait for the READs and atomics before it.
        const FENCE = 1;
        /// Make a CQE on success too.
        const SIGNALED = 1 << 1;
        /// The receiver's completion is solicited.
        const SOLICITED = 1 << 2;
        /// Copy the data when posting; lkeys do not count.
        const INLINE = 1 << 3;
    }
}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdDest {
    /// Address handle.
    pub ah: AhId,
    /// The receiver's QPN.
    pub qpn: Qpn,
    /// The receiver's Q_Key; with the top bit set the QP's own is sent instead.
    pub qkey: QKey,
}

/// What a send work request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOp {
    /// SEND.
    Send {
        /// Immediate data, as it shall stand on the wire.
        imm: Option<[u8; 4]>,
    },
    /// SEND that takes a key of the receiver away.
    SendInvalidate {
        /// The receiver's key.
        rkey: u32,
    },
    /// RDMA WRITE.
    Write {
        /// Remote address.
        remote: u64,
        /// Remote key.
        rkey: u32,
        /// Immediate data, as it shall stand on the wire; takes a receive WQE there.
        imm: Option<[u8; 4]>,
    },
    /// RDMA READ.
    Read {
        /// Remote address.
        remote: u64,
        /// Remote key.
        rkey: u32,
    },
    /// Compare and swap of 8 bytes; the original comes into the SGE.
    CompareSwap {
        /// Remote address, 8-byte aligned.
        remote: u64,
        /// Remote key.
        rkey: u32,
        /// What must stand there.
        compare: u64,
        /// What is put there then.
        swap: u64,
    },
    /// Fetch and add of 8 bytes; the original comes into the SGE.
    FetchAdd {
        /// Remote address, 8-byte aligned.
        remote: u64,
        /// Remote key.
        rkey: u32,
        /// What is added.
        add: u64,
    },
    /// FLUSH of what earlier writes placed.
    Flush {
        /// Remote address.
        remote: u64,
        /// Length of the range, bytes.
        length: u32,
        /// Remote key.
        rkey: u32,
        /// Range or region.
        scope: FlushScope,
        /// How far.
        level: FlushLevel,
    },
    /// ATOMIC WRITE of the SGE's 8 bytes.
    AtomicWrite {
        /// Remote address, 8-byte aligned.
        remote: u64,
        /// Remote key.
        rkey: u32,
    },
    /// Takes a key of our own away.
    LocalInvalidate {
        /// The key.
        rkey: u32,
    },
    /// Binds a memory window.
    BindMw {
        /// The window.
        mw: urxe_memory::MwId,
        /// The new key (type 2), chosen by the program in its low byte.
        rkey: Option<u32>,
        /// The region it opens.
        lkey: u32,
        /// First address.
        addr: u64,
        /// Length, bytes; 0 unbinds.
        length: u64,
        /// The window's rights.
        access: Access,
    },
}

/// A send work request.
#[derive(Clone, Copy, Debug)]
pub struct SendWr<'a> {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// What to do.
    pub op: SendOp,
    /// Local memory, at most the QP's `max_send_sge`. With INLINE these are not used.
    pub sges: &'a [Sge],
    /// The data of an INLINE request.
    pub inline: &'a [u8],
    /// How.
    pub flags: SendFlags,
    /// UD: where to.
    pub dest: Option<UdDest>,
    /// XRC: the SRQ at the peer.
    pub remote_srqn: u32,
}

impl<'a> SendWr<'a> {
    /// A signaled request of `op` on `sges`.
    #[must_use]
    pub const fn new(wr_id: u64, op: SendOp, sges: &'a [Sge]) -> Self {
        let flags = SendFlags::SIGNALED;
        Self { wr_id, op, sges, inline: &[], flags, dest: None, remote_srqn: 0 }
    }
}

/// A receive work request.
#[derive(Clone, Copy, Debug)]
pub struct RecvWr<'a> {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// Where the message goes, at most the queue's `max_recv_sge`.
    pub sges: &'a [Sge],
}

/// Why a work request was not taken. Nothing of it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// No such QP or SRQ.
    #[error("no queue has number {0:#x}; it may have been destroyed")]
    NoSuchQueue(u32),
    /// The QP is not in a state that takes this.
    #[error("the QP is in {state}; posting needs {wanted}: modify it first")]
    State {
        /// Its state.
        state: &'static str,
        /// What would do.
        wanted: &'static str,
    },
    /// The queue is full.
    #[error("the queue holds its {capacity} requests; poll the CQ first, or create it larger")]
    Full {
        /// How many it holds.
        capacity: u32,
    },
    /// Too many SGEs.
    #[error("{got} SGEs, the queue takes at most {max}")]
    TooManySges {
        /// As posted.
        got: usize,
        /// At most.
        max: usize,
    },
    /// Too much inline data.
    #[error("{got} bytes inline, the QP takes at most {max}")]
    InlineTooLong {
        /// As posted.
        got: usize,
        /// At most.
        max: usize,
    },
    /// The message is too long.
    #[error("a message of {got} bytes, at most {max} may be sent (IBA C9-94; UD: one MTU)")]
    TooLong {
        /// As posted.
        got: u64,
        /// At most.
        max: u64,
    },
    /// The operation is none of this QP's.
    #[error("{op} is not an operation of a {kind} QP")]
    Unsupported {
        /// The operation.
        op: &'static str,
        /// The QP's kind.
        kind: &'static str,
    },
    /// A datagram without its destination.
    #[error("a UD request needs an address handle, QPN and Q_Key")]
    NoDestination,
    /// An atomic whose SGEs do not hold just 8 bytes.
    #[error("an atomic moves 8 bytes, the SGEs hold {0}")]
    AtomicLength(u64),
    /// No such address handle.
    #[error("no address handle {0}; it may have been destroyed")]
    NoSuchAh(u32),
}
