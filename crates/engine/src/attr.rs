//! What a QP is, the states it goes through and the attributes each step takes.
//!
//! The rules are data ([`Needs::of`]); a snapshot shows the whole matrix. [`QpAttr::modify`] is
//! `ibv_modify_qp` on plain values: it checks transition, mask and values and changes nothing
//! unless all of them are right.

use std::fmt;

use bitflags::bitflags;

mod error;
mod rules;
mod values;

pub use error::AttrError;
pub use rules::{Needs, check};
pub use values::{AhAttr, Limits, MigState, QpAttr, QpCaps};

#[cfg(test)]
mod tests;

/// State of a QP, with the values of `enum ibv_qp_state` (IBA 10.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum QpState {
    /// As created: nothing may be posted, packets are dropped.
    #[default]
    Reset = 0,
    /// Receives may be posted; packets are dropped.
    Init = 1,
    /// Ready to receive: requests are answered, nothing is sent.
    Rtr = 2,
    /// Ready to send: all works.
    Rts = 3,
    /// Send queue drained: begun requests end, no new one begins; requests are answered.
    Sqd = 4,
    /// Send queue error (UC and UD): sends are flushed; requests are received.
    Sqe = 5,
    /// Error: all work requests are flushed, packets are dropped.
    Err = 6,
}

impl QpState {
    /// All of them, in the order of their values.
    pub const ALL: [Self; 7] =
        [Self::Reset, Self::Init, Self::Rtr, Self::Rts, Self::Sqd, Self::Sqe, Self::Err];

    /// The state of `enum ibv_qp_state` value `value`, 0 to 6; `None` for any other.
    #[must_use]
    pub const fn from_verbs(value: u32) -> Option<Self> {
        match value {
            0..=6 => Some(Self::ALL[value as usize]),
            _ => None,
        }
    }

    /// Whether a receive may be posted (IBA 10.3.1): in all states but RESET.
    #[must_use]
    pub const fn takes_receives(self) -> bool {
        !matches!(self, Self::Reset)
    }

    /// Whether a send may be posted (IBA 10.3.1): in RTS and all states after it.
    #[must_use]
    pub const fn takes_sends(self) -> bool {
        matches!(self, Self::Rts | Self::Sqd | Self::Sqe | Self::Err)
    }

    /// Whether requests that come from the peer are processed.
    #[must_use]
    pub const fn responds(self) -> bool {
        matches!(self, Self::Rtr | Self::Rts | Self::Sqd | Self::Sqe)
    }

    /// Whether posted sends may begin. In SQD the begun ones go on to their end.
    #[must_use]
    pub const fn begins_sends(self) -> bool {
        matches!(self, Self::Rts)
    }
}

/// `RTR`.
impl fmt::Display for QpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reset => "RESET",
            Self::Init => "INIT",
            Self::Rtr => "RTR",
            Self::Rts => "RTS",
            Self::Sqd => "SQD",
            Self::Sqe => "SQE",
            Self::Err => "ERR",
        })
    }
}

/// Transport service of a QP, with the values of `enum ibv_qp_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum QpKind {
    /// QP1, the general services QP: UD, made by the NIC itself. libibverbs has no value for it;
    /// 1 is the kernel's (include/rdma/ib_verbs.h).
    Gsi = 1,
    /// Reliable connection.
    Rc = 2,
    /// Unreliable connection.
    Uc = 3,
    /// Unreliable datagram.
    Ud = 4,
    /// The side of an extended reliable connection that sends (`IBV_QPT_XRC_SEND`).
    XrcInit = 9,
    /// The side of an extended reliable connection that receives (`IBV_QPT_XRC_RECV`).
    XrcTarget = 10,
}

impl QpKind {
    /// All of them, in the order of their values.
    pub const ALL: [Self; 6] =
        [Self::Gsi, Self::Rc, Self::Uc, Self::Ud, Self::XrcInit, Self::XrcTarget];

    /// The kind of `enum ibv_qp_type` value `value`. `None` for a value that programs may not
    /// ask for or that urxe does not have (raw packet, driver types).
    #[must_use]
    pub const fn from_verbs(value: u32) -> Option<Self> {
        match value {
            2 => Some(Self::Rc),
            3 => Some(Self::Uc),
            4 => Some(Self::Ud),
            9 => Some(Self::XrcInit),
            10 => Some(Self::XrcTarget),
            _ => None,
        }
    }

    /// Whether a QP of this kind has one peer, set before RTR.
    #[must_use]
    pub const fn is_connected(self) -> bool {
        matches!(self, Self::Rc | Self::Uc | Self::XrcInit | Self::XrcTarget)
    }

    /// Whether a QP of this kind has acknowledgements and retries.
    #[must_use]
    pub const fn is_reliable(self) -> bool {
        matches!(self, Self::Rc | Self::XrcInit | Self::XrcTarget)
    }
}

/// `RC`.
impl fmt::Display for QpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Gsi => "GSI",
            Self::Rc => "RC",
            Self::Uc => "UC",
            Self::Ud => "UD",
            Self::XrcInit => "XRC_SEND",
            Self::XrcTarget => "XRC_RECV",
        })
    }
}

bitflags! {
    /// Which fields of a [`QpAttr`] are meant, with the bits of `enum ibv_qp_attr_mask`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct AttrMask: u32 {
        /// [`QpAttr::qp_state`], the state to go to.
        const STATE = 1 << 0;
        /// [`QpAttr::cur_qp_state`], the state the caller takes the QP to be in.
        const CUR_STATE = 1 << 1;
        /// [`QpAttr::en_sqd_async_notify`].
        const EN_SQD_ASYNC_NOTIFY = 1 << 2;
        /// [`QpAttr::access`].
        const ACCESS_FLAGS = 1 << 3;
        /// [`QpAttr::pkey_index`].
        const PKEY_INDEX = 1 << 4;
        /// [`QpAttr::port_num`].
        const PORT = 1 << 5;
        /// [`QpAttr::qkey`].
        const QKEY = 1 << 6;
        /// [`QpAttr::ah`], the way to the peer.
        const AV = 1 << 7;
        /// [`QpAttr::path_mtu`].
        const PATH_MTU = 1 << 8;
        /// [`QpAttr::timeout`].
        const TIMEOUT = 1 << 9;
        /// [`QpAttr::retry_cnt`].
        const RETRY_CNT = 1 << 10;
        /// [`QpAttr::rnr_retry`].
        const RNR_RETRY = 1 << 11;
        /// [`QpAttr::rq_psn`].
        const RQ_PSN = 1 << 12;
        /// [`QpAttr::max_rd_atomic`].
        const MAX_QP_RD_ATOMIC = 1 << 13;
        /// The alternate path, which urxe does not have.
        const ALT_PATH = 1 << 14;
        /// [`QpAttr::min_rnr_timer`].
        const MIN_RNR_TIMER = 1 << 15;
        /// [`QpAttr::sq_psn`].
        const SQ_PSN = 1 << 16;
        /// [`QpAttr::max_dest_rd_atomic`].
        const MAX_DEST_RD_ATOMIC = 1 << 17;
        /// [`QpAttr::path_mig_state`].
        const PATH_MIG_STATE = 1 << 18;
        /// [`QpAttr::caps`], which no transition may change.
        const CAP = 1 << 19;
        /// [`QpAttr::dest_qp`].
        const DEST_QPN = 1 << 20;
        /// [`QpAttr::rate_limit`].
        const RATE_LIMIT = 1 << 25;
    }
}

/// `DEST_QPN, RQ_PSN`; bits without a name as one hexadecimal number; `nothing` if empty.
impl fmt::Display for AttrMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing");
        }
        let mut rest = *self;
        let mut separator = "";
        for (name, bit) in self.iter_names() {
            write!(f, "{separator}{name}")?;
            separator = ", ";
            rest.remove(bit);
        }
        if !rest.is_empty() {
            write!(f, "{separator}{:#x}", rest.bits())?;
        }
        Ok(())
    }
}
