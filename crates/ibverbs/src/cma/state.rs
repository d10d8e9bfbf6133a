//! How far an identifier has come.

use std::net::SocketAddr;

use crate::call::Fail;
use crate::layout::{IbvQpInitAttr, SaPathRec};

use super::mcast::Group;

/// The steps, as the kernel has them (Linux drivers/infiniband/core/cma_priv.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Idle,
    Bound,
    Resolved,
    Routed,
    Listening,
    /// The passive side, before it accepts.
    Asked,
    Connecting,
    Connected,
    /// Ended, refused or never answered.
    Over,
}

/// Options of [`rdma_set_option`](super::option).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    /// Type of service: the traffic class of the way.
    pub(super) tos: Option<u8>,
    /// Local ACK timeout, 5 bits.
    pub(super) ack_timeout: Option<u8>,
    pub(super) reuse: bool,
    /// An IPv6 wildcard means no IPv4 addresses.
    pub(super) only_family: bool,
}

/// What an endpoint that listens gives the identifiers of its connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Template(pub(super) IbvQpInitAttr);

// SAFETY: its pointers are the program's and only handed back to it.
unsafe impl Send for Template {}

/// All of it but what C sees.
#[derive(Debug)]
pub(super) struct State {
    pub(super) step: Step,
    pub(super) sync: bool,
    pub(super) source: Option<SocketAddr>,
    pub(super) destination: Option<SocketAddr>,
    pub(super) options: Options,
    /// READs and atomics at once: that our QP serves, and that it has outstanding.
    pub(super) responder_resources: u8,
    pub(super) initiator_depth: u8,
    /// Vendors' options: ours, and the peer's.
    pub(super) local_ece: urxe::cm::Ece,
    pub(super) remote_ece: urxe::cm::Ece,
    /// What `rdma_create_ep` was told to send with the request.
    pub(super) connect_data: Vec<u8>,
    pub(super) template: Option<Template>,
    /// Where the program's `path_rec` points to.
    pub(super) path: Option<Box<SaPathRec>>,
    pub(super) groups: Vec<Group>,
    pub(super) last_group: u32,
    /// Our side failed after the peer had accepted: what follows is not told.
    pub(super) failed: bool,
    /// Its part of the connection manager, once it is bound.
    pub(super) link: Option<urxe::cm::Id>,
}

impl State {
    pub(super) fn new(sync: bool) -> Self {
        Self {
            step: Step::Idle,
            sync,
            source: None,
            destination: None,
            options: Options::default(),
            responder_resources: u8::MAX,
            initiator_depth: u8::MAX,
            local_ece: urxe::cm::Ece::default(),
            remote_ece: urxe::cm::Ece::default(),
            connect_data: Vec::new(),
            template: None,
            path: None,
            groups: Vec::new(),
            last_group: 0,
            failed: false,
            link: None,
        }
    }

    /// Fails where the identifier is not at one of these steps.
    pub(super) fn at(&self, wanted: &[Step]) -> Result<(), Fail> {
        if wanted.contains(&self.step) {
            return Ok(());
        }
        let step = self.step;
        Err(Fail::invalid(format!("the identifier is at step {step:?}; wanted {wanted:?}")))
    }
}
