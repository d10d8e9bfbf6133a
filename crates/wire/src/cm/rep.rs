//! REP and RTU (IBA 12.6.8 and 12.6.9).

use super::{CmTimeout, CommId, Failover, RetryCount};
use crate::{Psn, QKey, Qpn, layout::layout};

layout! {
    /// REP: the passive side accepts.
    Rep, RepView, "CM REP", 232;
    /// The sender's id of the connection.
    local_comm_id: CommId = (0, 0, 32);
    /// The receiver's id of the connection.
    remote_comm_id: CommId = (4, 0, 32);
    /// Q_Key of the sender's QP; reliable datagrams only.
    local_qkey: QKey = (8, 0, 32);
    /// The sender's QPN.
    local_qpn: Qpn = (12, 0, 24);
    /// High byte of the ECE vendor id; reserved before ECE.
    vendor_id_high: u8 = (15, 0, 8);
    /// End-to-end context of the sender, 24 bits; reliable datagrams only.
    local_eecn: u32 = (16, 0, 24);
    /// Middle byte of the ECE vendor id; reserved before ECE.
    vendor_id_middle: u8 = (19, 0, 8);
    /// The PSN of the first request that the sender expects: the receiver begins with it.
    starting_psn: Psn = (20, 0, 24);
    /// Low byte of the ECE vendor id; reserved before ECE.
    vendor_id_low: u8 = (23, 0, 8);
    /// How many READs and atomics at once the sender serves.
    responder_resources: u8 = (24, 0, 8);
    /// How many READs and atomics at once the sender will have outstanding.
    initiator_depth: u8 = (25, 0, 8);
    /// How long the sender's channel adapter may take to acknowledge.
    target_ack_delay: CmTimeout = (26, 0, 5);
    /// What became of the alternate path.
    failover: Failover = (26, 5, 2);
    /// Whether the sender's QP implements end-to-end credits.
    end_to_end_flow_control: bool = (26, 7, 1);
    /// Retries after RNR NAKs that the receiver shall use; 7 is without end.
    rnr_retry_count: RetryCount = (27, 0, 3);
    /// Whether the sender's QP takes its receive WQEs from an SRQ.
    srq: bool = (27, 3, 1);
    /// Reserved; 0 when sent.
    reserved27: u8 = (27, 4, 4);
    /// EUI-64 of the sender's channel adapter.
    local_ca_guid: u64 = (28, 0, 64);
    /// Private data.
    private_data: [u8; 196] = (36, 0, 1568);
}

layout! {
    /// RTU: the active side has seen the REP and is ready.
    Rtu, RtuView, "CM RTU", 232;
    /// The sender's id of the connection.
    local_comm_id: CommId = (0, 0, 32);
    /// The receiver's id of the connection.
    remote_comm_id: CommId = (4, 0, 32);
    /// Private data.
    private_data: [u8; 224] = (8, 0, 1792);
}

impl Rep {
    /// The ECE vendor id, 24 bits, from its three bytes.
    #[must_use]
    pub const fn vendor_id(&self) -> u32 {
        u32::from_be_bytes([0, self.vendor_id_high, self.vendor_id_middle, self.vendor_id_low])
    }
}
