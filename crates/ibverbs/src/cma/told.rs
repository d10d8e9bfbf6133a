//! What the connection manager tells of identifiers, in the words of rdma/rdma_cma.h.

use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};

use urxe::Gid;
use urxe::cm::{ConnInfo, Ece, Id as Link, What};

use crate::ah;
use crate::call::Fail;
use crate::layout::{IbvAhAttr, RawGid};

use super::event;
use super::state::State;

/// `RDMA_UDP_QKEY`.
pub(super) const QKEY: u32 = 0x0123_4567;
/// The default partition.
pub(super) const PKEY: u16 = 0xffff;

pub(super) fn gid(ip: IpAddr) -> RawGid {
    let Gid(gid) = ip.into();
    RawGid(gid)
}

/// What is told of an identifier.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// `enum rdma_cm_event_type`.
    pub(super) event: c_int,
    pub(super) status: c_int,
    pub(super) about: About,
    /// The peer's private data.
    pub(super) data: Vec<u8>,
    /// The peer's options.
    pub(super) ece: Ece,
    /// Who asks, if it is a request.
    pub(super) asked: Option<Asked>,
}

/// A peer that asks.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) link: Link,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
}

/// What an event tells of the other side.
#[derive(Debug, Default)]
pub(super) enum About {
    #[default]
    Nothing,
    Conn(Conn),
    Datagram {
        way: IbvAhAttr,
        qp_num: u32,
        qkey: u32,
    },
    /// The group of this number.
    Group(u32),
}

/// A connection's parameters, as the receiver sees them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conn {
    pub(super) responder_resources: u8,
    pub(super) initiator_depth: u8,
    pub(super) flow_control: bool,
    pub(super) retry_count: u8,
    pub(super) rnr_retry_count: u8,
    pub(super) srq: bool,
    pub(super) qp_num: u32,
}

/// An event of the library's own as a number: event, status and group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    pub(super) event: c_int,
    pub(super) status: c_int,
    pub(super) group: u32,
}

impl Own {
    /// Puts it where the manager's events are.
    pub(super) fn tell(self, link: &Link) -> Result<(), Fail> {
        let [event, ..] = self.event.to_le_bytes();
        let [low, high, ..] = self.status.to_le_bytes();
        let [a, b, c, d] = self.group.to_le_bytes();
        Ok(link.tell(u64::from_le_bytes([event, low, high, 0, a, b, c, d]))?)
    }

    fn from_number(number: u64) -> Self {
        let [event, low, high, _, a, b, c, d] = number.to_le_bytes();
        Self {
            event: event.into(),
            status: i16::from_le_bytes([low, high]).into(),
            group: u32::from_le_bytes([a, b, c, d]),
        }
    }
}

fn plain(event: c_int, status: c_int) -> Told {
    Told { event, status, ..Told::default() }
}

fn conn(event: c_int, info: ConnInfo) -> Told {
    let about = About::Conn(Conn {
        responder_resources: info.responder_resources,
        initiator_depth: info.initiator_depth,
        flow_control: info.flow_control,
        retry_count: info.retry_count,
        rnr_retry_count: info.rnr_retry_count,
        srq: info.srq,
        qp_num: info.qpn.value(),
    });
    Told { event, about, data: info.private_data, ece: info.ece, ..Told::default() }
}

fn request(link: Link, info: ConnInfo) -> Told {
    let none = SocketAddr::new(IpAddr::from([0; 4]), 0);
    let local = link.local_addr().unwrap_or(none);
    let remote = link.peer_addr().unwrap_or(none);
    let datagram = info.kind == urxe::QpKind::Ud;
    let mut told = conn(event::CONNECT_REQUEST, info);
    if datagram {
        // Who asks has no QP yet.
        told.about = About::Datagram { way: ah::none(), qp_num: 0, qkey: 0 };
    }
    told.asked = Some(Asked { link, local, remote });
    told
}

/// What happened, as the program is told of it.
pub(super) fn of(what: What, state: &State) -> Told {
    match what {
        What::AddrResolved => plain(event::ADDR_RESOLVED, 0),
        What::RouteResolved => plain(event::ROUTE_RESOLVED, 0),
        What::ConnectRequest(link, info) => request(link, *info),
        What::ConnectResponse(info) => conn(event::CONNECT_RESPONSE, *info),
        What::Established { .. } => plain(event::ESTABLISHED, 0),
        What::Resolved(info) => {
            let way = state.link.as_ref().and_then(Link::way);
            let about = About::Datagram {
                way: way.map_or_else(ah::none, |way| ah::shown(&way)),
                qp_num: info.qpn.value(),
                qkey: info.qkey.0,
            };
            let (event, data) = (event::ESTABLISHED, info.private_data);
            Told { event, about, data, ece: info.ece, ..Told::default() }
        }
        What::Rejected { reason, private_data, .. } => {
            let status = c_int::from(reason.code());
            Told { data: private_data, ..plain(event::REJECTED, status) }
        }
        What::NoService { status, private_data } => {
            let status = c_int::from(status.code());
            Told { data: private_data, ..plain(event::UNREACHABLE, status) }
        }
        What::Unreachable { .. } => plain(event::UNREACHABLE, -libc::ETIMEDOUT),
        What::DisconnectRequest { .. } | What::Disconnected(_) => plain(event::DISCONNECTED, 0),
        What::TimewaitExit => plain(event::TIMEWAIT_EXIT, 0),
        What::Told(number) => {
            let Own { event, status, group } = Own::from_number(number);
            let about = if group == 0 { About::Nothing } else { About::Group(group) };
            Told { about, ..plain(event, status) }
        }
    }
}
