//! The side that asks: address, way, request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use urxe_cm::{Connect, PathParams, SidrAsk, Transport};
use urxe_engine::QpKind;

use super::state::{Entry, Role, State};
use super::{ConnParam, Id, IdNumber, What};
use crate::Error;

impl Id {
    /// Gives it an address of ours; with port 0, a port that is free. The unspecified address
    /// stands for any of the device's.
    ///
    /// # Errors
    /// Where the address is not the device's, the port is bound already, or it has an address.
    pub fn bind(&self, to: SocketAddr) -> Result<(), Error> {
        let own = self.handle().live()?.address();
        if to.ip() != own && to.ip() != unspecified(own) {
            return Err(Error::NotOurs { address: to.ip(), own });
        }
        self.with(|state, _, _| {
            let entry = state.entry(self.number())?;
            if entry.local.is_some() {
                return Err(Error::IdState { call: "bind", wanted: "an id without an address" });
            }
            state.bind(self.number(), to)
        })
    }

    /// Says whom it will connect with, and binds it if it is not. [`What::AddrResolved`] follows.
    ///
    /// # Errors
    /// Where this device cannot reach the address, or as [`Self::bind`].
    pub fn resolve_addr(&self, from: Option<SocketAddr>, to: SocketAddr) -> Result<(), Error> {
        let own = self.handle().live()?.address();
        if to.ip().is_unspecified() || to.is_ipv4() != own.is_ipv4() {
            return Err(Error::NoWay { to: to.ip(), own });
        }
        if let Some(from) = from.filter(|_| self.local_addr().is_none()) {
            self.bind(from)?;
        }
        let undelivered = self.with(|state, _, _| {
            let entry = state.entry(self.number())?;
            if !matches!(entry.role, Role::Idle) {
                return Err(Error::IdState { call: "resolve_addr", wanted: "an idle id" });
            }
            let local = match entry.local {
                Some(local) => local,
                None => {
                    state.bind(self.number(), SocketAddr::new(own, 0))?;
                    state.entry(self.number())?.local.unwrap_or(SocketAddr::new(own, 0))
                }
            };
            let entry = state.entry_mut(self.number())?;
            entry.local = Some(SocketAddr::new(own, local.port()));
            entry.peer = Some(to);
            Ok(state.tell(self.number(), What::AddrResolved))
        })?;
        drop(undelivered);
        Ok(())
    }

    /// On RoCE the address is the way: [`What::RouteResolved`] follows.
    ///
    /// # Errors
    /// Where no address was resolved.
    pub fn resolve_route(&self) -> Result<(), Error> {
        let undelivered = self.with(|state, _, _| {
            if state.entry(self.number())?.peer.is_none() {
                let wanted = "a resolved address";
                return Err(Error::IdState { call: "resolve_route", wanted });
            }
            Ok(state.tell(self.number(), What::RouteResolved))
        })?;
        drop(undelivered);
        Ok(())
    }

    /// Asks the peer for a connection, or, of UD, for a service's QP.
    ///
    /// # Errors
    /// Where no address was resolved, it is at something already, a parameter is out of range or
    /// private data too long.
    pub fn connect(&self, param: &ConnParam<'_>) -> Result<(), Error> {
        let most = self.handle().live()?.nic.config().caps.max_rd_atomic;
        self.with(|state, now, out| {
            let entry = state.entry(self.number())?;
            let (Role::Idle, Some(local), Some(peer)) = (entry.role, entry.local, entry.peer)
            else {
                let wanted = "an idle id with a resolved address";
                return Err(Error::IdState { call: "connect", wanted });
            };
            let role = if entry.kind == QpKind::Ud {
                let ask = SidrAsk {
                    timing: entry.timing,
                    private_data: param.private_data,
                    ..SidrAsk::ip(entry.space, local, peer)?
                };
                Role::Asked(state.cm.sidr_ask(now, &ask, out)?)
            } else {
                let want = wanted(entry, (local, peer), param, most)?;
                Role::Conn(state.cm.connect(now, &want, out)?)
            };
            state.begin(self.number(), role);
            state.entry_mut(self.number())?.qpn = Some(param.qpn);
            Ok(())
        })
    }
}

/// The request of an id.
fn wanted<'a>(
    entry: &Entry,
    (local, peer): (SocketAddr, SocketAddr),
    param: &ConnParam<'a>,
    most: u8,
) -> Result<Connect<'a>, Error> {
    let depth = |depth: u8| if depth == u8::MAX { most } else { depth };
    let base = Connect::ip(entry.space, local, peer, param.qpn, entry.psn)?;
    let flow_label = match entry.path.flow_label {
        0 => base.path.flow_label,
        label => label,
    };
    Ok(Connect {
        transport: match entry.kind {
            QpKind::Uc => Transport::Uc,
            QpKind::XrcInit | QpKind::XrcTarget => Transport::Xrc,
            _ => Transport::Rc,
        },
        srq: param.srq,
        responder_resources: depth(param.responder_resources),
        initiator_depth: depth(param.initiator_depth),
        flow_control: param.flow_control,
        retry_count: param.retry_count,
        rnr_retry_count: param.rnr_retry_count,
        path: PathParams { flow_label, ..entry.path },
        timing: entry.timing,
        ece: param.ece,
        private_data: param.private_data,
        ..base
    })
}

/// The address of its family that stands for any.
const fn unspecified(of: IpAddr) -> IpAddr {
    match of {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

impl State {
    /// Binds an id, which has no address yet.
    pub(super) fn bind(&mut self, id: IdNumber, to: SocketAddr) -> Result<(), Error> {
        let (space, again) = self.entry(id).map(|entry| (entry.space, entry.again))?;
        let port = match to.port() {
            0 => self.ports.any(space),
            port => Some(port).filter(|&port| self.ports.bind(space, port, again)),
        };
        let Some(port) = port else { return Err(Error::PortTaken { port: to.port() }) };
        let entry = self.entry_mut(id)?;
        (entry.local, entry.bound) = (Some(SocketAddr::new(to.ip(), port)), true);
        Ok(())
    }
}
