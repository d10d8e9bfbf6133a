//! The layouts of the headers over their bytes; [`crate::bth::View`] is the one that stands apart.

use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    byteorder::{BE, U16, U32, U64},
};

use crate::Header;

macro_rules! views {
    ($($(#[$doc:meta])* $name:ident $text:literal $len:literal $body:tt)*) => {$(
        views!(@def $(#[$doc])* $name $body);
        impl Header for $name {
            const NAME: &'static str = $text;
        }
        const _: () = assert!(size_of::<$name>() == $len);
    )*};
    (@def $(#[$doc:meta])* $name:ident ($ty:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned
        )]
        #[repr(transparent)]
        pub struct $name(pub $ty);
    };
    (@def $(#[$doc:meta])* $name:ident {$($field:ident : $ty:ty),*}) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned
        )]
        #[repr(C)]
        #[expect(missing_docs, reason = "each field is told of at the Repr of the same name")]
        pub struct $name { $(pub $field: $ty),* }
    };
}

views! {
    /// A RETH over its 16 bytes.
    Reth "RETH" 16 { va: U64<BE>, rkey: U32<BE>, dma_len: U32<BE> }
    /// An AETH over its 4 bytes: syndrome, MSN.
    Aeth "AETH" 4 (U32<BE>)
    /// An AtomicETH over its 28 bytes.
    AtomicEth "AtomicETH" 28 { va: U64<BE>, rkey: U32<BE>, swap_add: U64<BE>, compare: U64<BE> }
    /// An AtomicAckETH over its 8 bytes.
    AtomicAckEth "AtomicAckETH" 8 (U64<BE>)
    /// An ImmDt over its 4 bytes.
    ImmDt "ImmDt" 4 ([u8; 4])
    /// An IETH over its 4 bytes.
    Ieth "IETH" 4 (U32<BE>)
    /// A DETH over its 8 bytes; the source QPN's high byte is reserved.
    Deth "DETH" 8 { qkey: U32<BE>, src_qp: U32<BE> }
    /// An XRCETH over its 4 bytes: reserved byte, SRQ number.
    XrcEth "XRCETH" 4 (U32<BE>)
    /// An RDETH over its 4 bytes: reserved byte, end-to-end context.
    RdEth "RDETH" 4 (U32<BE>)
    /// A FETH over its 4 bytes: reserved, selectivity, placement type.
    Feth "FETH" 4 (U32<BE>)
    /// The 16 bytes after a CNP's BTH.
    CnpPad "CNP" 16 ([u8; 16])
    /// An Ethernet header over its 14 bytes.
    Ethernet "Ethernet" 14 { dst: [u8; 6], src: [u8; 6], ethertype: U16<BE> }
    /// What follows a tag's TPID, over its 4 bytes: priority, DEI and VLAN id; the next ethertype.
    Vlan "VLAN tag" 4 { tci: U16<BE>, ethertype: U16<BE> }
    /// A Linux cooked header, version 1, over its 16 bytes.
    Sll "Linux SLL" 16 {
        packet_type: U16<BE>, device_type: U16<BE>, address_len: U16<BE>, address: [u8; 8],
        ethertype: U16<BE>
    }
    /// A Linux cooked header, version 2, over its 20 bytes.
    Sll2 "Linux SLL2" 20 {
        ethertype: U16<BE>, reserved: U16<BE>, interface: U32<BE>, device_type: U16<BE>,
        packet_type: u8, address_len: u8, address: [u8; 8]
    }
    /// An IPv4 header without options over its 20 bytes.
    Ipv4 "IPv4" 20 {
        version_ihl: u8, tos: u8, total_len: U16<BE>, id: U16<BE>, flags_offset: U16<BE>,
        ttl: u8, protocol: u8, checksum: U16<BE>, src: [u8; 4], dst: [u8; 4]
    }
    /// An IPv6 header over its 40 bytes; the first word is version, traffic class, flow label.
    Ipv6 "IPv6" 40 {
        word: U32<BE>, payload_len: U16<BE>, next_header: u8, hop_limit: u8, src: [u8; 16],
        dst: [u8; 16]
    }
    /// A UDP header over its 8 bytes.
    Udp "UDP" 8 { src_port: U16<BE>, dst_port: U16<BE>, len: U16<BE>, checksum: U16<BE> }
    /// An LRH over its 8 bytes.
    Lrh "LRH" 8 {
        vl_version: u8, sl_next: u8, dlid: U16<BE>, reserved_len: U16<BE>, slid: U16<BE>
    }
    /// A GRH over its 40 bytes; the first word is version, traffic class, flow label.
    Grh "GRH" 40 {
        word: U32<BE>, payload_len: U16<BE>, next_header: u8, hop_limit: u8, sgid: [u8; 16],
        dgid: [u8; 16]
    }
}
