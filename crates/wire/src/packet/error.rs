use crate::{Error, NextHeader};

/// Why bytes do not parse as a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Something other than RoCEv2: no error, but nothing for us.
    #[error("not RoCEv2: {0}")]
    NotRoce(#[from] NotRoce),
    /// A packet that is wrong.
    #[error(transparent)]
    Bad(#[from] Error),
}

/// What was captured instead of RoCEv2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotRoce {
    /// A frame of this ethertype.
    #[error("ethertype {0:#06x}")]
    Ethertype(u16),
    /// RoCE version 1, which has a GRH in place of IP and UDP.
    #[error("RoCE version 1")]
    RoceV1,
    /// More VLAN tags than [`crate::MAX_VLANS`].
    #[error("more than {max} VLAN tags", max = crate::MAX_VLANS)]
    VlanDepth,
    /// A raw IP packet of this version.
    #[error("IP version {0}")]
    IpVersion(u8),
    /// IP, or a GRH, with this protocol.
    #[error("IP protocol {0}")]
    Protocol(u8),
    /// IPv6 with this extension header.
    #[error("IPv6 extension header {0}")]
    Ipv6Extension(u8),
    /// A piece of an IPv4 packet. RoCEv2 is never fragmented.
    #[error("IPv4 fragment")]
    Fragment,
    /// UDP to this port.
    #[error("UDP port {0}")]
    Port(u16),
    /// A native packet without BTH.
    #[error("raw InfiniBand packet ({0:?})")]
    RawInfiniband(NextHeader),
}
