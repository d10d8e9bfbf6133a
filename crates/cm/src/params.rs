//! What an owner says of a connection it wants, takes or offers.

use std::net::{IpAddr, SocketAddr};

use urxe_wire::cm::{
    CmTimeout, IpHeader, PortSpace, Req, RetryCount, ServiceId, SidrStatus, TransportService,
};
use urxe_wire::{AckTimeout, Mtu, PKey, Psn, QKey, Qpn};

use crate::Route;
use crate::config::timeout;

#[cfg(test)]
mod tests;

/// Names a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId(pub(crate) u32);

/// The transport of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Extended reliable connection: the active side's QP sends, the passive side's receives.
    Xrc,
}

impl Transport {
    /// What a REQ asks for, if it is a transport that urxe has.
    pub(crate) const fn of(req: &Req) -> Option<Self> {
        match (req.transport_service, req.extended_transport) {
            (TransportService::Rc, _) => Some(Self::Rc),
            (TransportService::Uc, _) => Some(Self::Uc),
            (TransportService::Extended, 1) => Some(Self::Xrc),
            _ => None,
        }
    }

    pub(crate) const fn codes(self) -> (TransportService, u8) {
        match self {
            Self::Rc => (TransportService::Rc, 0),
            Self::Uc => (TransportService::Uc, 0),
            Self::Xrc => (TransportService::Extended, 1),
        }
    }
}

/// Enhanced connection establishment: which vendor's options a side offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Ece {
    /// Vendor, 24 bits; 0 is none.
    pub vendor_id: u32,
    /// Its options.
    pub options: u32,
}

/// What is listened to.
#[derive(Clone, Copy, Debug)]
pub struct Listen {
    /// The service.
    pub service_id: ServiceId,
    /// Only at this address of ours; at any if none is given.
    pub address: Option<IpAddr>,
    /// How many requests, for connections and of service, may wait for the owner's answer; what
    /// comes beyond it is dropped, and its sender asks again. At least 1.
    pub backlog: usize,
    /// Whether requests begin with an IP header that must agree with their addresses.
    pub ip: bool,
}

impl Listen {
    /// Listens to a port of `rdma_cm`.
    #[must_use]
    pub const fn port(space: PortSpace, port: u16, backlog: usize) -> Self {
        Self { service_id: ServiceId::new(space, port), address: None, backlog, ip: true }
    }
}

/// The path of a connection's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathParams {
    /// Path MTU.
    pub mtu: Mtu,
    /// Hop limit.
    pub hop_limit: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Service level, 0 to 15.
    pub service_level: u8,
    /// How long a packet is under way at most.
    pub packet_lifetime: CmTimeout,
}

impl Default for PathParams {
    /// As `rdma_cm` on RoCE: MTU 1024, hop limit 64, lifetime 268 ms.
    fn default() -> Self {
        Self {
            mtu: Mtu::B1024,
            hop_limit: 64,
            traffic_class: 0,
            flow_label: 0,
            service_level: 0,
            packet_lifetime: timeout(16),
        }
    }
}

/// How long is waited for answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How soon the peer has to answer.
    pub remote_response: CmTimeout,
    /// How soon we answer.
    pub local_response: CmTimeout,
    /// How often a message is sent again, 0 to 15.
    pub max_retries: u8,
}

impl Default for Timing {
    /// As `rdma_cm`: 4.3 s, 15 times (Linux drivers/infiniband/core/cma.c).
    fn default() -> Self {
        Self { remote_response: timeout(20), local_response: timeout(20), max_retries: 15 }
    }
}

/// A connection that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Connect<'a> {
    /// To whom.
    pub route: Route,
    /// To what.
    pub service_id: ServiceId,
    /// The transport.
    pub transport: Transport,
    /// Our QP.
    pub qpn: Qpn,
    /// The PSN of the first request that our QP expects.
    pub psn: Psn,
    /// Whether our QP takes its receive WQEs from an SRQ.
    pub srq: bool,
    /// How many READs and atomics at once our QP can serve.
    pub responder_resources: u8,
    /// How many READs and atomics at once our QP would like to have outstanding.
    pub initiator_depth: u8,
    /// Whether our QP implements end-to-end credits.
    pub flow_control: bool,
    /// Retries of both QPs after timeouts and sequence NAKs.
    pub retry_count: RetryCount,
    /// Retries of the peer's QP after RNR NAKs; 7 is without end.
    pub rnr_retry_count: RetryCount,
    /// Partition.
    pub pkey: PKey,
    /// The path.
    pub path: PathParams,
    /// How long is waited.
    pub timing: Timing,
    /// Options of a vendor.
    pub ece: Option<Ece>,
    /// The IP header that a service of an IP port space wants.
    pub ip: Option<IpHeader>,
    /// For the peer's program: 92 bytes, 56 after an IP header.
    pub private_data: &'a [u8],
}

impl Connect<'_> {
    /// A connection from `source` to `destination` as `rdma_cm` would ask for it.
    ///
    /// # Errors
    /// Where one address is IPv4 and the other IPv6.
    pub fn ip(
        space: PortSpace,
        source: SocketAddr,
        destination: SocketAddr,
        qpn: Qpn,
        psn: Psn,
    ) -> Result<Self, crate::Error> {
        let label = ports_label(source.port(), destination.port());
        Ok(Self {
            route: Route::new(source.ip(), destination.ip()),
            service_id: ServiceId::new(space, destination.port()),
            transport: Transport::Rc,
            qpn,
            psn,
            srq: false,
            responder_resources: 1,
            initiator_depth: 1,
            flow_control: false,
            retry_count: RetryCount::MAX,
            rnr_retry_count: RetryCount::MAX,
            pkey: PKey::DEFAULT,
            path: PathParams { flow_label: label, ..PathParams::default() },
            timing: Timing::default(),
            ece: None,
            ip: Some(IpHeader::new(source, destination.ip())?),
            private_data: &[],
        })
    }
}

/// The flow label that `rdma_cm` gives a connection of two ports: 20 bits of 31 times the source
/// port and the destination port (Linux drivers/infiniband/core/cma.c).
const fn ports_label(source: u16, destination: u16) -> u32 {
    (source as u32 * 31 + destination as u32) & 0xf_ffff
}

/// How a request is accepted.
#[derive(Clone, Copy, Debug)]
pub struct Accept<'a> {
    /// Our QP.
    pub qpn: Qpn,
    /// The PSN of the first request that our QP expects.
    pub psn: Psn,
    /// Whether our QP takes its receive WQEs from an SRQ.
    pub srq: bool,
    /// How many READs and atomics at once our QP serves.
    pub responder_resources: u8,
    /// How many READs and atomics at once our QP will have outstanding; no more than the peer
    /// serves.
    pub initiator_depth: u8,
    /// Whether our QP implements end-to-end credits.
    pub flow_control: bool,
    /// Retries of the peer's QP after RNR NAKs; 7 is without end.
    pub rnr_retry_count: RetryCount,
    /// Options of a vendor.
    pub ece: Option<Ece>,
    /// For the peer's program, 196 bytes.
    pub private_data: &'a [u8],
}

impl Accept<'_> {
    /// Accepts with a QP, with what the request asks for as far as the device has it: see
    /// [`crate::Request::accept`], which knows it.
    #[must_use]
    pub const fn new(qpn: Qpn, psn: Psn) -> Self {
        Self {
            qpn,
            psn,
            srq: false,
            responder_resources: u8::MAX,
            initiator_depth: u8::MAX,
            flow_control: false,
            rnr_retry_count: RetryCount::MAX,
            ece: None,
            private_data: &[],
        }
    }
}

/// A question: which QP serves this?
#[derive(Clone, Copy, Debug)]
pub struct SidrAsk<'a> {
    /// Whom.
    pub route: Route,
    /// What.
    pub service_id: ServiceId,
    /// Partition.
    pub pkey: PKey,
    /// How long is waited for the answer; `local_response` is not used.
    pub timing: Timing,
    /// The IP header that a service of an IP port space wants.
    pub ip: Option<IpHeader>,
    /// For the peer's program: 216 bytes, 180 after an IP header.
    pub private_data: &'a [u8],
}

impl SidrAsk<'_> {
    /// Asks from `source` for a port as `rdma_cm` would.
    ///
    /// # Errors
    /// Where one address is IPv4 and the other IPv6.
    pub fn ip(
        space: PortSpace,
        source: SocketAddr,
        destination: SocketAddr,
    ) -> Result<Self, crate::Error> {
        Ok(Self {
            route: Route::new(source.ip(), destination.ip()),
            service_id: ServiceId::new(space, destination.port()),
            pkey: PKey::DEFAULT,
            timing: Timing::default(),
            ip: Some(IpHeader::new(source, destination.ip())?),
            private_data: &[],
        })
    }
}

/// An answer to a question of service.
#[derive(Clone, Copy, Debug)]
pub struct SidrAnswer<'a> {
    /// How it went; the QP counts only with [`SidrStatus::Success`].
    pub status: SidrStatus,
    /// The QP.
    pub qpn: Qpn,
    /// The Q_Key to send with.
    pub qkey: QKey,
    /// Options of a vendor.
    pub ece: Option<Ece>,
    /// For the peer's program, 136 bytes.
    pub private_data: &'a [u8],
}

impl SidrAnswer<'_> {
    /// "This QP, with the Q_Key of `rdma_cm`."
    #[must_use]
    pub const fn qp(qpn: Qpn) -> Self {
        let (status, qkey) = (SidrStatus::Success, QKey::RDMA_CM_UDP);
        Self { status, qpn, qkey, ece: None, private_data: &[] }
    }

    /// "No": with this status.
    #[must_use]
    pub const fn no(status: SidrStatus) -> Self {
        Self { status, qpn: Qpn::new(0), qkey: QKey(0), ece: None, private_data: &[] }
    }
}

/// The local ACK timeout of a path: what covers the way there and back and the peer's delay. The
/// codes are powers of two, so of twice the lifetime and the delay the larger counts, and one more
/// where the other is at least half of it (as Linux drivers/infiniband/core/cm.c reckons).
pub(crate) fn ack_timeout(packet_lifetime: CmTimeout, ack_delay: CmTimeout) -> AckTimeout {
    let (twice, delay) = (packet_lifetime.code() + 1, ack_delay.code());
    let (low, high) = (twice.min(delay), twice.max(delay));
    let code = if low + 1 >= high { high + 1 } else { high };
    AckTimeout::new(code.min(31)).unwrap_or_default()
}
