use crate::{Error, Ethernet, Lrh, NotRoce, ParseError, Repr, Result, Sll, Sll2, Vlan, ethertype};

/// What a capture's frames begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet, with any VLAN tags.
    Ethernet,
    /// An IPv4 or IPv6 header.
    RawIp,
    /// Linux cooked, version 1.
    Sll,
    /// Linux cooked, version 2.
    Sll2,
    /// The LRH of native InfiniBand.
    Infiniband,
}

impl LinkType {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Ethernet, Self::RawIp, Self::Sll, Self::Sll2, Self::Infiniband];

    /// The type of a pcap `LINKTYPE_` code, if it is one of these.
    #[must_use]
    pub const fn from_pcap(code: u32) -> Option<Self> {
        match code {
            1 => Some(Self::Ethernet),
            // RAW; IPV4 and IPV6 say which of both it is.
            101 | 228 | 229 => Some(Self::RawIp),
            113 => Some(Self::Sll),
            247 => Some(Self::Infiniband),
            276 => Some(Self::Sll2),
            _ => None,
        }
    }

    /// Its pcap `LINKTYPE_` code.
    #[must_use]
    pub const fn to_pcap(self) -> u32 {
        match self {
            Self::Ethernet => 1,
            Self::RawIp => 101,
            Self::Sll => 113,
            Self::Sll2 => 276,
            Self::Infiniband => 247,
        }
    }
}

/// A link header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Ethernet.
    Ethernet(Ethernet),
    /// None.
    RawIp,
    /// Linux cooked, version 1.
    Sll(Sll),
    /// Linux cooked, version 2.
    Sll2(Sll2),
    /// Native InfiniBand.
    Infiniband {
        /// The header.
        lrh: Lrh,
        /// The CRC that ends the packet, right or wrong.
        vcrc: [u8; crate::VCRC_LEN],
    },
}

impl Link {
    /// The link header at the front of `bytes`, and what follows. A VCRC is yet to be filled in.
    pub(super) fn parse(link_type: LinkType, bytes: &[u8]) -> Result<(Self, &[u8])> {
        Ok(match link_type {
            LinkType::Ethernet => {
                let (header, rest) = Ethernet::parse(bytes)?;
                (Self::Ethernet(header), rest)
            }
            LinkType::RawIp => (Self::RawIp, bytes),
            LinkType::Sll => {
                let (header, rest) = Sll::parse(bytes)?;
                (Self::Sll(header), rest)
            }
            LinkType::Sll2 => {
                let (header, rest) = Sll2::parse(bytes)?;
                (Self::Sll2(header), rest)
            }
            LinkType::Infiniband => {
                let (lrh, rest) = Lrh::parse(bytes)?;
                (Self::Infiniband { lrh, vcrc: [0; 2] }, rest)
            }
        })
    }

    pub(super) fn emit(&self, out: &mut [u8]) -> Result<usize> {
        match self {
            Self::Ethernet(header) => header.emit(out),
            Self::RawIp => Ok(0),
            Self::Sll(header) => header.emit(out),
            Self::Sll2(header) => header.emit(out),
            Self::Infiniband { lrh, .. } => lrh.emit(out),
        }
    }

    /// Length of the header, bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Ethernet(_) => Ethernet::LEN,
            Self::RawIp => 0,
            Self::Sll(_) => Sll::LEN,
            Self::Sll2(_) => Sll2::LEN,
            Self::Infiniband { .. } => Lrh::LEN,
        }
    }

    /// Whether there is no header.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self::RawIp)
    }

    /// Whether this is a native InfiniBand link, which has no IP and a VCRC.
    #[must_use]
    pub const fn is_native(&self) -> bool {
        matches!(self, Self::Infiniband { .. })
    }

    /// Its type.
    #[must_use]
    pub const fn link_type(&self) -> LinkType {
        match self {
            Self::Ethernet(_) => LinkType::Ethernet,
            Self::RawIp => LinkType::RawIp,
            Self::Sll(_) => LinkType::Sll,
            Self::Sll2(_) => LinkType::Sll2,
            Self::Infiniband { .. } => LinkType::Infiniband,
        }
    }

    /// Its ethertype, where it has one.
    #[must_use]
    pub const fn ethertype(&self) -> Option<u16> {
        match self {
            Self::Ethernet(Ethernet { ethertype, .. })
            | Self::Sll(Sll { ethertype, .. })
            | Self::Sll2(Sll2 { ethertype, .. }) => Some(*ethertype),
            Self::RawIp | Self::Infiniband { .. } => None,
        }
    }

    pub(super) const fn set_ethertype(&mut self, value: u16) {
        match self {
            Self::Ethernet(Ethernet { ethertype, .. })
            | Self::Sll(Sll { ethertype, .. })
            | Self::Sll2(Sll2 { ethertype, .. }) => *ethertype = value,
            Self::RawIp | Self::Infiniband { .. } => {}
        }
    }
}

/// The most VLAN tags that a frame is read with.
pub const MAX_VLANS: usize = 4;

/// The VLAN tags of a frame, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Vlans {
    tags: [Vlan; MAX_VLANS],
    count: usize,
}

impl Vlans {
    /// None.
    pub const NONE: Self = Self {
        tags: [Vlan { priority: 0, drop_eligible: false, id: 0, ethertype: 0 }; MAX_VLANS],
        count: 0,
    };

    /// The tags.
    #[must_use]
    pub fn tags(&self) -> &[Vlan] {
        &self.tags[..self.count]
    }

    /// The tags, to be changed.
    #[must_use]
    pub fn tags_mut(&mut self) -> &mut [Vlan] {
        &mut self.tags[..self.count]
    }

    /// Adds a tag inside the others.
    ///
    /// # Errors
    /// Where there are [`MAX_VLANS`] already.
    pub fn push(&mut self, tag: Vlan) -> Result<()> {
        let Some(slot) = self.tags.get_mut(self.count) else {
            let (got, most) = (self.count as u64 + 1, MAX_VLANS as u64);
            return Err(Error::new("VLAN tag", "count", got, crate::Wanted::AtMost(most)));
        };
        *slot = tag;
        self.count += 1;
        Ok(())
    }

    /// Their length, bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count * Vlan::LEN
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The tags that follow a header whose ethertype is `first`, the ethertype after them, and
    /// what follows.
    pub(super) fn parse(first: u16, bytes: &[u8]) -> Result<(Self, u16, &[u8]), ParseError> {
        let (mut vlans, mut next, mut rest) = (Self::NONE, first, bytes);
        while ethertype::is_vlan(next) {
            let (tag, after) = Vlan::parse(rest)?;
            vlans.push(tag).map_err(|_| NotRoce::VlanDepth)?;
            (next, rest) = (tag.ethertype, after);
        }
        Ok((vlans, next, rest))
    }

    pub(super) fn emit(&self, out: &mut [u8]) -> Result<usize> {
        let mut at = 0;
        for tag in self.tags() {
            at += tag.emit(&mut out[at..])?;
        }
        Ok(at)
    }
}
