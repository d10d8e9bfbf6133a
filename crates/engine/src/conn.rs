//! What a QP's halves need to know of its connection.

use std::sync::Arc;

use urxe_memory::{Access, PdId};
use urxe_wire::{Mtu, PKey, QKey, Qpn, RnrTimer, Transport};

use crate::attr::QpKind;
use crate::config::Profile;

/// The settled attributes of a QP, copied out so that requester, completer and responder read
/// them without knowing the QP.
#[derive(Clone, Debug)]
pub(crate) struct Conn {
    pub(crate) kind: QpKind,
    pub(crate) qpn: Qpn,
    pub(crate) pd: PdId,
    pub(crate) mtu: u32,
    pub(crate) dest_qp: Qpn,
    pub(crate) pkey: PKey,
    pub(crate) qkey: QKey,
    pub(crate) access: Access,
    /// READs and atomics we may have outstanding.
    pub(crate) max_rd_atomic: u32,
    /// READs and atomics the peer may have outstanding.
    pub(crate) max_dest_rd_atomic: usize,
    pub(crate) min_rnr_timer: RnrTimer,
    /// Shared by all QPs of the NIC.
    pub(crate) profile: Arc<Profile>,
}

impl Conn {
    pub(crate) fn new(kind: QpKind, qpn: Qpn, pd: PdId, profile: impl Into<Arc<Profile>>) -> Self {
        Self {
            kind,
            qpn,
            pd,
            mtu: Mtu::B256.bytes(),
            dest_qp: Qpn::default(),
            pkey: PKey::DEFAULT,
            qkey: QKey::default(),
            access: Access::empty(),
            max_rd_atomic: 0,
            max_dest_rd_atomic: 0,
            min_rnr_timer: RnrTimer::default(),
            profile: profile.into(),
        }
    }

    /// The transport of its opcodes.
    pub(crate) const fn transport(&self) -> Transport {
        match self.kind {
            QpKind::Rc => Transport::Rc,
            QpKind::Uc => Transport::Uc,
            QpKind::Ud | QpKind::Gsi => Transport::Ud,
            QpKind::XrcInit | QpKind::XrcTarget => Transport::Xrc,
        }
    }

    /// Whether its packets are acknowledged.
    pub(crate) const fn reliable(&self) -> bool {
        matches!(self.kind, QpKind::Rc | QpKind::XrcInit | QpKind::XrcTarget)
    }

    /// How many packets a message of `length` bytes takes.
    pub(crate) const fn packets(&self, length: u32) -> u32 {
        if length == 0 { 1 } else { length.div_ceil(self.mtu) }
    }
}
