//! What a frame turned out to be.

use urxe_wire::{
    Bth, CmMessage, Direction, Error, LinkType, MAD_LEN, MadHeader, ManagementClass, Network,
    Operation, Packet, ParseError, Qpn, Repr, Roce, Verdict,
};

use super::ends::ends_of;
use super::filter::Subject;
use crate::capture::Frame;

/// A frame that a snap length cut is completed with zeros up to this length, to read its headers:
/// the longest IP packet with its link header fits. What a longer one holds beyond is no packet's.
const LONGEST_PACKET: usize = 0xffff + 64;

/// What a frame turned out to be.
#[derive(Clone, Debug)]
pub(crate) enum Outcome<'a> {
    /// A RoCEv2 packet, or one of native InfiniBand.
    Roce(Box<RocePacket<'a>>),
    /// Something else, by this name.
    Skipped(String),
    /// A packet that is wrong.
    Broken {
        /// What is wrong with it.
        error: Error,
        /// From whom to whom it went, where that much could be read.
        ends: Option<Ends>,
        /// Its BTH, where that much could be read.
        bth: Option<Bth>,
    },
    /// A frame whose headers a snap length cut.
    Cut {
        /// How much of it is there.
        cut: Cut,
        /// From whom to whom it went, where that much could be read.
        ends: Option<Ends>,
    },
}

/// How much of a frame was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Bytes that are there.
    pub(crate) captured: usize,
    /// Bytes that were on the link.
    pub(crate) original: u32,
}

impl Cut {
    /// How long the frame is when completed, bytes. A file may claim any original length.
    fn completed_len(self) -> usize {
        (self.original as usize).min(LONGEST_PACKET.max(self.captured))
    }
}

/// From whom to whom a packet went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// Source: an IP address, a GID, or `lid 7`.
    pub(crate) src: String,
    /// Destination.
    pub(crate) dst: String,
    /// VLAN ids, outermost first.
    pub(crate) vlans: Vec<u16>,
}

/// How the ICRC was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Icrc {
    /// Right.
    Ok,
    /// Wrong.
    Bad {
        /// The one that stands there.
        got: [u8; 4],
        /// The one that should.
        wanted: [u8; 4],
    },
    /// Cut off, or computed over what is cut off.
    Unseen,
}

/// A management datagram in a packet to QP1.
#[derive(Clone, Debug)]
pub(crate) enum Mad {
    /// Connection management.
    Cm(MadHeader, Box<CmMessage>),
    /// Of another class.
    Other(MadHeader),
    /// None that could be read.
    Bad(Error),
}

/// A packet with what `dissect` found out about it.
#[derive(Clone, Debug)]
pub(crate) struct RocePacket<'a> {
    /// From whom to whom it went.
    pub(crate) ends: Ends,
    /// All its headers.
    pub(crate) packet: Packet<'a>,
    /// Whether its ICRC is right.
    pub(crate) icrc: Icrc,
    /// How much is there, if a snap length cut it. The rest of the payload is zeros then.
    pub(crate) cut: Option<Cut>,
    /// The management datagram it carries.
    pub(crate) mad: Option<Mad>,
}

impl RocePacket<'_> {
    /// BTH to ICRC.
    #[must_use]
    pub(crate) fn roce(&self) -> &Roce<'_> {
        &self.packet.roce
    }

    /// What it asks or answers.
    #[must_use]
    pub(crate) fn operation(&self) -> Option<Operation> {
        self.packet.roce.bth.opcode.info().map(|info| info.operation)
    }

    /// Where the BTH begins, bytes from the frame's start.
    #[must_use]
    pub(crate) fn bth_at(&self) -> usize {
        self.packet.link.len() + self.packet.vlans.len() + self.packet.network.len()
    }

    /// Where the payload begins, bytes from the frame's start.
    #[must_use]
    pub(crate) fn payload_at(&self) -> usize {
        self.bth_at() + self.packet.roce.header_len()
    }
}

impl<'a> Outcome<'a> {
    /// Reads a frame. `scratch` holds a cut frame's completed bytes.
    #[must_use]
    pub(crate) fn of(frame: &Frame<'a>, scratch: &'a mut Vec<u8>) -> Self {
        let Some(link) = frame.link_type() else {
            return Self::Skipped(format!("link type {}", frame.link));
        };
        let cut = frame
            .is_cut()
            .then_some(Cut { captured: frame.bytes.len(), original: frame.original_len });
        let Some(cut) = cut else { return Self::of_bytes(link, frame.bytes, None) };
        scratch.clear();
        scratch.extend_from_slice(frame.bytes);
        scratch.resize(cut.completed_len(), 0);
        Self::of_bytes(link, scratch, Some(cut))
    }

    fn of_bytes(link: LinkType, bytes: &'a [u8], cut: Option<Cut>) -> Self {
        let known = cut.map_or(bytes.len(), |cut| cut.captured);
        match Packet::parse(link, bytes) {
            Ok(packet) => {
                let ends = Ends::of(&packet);
                match cut {
                    Some(cut) if headers_end(&packet) > known => {
                        Self::Cut { cut, ends: Some(ends) }
                    }
                    _ => Self::Roce(Box::new(read(ends, packet, known, cut))),
                }
            }
            Err(error) => Self::unreadable(link, &bytes[..known], error, cut),
        }
    }

    /// What does not parse: `bytes` are those of it that were captured.
    fn unreadable(link: LinkType, bytes: &[u8], error: ParseError, cut: Option<Cut>) -> Self {
        let (ends, transport) = match ends_of(link, bytes) {
            Some((ends, rest)) => (Some(ends), rest),
            None => (None, None),
        };
        if let Some(cut) = cut {
            // What is wrong with other filling too is wrong with what is there.
            let mut other = bytes.to_vec();
            other.resize(cut.completed_len(), 0xff);
            if Packet::parse(link, &other) != Err(error) {
                return Self::Cut { cut, ends };
            }
        }
        match error {
            ParseError::NotRoce(why) => Self::Skipped(skipped(&why)),
            ParseError::Bad(error) => {
                let bth = transport.and_then(|bytes| Bth::parse(bytes).ok()).map(|(bth, _)| bth);
                Self::Broken { error, ends, bth }
            }
        }
    }

    /// What a filter looks at, if there is a BTH.
    #[must_use]
    pub(crate) fn subject(&self) -> Option<Subject> {
        let (bth, src_qp) = match self {
            Self::Roce(p) => (p.packet.roce.bth, p.packet.roce.ext.deth.map(|d| d.src_qp)),
            Self::Broken { bth: Some(bth), .. } => (*bth, None),
            _ => return None,
        };
        Some(Subject { opcode: bth.opcode, dest_qp: bth.dest_qp, src_qp, psn: bth.psn })
    }
}

fn skipped(why: &urxe_wire::NotRoce) -> String {
    use urxe_wire::NotRoce;
    let name = match why {
        // Below 0x600 (IEEE 802.3 3.2.6) it is a length.
        NotRoce::Ethertype(0..0x600) => return "802.3 frame".to_owned(),
        NotRoce::Ethertype(0x0806) => "ARP",
        NotRoce::Ethertype(0x88cc) => "LLDP",
        NotRoce::Protocol(1) => "ICMP",
        NotRoce::Protocol(2) => "IGMP",
        NotRoce::Protocol(6) => "TCP",
        NotRoce::Protocol(58) => "ICMPv6",
        other => return other.to_string(),
    };
    format!("{name} ({why})")
}

fn headers_end(packet: &Packet<'_>) -> usize {
    packet.link.len() + packet.vlans.len() + packet.network.len() + packet.roce.header_len()
}

fn read<'a>(ends: Ends, packet: Packet<'a>, known: usize, cut: Option<Cut>) -> RocePacket<'a> {
    let roce_end = headers_end(&packet)
        + packet.roce.payload.len()
        + packet.roce.pad.len()
        + packet.roce.icrc.len();
    let icrc = match packet.icrc_verdict() {
        _ if roce_end > known => Icrc::Unseen,
        Verdict::Ok | Verdict::OkSolvedId(_) => Icrc::Ok,
        Verdict::Bad { got, computed } => Icrc::Bad { got, wanted: computed },
    };
    let whole_payload = headers_end(&packet) + packet.roce.payload.len() <= known;
    let mad = if whole_payload { mad(&packet.roce) } else { None };
    RocePacket { ends, packet, icrc, cut, mad }
}

/// The management datagram of a request to QP1.
fn mad(roce: &Roce<'_>) -> Option<Mad> {
    let info = roce.bth.opcode.info()?;
    let to_gsi = roce.bth.dest_qp == Qpn::GSI && roce.ext.deth.is_some();
    if !to_gsi || info.direction != Direction::Request || info.operation != Operation::Send {
        return None;
    }
    let header = match MadHeader::parse(roce.payload) {
        Ok((header, _)) => header,
        Err(error) => return Some(Mad::Bad(error)),
    };
    if header.class != ManagementClass::Communication && roce.payload.len() == MAD_LEN {
        return Some(Mad::Other(header));
    }
    Some(match CmMessage::parse(roce.payload) {
        Ok((header, message)) => Mad::Cm(header, Box::new(message)),
        Err(error) => Mad::Bad(error),
    })
}

impl Ends {
    fn of(packet: &Packet<'_>) -> Self {
        use urxe_wire::Link;
        let vlans = packet.vlans.tags().iter().map(|tag| tag.id).collect();
        let (src, dst) = match (&packet.network, &packet.link) {
            (Network::Ipv4 { header, .. }, _) => (header.src.to_string(), header.dst.to_string()),
            (Network::Ipv6 { header, .. }, _) => (header.src.to_string(), header.dst.to_string()),
            (Network::Grh(grh), _) => (grh.sgid.to_string(), grh.dgid.to_string()),
            (Network::Local, Link::Infiniband { lrh, .. }) => {
                (format!("lid {}", lrh.slid), format!("lid {}", lrh.dlid))
            }
            (Network::Local, _) => (String::new(), String::new()),
        };
        Self { src, dst, vlans }
    }
}
