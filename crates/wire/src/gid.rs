//! GIDs: 128-bit port addresses, which RoCEv2 makes of IP addresses.

use core::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

/// A global identifier, in network byte order. An IPv4 address stands in it as `::ffff:a.b.c.d`
/// (IBA annex A17.4.6; Linux include/rdma/ib_addr.h).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The address it stands for; a mapped IPv4 address is given as IPv4.
    #[must_use]
    pub const fn ip(self) -> IpAddr {
        Ipv6Addr::from_octets(self.0).to_canonical()
    }
}

impl From<IpAddr> for Gid {
    fn from(ip: IpAddr) -> Self {
        Self(match ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        })
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gid({self})")
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from_octets(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests;
