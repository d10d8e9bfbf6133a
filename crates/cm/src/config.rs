//! What a connection manager is told of the device and of how much it may keep.

use urxe_wire::Mtu;
use urxe_wire::cm::CmTimeout;

/// The device that a [`crate::Cm`] speaks for.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// EUI-64 of the device.
    pub ca_guid: u64,
    /// High bits of all communication ids, 0 to 63, so that what comes to an address that several
    /// processes share can be told apart by the id it is for, as packets are by their QPN.
    pub slot: u8,
    /// Where communication and transaction ids come from. A device that is opened again should
    /// have another one, or a peer may take its requests for old ones.
    pub seed: u64,
    /// The largest path MTU; a request for a larger one is refused (IBA 12.6.7.2, reason 26).
    pub mtu: Mtu,
    /// How many READs and atomics at once a QP can serve.
    pub max_responder_resources: u8,
    /// How many READs and atomics at once a QP can have outstanding.
    pub max_initiator_depth: u8,
    /// How long the device may take to acknowledge.
    pub ack_delay: CmTimeout,
    /// What an MRA says that nobody asked for, when a peer asks again for what the owner has not
    /// decided yet.
    pub mra_timeout: CmTimeout,
    /// The longest time that a peer's MRA can ask for.
    pub longest_mra: CmTimeout,
    /// How much is kept.
    pub limits: Limits,
}

/// How much a [`crate::Cm`] keeps at most; what comes beyond it is dropped and counted.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections in any state, those in timewait and refused ones included.
    pub connections: usize,
    /// Refusals and answers of services that are kept for duplicates of their question.
    pub remembered: usize,
    /// Questions of service that wait for an answer, ours and peers'.
    pub sidr: usize,
    /// Listeners.
    pub listeners: usize,
    /// Events that wait to be polled, before requests are dropped.
    pub events: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1 << 16,
            remembered: 1 << 10,
            sidr: 1 << 12,
            listeners: 1 << 12,
            events: 1 << 12,
        }
    }
}

/// The code, 0 to 31, as a time.
pub(crate) fn timeout(code: u8) -> CmTimeout {
    CmTimeout::new(code).unwrap_or(CmTimeout::MAX)
}

impl Config {
    /// A device as kernel rxe is one: READ depths of 128, 134 ms to acknowledge; an unasked MRA
    /// asks for 69 s (Linux drivers/infiniband/sw/rxe/rxe_param.h, core/cma.c).
    #[must_use]
    pub fn new(ca_guid: u64, seed: u64) -> Self {
        Self {
            ca_guid,
            slot: 0,
            seed,
            mtu: Mtu::B4096,
            max_responder_resources: 128,
            max_initiator_depth: 128,
            ack_delay: timeout(15),
            mra_timeout: timeout(24),
            longest_mra: timeout(26),
            limits: Limits::default(),
        }
    }
}
