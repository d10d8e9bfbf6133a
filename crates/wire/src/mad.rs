//! MADs: the 256-byte management datagrams that QP0 and QP1 carry (IBA 13.4).

use crate::layout::{codes, layout};

/// Length of every MAD, header included, bytes.
pub const MAD_LEN: usize = 256;
/// Length of the header that all MADs share, bytes.
pub const MAD_HEADER_LEN: usize = 24;

codes! {
    /// Whom a MAD is for (IBA 13.4.4; Linux include/rdma/ib_mad.h).
    ManagementClass: u8, 8;
    0x01 SubnetLid "subnet management, routed by LID",
    0x03 SubnetAdministration "subnet administration",
    0x04 Performance "performance management",
    0x05 BoardManagement "baseboard management",
    0x06 DeviceManagement "device management",
    0x07 Communication "communication management",
    0x08 Snmp "SNMP tunnelling",
    0x81 SubnetDirected "subnet management, directed route",
}

codes! {
    /// What a MAD asks of its receiver; bit 7 marks a response (IBA 13.4.5).
    Method: u8, 8;
    0x01 Get "get",
    0x02 Set "set",
    0x03 Send "send",
    0x05 Trap "trap",
    0x06 Report "report",
    0x07 TrapRepress "trap repress",
    0x81 GetResponse "get response",
    0x86 ReportResponse "report response",
}

layout! {
    /// The header that all MADs share.
    MadHeader, MadHeaderView, "MAD", 24;
    /// Base version; 1 is the only one.
    base_version: u8 = (0, 0, 8);
    /// Management class.
    class: ManagementClass = (1, 0, 8);
    /// Version of the class; 2 for communication management.
    class_version: u8 = (2, 0, 8);
    /// Method.
    method: Method = (3, 0, 8);
    /// Status of a response; 0 is good.
    status: u16 = (4, 0, 16);
    /// Whatever the class says; 0 for communication management.
    class_specific: u16 = (6, 0, 16);
    /// Transaction id: pairs answers with questions.
    transaction_id: u64 = (8, 0, 64);
    /// Attribute id: which message of the class this is.
    attribute_id: u16 = (16, 0, 16);
    /// Reserved; 0 when sent.
    reserved: u16 = (18, 0, 16);
    /// Attribute modifier. Linux carries ECE attributes in it on REQ, REP and SIDR REP.
    attribute_modifier: u32 = (20, 0, 32);
}
