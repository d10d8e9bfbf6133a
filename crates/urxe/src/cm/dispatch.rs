//! What happened in the state machine, to the ids it happened to.

use std::net::SocketAddr;
use std::time::Duration;

use urxe_cm::{
    ConnId, Event as CmEvent, ListenerId, Request, Response, Route, SidrRequest, SidrResponse,
    Transport,
};
use urxe_engine::{AttrMask, QpAttr, QpKind, QpState};
use urxe_wire::cm::SidrStatus;
use urxe_wire::{QKey, Qpn};

use super::state::{Entry, Outgoing, Role, State, Undelivered};
use super::{ConnInfo, Id, UdInfo, What};
use crate::device::Device;

/// Takes all events out of the state machine. What is given back is to be dropped when the state
/// is no longer locked.
pub(super) fn dispatch(
    state: &mut State,
    device: &Device,
    now: Duration,
    out: &mut Outgoing,
) -> Vec<Undelivered> {
    let mut undelivered = Vec::new();
    while let Some(event) = state.cm.poll_event() {
        undelivered.extend(one(state, device, now, out, event));
    }
    undelivered
}

fn one(
    state: &mut State,
    device: &Device,
    now: Duration,
    out: &mut Outgoing,
    event: CmEvent,
) -> Option<Undelivered> {
    match event {
        CmEvent::ConnectRequest(request) => {
            let (local, peer) = ends(&request.route, request.req.service_id.port(), request.ip);
            let child = Child { kind: kind_of(request.transport), local, peer };
            let told = state.child(request.listener, &child, Role::Conn(request.id), || {
                requested(&request, child.kind)
            });
            told.or_else(|| {
                // The listener's owner is gone.
                let _ = state.cm.abandon(now, request.id, out);
                None
            })
        }
        CmEvent::SidrRequest(request) => {
            let (local, peer) = ends(&request.route, request.service_id.port(), request.ip);
            let child = Child { kind: QpKind::Ud, local, peer };
            let role = Role::Question(request.id);
            let told = state.child(request.listener, &child, role, || asked(&request));
            told.or_else(|| {
                let no = urxe_cm::SidrAnswer::no(SidrStatus::Rejected);
                let _ = state.cm.sidr_answer(now, request.id, &no, out);
                None
            })
        }
        CmEvent::ConnectResponse(response) => match state.by_conn.get(&response.id).copied() {
            Some(id) => {
                let kind = state.ids.get(&id).map_or(QpKind::Rc, |entry| entry.kind);
                let info = Box::new(responded(&response, kind));
                state.tell(id, What::ConnectResponse(info))
            }
            None => {
                let _ = state.cm.abandon(now, response.id, out);
                None
            }
        },
        CmEvent::SidrResponse(response) => {
            let id = state.over(response.id)?;
            state.tell(id, answered(&response))
        }
        CmEvent::SidrUnreachable { id } => {
            let id = state.over(id)?;
            state.tell(id, What::Unreachable { message: urxe_cm::Message::SidrReq })
        }
        CmEvent::Established { id, how, private_data } => {
            let id = *state.by_conn.get(&id)?;
            state.tell(id, What::Established { how, private_data: private_data.into() })
        }
        CmEvent::DisconnectRequest { id, private_data } => {
            peer_ends(state, device, now, out, id);
            let id = *state.by_conn.get(&id)?;
            state.tell(id, What::DisconnectRequest { private_data: private_data.into() })
        }
        other => ended(state, device, other),
    }
}

/// Events after which there is no connection.
fn ended(state: &mut State, device: &Device, event: CmEvent) -> Option<Undelivered> {
    match event {
        CmEvent::Rejected { id, reason, info, private_data, timewait } => {
            let id = state.gone(id, timewait)?;
            let (info, private_data) = (info.into(), private_data.into());
            state.tell(id, What::Rejected { reason, info, private_data, timewait })
        }
        CmEvent::Unreachable { id, message, timewait } => {
            let id = state.gone(id, timewait)?;
            state.tell(id, What::Unreachable { message })
        }
        CmEvent::Disconnected { id, how } => {
            let id = state.gone(id, true)?;
            if let Some(entry) = state.ids.get(&id) {
                stop(device, entry);
            }
            state.tell(id, What::Disconnected(how))
        }
        CmEvent::TimewaitExit { id, .. } => {
            let id = state.over(id)?;
            state.tell(id, What::TimewaitExit)
        }
        _ => None,
    }
}

/// The peer ends a connection: where nobody is there to agree, or does it by himself, it is agreed.
fn peer_ends(state: &mut State, device: &Device, now: Duration, out: &mut Outgoing, conn: ConnId) {
    let entry = state.by_conn.get(&conn).and_then(|id| state.ids.get(id));
    if entry.is_none_or(|entry| entry.agrees) {
        if let Some(entry) = entry {
            stop(device, entry);
        }
        // It has just asked for it.
        let _ = state.cm.disconnect(now, conn, &[], out);
    }
}

/// Puts the QP of an id that looks after itself in error: it shall send no more. That of an attempt
/// that came to nothing has sent nothing.
fn stop(device: &Device, entry: &Entry) {
    if let Some(qpn) = entry.qpn.filter(|_| entry.agrees) {
        let attr = QpAttr { qp_state: QpState::Err, ..QpAttr::default() };
        if device.nic.modify_qp(qpn, &attr, AttrMask::STATE).is_ok() {
            device.with_sink(|sink| device.nic.pump(device.now(), sink));
        }
    }
}

/// A peer's request, as its own id is made of it.
struct Child {
    kind: QpKind,
    local: SocketAddr,
    peer: SocketAddr,
}

impl State {
    /// Tells a listener of a request; `None` if there is nobody to tell.
    fn child(
        &mut self,
        listener: ListenerId,
        child: &Child,
        role: Role,
        info: impl FnOnce() -> ConnInfo,
    ) -> Option<Undelivered> {
        let listener = *self.by_listener.get(&listener)?;
        let entry = self.ids.get(&listener)?;
        let handle = entry.handle.upgrade()?;
        entry.channel.upgrade()?;
        let entry = Entry {
            channel: entry.channel.clone(),
            kind: child.kind,
            local: Some(child.local),
            peer: Some(child.peer),
            bound: false,
            qpn: None,
            psn: handle.next_psn(),
            role: Role::Idle,
            agrees: false,
            handle: entry.handle.clone(),
            ..*entry
        };
        let id = Id::enter(self, handle, entry);
        self.begin(id.number(), role);
        self.tell(listener, What::ConnectRequest(id, Box::new(info())))
    }

    /// A connection has ended; its id hears of the timewait's end if there is one.
    fn gone(&mut self, conn: ConnId, timewait: bool) -> Option<super::IdNumber> {
        if timewait { self.by_conn.get(&conn).copied() } else { self.over(conn) }
    }
}

const fn kind_of(transport: Transport) -> QpKind {
    match transport {
        Transport::Rc => QpKind::Rc,
        Transport::Uc => QpKind::Uc,
        // The passive side's QP receives.
        Transport::Xrc => QpKind::XrcTarget,
    }
}

/// Our address and port, and the peer's, of a request.
fn ends(
    route: &Route,
    port: Option<(urxe_wire::cm::PortSpace, u16)>,
    ip: Option<urxe_wire::cm::IpHeader>,
) -> (SocketAddr, SocketAddr) {
    let local = SocketAddr::new(route.local, port.map_or(0, |(_, port)| port));
    let peer = ip.map_or(SocketAddr::new(route.remote, 0), |ip| ip.source());
    (local, peer)
}

fn requested(request: &Request, kind: QpKind) -> ConnInfo {
    ConnInfo {
        kind,
        qpn: request.remote_qpn,
        responder_resources: request.responder_resources,
        initiator_depth: request.initiator_depth,
        flow_control: request.req.end_to_end_flow_control,
        retry_count: request.req.retry_count.count(),
        rnr_retry_count: request.req.rnr_retry_count.count(),
        srq: request.req.srq,
        ece: request.ece,
        private_data: request.private_data().to_vec(),
    }
}

fn responded(response: &Response, kind: QpKind) -> ConnInfo {
    ConnInfo {
        kind,
        qpn: response.remote_qpn,
        responder_resources: response.responder_resources,
        initiator_depth: response.initiator_depth,
        flow_control: response.flow_control,
        retry_count: 0,
        rnr_retry_count: response.rnr_retry_count.count(),
        srq: response.srq,
        ece: response.ece,
        private_data: response.private_data.to_vec(),
    }
}

fn asked(request: &SidrRequest) -> ConnInfo {
    ConnInfo {
        kind: QpKind::Ud,
        qpn: Qpn::new(0),
        responder_resources: 0,
        initiator_depth: 0,
        flow_control: false,
        retry_count: 0,
        rnr_retry_count: 0,
        srq: false,
        ece: urxe_cm::Ece::default(),
        private_data: request.private_data().to_vec(),
    }
}

fn answered(response: &SidrResponse) -> What {
    let private_data = response.private_data.to_vec();
    let SidrResponse { status, qpn, qkey, ece, .. } = *response;
    if status == SidrStatus::Success {
        What::Resolved(Box::new(UdInfo { qpn, qkey, ece, private_data }))
    } else {
        What::NoService { status, private_data }
    }
}

/// The key that datagrams to a service's QP carry if it names none.
pub(super) const SERVICE_QKEY: QKey = QKey::RDMA_CM_UDP;
