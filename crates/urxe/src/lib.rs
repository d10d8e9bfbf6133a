//! A RoCEv2 NIC in user space.
//!
//! Its packets are RoCEv2 with a right ICRC; it needs no hardware, no kernel module and no
//! privileges. The API is shaped like libibverbs and safe.
//!
//! # Five minutes
//!
//! Open a device, register memory, connect two QPs, send; then an RDMA WRITE, seen from both
//! sides. Both ends are in one program here; between two hosts the [`Endpoint`]s travel by any
//! other way, as text for example.
//!
//! ```
//! use urxe::{Access, Config, Context, QpKind, SendOp, WcStatus};
//!
//! // Two NICs on loopback: each takes a free address of 127.0.0.0/8.
//! let (alice, bob) = (Context::open(&Config::default())?, Context::open(&Config::default())?);
//! println!("alice is {}, MTU {:?}", alice.address(), alice.query_port().active_mtu);
//!
//! // Protection domain, memory region, completion queue, queue pair: the same on both sides.
//! let (pd_a, pd_b) = (alice.alloc_pd()?, bob.alloc_pd()?);
//! let mr_a = pd_a.register(4096, Access::LOCAL_WRITE)?;
//! let mr_b = pd_b.register(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
//! let (cq_a, cq_b) = (alice.create_cq(16)?, bob.create_cq(16)?);
//! let qp_a = pd_a.qp(QpKind::Rc).cq(&cq_a).build()?;
//! let qp_b = pd_b.qp(QpKind::Rc).cq(&cq_b).access(Access::REMOTE_WRITE).build()?;
//!
//! // RESET → INIT → RTR → RTS, each towards the other.
//! qp_a.connect(&qp_b.endpoint())?;
//! qp_b.connect(&qp_a.endpoint())?;
//!
//! // A SEND needs a receive at the other side.
//! qp_b.post_recv(7, &[mr_b.sge(0..1024)])?;
//! mr_a.write(0, b"hello")?;
//! qp_a.post_send(1, SendOp::Send { imm: None }, &[mr_a.sge(0..5)])?;
//! let sent = cq_a.wait_one()?;
//! assert_eq!((sent.wr_id, sent.status), (1, WcStatus::Success), "{}", sent.explain());
//! let got = cq_b.wait_one()?;
//! assert_eq!((got.wr_id, got.byte_len), (7, 5));
//! assert_eq!(mr_b.to_vec(0..5)?, b"hello");
//!
//! // An RDMA WRITE needs nothing but the key: bob's program takes no part.
//! mr_a.write(0, b"world")?;
//! let write = SendOp::Write { remote: mr_b.addr() + 100, rkey: mr_b.rkey(), imm: None };
//! qp_a.post_send(2, write, &[mr_a.sge(0..5)])?;
//! assert_eq!(cq_a.wait_one()?.status, WcStatus::Success);
//! assert_eq!(mr_b.to_vec(100..105)?, b"world");
//! # Ok::<(), urxe::Error>(())
//! ```
#![forbid(unsafe_code)]

mod ah;
mod aside;
pub mod cm;
mod config;
mod context;
mod cq;
mod device;
mod error;
mod events;
pub mod exchange;
mod groups;
mod handle;
mod health;
mod link;
mod memory;
mod observe;
mod progress;
mod qp;
mod region;
mod share;
mod sink;
mod srq;
mod watch;

pub use ah::{Ah, Xrcd};
pub use config::{Address, Config, PortKind};
pub use context::{Context, PortAttr, PortState};
pub use cq::{CompChannel, Cq};
pub use error::Error;
pub use exchange::Endpoint;
pub use link::of_this_process;
pub use memory::{Mr, Mw, Pd, Reregister};
pub use observe::{Observer, Passage};
pub use qp::{Batch, Qp, QpBuilder};
pub use region::Region;
pub use share::QpShare;
pub use srq::Srq;

pub use urxe_engine::attr::MigState;
pub use urxe_engine::{
    AhAttr, AhId, Arm, AsyncEvent, AttrError, AttrMask, Caps, Cause, Completion, Count, CqCause,
    CqInfo, ObjectCounts, PostError, Profile, QpAttr, QpCaps, QpInfo, QpKind, QpState, Rule,
    SendFlags, SendOp, SendWr, SrqAttr, UdDest, VerbsError, WcFlags, WcOpcode, WcStatus,
};
pub use urxe_engine::{CqId, Drop as DropReason, Time, Why};
pub use urxe_memory::{
    Access, Backing, Buffer, KeyError, MemoryError, MrInfo, MwId, MwInfo, MwType, Sge,
};
pub use urxe_net::raw::{IpId, VlanTag};
pub use urxe_net::shared::{Holder, SEATS, Sharing, who_shares};
pub use urxe_net::udp::{Interface, interfaces};
pub use urxe_net::{Flow, IcrcMode, PortCaps, PortError, PortStatsSnapshot};
pub use urxe_wire::{AckTimeout, FlushLevel, FlushScope, Gid, Mtu, Psn, QKey, Qpn, RnrTimer};
