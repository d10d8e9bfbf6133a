//! LAP and APR: the alternate path of a connection (IBA 12.8).

use super::{AprStatus, CmTimeout, CommId, counted};
use crate::{AckTimeout, Gid, Qpn, Result, layout::layout};

layout! {
    /// LAP: use this path as the alternate one.
    Lap, LapView, "CM LAP", 232;
    /// The sender's id of the connection.
    local_comm_id: CommId = (0, 0, 32);
    /// The receiver's id of the connection.
    remote_comm_id: CommId = (4, 0, 32);
    /// Reserved; 0 when sent.
    reserved8: u32 = (8, 0, 32);
    /// The receiver's QPN.
    remote_qpn: Qpn = (12, 0, 24);
    /// How soon the receiver has to answer.
    remote_cm_response_timeout: CmTimeout = (15, 0, 5);
    /// Reserved; 0 when sent.
    reserved15: u8 = (15, 5, 3);
    /// Reserved; 0 when sent.
    reserved16: u32 = (16, 0, 32);
    /// LID of the sender's port.
    local_lid: u16 = (20, 0, 16);
    /// LID of the receiver's port.
    remote_lid: u16 = (22, 0, 16);
    /// GID of the sender's port.
    local_gid: Gid = (24, 0, 128);
    /// GID of the receiver's port.
    remote_gid: Gid = (40, 0, 128);
    /// Flow label, 20 bits.
    flow_label: u32 = (56, 0, 20);
    /// Reserved; 0 when sent.
    reserved58: u8 = (58, 4, 4);
    /// Traffic class.
    traffic_class: u8 = (59, 0, 8);
    /// Hop limit.
    hop_limit: u8 = (60, 0, 8);
    /// Reserved; 0 when sent.
    reserved61: u8 = (61, 0, 2);
    /// Packet rate code, 0 to 63.
    packet_rate: u8 = (61, 2, 6);
    /// Service level, 0 to 15.
    service_level: u8 = (62, 0, 4);
    /// Whether both ports are on one subnet.
    subnet_local: bool = (62, 4, 1);
    /// Reserved; 0 when sent.
    reserved62: u8 = (62, 5, 3);
    /// Local ACK timeout of the path.
    local_ack_timeout: AckTimeout = (63, 0, 5);
    /// Reserved; 0 when sent.
    reserved63: u8 = (63, 5, 3);
    /// Private data.
    private_data: [u8; 168] = (64, 0, 1344);
}

layout! {
    /// APR: how the load of an alternate path went.
    Apr, AprView, "CM APR", 232;
    /// The sender's id of the connection.
    local_comm_id: CommId = (0, 0, 32);
    /// The receiver's id of the connection.
    remote_comm_id: CommId = (4, 0, 32);
    /// Bytes of the additional information that count, 0 to 72.
    info_length: u8 = (8, 0, 8);
    /// How it went.
    status: AprStatus = (9, 0, 8);
    /// Reserved; 0 when sent.
    reserved10: u16 = (10, 0, 16);
    /// Additional information.
    info: [u8; 72] = (12, 0, 576);
    /// Private data.
    private_data: [u8; 148] = (84, 0, 1184);
}

impl Apr {
    /// The additional information that counts.
    ///
    /// # Errors
    /// Where its length says more than the 72 bytes there are.
    pub fn additional_info(&self) -> Result<&[u8]> {
        counted("CM APR", &self.info, self.info_length)
    }
}
