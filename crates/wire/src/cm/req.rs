//! REQ (IBA 12.6.5).

use super::{
    CmTimeout, CommId, IpHeader, MtuCode, RetryCount, ServiceId, TransportService, ip::ip_header,
};
use crate::{AckTimeout, Gid, PKey, Psn, QKey, Qpn, Result, layout::layout};

layout! {
    /// REQ: the active side asks for a connection.
    Req, ReqView, "CM REQ", 232;
    /// The sender's id of the connection.
    local_comm_id: CommId = (0, 0, 32);
    /// Reserved; 0 when sent.
    reserved4: u8 = (4, 0, 8);
    /// ECE vendor id, 24 bits; reserved before ECE.
    vendor_id: u32 = (5, 0, 24);
    /// What is asked for.
    service_id: ServiceId = (8, 0, 64);
    /// EUI-64 of the sender's channel adapter.
    local_ca_guid: u64 = (16, 0, 64);
    /// Reserved; 0 when sent.
    reserved24: u32 = (24, 0, 32);
    /// Q_Key of the sender's QP; reliable datagrams only.
    local_qkey: QKey = (28, 0, 32);
    /// The sender's QPN.
    local_qpn: Qpn = (32, 0, 24);
    /// How many READs and atomics at once the sender can serve.
    responder_resources: u8 = (35, 0, 8);
    /// End-to-end context of the sender, 24 bits; reliable datagrams only.
    local_eecn: u32 = (36, 0, 24);
    /// How many READs and atomics at once the sender would like to have outstanding.
    initiator_depth: u8 = (39, 0, 8);
    /// End-to-end context of the receiver, 24 bits; reliable datagrams only.
    remote_eecn: u32 = (40, 0, 24);
    /// How soon the receiver has to answer.
    remote_cm_response_timeout: CmTimeout = (43, 0, 5);
    /// The transport.
    transport_service: TransportService = (43, 5, 2);
    /// Whether the sender's QP implements end-to-end credits.
    end_to_end_flow_control: bool = (43, 7, 1);
    /// The PSN of the first request that the sender expects: the receiver begins with it.
    starting_psn: Psn = (44, 0, 24);
    /// How soon the sender answers.
    local_cm_response_timeout: CmTimeout = (47, 0, 5);
    /// Retries after timeouts and sequence NAKs that the receiver shall use.
    retry_count: RetryCount = (47, 5, 3);
    /// Partition key of the connection.
    pkey: PKey = (48, 0, 16);
    /// Path MTU.
    mtu: MtuCode = (50, 0, 4);
    /// Reliable datagram channel exists.
    rdc_exists: bool = (50, 4, 1);
    /// Retries after RNR NAKs that the receiver shall use; 7 is without end.
    rnr_retry_count: RetryCount = (50, 5, 3);
    /// How often each side sends a CM message again, 0 to 15.
    max_cm_retries: u8 = (51, 0, 4);
    /// Whether the sender's QP takes its receive WQEs from an SRQ.
    srq: bool = (51, 4, 1);
    /// Extended transport type, 0 to 7; 1 is XRC.
    extended_transport: u8 = (51, 5, 3);
    /// The path to use.
    primary: ReqPath = (52, 0, 352);
    /// The path to fail over to; all zero if there is none.
    alternate: ReqPath = (96, 0, 352);
    /// Private data; of an IP service it begins with an [`IpHeader`].
    private_data: [u8; 92] = (140, 0, 736);
}

layout! {
    /// One of the two paths of a REQ. On RoCE the LIDs are 0xffff and the GIDs are IP addresses.
    ReqPath, ReqPathView, "CM REQ path", 44;
    /// LID of the sender's port.
    local_lid: u16 = (0, 0, 16);
    /// LID of the receiver's port.
    remote_lid: u16 = (2, 0, 16);
    /// GID of the sender's port.
    local_gid: Gid = (4, 0, 128);
    /// GID of the receiver's port.
    remote_gid: Gid = (20, 0, 128);
    /// Flow label, 20 bits.
    flow_label: u32 = (36, 0, 20);
    /// Reserved; 0 when sent.
    reserved38: u8 = (38, 4, 6);
    /// Packet rate code, 0 to 63.
    packet_rate: u8 = (39, 2, 6);
    /// Traffic class.
    traffic_class: u8 = (40, 0, 8);
    /// Hop limit.
    hop_limit: u8 = (41, 0, 8);
    /// Service level, 0 to 15.
    service_level: u8 = (42, 0, 4);
    /// Whether both ports are on one subnet.
    subnet_local: bool = (42, 4, 1);
    /// Reserved; 0 when sent.
    reserved42: u8 = (42, 5, 3);
    /// Local ACK timeout of the path.
    local_ack_timeout: AckTimeout = (43, 0, 5);
    /// SAP supported (Linux include/rdma/ibta_vol1_c12.h): of the alternate path only.
    sap_supported: bool = (43, 5, 1);
    /// Reserved; 0 when sent.
    reserved43: u8 = (43, 6, 2);
}

impl Req {
    /// The IP header in front of the private data, and the 56 bytes of the program after it.
    ///
    /// # Errors
    /// Where the service id is not one of an IP port space, or the header is not of version 0 and
    /// IPv4 or IPv6.
    pub fn ip_header(&self) -> Result<(IpHeader, &[u8])> {
        ip_header("CM REQ", self.service_id, &self.private_data)
    }
}
