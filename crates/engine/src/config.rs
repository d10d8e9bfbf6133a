//! What a NIC is made with: limits, addresses, and the profile of its manners.

use core::net::IpAddr;
use core::time::Duration;

use urxe_wire::{Mtu, PKey, RnrTimer};

use crate::dcqcn::{self, Rate};

/// Where real NICs differ from the specification and from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name: `strict`, `rxe`, `connectx`.
    pub name: &'static str,
    /// `retry_cnt` 7 retries for ever instead of seven times.
    pub infinite_retry_at_7: bool,
    /// A response beyond the expected one makes the requester go back at once.
    pub implied_nak: bool,
    /// After an RNR NAK a gap is NAKed again instead of met with silence.
    pub nak_behind_rnr: bool,
    /// ACKs carry credits, and those of the peer are honoured.
    pub credits: bool,
    /// Only P_Key 0xFFFF is spoken.
    pub default_pkey_only: bool,
    /// CE marks are answered with CNPs, and CNPs are taken.
    pub congestion: bool,
    /// A CNP goes with each PSN-sequence NAK.
    pub cnp_with_nak: bool,
    /// The MigReq bit of what is sent.
    pub mig_req: bool,
    /// IPv6 flow labels are sent as set; otherwise 0.
    pub flow_label: bool,
    /// The UDP source port of datagrams comes from the own QPN alone, so that the directions
    /// differ; else it comes from the address handle, as that of connections from both QPNs.
    pub datagram_port_of_own_qpn: bool,
    /// An ACK is asked for after so many packets of one message, and at its end.
    pub ack_every: u32,
    /// The wait that RNR timer code 25 stands for.
    pub rnr_25: Duration,
    /// Timers run out at multiples of this; zero is exact.
    pub tick: Duration,
}

impl Profile {
    /// The specification.
    pub const STRICT: Self = Self {
        name: "strict",
        infinite_retry_at_7: false,
        implied_nak: true,
        nak_behind_rnr: false,
        credits: true,
        default_pkey_only: false,
        congestion: true,
        cnp_with_nak: false,
        mig_req: true,
        flow_label: true,
        datagram_port_of_own_qpn: false,
        ack_every: 32,
        rnr_25: Duration::from_micros(61_440),
        tick: Duration::ZERO,
    };

    /// Linux rxe 6.12 (drivers/infiniband/sw/rxe), its departures included.
    pub const RXE: Self = Self {
        name: "rxe",
        infinite_retry_at_7: true,
        implied_nak: false,
        nak_behind_rnr: true,
        credits: false,
        default_pkey_only: true,
        congestion: false,
        mig_req: false,
        flow_label: false,
        datagram_port_of_own_qpn: true,
        ack_every: 64,
        rnr_25: Duration::from_micros(61_410),
        tick: Duration::from_millis(4),
        ..Self::STRICT
    };

    /// What ConnectX-5 and -6 are seen to do.
    pub const CONNECTX: Self = Self { name: "connectx", cnp_with_nak: true, ..Self::STRICT };

    /// All of them.
    pub const ALL: [Self; 3] = [Self::STRICT, Self::RXE, Self::CONNECTX];

    /// The profile called `name`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name == name)
    }

    /// How long an RNR NAK with `timer` makes a requester wait.
    #[must_use]
    pub const fn rnr_wait(&self, timer: RnrTimer) -> Duration {
        if timer.code() == 25 { self.rnr_25 } else { timer.duration() }
    }
}

/// The most of everything that a NIC has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// QPs, at most 2^18 − 3.
    pub max_qp: u32,
    /// WQEs of one queue.
    pub max_wr: u32,
    /// SGEs of one WQE, at most 32.
    pub max_sge: u32,
    /// Inline bytes of one send WQE.
    pub max_inline: u32,
    /// CQs.
    pub max_cq: u32,
    /// Completions of one CQ.
    pub max_cqe: u32,
    /// SRQs.
    pub max_srq: u32,
    /// Address handles.
    pub max_ah: u32,
    /// PDs.
    pub max_pd: u32,
    /// Memory regions.
    pub max_mr: u32,
    /// Memory windows.
    pub max_mw: u32,
    /// READs and atomics a QP has outstanding, as requester and as responder, at most 255.
    pub max_rd_atomic: u8,
    /// QPs attached to one multicast group.
    pub max_mcast_qp_attach: u32,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            max_qp: 1 << 17,
            max_wr: 1 << 14,
            max_sge: 32,
            max_inline: 1024,
            max_cq: 1 << 16,
            max_cqe: 1 << 22,
            max_srq: 1 << 16,
            max_ah: 1 << 17,
            max_pd: 1 << 16,
            max_mr: 1 << 20,
            max_mw: 1 << 18,
            max_rd_atomic: 128,
            max_mcast_qp_attach: 256,
        }
    }
}

/// What a NIC is made with.
#[derive(Clone, Debug)]
pub struct NicConfig {
    /// The GID table: our addresses, in the order of their indices. At least one.
    pub addresses: Vec<IpAddr>,
    /// The P_Key table. At least one.
    pub pkeys: Vec<PKey>,
    /// The largest path MTU the port carries.
    pub active_mtu: Mtu,
    /// Limits.
    pub caps: Caps,
    /// Manners.
    pub profile: Profile,
    /// High bits of every QPN (0 to 63), so that processes can share an address.
    pub slot: u8,
    /// Where key generations start.
    pub seed: u32,
    /// The most PSNs a QP has in flight, 4 to 2^22.
    pub max_window: u32,
    /// Congestion control of our QPs; `None` sends at any rate.
    pub dcqcn: Option<dcqcn::Checked>,
    /// Line rate of the port; where DCQCN starts from.
    pub line_rate: Rate,
    /// The least time between two CNPs to one QP (DCQCN's N; 50 µs in the paper).
    pub min_time_between_cnps: Duration,
}

impl NicConfig {
    /// A NIC of `address` with MTU 1024, the strict profile and default limits.
    #[must_use]
    pub fn new(address: IpAddr) -> Self {
        Self {
            addresses: vec![address],
            pkeys: vec![PKey::DEFAULT],
            active_mtu: Mtu::B1024,
            caps: Caps::default(),
            profile: Profile::STRICT,
            slot: 0,
            seed: 0,
            max_window: 512,
            dcqcn: None,
            line_rate: Rate::from_bps(10_000_000_000),
            min_time_between_cnps: Duration::from_micros(50),
        }
    }
}
