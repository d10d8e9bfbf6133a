//! What an exchange says of a QP: the attributes of its three steps, as `rdma_init_qp_attr` gives
//! them.

use std::net::IpAddr;

use urxe_wire::cm::RetryCount;
use urxe_wire::{AckTimeout, Mtu, PKey, Psn, Qpn, RnrTimer};

use crate::Transport;

/// The attributes of a connection's QP for its way to RTS
/// (Linux drivers/infiniband/core/cm.c, `ib_cm_init_qp_attr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpAttrs {
    /// The transport, which says which attributes count.
    pub transport: Transport,
    /// RESET to INIT.
    pub init: InitAttrs,
    /// INIT to RTR.
    pub rtr: RtrAttrs,
    /// RTR to RTS.
    pub rts: RtsAttrs,
}

/// RESET to INIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitAttrs {
    /// Partition.
    pub pkey: PKey,
    /// The peer may write to memory that is registered for it; always.
    pub remote_write: bool,
    /// It may READ and use atomics: if the QP serves any.
    pub remote_read_atomic: bool,
}

/// INIT to RTR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtrAttrs {
    /// Where its packets go.
    pub path: Path,
    /// Path MTU.
    pub mtu: Mtu,
    /// The peer's QP.
    pub dest_qpn: Qpn,
    /// The PSN of the first request it expects.
    pub rq_psn: Psn,
    /// READs and atomics at once that it serves (RC, XRC).
    pub max_dest_rd_atomic: u8,
    /// What its RNR NAKs ask for (RC, XRC): 655 ms, as code 0 says.
    pub min_rnr_timer: RnrTimer,
}

/// RTR to RTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtsAttrs {
    /// The PSN of its first request: the one that the peer expects.
    pub sq_psn: Psn,
    /// Local ACK timeout (RC, XRC).
    pub timeout: AckTimeout,
    /// Retries after timeouts and sequence NAKs (RC, XRC).
    pub retry_cnt: RetryCount,
    /// Retries after RNR NAKs (RC, XRC); 7 is without end.
    pub rnr_retry: RetryCount,
    /// READs and atomics at once that it has outstanding (RC, XRC).
    pub max_rd_atomic: u8,
}

/// The address vector of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Our address, whose GID it has.
    pub local: IpAddr,
    /// The peer's.
    pub remote: IpAddr,
    /// Hop limit.
    pub hop_limit: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Service level, 0 to 15.
    pub service_level: u8,
}

/// What an exchange has agreed on so far, from our side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    pub(crate) transport: Transport,
    pub(crate) pkey: PKey,
    pub(crate) path: Path,
    pub(crate) mtu: Mtu,
    pub(crate) rq_psn: Psn,
    pub(crate) sq_psn: Psn,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) retry_count: RetryCount,
    pub(crate) rnr_retry_count: RetryCount,
    pub(crate) ack_timeout: AckTimeout,
}

impl Agreed {
    /// All of a QP's attributes, once its peer is known.
    pub(crate) fn attrs(&self, dest_qpn: Qpn) -> QpAttrs {
        QpAttrs {
            transport: self.transport,
            init: InitAttrs {
                pkey: self.pkey,
                remote_write: true,
                remote_read_atomic: self.responder_resources > 0,
            },
            rtr: RtrAttrs {
                path: self.path,
                mtu: self.mtu,
                dest_qpn,
                rq_psn: self.rq_psn,
                max_dest_rd_atomic: self.responder_resources,
                min_rnr_timer: RnrTimer::default(),
            },
            rts: RtsAttrs {
                sq_psn: self.sq_psn,
                timeout: self.ack_timeout,
                retry_cnt: self.retry_count,
                rnr_retry: self.rnr_retry_count,
                max_rd_atomic: self.initiator_depth,
            },
        }
    }
}
