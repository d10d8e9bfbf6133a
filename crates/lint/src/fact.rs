//! What of a packet the rules look at, in a small value.

use std::fmt;
use std::net::IpAddr;

use urxe_wire::{Aeth, AtomicEth, Ext, Link, Network, OpcodeInfo, Packet, Psn, Qpn, Reth};

/// One end of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Addr {
    /// An IP address, or a GID in the shape of one.
    Ip(IpAddr),
    /// The LID of a native packet that has no GRH.
    Lid(u16),
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Lid(lid) => write!(f, "lid {lid}"),
        }
    }
}

/// All packets to one QP from one address: half of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flow {
    pub(crate) src: Addr,
    pub(crate) dst: Addr,
    /// The innermost VLAN id; connections of two VLANs may have the same addresses.
    pub(crate) vlan: Option<u16>,
    pub(crate) qpn: Qpn,
}

/// What the rules look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fact {
    pub(crate) frame: u64,
    pub(crate) time: Option<i64>,
    pub(crate) flow: Flow,
    /// A datagram says where it is from; of a connection it is learned.
    pub(crate) src_qp: Option<Qpn>,
    pub(crate) info: &'static OpcodeInfo,
    pub(crate) psn: Psn,
    pub(crate) ack_req: bool,
    /// Payload without pad, bytes.
    pub(crate) len: u32,
    pub(crate) reth: Option<Reth>,
    pub(crate) atomic: Option<AtomicEth>,
    pub(crate) aeth: Option<Aeth>,
    /// The two ECN bits of the IP header.
    pub(crate) ecn: u8,
    pub(crate) src_port: Option<u16>,
    /// The IPv4 identification, where it can tell a packet from its copy.
    pub(crate) ip_id: Option<u16>,
    pub(crate) mig_req: bool,
}

/// Congestion experienced (RFC 3168 5).
pub(crate) const CE: u8 = 3;

impl Fact {
    /// `None` if the packet's opcode is unknown, which no packet that was parsed has.
    pub(crate) fn of(packet: &Packet<'_>, frame: u64, time: Option<i64>) -> Option<Self> {
        let roce = &packet.roce;
        let info = roce.bth.opcode.info()?;
        let Ext { deth, reth, atomic, aeth, .. } = roce.ext;
        let (src, dst, tos, ip_id) = match (&packet.network, &packet.link) {
            (Network::Ipv4 { header: h, .. }, _) => {
                (Addr::Ip(h.src.into()), Addr::Ip(h.dst.into()), h.tos, Some(h.id))
            }
            (Network::Ipv6 { header: h, .. }, _) => {
                (Addr::Ip(h.src.into()), Addr::Ip(h.dst.into()), h.traffic_class, None)
            }
            (Network::Grh(g), _) => {
                let [src, dst] = [g.sgid, g.dgid].map(|gid| Addr::Ip(IpAddr::from(gid.0)));
                (src, dst, 0, None)
            }
            (Network::Local, Link::Infiniband { lrh, .. }) => {
                (Addr::Lid(lrh.slid), Addr::Lid(lrh.dlid), 0, None)
            }
            (Network::Local, _) => (Addr::Lid(0), Addr::Lid(0), 0, None),
        };
        let vlan = packet.vlans.tags().last().map(|tag| tag.id);
        Some(Self {
            frame,
            time,
            flow: Flow { src, dst, vlan, qpn: roce.bth.dest_qp },
            src_qp: deth.map(|deth| deth.src_qp),
            info,
            psn: roce.bth.psn,
            ack_req: roce.bth.ack_req,
            len: u32::try_from(roce.payload.len()).unwrap_or(u32::MAX),
            reth,
            atomic,
            aeth,
            ecn: tos & 3,
            src_port: packet.udp().map(|udp| udp.src_port),
            ip_id: ip_id.filter(|id| *id != 0),
            mig_req: roce.bth.mig_req,
        })
    }
}
