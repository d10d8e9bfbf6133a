//! The connection manager: two programs that know an IP address and a port get two connected QPs.
//!
//! [`Cm`] is both sides of it as a pure state machine over MADs of 256 bytes, the datagrams of QP1
//! (IBA chapter 12). It has no clock, socket, thread or random source: time, MADs and a seed come
//! in as arguments; MADs go out through a [`Sink`], events wait to be polled. It speaks as the
//! kernel's `rdma_cm` does, its 36-byte IP header included, so that either may be the peer.
//!
//! # Order of calls
//! 1. [`Cm::listen`] and [`Cm::connect`] begin; [`Cm::receive`] takes each MAD that comes.
//! 2. After any call take what happened with [`Cm::poll_event`] and act on it.
//! 3. Then ask [`Cm::next_deadline`], and call [`Cm::expire`] when it has come.
//!
//! A connection goes so, with what its owner does on each side:
//!
//! | active side | on the wire | passive side |
//! |---|---|---|
//! | [`Cm::connect`] | REQ → | [`Event::ConnectRequest`] |
//! | [`Event::ConnectResponse`] | ← REP | QP to RTS by [`Cm::qp_attrs`]; [`Cm::accept`] |
//! | QP to RTS by [`Cm::qp_attrs`]; [`Cm::establish`] | RTU → | [`Event::Established`] |
//! | [`Cm::disconnect`] | DREQ → | [`Event::DisconnectRequest`]; QP to ERR |
//! | [`Event::Disconnected`] | ← DREP | [`Cm::disconnect`] |
//! | [`Event::TimewaitExit`]: the QPN is free | | [`Event::TimewaitExit`] |
//!
//! # What a peer can do
//! A message acts only on a connection with the address that it came from, so that a peer can break
//! its own connections and no other. Requests are bounded by each listener's backlog, and all state
//! by [`Limits`]; [`Cm::stats`] counts it.
#![forbid(unsafe_code)]

mod attrs;
mod cm;
mod config;
mod conn;
mod counters;
mod error;
mod event;
mod ids;
mod mad;
mod params;
mod sidrs;
mod table;

pub use attrs::{InitAttrs, Path, QpAttrs, RtrAttrs, RtsAttrs};
pub use cm::Cm;
pub use config::{Config, Limits};
pub use conn::State;
pub use counters::{Count, Counters, Drop};
pub use error::{Error, Message};
pub use event::{Closed, Deadline, Event, How, Request, Response, SidrRequest, SidrResponse, Why};
pub use mad::{Mad, Route, Sink};
pub use params::{
    Accept, Connect, Ece, Listen, ListenerId, PathParams, SidrAnswer, SidrAsk, Timing, Transport,
};
pub use table::Stats;

/// What a connection or a question of service is called, from its start to its end: its local
/// communication id. None is used twice before 2^26 others were.
pub type ConnId = urxe_wire::cm::CommId;
