//! Handles, completions and events, as verbs names them.

use bitflags::bitflags;
use urxe_wire::Qpn;

use crate::reason::Cause;
use crate::time::Time;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
    )*};
}

ids! {
    /// A completion queue of a [`crate::Nic`].
    CqId
    /// A shared receive queue of a [`crate::Nic`]; its number on the wire too.
    SrqId
    /// An address handle of a [`crate::Nic`].
    AhId
    /// An XRC domain of a [`crate::Nic`].
    XrcdId
}

/// A QP of a [`crate::Nic`]: its QPN.
pub type QpId = Qpn;

/// How a work request ended (`enum ibv_wc_status`; IBA 11.6.2). Those values that nothing here
/// can bring about are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum WcStatus {
    /// It was done.
    Success = 0,
    /// A message did not fit its receive WQE, or a local length was wrong.
    LocLenErr = 1,
    /// The QP found an inconsistency in a work request.
    LocQpOpErr = 2,
    /// An SGE's key, range or rights were wrong.
    LocProtErr = 4,
    /// Flushed: the QP was, or came, in error.
    WrFlushErr = 5,
    /// A memory window could not be bound.
    MwBindErr = 6,
    /// The peer answered what no request asked for.
    BadRespErr = 7,
    /// A remote key, range or right was wrong when a write with immediate was received.
    LocAccessErr = 8,
    /// The peer refused: invalid request.
    RemInvReqErr = 9,
    /// The peer refused: key, range or rights.
    RemAccessErr = 10,
    /// The peer failed by itself.
    RemOpErr = 11,
    /// No answer after all retries.
    RetryExcErr = 12,
    /// No receive WQE at the peer after all RNR retries.
    RnrRetryExcErr = 13,
}

impl WcStatus {
    /// The text of `ibv_wc_status_str`'s kind.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::LocLenErr => "local length error",
            Self::LocQpOpErr => "local QP operation error",
            Self::LocProtErr => "local protection error",
            Self::WrFlushErr => "work request flushed",
            Self::MwBindErr => "memory window bind error",
            Self::BadRespErr => "bad response",
            Self::LocAccessErr => "local access error",
            Self::RemInvReqErr => "remote invalid request",
            Self::RemAccessErr => "remote access error",
            Self::RemOpErr => "remote operation error",
            Self::RetryExcErr => "retries exceeded",
            Self::RnrRetryExcErr => "RNR retries exceeded",
        }
    }
}

/// What a completed work request was (`enum ibv_wc_opcode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WcOpcode {
    /// SEND.
    Send = 0,
    /// RDMA WRITE.
    RdmaWrite = 1,
    /// RDMA READ.
    RdmaRead = 2,
    /// Compare and swap.
    CompSwap = 3,
    /// Fetch and add.
    FetchAdd = 4,
    /// Memory window bind.
    BindMw = 5,
    /// Local invalidate.
    LocalInv = 6,
    /// FLUSH.
    Flush = 8,
    /// ATOMIC WRITE.
    AtomicWrite = 9,
    /// A SEND was received.
    Recv = 128,
    /// An RDMA WRITE with immediate was received.
    RecvRdmaWithImm = 129,
}

bitflags! {
    /// What else a completion tells (`enum ibv_wc_flags`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct WcFlags: u32 {
        /// The first 40 bytes hold a GRH (UD).
        const GRH = 1;
        /// Immediate data came with it.
        const WITH_IMM = 1 << 1;
        /// It invalidated the key in `invalidated`.
        const WITH_INV = 1 << 3;
    }
}

/// A CQE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The work request's own number.
    pub wr_id: u64,
    /// How it ended; the other fields but `qpn` and `cause` hold only if `Success`.
    pub status: WcStatus,
    /// What it was.
    pub opcode: WcOpcode,
    /// Bytes received, or moved by a READ or atomic. UD counts the 40 bytes of the GRH.
    pub byte_len: u32,
    /// Immediate data as on the wire; see `flags`.
    pub imm: [u8; 4],
    /// The key a SEND with invalidate took away; see `flags`.
    pub invalidated: u32,
    /// The QP it belongs to.
    pub qpn: Qpn,
    /// UD: who sent it.
    pub src_qp: Qpn,
    /// What else it tells.
    pub flags: WcFlags,
    /// Index of the P_Key it came with (UD, GSI).
    pub pkey_index: u16,
    /// Traffic class it came with (UD).
    pub traffic_class: u8,
    /// When it was made, as the engine's caller counts time; 0 where the call that made it has no
    /// time, as flushing by [`crate::Nic::modify_qp`].
    pub at: Time,
    /// Why it failed: which packet, which rule. `None` on success.
    pub cause: Option<Cause>,
}

impl Completion {
    /// What happened in one sentence: which request, and if it failed which packet and which rule.
    #[must_use]
    pub fn explain(&self) -> String {
        let (wr, qpn, op) = (self.wr_id, self.qpn, self.opcode);
        match (self.status, self.cause) {
            (WcStatus::Success, _) => format!("request {wr} ({op:?}) of QP {qpn} is done"),
            (status, None) => format!("request {wr} of QP {qpn} failed: {}", status.text()),
            (status, Some(cause)) => {
                format!("request {wr} ({op:?}) of QP {qpn} failed: {}: {cause}", status.text())
            }
        }
    }
}

/// Why a CQ is in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CqCause {
    /// A completion found it full.
    Overflow,
}

/// Asynchronous events (`enum ibv_event_type`; IBA 11.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AsyncEvent {
    /// A CQ overflowed; each QP whose completion it loses goes to error.
    CqErr(CqId, CqCause),
    /// A QP cannot go on and could not tell by a completion.
    QpFatal(QpId),
    /// The peer's request was invalid; the QP is in error.
    QpReqErr(QpId),
    /// The peer's request broke memory protection; the QP is in error.
    QpAccessErr(QpId),
    /// A packet came for a QP in RTR.
    CommEst(QpId),
    /// The send queue of a QP in SQD has drained.
    SqDrained(QpId),
    /// A QP in error has taken its last WQE from its SRQ.
    QpLastWqeReached(QpId),
    /// An SRQ fell below its limit, which is disarmed now.
    SrqLimitReached(SrqId),
    /// The port cannot carry packets: the driver says so, no engine does.
    PortErr,
    /// The port can carry packets again: the driver says so.
    PortActive,
    /// The device has failed and must be opened anew: the driver says so.
    DeviceFatal,
}

/// What waits in [`crate::Nic::take_event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// An armed CQ got what it was armed for.
    Completion(CqId),
    /// An asynchronous event.
    Async(AsyncEvent),
}
