//! Connections by IP address and port, as `rdma_cm` makes them: the same messages on QP1, so that
//! a kernel's or a hardware NIC's connection manager may be the peer.
//!
//! # As with TCP
//! A [`Listener`] is bound to a port, gives an [`Incoming`] for each request, which is accepted
//! with a QP or rejected; [`Connection::connect`] is the other side. Both sides' QPs get their
//! attributes from the exchange and are in RTS when the call returns.
//!
//! ```
//! use std::thread;
//! use urxe::cm::{Connection, Listener, Options};
//! use urxe::{Access, Config, Context, QpKind, SendOp};
//!
//! let server = Context::open(&Config::default())?;
//! let listener = Listener::bind(&server, (server.address(), 7174).into())?;
//! let to = listener.local_addr();
//! let far = thread::spawn(move || {
//!     let (pd, cq) = (server.alloc_pd()?, server.create_cq(16)?);
//!     let mr = pd.register(64, Access::LOCAL_WRITE)?;
//!     let qp = pd.qp(QpKind::Rc).cq(&cq).build()?;
//!     qp.init()?; // so that the receive is there before the first message
//!     qp.post_recv(1, &[mr.sge(0..64)])?;
//!     let connection = listener.incoming()?.accept(qp, &Options::default())?;
//!     let got = cq.wait_one()?;
//!     connection.wait_closed()?;
//!     mr.to_vec(0..got.byte_len as usize)
//! });
//!
//! let client = Context::open(&Config::default())?;
//! let (pd, cq) = (client.alloc_pd()?, client.create_cq(16)?);
//! let mr = pd.register(64, Access::LOCAL_WRITE)?;
//! let qp = pd.qp(QpKind::Rc).cq(&cq).build()?;
//! let connection = Connection::connect(&client, to, qp, &Options::default())?;
//! mr.write(0, b"hello")?;
//! connection.qp().post_send(1, SendOp::Send { imm: None }, &[mr.sge(0..5)])?;
//! cq.wait_one()?;
//! connection.disconnect()?;
//! assert_eq!(far.join().unwrap()?, b"hello");
//! # Ok::<(), urxe::Error>(())
//! ```
//!
//! # Step by step
//! An [`Id`] is one end of it with every step its own, for event loops and other libraries: events
//! come one at a time on a [`Channel`], attributes are given as values, the QP is the caller's.
//!
//! # Who may be asked
//! The other device's address must be reachable from this one's. A device makes its QP1 when the
//! first [`Id`] is made on it, and answers no request before.

mod active;
mod attr;
mod channel;
mod connection;
mod dispatch;
mod gsi;
mod id;
mod incoming;
mod listener;
mod manager;
mod params;
mod passive;
mod ports;
mod resolve;
mod state;

pub use channel::{Channel, Event, What};
pub use connection::{Connection, Ending};
pub use id::{Id, IdNumber};
pub use incoming::Incoming;
pub use listener::Listener;
pub use params::{ConnInfo, ConnParam, Options, UdInfo};
pub use resolve::{Remote, resolve};

pub(crate) use manager::{Manager, Slot, Watch};

pub use urxe_cm::{
    Closed, Count, Counters, Drop as DropReason, Ece, Error as CmError, How, Message, PathParams,
    State, Stats, Timing, Transport,
};
pub use urxe_wire::cm::{CmTimeout, PortSpace, RejReason, RetryCount, ServiceId, SidrStatus};
