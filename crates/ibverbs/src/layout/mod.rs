//! The C structs of infiniband/verbs.h (rdma-core 44; where 64 has more, that) and rdma/rdma_cma.h,
//! for 64-bit machines. Each states its size and offsets, and does not compile if they differ.
#![expect(missing_docs, reason = "the fields are those of infiniband/verbs.h and its manual pages")]

mod attrs;
mod cma;
pub mod consts;
mod device;
mod ex;
mod kern;
mod objects;
mod queues;
mod work;

pub use attrs::*;
pub use cma::*;
pub use device::*;
pub use ex::*;
pub use kern::*;
pub use objects::*;
pub use queues::*;
pub use work::*;

/// Defines `repr(C)` structs from their size, and each field's offset, name and type.
macro_rules! c_structs {
    ($($(#[$doc:meta])* $name:ident: $size:literal {
        $($offset:literal $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct $name { $(pub $field: $type),* }

        const _: () = assert!(size_of::<$name>() == $size);
        $(const _: () = assert!(std::mem::offset_of!($name, $field) == $offset);)*

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{} at {self:p}", stringify!($name))
            }
        }

        // SAFETY: numbers, pointers and functions that may be null, for each of which all zeros
        // is a value.
        unsafe impl $crate::layout::Zero for $name {}
    )*};
}
use c_structs;

/// A type of which all zeros is a value.
///
/// # Safety
/// That must be so.
pub unsafe trait Zero: Copy {
    /// All zeros.
    #[must_use]
    fn zero() -> Self {
        // SAFETY: what implements this says that all zeros is a value of it.
        unsafe { std::mem::zeroed() }
    }
}

/// A function that nobody calls through its pointer: null.
pub type Unused = Option<unsafe extern "C" fn()>;
/// A field of the present completion.
pub type ReadU32 = Option<unsafe extern "C" fn(*mut IbvCqEx) -> u32>;
/// A field of the present completion.
pub type ReadU64 = Option<unsafe extern "C" fn(*mut IbvCqEx) -> u64>;
/// A field of the present completion.
pub type ReadU8 = Option<unsafe extern "C" fn(*mut IbvCqEx) -> u8>;

impl IbvQpInitAttrEx {
    /// The part that is an [`IbvQpInitAttr`]; behind its last field stands one of the rest.
    #[must_use]
    pub const fn base(&self) -> IbvQpInitAttr {
        IbvQpInitAttr {
            qp_context: self.qp_context,
            send_cq: self.send_cq,
            recv_cq: self.recv_cq,
            srq: self.srq,
            cap: self.cap,
            qp_type: self.qp_type,
            sq_sig_all: self.sq_sig_all,
        }
    }
}

/// `union ibv_gid`, which C aligns as an integer.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawGid(pub [u8; 16]);

/// What a send work request is aimed at; its opcode and the QP's type say which is meant.
#[repr(C)]
#[derive(Clone, Copy)]
pub union WrTarget {
    pub rdma: WrRdma,
    pub atomic: WrAtomic,
    pub ud: WrUd,
}

impl std::fmt::Debug for WrTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WrTarget")
    }
}
