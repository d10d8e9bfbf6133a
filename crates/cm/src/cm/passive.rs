//! The side that is asked.

use std::time::Duration;

use urxe_wire::cm::{
    CmTimeout, CommId, Failover, IpHeader, MraMessage, Rej, RejMessage, RejReason, Rep, Req, Rtu,
};
use urxe_wire::{Gid, MadHeader, Mtu, PKey, Psn, Qpn};

use super::{Cm, data, is_program_qpn};
use crate::attrs::{Agreed, Path, QpAttrs};
use crate::config::timeout;
use crate::conn::{Conn, Keys, Print, Retry};
use crate::mad::pack;
use crate::{
    Accept, ConnId, Count, Drop, Ece, Error, Event, How, ListenerId, Message, Request, Route, Sink,
    State, Transport,
};

/// Why a REQ is refused, with what would have been right.
type Refusal = (RejReason, Vec<u8>);

/// What a REQ that can be granted asks for.
struct Asked {
    transport: Transport,
    mtu: Mtu,
    ip: Option<IpHeader>,
}

impl Cm {
    /// A REQ has come.
    pub(super) fn on_req(
        &mut self,
        now: Duration,
        route: &Route,
        header: &MadHeader,
        req: &Req,
        out: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let print = Print::new(header.transaction_id, req);
        if let Some(id) = self.table.with_remote_id(route.remote, req.local_comm_id) {
            return Err(self.req_again(now, (route, header, req), id, &print, out));
        }
        let Some(listener) = self.listener(req.service_id, route.local) else {
            self.refuse_req(route, header, req, (RejReason::InvalidServiceId, Vec::new()), out);
            return Err(Drop::NoListener);
        };
        let asked = match self.check_req(route, listener, req) {
            Ok(asked) => asked,
            Err(refusal) => {
                self.refuse_req(route, header, req, refusal, out);
                return Err(Drop::BadRequest);
            }
        };
        // One QP of the peer's cannot be in two connections: the peer forgot the older one.
        if let Some(old) = self.table.with_remote_qpn(route.remote, req.local_qpn) {
            self.refuse_req(route, header, req, (RejReason::StaleConnection, Vec::new()), out);
            self.tear_down(now, old, out);
            return Err(Drop::Stale);
        }
        self.room().map_err(|_| Drop::Full)?;
        if self.events.len() >= self.config.limits.events {
            return Err(Drop::EventsFull);
        }
        let Some(entry) = self.listeners.get_mut(&listener) else { return Err(Drop::NoListener) };
        if entry.waiting >= entry.what.backlog {
            return Err(Drop::BacklogFull);
        }
        entry.waiting += 1;
        let id = self.new_id();
        let agreed = self.offered(route, req, &asked);
        let request = Request {
            id,
            listener,
            route: *route,
            transport: asked.transport,
            remote_qpn: req.local_qpn,
            remote_ca_guid: req.local_ca_guid,
            responder_resources: agreed.responder_resources,
            initiator_depth: agreed.initiator_depth,
            ece: Ece { vendor_id: req.vendor_id, options: header.attribute_modifier },
            ip: asked.ip,
            req: *req,
        };
        let lifetimes = 2 * lifetime(req).duration();
        let interval = req.local_cm_response_timeout.duration() + lifetimes;
        let conn = Conn {
            state: State::ReqReceived,
            route: *route,
            listener: Some(listener),
            print: Some(print),
            tid: header.transaction_id,
            retry: Retry::new(interval, req.max_cm_retries),
            last: None,
            patience: req.remote_cm_response_timeout.duration() + lifetimes,
            told_to_wait: false,
            alternate: req.alternate != urxe_wire::cm::ReqPath::default(),
            agreed,
            keys: Keys {
                remote_id: Some(req.local_comm_id),
                remote_qpn: Some(req.local_qpn),
                ..Keys::default()
            },
        };
        self.table.insert(id, conn);
        self.events.push_back(Event::ConnectRequest(Box::new(request)));
        Ok(())
    }

    /// A REQ has come again: what it was answered with may be lost.
    fn req_again(
        &mut self,
        now: Duration,
        (route, header, req): (&Route, &MadHeader, &Req),
        id: CommId,
        print: &Print,
        out: &mut dyn Sink,
    ) -> Drop {
        let Some(conn) = self.table.get_mut(id) else { return Drop::UnknownId };
        if conn.print.as_ref() != Some(print) {
            let refusal = (RejReason::DuplicateCommId, Vec::new());
            self.refuse_req(route, header, req, refusal, out);
            return Drop::IdInUse;
        }
        if !conn.route.same_ends(route) {
            return Drop::WrongAddress;
        }
        match conn.state {
            State::ReqReceived => self.ask_to_wait(id, MraMessage::Req, out),
            State::RepSent => self.answer_again(id, out),
            State::Refused => {
                let until = now.saturating_add(2 * conn.patience);
                self.table.at(id, Some(until));
                self.answer_again(id, out);
            }
            State::Timewait => {
                let refusal = (RejReason::StaleConnection, Vec::new());
                self.refuse_req(route, header, req, refusal, out);
            }
            _ => {}
        }
        Drop::Duplicate
    }

    /// Whether a REQ can be granted (IBA 12.6.7.2).
    fn check_req(&self, route: &Route, listener: ListenerId, req: &Req) -> Result<Asked, Refusal> {
        let no = |reason, info: &[u8]| Err((reason, info.to_vec()));
        let own = Gid::from(route.local);
        if req.primary.remote_gid != own {
            return no(RejReason::InvalidGid, &own.0);
        }
        // Data goes where the REQ says; a peer may name no address but its own.
        if req.primary.local_gid != Gid::from(route.remote) {
            return no(RejReason::InvalidGid, &[]);
        }
        let Some(transport) = Transport::of(req) else {
            return no(RejReason::InvalidTransport, &[]);
        };
        let most = self.config.mtu;
        let Some(mtu) = req.mtu.mtu().ok().filter(|&mtu| mtu <= most) else {
            return no(RejReason::InvalidMtu, &[most.code()]);
        };
        if !is_program_qpn(req.local_qpn) || !PKey::DEFAULT.matches(req.pkey) {
            return no(RejReason::UnsupportedRequest, &[]);
        }
        let wants_ip = self.listeners.get(&listener).is_some_and(|entry| entry.what.ip);
        let ip = if wants_ip {
            match req.ip_header() {
                Ok((ip, _)) if agrees(&ip, route) => Some(ip),
                _ => return no(RejReason::UnsupportedRequest, &[]),
            }
        } else {
            None
        };
        Ok(Asked { transport, mtu, ip })
    }

    fn refuse_req(
        &mut self,
        route: &Route,
        header: &MadHeader,
        req: &Req,
        (reason, info): Refusal,
        out: &mut dyn Sink,
    ) {
        let mut rej = Rej {
            remote_comm_id: req.local_comm_id,
            message: RejMessage::Req,
            reason,
            ..Rej::default()
        };
        super::refuse::put_info(&mut rej, &info);
        self.counters.add(Count::Refused);
        self.answer(route, header, rej, out);
    }

    /// What a REQ says of our QP.
    fn offered(&self, route: &Route, req: &Req, asked: &Asked) -> Agreed {
        let path = &req.primary;
        Agreed {
            transport: asked.transport,
            pkey: req.pkey,
            path: Path {
                local: route.local,
                remote: route.remote,
                hop_limit: path.hop_limit,
                traffic_class: path.traffic_class,
                flow_label: path.flow_label,
                service_level: path.service_level,
            },
            mtu: asked.mtu,
            rq_psn: Psn::default(),
            sq_psn: req.starting_psn,
            responder_resources: req.initiator_depth.min(self.config.max_responder_resources),
            initiator_depth: req.responder_resources.min(self.config.max_initiator_depth),
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            ack_timeout: path.local_ack_timeout,
        }
    }

    /// The attributes of the QP with which a request is about to be accepted: it should be in RTS,
    /// or in RTR at least, before [`Self::accept`] tells the peer of it.
    ///
    /// # Errors
    /// As [`Self::accept`].
    pub fn attrs_for(&self, id: ConnId, with: &Accept<'_>) -> Result<QpAttrs, Error> {
        let (agreed, qpn) = self.accepted(id, with)?;
        Ok(agreed.attrs(qpn))
    }

    /// As [`Self::attrs_for`] before it is known with which QP, that will expect `psn` first: with
    /// what the request asks for as far as the device has it.
    ///
    /// # Errors
    /// Where no request waits for an answer.
    pub fn attrs_offered(&self, id: ConnId, psn: Psn) -> Result<QpAttrs, Error> {
        let conn = self.conn(id)?;
        let (State::ReqReceived, Some(remote)) = (conn.state, conn.keys.remote_qpn) else {
            return Err(conn.wrong_state(id, "attrs_offered", "a REQ that was not answered"));
        };
        Ok(Agreed { rq_psn: psn, ..conn.agreed }.attrs(remote))
    }

    fn accepted(&self, id: ConnId, with: &Accept<'_>) -> Result<(Agreed, Qpn), Error> {
        let conn = self.conn(id)?;
        let (State::ReqReceived, Some(remote)) = (conn.state, conn.keys.remote_qpn) else {
            return Err(conn.wrong_state(id, "accept", "a REQ that was not answered"));
        };
        self.check_qpn(with.qpn)?;
        let vendor = with.ece.map_or(0, |ece| ece.vendor_id);
        if vendor > 0xff_ffff {
            let (field, got, wanted) = ("ECE vendor", vendor.into(), "24 bits");
            return Err(Error::Parameter { field, got, wanted });
        }
        let mut agreed = conn.agreed;
        agreed.rq_psn = with.psn;
        agreed.responder_resources = agreed.responder_resources.min(with.responder_resources);
        agreed.initiator_depth = agreed.initiator_depth.min(with.initiator_depth);
        Ok((agreed, remote))
    }

    /// Accepts a request with a QP. Ends with [`Event::Established`], [`Event::Rejected`] or
    /// [`Event::Unreachable`].
    ///
    /// # Errors
    /// Where it waits for no answer, the QP is in another connection or private data is longer
    /// than 196 bytes.
    pub fn accept(
        &mut self,
        now: Duration,
        id: ConnId,
        with: &Accept<'_>,
        out: &mut dyn Sink,
    ) -> Result<(), Error> {
        let private_data = data(Message::Rep, with.private_data)?;
        let (agreed, _) = self.accepted(id, with)?;
        let conn = self.conn(id)?;
        let ece = with.ece.unwrap_or_default();
        let [_, vendor_id_high, vendor_id_middle, vendor_id_low] = ece.vendor_id.to_be_bytes();
        let none = Failover::Accepted;
        let rep = Rep {
            local_comm_id: id,
            remote_comm_id: conn.keys.remote_id.unwrap_or_default(),
            vendor_id_high,
            vendor_id_middle,
            vendor_id_low,
            starting_psn: with.psn,
            responder_resources: agreed.responder_resources,
            target_ack_delay: self.config.ack_delay,
            failover: if conn.alternate { Failover::Unsupported } else { none },
            rnr_retry_count: with.rnr_retry_count,
            local_ca_guid: self.config.ca_guid,
            private_data,
            ..Rep::default()
        };
        // The side of an XRC connection that receives sends nothing; its QPN has another place.
        let rep = match agreed.transport {
            Transport::Xrc => Rep { srq: true, local_eecn: with.qpn.value(), ..rep },
            Transport::Rc | Transport::Uc => Rep {
                initiator_depth: agreed.initiator_depth,
                end_to_end_flow_control: with.flow_control,
                srq: with.srq,
                local_qpn: with.qpn,
                ..rep
            },
        };
        let mad = pack(&rep.into(), conn.tid, ece.options);
        let (route, interval) = (conn.route, conn.retry.interval);
        self.send(&route, &mad, out);
        self.to(id, State::RepSent);
        if let Some(conn) = self.table.get_mut(id) {
            (conn.agreed, conn.last) = (agreed, Some(mad));
        }
        self.table.rekey(id, |keys| {
            (keys.local_qpn, keys.deadline) = (Some(with.qpn), Some(now.saturating_add(interval)));
        });
        Ok(())
    }

    /// An RTU has come.
    pub(super) fn on_rtu(&mut self, route: &Route, rtu: &Rtu) -> Result<(), Drop> {
        let id = self.find(route, rtu.remote_comm_id, rtu.local_comm_id)?;
        match self.table.get(id).map(|conn| conn.state) {
            Some(State::RepSent) => self.established(id, How::Rtu, &rtu.private_data),
            Some(State::Established) => return Err(Drop::Duplicate),
            _ => return Err(Drop::WrongState),
        }
        Ok(())
    }

    /// Data has come to a QP: if its connection still waits for an RTU, that is lost or late, and
    /// the connection is established. Gives whether it was that.
    pub fn notify_established(&mut self, qpn: Qpn) -> bool {
        let id = self.table.with_local_qpn(qpn);
        let waits = |id: &CommId| self.state(*id) == Some(State::RepSent);
        let Some(id) = id.filter(waits) else { return false };
        self.established(id, How::Data, &[0; 224]);
        true
    }

    pub(super) fn established(&mut self, id: CommId, how: How, private_data: &[u8]) {
        self.table.at(id, None);
        self.keep(id, None);
        self.to(id, State::Established);
        self.counters.add(Count::Established);
        let private_data = private_data.into();
        self.events.push_back(Event::Established { id, how, private_data });
    }
}

/// How long a packet is under way at most, as a REQ's local ACK timeout tells.
fn lifetime(req: &Req) -> CmTimeout {
    timeout(req.primary.local_ack_timeout.code().saturating_sub(1))
}

/// Whether an IP header names the addresses that the message itself has.
pub(super) fn agrees(ip: &IpHeader, route: &Route) -> bool {
    ip.source().ip() == route.remote && ip.destination() == route.local
}
