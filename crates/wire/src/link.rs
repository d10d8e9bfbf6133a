//! Link headers: Ethernet, its VLAN tags, and Linux' cooked ones.

use core::fmt;

use crate::{Repr, Result, view};

#[cfg(test)]
mod tests;

/// Ethertypes that matter here (IEEE 802 numbers).
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// An 802.1Q tag follows.
    pub const VLAN: u16 = 0x8100;
    /// An 802.1ad service tag follows.
    pub const SERVICE_VLAN: u16 = 0x88a8;
    /// A service tag from before 802.1ad follows; some switches still write it.
    pub const OLD_SERVICE_VLAN: u16 = 0x9100;
    /// RoCE version 1: a GRH right on Ethernet.
    pub const ROCE_V1: u16 = 0x8915;

    /// Whether a VLAN tag follows.
    #[must_use]
    pub const fn is_vlan(ethertype: u16) -> bool {
        matches!(ethertype, VLAN | SERVICE_VLAN | OLD_SERVICE_VLAN)
    }
}

/// A 48-bit link address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mac({self})")
    }
}

/// An Ethernet II header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Ethernet {
    /// Destination.
    pub dst: Mac,
    /// Source.
    pub src: Mac,
    /// What follows: a protocol, or the TPID of a VLAN tag.
    pub ethertype: u16,
}

impl Repr for Ethernet {
    type View = view::Ethernet;

    fn from_view(v: &view::Ethernet) -> Result<Self> {
        Ok(Self { dst: Mac(v.dst), src: Mac(v.src), ethertype: v.ethertype.get() })
    }

    fn to_view(&self) -> view::Ethernet {
        view::Ethernet { dst: self.dst.0, src: self.src.0, ethertype: self.ethertype.into() }
    }
}

/// An 802.1Q or 802.1ad tag without its TPID, which is the ethertype before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Vlan {
    /// Priority code point, 0 to 7.
    pub priority: u8,
    /// DEI: may be dropped first.
    pub drop_eligible: bool,
    /// VLAN id, 0 to 4095; 0 carries a priority only.
    pub id: u16,
    /// What follows: a protocol, or the TPID of another tag.
    pub ethertype: u16,
}

impl Repr for Vlan {
    type View = view::Vlan;

    fn from_view(v: &view::Vlan) -> Result<Self> {
        let [high, _] = v.tci.to_bytes();
        Ok(Self {
            priority: high >> 5,
            drop_eligible: high & 0x10 != 0,
            id: v.tci.get() & 0xfff,
            ethertype: v.ethertype.get(),
        })
    }

    fn to_view(&self) -> view::Vlan {
        let tci = u16::from(self.priority & 7) << 13
            | u16::from(self.drop_eligible) << 12
            | self.id & 0xfff;
        view::Vlan { tci: tci.into(), ethertype: self.ethertype.into() }
    }
}

/// A Linux cooked header (`LINKTYPE_LINUX_SLL`), which captures on "any" have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sll {
    /// 0 to us, 1 broadcast, 2 multicast, 3 to another host, 4 sent by us.
    pub packet_type: u16,
    /// ARPHRD type of the device.
    pub device_type: u16,
    /// Length of the sender's link address, bytes; only 8 of them are kept.
    pub address_len: u16,
    /// The sender's link address, and what fills it up.
    pub address: [u8; 8],
    /// What follows: a protocol, or the TPID of a VLAN tag.
    pub ethertype: u16,
}

impl Repr for Sll {
    type View = view::Sll;

    fn from_view(v: &view::Sll) -> Result<Self> {
        Ok(Self {
            packet_type: v.packet_type.get(),
            device_type: v.device_type.get(),
            address_len: v.address_len.get(),
            address: v.address,
            ethertype: v.ethertype.get(),
        })
    }

    fn to_view(&self) -> view::Sll {
        view::Sll {
            packet_type: self.packet_type.into(),
            device_type: self.device_type.into(),
            address_len: self.address_len.into(),
            address: self.address,
            ethertype: self.ethertype.into(),
        }
    }
}

/// A Linux cooked header, version 2 (`LINKTYPE_LINUX_SLL2`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sll2 {
    /// What follows: a protocol, or the TPID of a VLAN tag.
    pub ethertype: u16,
    /// Reserved; 0 when written.
    pub reserved: u16,
    /// Interface index.
    pub interface: u32,
    /// ARPHRD type of the device.
    pub device_type: u16,
    /// As [`Sll::packet_type`].
    pub packet_type: u8,
    /// Length of the sender's link address, bytes; only 8 of them are kept.
    pub address_len: u8,
    /// The sender's link address, and what fills it up.
    pub address: [u8; 8],
}

impl Repr for Sll2 {
    type View = view::Sll2;

    fn from_view(v: &view::Sll2) -> Result<Self> {
        Ok(Self {
            ethertype: v.ethertype.get(),
            reserved: v.reserved.get(),
            interface: v.interface.get(),
            device_type: v.device_type.get(),
            packet_type: v.packet_type,
            address_len: v.address_len,
            address: v.address,
        })
    }

    fn to_view(&self) -> view::Sll2 {
        view::Sll2 {
            ethertype: self.ethertype.into(),
            reserved: self.reserved.into(),
            interface: self.interface.into(),
            device_type: self.device_type.into(),
            packet_type: self.packet_type,
            address_len: self.address_len,
            address: self.address,
        }
    }
}
