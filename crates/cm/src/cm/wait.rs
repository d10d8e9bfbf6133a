//! Time: answers that are late, and those that say they will be.

use std::time::Duration;

use urxe_wire::cm::{CmTimeout, CommId, Mra, MraMessage};

use super::{Cm, data};
use crate::mad::pack;
use crate::{Closed, ConnId, Count, Drop, Error, Event, Message, Route, Sink, State};

impl Cm {
    /// Does what is due at `now`.
    pub fn expire(&mut self, now: Duration, out: &mut dyn Sink) {
        while let Some(id) = self.table.expired(now) {
            self.expire_one(now, id, out);
        }
        while let Some((id, sidr)) = self.sidrs.expired(now) {
            self.expire_sidr(now, id, sidr, out);
        }
    }

    fn expire_one(&mut self, now: Duration, id: CommId, out: &mut dyn Sink) {
        let Some(conn) = self.table.get_mut(id) else { return };
        match conn.state {
            State::ReqSent | State::RepSent | State::DreqSent if conn.retry.left > 0 => {
                conn.retry.left -= 1;
                conn.told_to_wait = false;
                let (route, mad) = (conn.route, conn.last.clone());
                let until = now.saturating_add(conn.retry.interval);
                self.table.at(id, Some(until));
                if let Some(mad) = mad {
                    self.counters.add(Count::Retried);
                    self.send(&route, &mad, out);
                }
            }
            State::ReqSent => {
                self.give_up(id, out);
                self.end(id);
                self.unreachable(id, Message::Req, false);
            }
            State::RepSent => {
                // The peer may have it established: its RTUs may be what is lost.
                self.give_up(id, out);
                let timewait = self.timewait(now, id, None);
                self.unreachable(id, Message::Rep, timewait);
            }
            State::DreqSent => {
                self.timewait(now, id, None);
                self.counters.add(Count::DisconnectUnanswered);
                self.events.push_back(Event::Disconnected { id, how: Closed::Unanswered });
            }
            State::Timewait => {
                let qpn = conn.keys.local_qpn;
                self.end(id);
                if let Some(qpn) = qpn {
                    self.events.push_back(Event::TimewaitExit { id, qpn });
                }
            }
            State::Refused => self.end(id),
            State::ReqReceived | State::RepReceived | State::Established | State::DreqReceived => {}
        }
    }

    fn unreachable(&mut self, id: CommId, message: Message, timewait: bool) {
        self.counters.add(Count::Unreachable);
        self.events.push_back(Event::Unreachable { id, message, timewait });
    }

    /// Tells the peer that the answer to its REQ or REP will take up to `service_timeout` from
    /// now; the same goes to it whenever it asks again.
    ///
    /// # Errors
    /// Where no REQ or REP waits for an answer, or private data is longer than 222 bytes.
    pub fn mra(
        &mut self,
        id: ConnId,
        service_timeout: CmTimeout,
        private_data: &[u8],
        out: &mut dyn Sink,
    ) -> Result<(), Error> {
        let private_data = data(Message::Mra, private_data)?;
        let conn = self.conn(id)?;
        let message = match conn.state {
            State::ReqReceived => MraMessage::Req,
            State::RepReceived => MraMessage::Rep,
            _ => return Err(conn.wrong_state(id, "mra", "a REQ or REP that was not answered")),
        };
        let mra = self.mra_of(id, message, service_timeout);
        let mra = Mra { private_data, ..mra };
        self.send_mra(id, mra, out);
        Ok(())
    }

    /// The peer asks again: the MRA it had, or one that the owner did not ask for.
    pub(super) fn ask_to_wait(&mut self, id: CommId, message: MraMessage, out: &mut dyn Sink) {
        let Some(conn) = self.table.get(id) else { return };
        if conn.told_to_wait {
            self.answer_again(id, out);
        } else {
            let mra = self.mra_of(id, message, self.config.mra_timeout);
            self.counters.add(Count::AnsweredAgain);
            self.send_mra(id, mra, out);
        }
    }

    fn mra_of(&self, id: CommId, message: MraMessage, service_timeout: CmTimeout) -> Mra {
        let remote_comm_id = self.table.get(id).and_then(|conn| conn.keys.remote_id);
        let remote_comm_id = remote_comm_id.unwrap_or_default();
        Mra { local_comm_id: id, remote_comm_id, message, service_timeout, ..Mra::default() }
    }

    fn send_mra(&mut self, id: CommId, mra: Mra, out: &mut dyn Sink) {
        let Some(conn) = self.table.get_mut(id) else { return };
        let (mad, route) = (pack(&mra.into(), conn.tid, 0), conn.route);
        conn.last = Some(mad.clone());
        conn.told_to_wait = true;
        conn.patience = conn.patience.max(mra.service_timeout.duration());
        self.send(&route, &mad, out);
    }

    /// An MRA has come: the answer to what was sent takes longer. Once for each time it was sent.
    pub(super) fn on_mra(&mut self, now: Duration, route: &Route, mra: &Mra) -> Result<(), Drop> {
        let id = mra.remote_comm_id;
        let conn = self.table.get(id).ok_or(Drop::UnknownId)?;
        if !conn.route.same_ends(route) {
            return Err(Drop::WrongAddress);
        }
        match (conn.state, mra.message) {
            (State::ReqSent, MraMessage::Req) => {}
            (State::RepSent, MraMessage::Rep) => {
                if conn.keys.remote_id != Some(mra.local_comm_id) {
                    return Err(Drop::WrongPeer);
                }
            }
            _ => return Err(Drop::WrongState),
        }
        if conn.told_to_wait {
            return Err(Drop::Duplicate);
        }
        let asked = mra.service_timeout.min(self.config.longest_mra).duration();
        let until = now.saturating_add(asked).saturating_add(conn.timewait());
        let until = conn.keys.deadline.map_or(until, |deadline| deadline.max(until));
        if let Some(conn) = self.table.get_mut(id) {
            conn.told_to_wait = true;
        }
        self.table.at(id, Some(until));
        self.counters.add(Count::ToldToWait);
        Ok(())
    }
}
