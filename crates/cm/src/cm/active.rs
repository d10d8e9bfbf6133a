//! The side that asks.

use std::time::Duration;

use urxe_wire::cm::{
    CommId, MraMessage, MtuCode, Rej, RejMessage, RejReason, Rep, Req, ReqPath, Rtu,
};
use urxe_wire::{Gid, MadHeader, Psn, Qpn};

use super::{Cm, data, data_after, is_program_qpn};
use crate::attrs::{Agreed, Path};
use crate::config::timeout;
use crate::conn::{Conn, Keys, Retry};
use crate::mad::pack;
use crate::params::ack_timeout;
use crate::{
    ConnId, Connect, Count, Drop, Ece, Error, Event, Message, Response, Route, Sink, State,
    Transport,
};

/// LID of a port that has none, on RoCE.
const NO_LID: u16 = 0xffff;

impl Cm {
    /// Asks for a connection. Ends with [`Event::ConnectResponse`], [`Event::Rejected`] or
    /// [`Event::Unreachable`].
    ///
    /// # Errors
    /// Where a parameter is out of range, private data is too long, the QP is in another
    /// connection or there are too many.
    pub fn connect(
        &mut self,
        now: Duration,
        want: &Connect<'_>,
        out: &mut dyn Sink,
    ) -> Result<ConnId, Error> {
        self.check_connect(want)?;
        let private = data_after(Message::Req, want.ip.as_ref(), want.private_data)?;
        self.check_qpn(want.qpn)?;
        self.room()?;
        let id = self.new_id();
        let req = self.req(id, want, private);
        let tid = self.ids.tid(id);
        let mad = pack(&req.into(), tid, want.ece.map_or(0, |ece| ece.options));
        let lifetime = want.path.packet_lifetime.duration();
        let interval = want.timing.remote_response.duration() + 2 * lifetime;
        self.send(&want.route, &mad, out);
        let conn = Conn {
            state: State::ReqSent,
            route: want.route,
            listener: None,
            print: None,
            tid,
            retry: Retry::new(interval, want.timing.max_retries),
            last: Some(mad),
            patience: want.timing.local_response.duration() + 2 * lifetime,
            told_to_wait: false,
            alternate: false,
            agreed: agreed(want, &req),
            keys: Keys {
                local_qpn: Some(want.qpn),
                deadline: Some(now.saturating_add(interval)),
                ..Keys::default()
            },
        };
        self.table.insert(id, conn);
        Ok(id)
    }

    fn check_connect(&self, want: &Connect<'_>) -> Result<(), Error> {
        let (config, path) = (&self.config, &want.path);
        let mtu_wanted = "an MTU code no larger than the device's";
        let vendor = want.ece.map_or(0, |ece| ece.vendor_id);
        let checks: [(&str, u64, u64, &str); 7] = [
            ("max_retries", want.timing.max_retries.into(), 15, "0 to 15"),
            ("flow_label", path.flow_label.into(), 0xf_ffff, "20 bits"),
            ("service_level", path.service_level.into(), 15, "0 to 15"),
            ("mtu", path.mtu.code().into(), config.mtu.code().into(), mtu_wanted),
            (
                "responder_resources",
                want.responder_resources.into(),
                config.max_responder_resources.into(),
                "no more than the device has",
            ),
            (
                "initiator_depth",
                want.initiator_depth.into(),
                config.max_initiator_depth.into(),
                "no more than the device has",
            ),
            ("ECE vendor", vendor.into(), 0xff_ffff, "24 bits"),
        ];
        match checks.into_iter().find(|&(_, got, most, _)| got > most) {
            Some((field, got, _, wanted)) => Err(Error::Parameter { field, got, wanted }),
            None => Ok(()),
        }
    }

    fn req(&self, id: CommId, want: &Connect<'_>, private_data: [u8; 92]) -> Req {
        let (transport_service, extended_transport) = want.transport.codes();
        let path = &want.path;
        let local_ack_timeout = ack_timeout(path.packet_lifetime, self.config.ack_delay);
        let req = Req {
            local_comm_id: id,
            vendor_id: want.ece.map_or(0, |ece| ece.vendor_id),
            service_id: want.service_id,
            local_ca_guid: self.config.ca_guid,
            local_qpn: want.qpn,
            initiator_depth: want.initiator_depth,
            remote_cm_response_timeout: want.timing.remote_response,
            transport_service,
            extended_transport,
            end_to_end_flow_control: want.flow_control,
            starting_psn: want.psn,
            local_cm_response_timeout: want.timing.local_response,
            pkey: want.pkey,
            mtu: MtuCode::from(path.mtu),
            max_cm_retries: want.timing.max_retries,
            primary: ReqPath {
                local_lid: NO_LID,
                remote_lid: NO_LID,
                local_gid: Gid::from(want.route.local),
                remote_gid: Gid::from(want.route.remote),
                flow_label: path.flow_label,
                traffic_class: path.traffic_class,
                hop_limit: path.hop_limit,
                service_level: path.service_level,
                subnet_local: path.hop_limit <= 1,
                local_ack_timeout,
                ..ReqPath::default()
            },
            private_data,
            ..Req::default()
        };
        // The side of an XRC connection that sends serves nothing and has no receive queue.
        match want.transport {
            Transport::Xrc => req,
            Transport::Rc | Transport::Uc => Req {
                responder_resources: want.responder_resources,
                retry_count: want.retry_count,
                rnr_retry_count: want.rnr_retry_count,
                srq: want.srq,
                ..req
            },
        }
    }

    /// A REP has come.
    pub(super) fn on_rep(
        &mut self,
        now: Duration,
        route: &Route,
        header: &MadHeader,
        rep: &Rep,
        out: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let id = rep.remote_comm_id;
        let Some(conn) = self.table.get(id) else {
            self.refuse_rep(route, header, rep, RejReason::InvalidCommId, out);
            return Err(Drop::UnknownId);
        };
        if !conn.route.same_ends(route) {
            return Err(Drop::WrongAddress);
        }
        if conn.state != State::ReqSent {
            if conn.keys.remote_id == Some(rep.local_comm_id) && conn.is_active() {
                self.rep_again(id, out);
                return Err(Drop::Duplicate);
            }
            // A second connection that the peer made of one REQ.
            self.refuse_rep(route, header, rep, RejReason::InvalidCommId, out);
            return Err(Drop::WrongPeer);
        }
        let remote_qpn = match conn.agreed.transport {
            Transport::Xrc => Qpn::new(rep.local_eecn),
            Transport::Rc | Transport::Uc => rep.local_qpn,
        };
        if !is_program_qpn(remote_qpn) {
            return Err(Drop::BadRequest);
        }
        self.take_rep(now, (header, rep), remote_qpn, out)
    }

    fn take_rep(
        &mut self,
        now: Duration,
        (header, rep): (&MadHeader, &Rep),
        remote_qpn: Qpn,
        out: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let id = rep.remote_comm_id;
        let Some(conn) = self.table.get_mut(id) else { return Err(Drop::UnknownId) };
        let remote = conn.route.remote;
        let lifetime = timeout(conn.agreed.ack_timeout.code().saturating_sub(1));
        let agreed = &mut conn.agreed;
        agreed.sq_psn = rep.starting_psn;
        agreed.initiator_depth = agreed.initiator_depth.min(rep.responder_resources);
        agreed.responder_resources = agreed.responder_resources.min(rep.initiator_depth);
        agreed.rnr_retry_count = rep.rnr_retry_count;
        agreed.ack_timeout = ack_timeout(lifetime, rep.target_ack_delay);
        let response = Response {
            id,
            remote_qpn,
            remote_ca_guid: rep.local_ca_guid,
            responder_resources: agreed.responder_resources,
            initiator_depth: agreed.initiator_depth,
            srq: rep.srq,
            flow_control: rep.end_to_end_flow_control,
            rnr_retry_count: rep.rnr_retry_count,
            ece: Ece { vendor_id: rep.vendor_id(), options: header.attribute_modifier },
            private_data: rep.private_data,
        };
        self.table.rekey(id, |keys| {
            (keys.remote_id, keys.deadline) = (Some(rep.local_comm_id), None);
        });
        self.to(id, State::RepReceived);
        // A second connection with one QP of the peer's: the older one is stale.
        if let Some(old) = self.table.with_remote_qpn(remote, remote_qpn) {
            self.refuse_stale(now, id, old, out);
            return Err(Drop::Stale);
        }
        self.table.rekey(id, |keys| keys.remote_qpn = Some(remote_qpn));
        self.events.push_back(Event::ConnectResponse(Box::new(response)));
        Ok(())
    }

    /// A REP has come again: what it was answered with may be lost.
    fn rep_again(&mut self, id: CommId, out: &mut dyn Sink) {
        match self.table.get(id).map(|conn| conn.state) {
            // The RTU, or the REJ.
            Some(State::Established | State::Refused) => self.answer_again(id, out),
            Some(State::RepReceived) => self.ask_to_wait(id, MraMessage::Rep, out),
            _ => {}
        }
    }

    fn refuse_rep(
        &mut self,
        route: &Route,
        header: &MadHeader,
        rep: &Rep,
        reason: RejReason,
        out: &mut dyn Sink,
    ) {
        let rej = Rej {
            local_comm_id: rep.remote_comm_id,
            remote_comm_id: rep.local_comm_id,
            message: RejMessage::Rep,
            reason,
            ..Rej::default()
        };
        self.counters.add(Count::Refused);
        self.answer(route, header, rej, out);
    }

    /// Our QP is ready: sends the RTU, and the connection is established.
    ///
    /// # Errors
    /// Where no REP has come, or private data is longer than 224 bytes.
    pub fn establish(
        &mut self,
        id: ConnId,
        private_data: &[u8],
        out: &mut dyn Sink,
    ) -> Result<(), Error> {
        let private_data = data(Message::Rtu, private_data)?;
        let conn = self.conn(id)?;
        let (State::RepReceived, Some(remote_comm_id)) = (conn.state, conn.keys.remote_id) else {
            return Err(conn.wrong_state(id, "establish", "a REP that has come"));
        };
        let rtu = Rtu { local_comm_id: id, remote_comm_id, private_data };
        let mad = pack(&rtu.into(), conn.tid, 0);
        let route = conn.route;
        self.send(&route, &mad, out);
        self.keep(id, Some(mad));
        self.to(id, State::Established);
        self.counters.add(Count::Established);
        Ok(())
    }
}

/// What a request alone says of our QP.
fn agreed(want: &Connect<'_>, req: &Req) -> Agreed {
    let path = &want.path;
    Agreed {
        transport: want.transport,
        pkey: want.pkey,
        path: Path {
            local: want.route.local,
            remote: want.route.remote,
            hop_limit: path.hop_limit,
            traffic_class: path.traffic_class,
            flow_label: path.flow_label,
            service_level: path.service_level,
        },
        mtu: path.mtu,
        rq_psn: want.psn,
        sq_psn: Psn::default(),
        responder_resources: req.responder_resources,
        initiator_depth: want.initiator_depth,
        retry_count: want.retry_count,
        rnr_retry_count: want.rnr_retry_count,
        // The lifetime and one, from which the REP's delay makes the timeout.
        ack_timeout: ack_timeout(path.packet_lifetime, timeout(0)),
    }
}
