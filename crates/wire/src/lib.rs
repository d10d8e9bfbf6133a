//! RoCEv2 on the wire: bytes ↔ headers.
//!
//! Every header has two forms, after smoltcp's habit: a **view** (a zerocopy struct laid over the
//! bytes, whose accessors give single fields) and a **Repr** (a plain value that holds the whole
//! header). `parse` and `emit` are exact: what parses emits the same bytes, reserved bits included.
//!
//! Nothing here allocates, does I/O or panics on any input; the crate builds without `std`.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

mod codes;
mod error;
mod ext;
mod field;
mod gid;
mod header;
mod ib;
mod icrc;
mod ip;
mod layout;
mod link;
mod mad;
mod opcode;
mod packet;
mod psn;
mod roce;
mod udp;

pub mod bth;
pub mod cm;
pub mod view;

pub use bth::Bth;
pub use cm::CmMessage;
pub use codes::{AckTimeout, Credit, Mtu, PKey, QKey, Qpn, RnrTimer};
pub use error::{Error, Result, Wanted};
pub use ext::{
    Aeth, AtomicAckEth, AtomicEth, CnpPad, Deth, Feth, FlushLevel, FlushScope, Ieth, ImmDt,
    NakCode, RdEth, Reth, Syndrome, XrcEth,
};
pub use field::{FieldValue, Fields};
pub use gid::Gid;
pub use header::{Header, Repr};
pub use ib::{Grh, Lrh, NextHeader, VCRC_LEN, ud_header_v4, ud_header_v6, vcrc};
pub use icrc::{Icrc, IcrcPrefix, Verdict, id_difference};
pub use ip::{Ipv4, Ipv6, protocol};
pub use link::{Ethernet, Mac, Sll, Sll2, Vlan, ethertype};
pub use mad::{MAD_HEADER_LEN, MAD_LEN, MadHeader, MadHeaderView, ManagementClass, Method};
pub use opcode::{Direction, ExtHeaders, Opcode, OpcodeInfo, Operation, Position, Transport};
pub use packet::{Link, LinkType, MAX_VLANS, Network, NotRoce, Packet, ParseError, Vlans};
pub use psn::Psn;
pub use roce::{Ext, MAX_HEADER_LEN, Roce, emit_headers, pad_for};
pub use udp::{Checksum, Udp, flow_label, source_port};

/// The UDP destination port of RoCEv2 (IANA `roce`, IBA annex A17).
pub const ROCE_UDP_PORT: u16 = 4791;
/// Length of the ICRC that ends every RoCEv2 packet, bytes.
pub const ICRC_LEN: usize = 4;
/// The longest message a work request may carry, bytes (IBA C9-94).
pub const MAX_MESSAGE: u32 = 1 << 31;

/// Runs the examples of the guide as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/wire.md")]
mod guide {}
