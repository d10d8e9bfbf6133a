use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    byteorder::{BE, U32, U64},
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
}
