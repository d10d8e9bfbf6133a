//! How connections end.

use std::time::Duration;

use urxe_wire::cm::{CommId, Drep, Dreq, RejReason};
use urxe_wire::{MadHeader, Qpn};

use super::{Cm, data};
use crate::mad::pack;
use crate::{Closed, ConnId, Drop, Error, Event, How, Message, Route, Sink, State};

impl Cm {
    /// Ends an established connection, or agrees that the peer ends it. In the first case
    /// [`Event::Disconnected`] follows; in both, [`Event::TimewaitExit`]. The QP should be in ERR
    /// before, so that it sends no more.
    ///
    /// # Errors
    /// Where it is not established and the peer has not asked, or private data is too long: 220
    /// bytes when we ask, 224 when we agree.
    pub fn disconnect(
        &mut self,
        now: Duration,
        id: ConnId,
        private_data: &[u8],
        out: &mut dyn Sink,
    ) -> Result<(), Error> {
        let conn = self.conn(id)?;
        match conn.state {
            State::Established => {
                let private_data = data(Message::Dreq, private_data)?;
                self.ask_to_end(now, id, private_data, out);
            }
            State::DreqReceived => {
                let (private_data, tid) = (data(Message::Drep, private_data)?, conn.tid);
                let remote_comm_id = conn.keys.remote_id.unwrap_or_default();
                let drep = Drep { local_comm_id: id, remote_comm_id, private_data };
                let (mad, route) = (pack(&drep.into(), tid, 0), conn.route);
                self.send(&route, &mad, out);
                self.timewait(now, id, Some(mad));
            }
            _ => return Err(conn.wrong_state(id, "disconnect", "an established connection")),
        }
        Ok(())
    }

    /// Sends the DREQ of a connection that is established.
    pub(super) fn ask_to_end(
        &mut self,
        now: Duration,
        id: CommId,
        private_data: [u8; 220],
        out: &mut dyn Sink,
    ) {
        let tid = self.ids.tid(id);
        let Some(conn) = self.table.get_mut(id) else { return };
        let dreq = Dreq {
            local_comm_id: id,
            remote_comm_id: conn.keys.remote_id.unwrap_or_default(),
            remote_qpn: conn.keys.remote_qpn.unwrap_or_default(),
            private_data,
            ..Dreq::default()
        };
        let (mad, route) = (pack(&dreq.into(), tid, 0), conn.route);
        conn.last = Some(mad.clone());
        conn.retry.left = conn.retry.max;
        let until = now.saturating_add(conn.retry.interval);
        self.send(&route, &mad, out);
        self.to(id, State::DreqSent);
        self.table.at(id, Some(until));
    }

    /// A DREQ has come.
    pub(super) fn on_dreq(
        &mut self,
        now: Duration,
        route: &Route,
        header: &MadHeader,
        dreq: &Dreq,
        out: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let id = dreq.remote_comm_id;
        if self.table.get(id).is_none_or(|conn| conn.state == State::Refused) {
            // It has ended here already: the peer need not wait.
            self.drep(route, header, dreq, out);
            return Err(Drop::UnknownId);
        }
        self.find(route, id, dreq.local_comm_id)?;
        let Some(conn) = self.table.get_mut(id) else { return Err(Drop::UnknownId) };
        if conn.keys.local_qpn != Some(dreq.remote_qpn) {
            return Err(Drop::WrongQpn);
        }
        match conn.state {
            // What is sent when the peer has the connection: its RTU is lost or late.
            State::RepSent => {
                self.established(id, How::Dreq, &[0; 224]);
                self.asked_to_end(id, header, dreq);
            }
            State::Established => self.asked_to_end(id, header, dreq),
            State::DreqSent => {
                self.drep(route, header, dreq, out);
                self.timewait(now, id, None);
                self.events.push_back(Event::Disconnected { id, how: Closed::Both });
            }
            State::Timewait => {
                if conn.last.is_some() {
                    self.answer_again(id, out);
                } else {
                    self.drep(route, header, dreq, out);
                }
                return Err(Drop::Duplicate);
            }
            State::DreqReceived => return Err(Drop::Duplicate),
            State::ReqSent | State::ReqReceived | State::RepReceived | State::Refused => {
                return Err(Drop::WrongState);
            }
        }
        Ok(())
    }

    /// The owner has to agree that a connection ends.
    fn asked_to_end(&mut self, id: CommId, header: &MadHeader, dreq: &Dreq) {
        if let Some(conn) = self.table.get_mut(id) {
            (conn.tid, conn.last) = (header.transaction_id, None);
        }
        self.to(id, State::DreqReceived);
        let private_data = dreq.private_data.into();
        self.events.push_back(Event::DisconnectRequest { id, private_data });
    }

    /// Agrees to a DREQ without the owner.
    fn drep(&mut self, route: &Route, header: &MadHeader, dreq: &Dreq, out: &mut dyn Sink) {
        let (local_comm_id, remote_comm_id) = (dreq.remote_comm_id, dreq.local_comm_id);
        let drep = Drep { local_comm_id, remote_comm_id, ..Drep::default() };
        self.answer(route, header, drep, out);
    }

    /// A DREP has come.
    pub(super) fn on_drep(
        &mut self,
        now: Duration,
        route: &Route,
        drep: &Drep,
    ) -> Result<(), Drop> {
        let id = self.find(route, drep.remote_comm_id, drep.local_comm_id)?;
        match self.table.get(id).map(|conn| conn.state) {
            Some(State::DreqSent) => {
                self.timewait(now, id, None);
                self.events.push_back(Event::Disconnected { id, how: Closed::Agreed });
                Ok(())
            }
            Some(State::Timewait) => Err(Drop::Duplicate),
            _ => Err(Drop::WrongState),
        }
    }

    /// The owner wants to hear no more of a connection, whatever its state: says so to the peer as
    /// fits. Events may still come; an [`Event::TimewaitExit`] tells that the QPN is free if
    /// [`Self::state`] is not `None` now.
    ///
    /// # Errors
    /// Where there is no such connection.
    pub fn abandon(&mut self, now: Duration, id: ConnId, out: &mut dyn Sink) -> Result<(), Error> {
        let state = self.conn(id)?.state;
        match state {
            State::ReqSent => {
                self.give_up(id, out);
                self.end(id);
            }
            State::ReqReceived | State::RepReceived | State::RepSent => {
                self.refuse(now, id, RejReason::ConsumerDefined, &[], &[], out);
            }
            State::Established | State::DreqReceived => self.disconnect(now, id, &[], out)?,
            State::DreqSent | State::Timewait | State::Refused => {}
        }
        Ok(())
    }

    /// The QP of a connection that has ended, or the connection of a QP.
    #[must_use]
    pub fn connection_of(&self, qpn: Qpn) -> Option<ConnId> {
        self.table.with_local_qpn(qpn)
    }
}
