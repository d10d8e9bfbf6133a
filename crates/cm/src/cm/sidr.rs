//! Which QP serves this? (IBA 12.11)

use std::time::Duration;

use urxe_wire::MadHeader;
use urxe_wire::cm::{CommId, SidrRep, SidrReq, SidrStatus};

use super::passive::agrees;
use super::{Cm, data, data_after, full};
use crate::config::timeout;
use crate::conn::Retry;
use crate::mad::pack;
use crate::sidrs::{Sidr, Stage};
use crate::{
    ConnId, Count, Drop, Ece, Error, Event, Message, Route, SidrAnswer, SidrAsk, SidrRequest,
    SidrResponse, Sink,
};

/// How long an answer is kept for duplicates of its question: twice as long as `rdma_cm` waits
/// before it asks again.
const REMEMBER: u8 = 21;

impl Cm {
    /// Asks which QP serves something. Ends with [`Event::SidrResponse`] or
    /// [`Event::SidrUnreachable`].
    ///
    /// # Errors
    /// Where private data is too long, a parameter is out of range or too many wait for an answer.
    pub fn sidr_ask(
        &mut self,
        now: Duration,
        ask: &SidrAsk<'_>,
        out: &mut dyn Sink,
    ) -> Result<ConnId, Error> {
        let max = ask.timing.max_retries;
        if max > 15 {
            let (field, got, wanted) = ("max_retries", max.into(), "0 to 15");
            return Err(Error::Parameter { field, got, wanted });
        }
        let private_data = data_after(Message::SidrReq, ask.ip.as_ref(), ask.private_data)?;
        full("questions of service", self.sidrs.open(), self.config.limits.sidr)?;
        let (id, service_id) = (self.new_id(), ask.service_id);
        let req =
            SidrReq { request_id: id, pkey: ask.pkey, reserved6: 0, service_id, private_data };
        let tid = self.ids.tid(id);
        let mad = pack(&req.into(), tid, 0);
        self.send(&ask.route, &mad, out);
        let retry = Retry::new(ask.timing.remote_response.duration(), max);
        let deadline = Some(now.saturating_add(retry.interval));
        let (stage, route) = (Stage::Asked { mad, retry }, ask.route);
        self.sidrs.insert(id, Sidr { stage, route, service_id, tid, deadline });
        Ok(id)
    }

    /// Wants the answer to a question of ours no more.
    ///
    /// # Errors
    /// Where it is answered already.
    pub fn sidr_abandon(&mut self, id: ConnId) -> Result<(), Error> {
        match self.sidrs.get(id).map(|sidr| &sidr.stage) {
            Some(Stage::Asked { .. }) => {
                self.sidrs.remove(id);
                Ok(())
            }
            _ => Err(Error::NoQuestion(id)),
        }
    }

    /// Answers a question of a peer's.
    ///
    /// # Errors
    /// Where it is answered already, or private data is longer than 136 bytes.
    pub fn sidr_answer(
        &mut self,
        now: Duration,
        id: ConnId,
        answer: &SidrAnswer<'_>,
        out: &mut dyn Sink,
    ) -> Result<(), Error> {
        let private_data = data(Message::SidrRep, answer.private_data)?;
        let waiting = |sidr: &&Sidr| matches!(sidr.stage, Stage::Waiting { .. });
        if self.sidrs.get(id).filter(waiting).is_none() {
            return Err(Error::NoQuestion(id));
        }
        let Some(sidr) = self.sidrs.remove(id) else { return Err(Error::NoQuestion(id)) };
        let Stage::Waiting { listener, remote_id } = sidr.stage else {
            return Err(Error::NoQuestion(id));
        };
        if let Some(listener) = self.listeners.get_mut(&listener) {
            listener.waiting -= 1;
        }
        let ece = answer.ece.unwrap_or_default();
        let [_, high, middle, vendor_id_low] = ece.vendor_id.to_be_bytes();
        let rep = SidrRep {
            request_id: remote_id,
            status: answer.status,
            vendor_id_high: u16::from_be_bytes([high, middle]),
            vendor_id_low,
            qpn: answer.qpn,
            service_id: sidr.service_id,
            qkey: answer.qkey,
            private_data,
            ..SidrRep::default()
        };
        let mad = pack(&rep.into(), sidr.tid, ece.options);
        self.send(&sidr.route, &mad, out);
        if self.sidrs.answered() < self.config.limits.remembered {
            let deadline = Some(now.saturating_add(timeout(REMEMBER).duration()));
            let stage = Stage::Answered { mad, remote_id };
            self.sidrs.insert(id, Sidr { stage, deadline, ..sidr });
        }
        Ok(())
    }

    /// Answers "no" for an owner that is gone.
    pub(super) fn refuse_sidr(&mut self, now: Duration, id: CommId, out: &mut dyn Sink) {
        let no = SidrAnswer::no(SidrStatus::Rejected);
        self.sidr_answer(now, id, &no, out).expect("it waits for an answer, and has no data");
    }

    /// A SIDR REQ has come.
    pub(super) fn on_sidr_req(
        &mut self,
        route: &Route,
        header: &MadHeader,
        req: &SidrReq,
        out: &mut dyn Sink,
    ) -> Result<(), Drop> {
        if let Some(sidr) = self.sidrs.of_peer(route.remote, req.request_id) {
            let same = (sidr.tid, sidr.service_id) == (header.transaction_id, req.service_id);
            if !same || !sidr.route.same_ends(route) {
                return Err(Drop::IdInUse);
            }
            if let Stage::Answered { mad, .. } = &sidr.stage {
                let (mad, route) = (mad.clone(), sidr.route);
                self.counters.add(Count::AnsweredAgain);
                self.send(&route, &mad, out);
            }
            return Err(Drop::Duplicate);
        }
        let Some(listener) = self.listener(req.service_id, route.local) else {
            self.no_service(route, header, req, SidrStatus::UnsupportedServiceId, out);
            return Err(Drop::NoListener);
        };
        let full = self.sidrs.open() >= self.config.limits.sidr;
        let Some(entry) = self.listeners.get_mut(&listener) else { return Err(Drop::NoListener) };
        let ip = match (entry.what.ip, req.ip_header()) {
            (false, _) => None,
            (true, Ok((ip, _))) if agrees(&ip, route) => Some(ip),
            (true, _) => {
                self.no_service(route, header, req, SidrStatus::Rejected, out);
                return Err(Drop::BadRequest);
            }
        };
        if full {
            return Err(Drop::Full);
        }
        if self.events.len() >= self.config.limits.events {
            return Err(Drop::EventsFull);
        }
        if entry.waiting >= entry.what.backlog {
            return Err(Drop::BacklogFull);
        }
        entry.waiting += 1;
        let (id, remote_id) = (self.new_id(), req.request_id);
        let request = SidrRequest {
            id,
            listener,
            route: *route,
            service_id: req.service_id,
            pkey: req.pkey,
            ip,
            data: req.private_data,
        };
        let (stage, route) = (Stage::Waiting { listener, remote_id }, *route);
        let (tid, service_id) = (header.transaction_id, req.service_id);
        self.sidrs.insert(id, Sidr { stage, route, service_id, tid, deadline: None });
        self.events.push_back(Event::SidrRequest(Box::new(request)));
        Ok(())
    }

    fn no_service(
        &mut self,
        route: &Route,
        header: &MadHeader,
        req: &SidrReq,
        status: SidrStatus,
        out: &mut dyn Sink,
    ) {
        let (request_id, service_id) = (req.request_id, req.service_id);
        let rep = SidrRep { request_id, status, service_id, ..SidrRep::default() };
        self.counters.add(Count::Refused);
        self.answer(route, header, rep, out);
    }

    /// A SIDR REP has come.
    pub(super) fn on_sidr_rep(
        &mut self,
        route: &Route,
        header: &MadHeader,
        rep: &SidrRep,
    ) -> Result<(), Drop> {
        let sidr = self.sidrs.get(rep.request_id).ok_or(Drop::UnknownId)?;
        if !matches!(sidr.stage, Stage::Asked { .. }) {
            return Err(Drop::WrongState);
        }
        if !sidr.route.same_ends(route) {
            return Err(Drop::WrongAddress);
        }
        let response = SidrResponse {
            id: rep.request_id,
            route: sidr.route,
            status: rep.status,
            qpn: rep.qpn,
            qkey: rep.qkey,
            ece: Ece { vendor_id: rep.vendor_id(), options: header.attribute_modifier },
            private_data: rep.private_data,
        };
        self.sidrs.remove(rep.request_id);
        self.events.push_back(Event::SidrResponse(Box::new(response)));
        Ok(())
    }

    /// An answer is late, or need not be kept any longer; `sidr` is out of the table.
    pub(super) fn expire_sidr(
        &mut self,
        now: Duration,
        id: CommId,
        mut sidr: Sidr,
        out: &mut dyn Sink,
    ) {
        let Stage::Asked { mad, retry } = &mut sidr.stage else { return };
        if retry.left == 0 {
            self.counters.add(Count::Unreachable);
            self.events.push_back(Event::SidrUnreachable { id });
            return;
        }
        retry.left -= 1;
        sidr.deadline = Some(now.saturating_add(retry.interval));
        let mad = mad.clone();
        self.counters.add(Count::Retried);
        self.send(&sidr.route, &mad, out);
        self.sidrs.insert(id, sidr);
    }
}
