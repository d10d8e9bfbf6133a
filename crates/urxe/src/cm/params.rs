//! What a side says of the connection it wants or takes, and is told of the other.

use urxe_cm::{Ece, PathParams, Timing};
use urxe_engine::QpKind;
use urxe_wire::cm::{PortSpace, RetryCount};
use urxe_wire::{QKey, Qpn};

/// With which QP and on which terms an [`crate::cm::Id`] connects or accepts (`struct
/// rdma_conn_param`).
#[derive(Clone, Copy, Debug)]
pub struct ConnParam<'a> {
    /// Our QP.
    pub qpn: Qpn,
    /// Whether it takes its receive WQEs from an SRQ.
    pub srq: bool,
    /// READs and atomics at once that it serves. 255: as many as the device can, or were asked for.
    pub responder_resources: u8,
    /// READs and atomics at once that it would like to have outstanding. 255: as above.
    pub initiator_depth: u8,
    /// Whether it implements end-to-end credits.
    pub flow_control: bool,
    /// Retries of both QPs after timeouts and sequence NAKs; the side that asks says it.
    pub retry_count: RetryCount,
    /// Retries of the peer's QP after RNR NAKs; 7 is without end.
    pub rnr_retry_count: RetryCount,
    /// UD: the key that datagrams to our QP must carry; that of `rdma_cm` if none is given.
    pub qkey: Option<QKey>,
    /// Options of a vendor.
    pub ece: Option<Ece>,
    /// For the peer's program: 56 bytes with a connection request, 196 with its acceptance; UD: 180
    /// and 136.
    pub private_data: &'a [u8],
}

impl ConnParam<'_> {
    /// With this QP, as many READs as possible, seven retries, RNR retries without end, no data.
    #[must_use]
    pub const fn new(qpn: Qpn) -> Self {
        Self {
            qpn,
            srq: false,
            responder_resources: u8::MAX,
            initiator_depth: u8::MAX,
            flow_control: false,
            retry_count: RetryCount::MAX,
            rnr_retry_count: RetryCount::MAX,
            qkey: None,
            ece: None,
            private_data: &[],
        }
    }
}

/// What the peer said of itself. Depths are from our view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnInfo {
    /// Kind of the QP that goes with the peer's.
    pub kind: QpKind,
    /// The peer's QP; 0 in a question of service, which has none.
    pub qpn: Qpn,
    /// READs and atomics at once that the peer will have outstanding, or would like to.
    pub responder_resources: u8,
    /// READs and atomics at once that the peer serves.
    pub initiator_depth: u8,
    /// Whether the peer's QP implements end-to-end credits.
    pub flow_control: bool,
    /// Retries of both QPs after timeouts and sequence NAKs; 0 in an acceptance, which says none.
    pub retry_count: u8,
    /// Retries of our QP after RNR NAKs.
    pub rnr_retry_count: u8,
    /// Whether the peer's QP takes its receive WQEs from an SRQ.
    pub srq: bool,
    /// Options of a vendor.
    pub ece: Ece,
    /// The peer's program's, the whole field: zeros follow what it gave.
    pub private_data: Vec<u8>,
}

/// Where datagrams of a service go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdInfo {
    /// The QP.
    pub qpn: Qpn,
    /// The key that datagrams must carry.
    pub qkey: QKey,
    /// Options of a vendor.
    pub ece: Ece,
    /// The peer's program's, 136 bytes: zeros follow what it gave.
    pub private_data: Vec<u8>,
}

/// On which terms [`crate::cm::Connection::connect`] and [`crate::cm::Incoming::accept`] work.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Port space; datagrams always use [`PortSpace::Udp`].
    pub space: PortSpace,
    /// READs and atomics at once that our QP serves. 255: as many as the device can.
    pub responder_resources: u8,
    /// READs and atomics at once that it would like to have outstanding. 255: as above.
    pub initiator_depth: u8,
    /// Retries after timeouts and sequence NAKs, of both QPs.
    pub retry_count: RetryCount,
    /// Retries of the peer's QP after RNR NAKs; 7 is without end.
    pub rnr_retry_count: RetryCount,
    /// The path of the data; the device's MTU and the defaults of [`PathParams`] if none is given.
    /// Its packet lifetime sets the QPs' local ACK timeout and how long an ended connection is
    /// remembered.
    pub path: Option<PathParams>,
    /// How long is waited for the peer's connection manager.
    pub timing: Timing,
    /// For the peer's program: 56 bytes when connecting, 196 when accepting; UD: 180 and 136.
    pub private_data: &'a [u8],
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            space: PortSpace::Tcp,
            responder_resources: u8::MAX,
            initiator_depth: u8::MAX,
            retry_count: RetryCount::MAX,
            rnr_retry_count: RetryCount::MAX,
            path: None,
            timing: Timing::default(),
            private_data: &[],
        }
    }
}

impl<'a> Options<'a> {
    pub(crate) const fn param(&self, qpn: Qpn, srq: bool) -> ConnParam<'a> {
        ConnParam {
            srq,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            retry_count: self.retry_count,
            rnr_retry_count: self.rnr_retry_count,
            private_data: self.private_data,
            ..ConnParam::new(qpn)
        }
    }
}
