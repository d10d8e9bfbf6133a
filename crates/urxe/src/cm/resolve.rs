//! Which QP is behind a UDP port?

use std::net::SocketAddr;

use urxe_engine::{AhAttr, QpKind};
use urxe_wire::Qpn;
use urxe_wire::cm::PortSpace;

use super::connection::failed;
use super::{Channel, ConnParam, Id, Options, UdInfo, What};
use crate::{Context, Error};

/// Where datagrams of a service go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The way, for [`crate::Pd::create_ah`].
    pub ah: AhAttr,
    /// QP, key and what else its program told.
    pub info: UdInfo,
}

/// Asks who listens at `to` for the QP of its datagram service; see
/// [`super::Listener::bind_datagrams`].
///
/// # Errors
/// [`Error::NoService`], [`Error::Unreachable`], and where an option is out of range.
pub fn resolve(context: &Context, to: SocketAddr, options: &Options<'_>) -> Result<Remote, Error> {
    let channel = Channel::new()?;
    let id = Id::new(context, &channel, PortSpace::Udp, QpKind::Ud)?;
    options.set(&id)?;
    id.resolve_addr(None, to)?;
    let private_data = options.private_data;
    id.connect(&ConnParam { private_data, ..ConnParam::new(Qpn::new(0)) })?;
    loop {
        let Some(event) = channel.wait_event(None)? else { continue };
        match event.what {
            What::Resolved(info) => {
                return Ok(Remote { ah: id.way().unwrap_or_default(), info: *info });
            }
            other => failed(Some(to), other)?,
        }
    }
}

impl Id {
    /// The way to the peer of a UD id, once its address is resolved (`ibv_ah_attr`).
    #[must_use]
    pub fn way(&self) -> Option<AhAttr> {
        let (peer, path) = (self.peer_addr()?, self.path()?);
        Some(AhAttr {
            dst: peer.ip(),
            sgid_index: 0,
            hop_limit: path.hop_limit,
            traffic_class: path.traffic_class,
            flow_label: path.flow_label,
            sl: path.service_level,
            port_num: 1,
        })
    }
}

impl Options<'_> {
    /// Sets an id to path and patience.
    pub(super) fn set(&self, id: &Id) -> Result<(), Error> {
        if let Some(path) = self.path {
            id.set_path(path)?;
        }
        id.set_timing(self.timing)
    }
}
