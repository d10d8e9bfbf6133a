//! The 36 bytes of IP addressing with which `rdma_cm` begins its private data (IBA annex A11.4;
//! Linux drivers/infiniband/core/cma.c).

use core::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::Range,
};

use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    byteorder::{BE, U16},
};

use super::ServiceId;
use crate::{Error, FieldValue, Fields, Header, Repr, Result, Wanted};

/// An IP header of `rdma_cm` over its 36 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IpHeaderView {
    version: u8,
    ip_version: u8,
    source_port: U16<BE>,
    source: [u8; 16],
    destination: [u8; 16],
}

impl Header for IpHeaderView {
    const NAME: &'static str = "CM IP";
}

/// Both addresses. IPv4 ones stand in the last 4 of 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpAddresses {
    /// IPv4.
    V4 {
        /// The active side's address.
        source: Ipv4Addr,
        /// The passive side's address.
        destination: Ipv4Addr,
        /// The 12 bytes before each of them; 0 when sent.
        pads: [[u8; 12]; 2],
    },
    /// IPv6.
    V6 {
        /// The active side's address.
        source: Ipv6Addr,
        /// The passive side's address.
        destination: Ipv6Addr,
    },
}

/// Who asks and who is asked, as IP addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// The four reserved bits beside the IP version, 0 to 15; 0 when sent.
    pub reserved: u8,
    /// The active side's port. The passive side's is in the service id.
    pub source_port: u16,
    /// Both addresses.
    pub addresses: IpAddresses,
}

impl IpHeader {
    /// The header of a request from `source` to `destination`.
    ///
    /// # Errors
    /// Where one address is IPv4 and the other IPv6.
    pub const fn new(source: SocketAddr, destination: IpAddr) -> Result<Self> {
        let addresses = match (source.ip(), destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                IpAddresses::V4 { source, destination, pads: [[0; 12]; 2] }
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                IpAddresses::V6 { source, destination }
            }
            (IpAddr::V4(_), IpAddr::V6(_)) => return Err(other_family(6, 4)),
            (IpAddr::V6(_), IpAddr::V4(_)) => return Err(other_family(4, 6)),
        };
        Ok(Self { reserved: 0, source_port: source.port(), addresses })
    }

    /// The active side's address and port.
    #[must_use]
    pub const fn source(&self) -> SocketAddr {
        let ip = match self.addresses {
            IpAddresses::V4 { source, .. } => IpAddr::V4(source),
            IpAddresses::V6 { source, .. } => IpAddr::V6(source),
        };
        SocketAddr::new(ip, self.source_port)
    }

    /// The passive side's address.
    #[must_use]
    pub const fn destination(&self) -> IpAddr {
        match self.addresses {
            IpAddresses::V4 { destination, .. } => IpAddr::V4(destination),
            IpAddresses::V6 { destination, .. } => IpAddr::V6(destination),
        }
    }

    /// Private data of `N` bytes: this header, the program's `data`, zeros.
    ///
    /// # Errors
    /// Where `data` is longer than `N` − 36 bytes.
    pub fn with_data<const N: usize>(&self, data: &[u8]) -> Result<[u8; N]> {
        let mut out = [0; N];
        let len = self.emit(&mut out)?;
        let Some(rest) = out[len..].get_mut(..data.len()) else {
            let wanted = Wanted::AtMost((N - len) as u64);
            return Err(Error::new("CM IP", "data length", data.len() as u64, wanted));
        };
        rest.copy_from_slice(data);
        Ok(out)
    }
}

const fn other_family(got: u64, wanted: u64) -> Error {
    Error::new("CM IP", "destination family", got, Wanted::Exactly(wanted))
}

impl Repr for IpHeader {
    type View = IpHeaderView;

    fn from_view(v: &IpHeaderView) -> Result<Self> {
        if v.version != 0 {
            let got = u64::from(v.version);
            return Err(Error::new("CM IP", "version", got, Wanted::Exactly(0)));
        }
        let addresses = match v.ip_version >> 4 {
            4 => {
                let [(pad0, source), (pad1, destination)] = [v.source, v.destination].map(split_v4);
                IpAddresses::V4 { source, destination, pads: [pad0, pad1] }
            }
            6 => IpAddresses::V6 { source: v.source.into(), destination: v.destination.into() },
            other => {
                let wanted = Wanted::OneOf("4, 6");
                return Err(Error::new("CM IP", "family", other.into(), wanted));
            }
        };
        Ok(Self { reserved: v.ip_version & 0xf, source_port: v.source_port.get(), addresses })
    }

    fn to_view(&self) -> IpHeaderView {
        let (ip_version, source, destination) = match self.addresses {
            IpAddresses::V4 { source, destination, pads: [pad0, pad1] } => {
                (4, join_v4(pad0, source), join_v4(pad1, destination))
            }
            IpAddresses::V6 { source, destination } => (6, source.octets(), destination.octets()),
        };
        IpHeaderView {
            version: 0,
            ip_version: ip_version << 4 | self.reserved & 0xf,
            source_port: self.source_port.into(),
            source,
            destination,
        }
    }
}

fn split_v4(bytes: [u8; 16]) -> ([u8; 12], Ipv4Addr) {
    let [pad @ .., a, b, c, d] = bytes;
    (pad, Ipv4Addr::new(a, b, c, d))
}

fn join_v4(pad: [u8; 12], address: Ipv4Addr) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..12].copy_from_slice(&pad);
    bytes[12..].copy_from_slice(&address.octets());
    bytes
}

impl Fields for IpHeader {
    fn for_each_field(&self, f: &mut dyn FnMut(&'static str, Range<usize>, FieldValue<'_>)) {
        f("version", 0..8, FieldValue::Number(0));
        let (source, destination) = (self.source().ip(), self.destination());
        f("ip_version", 8..12, FieldValue::Number(if source.is_ipv4() { 4 } else { 6 }));
        f("reserved", 12..16, FieldValue::Number(self.reserved.into()));
        f("source_port", 16..32, FieldValue::Number(self.source_port.into()));
        match &self.addresses {
            IpAddresses::V4 { pads: [pad0, pad1], .. } => {
                f("reserved_source", 32..128, FieldValue::Bytes(pad0));
                f("source", 128..160, FieldValue::Shown(&source));
                f("reserved_destination", 160..256, FieldValue::Bytes(pad1));
                f("destination", 256..288, FieldValue::Shown(&destination));
            }
            IpAddresses::V6 { .. } => {
                f("source", 32..160, FieldValue::Shown(&source));
                f("destination", 160..288, FieldValue::Shown(&destination));
            }
        }
    }
}

/// Takes the IP header off private data, if the service id says there is one.
pub(super) fn ip_header<'a>(
    header: &'static str,
    service: ServiceId,
    private_data: &'a [u8],
) -> Result<(IpHeader, &'a [u8])> {
    // Ids with native (AF_IB) addresses send no header under the same service ids; what stands
    // there instead fails the version checks, unless it looks like a header.
    if service.port().is_none() {
        let wanted = Wanted::OneOf("the IPoIB, TCP, UDP and IB port spaces");
        return Err(Error::new(header, "service id", service.0, wanted));
    }
    IpHeader::parse(private_data)
}
