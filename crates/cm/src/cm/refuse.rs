//! REJ: what refuses a connection, or gives one up.

use std::time::Duration;

use urxe_wire::cm::{CommId, Rej, RejMessage, RejReason};

use super::{Cm, data, field};
use crate::mad::pack;
use crate::{Closed, ConnId, Count, Drop, Error, Event, Message, Route, Sink, State};

/// Puts additional information into a REJ; what does not fit is left out.
pub(super) fn put_info(rej: &mut Rej, info: &[u8]) {
    let len = info.len().min(rej.info.len());
    rej.info[..len].copy_from_slice(&info[..len]);
    rej.info_length = u8::try_from(len).unwrap_or_default();
}

impl Cm {
    /// Refuses a request, or a REP that a request of ours got; or takes an acceptance back that
    /// the peer has not answered yet. `info` says for some reasons what would have been right
    /// (IBA 12.6.7.2); [`RejReason::ConsumerDefined`] is the one for programs.
    ///
    /// # Errors
    /// Where there is nothing to refuse, or private data (148 bytes) or information (72 bytes) is
    /// too long.
    pub fn reject(
        &mut self,
        now: Duration,
        id: ConnId,
        reason: RejReason,
        info: &[u8],
        private_data: &[u8],
        out: &mut dyn Sink,
    ) -> Result<(), Error> {
        data::<148>(Message::Rej, private_data)?;
        field::<72>(Message::Rej, "additional information", info)?;
        let conn = self.conn(id)?;
        match conn.state {
            State::ReqReceived | State::RepReceived | State::RepSent => {
                self.refuse(now, id, reason, info, private_data, out);
                Ok(())
            }
            _ => Err(conn.wrong_state(id, "reject", "a REQ or REP that was not answered")),
        }
    }

    /// Sends the REJ that ends an attempt, and keeps it for duplicates of what it answers.
    pub(super) fn refuse(
        &mut self,
        now: Duration,
        id: CommId,
        reason: RejReason,
        info: &[u8],
        private_data: &[u8],
        out: &mut dyn Sink,
    ) {
        let Some(conn) = self.table.get(id) else { return };
        let mut rej = conn.rej(id, reason);
        rej.private_data = data(Message::Rej, private_data).unwrap_or([0; 148]);
        put_info(&mut rej, info);
        let (mad, route, state) = (pack(&rej.into(), conn.tid, 0), conn.route, conn.state);
        let until = now.saturating_add(2 * conn.patience);
        self.counters.add(Count::Refused);
        self.send(&route, &mad, out);
        if state == State::RepSent {
            // The peer may have it established, and packets under way.
            self.timewait(now, id, None);
        } else if self.table.refused() >= self.config.limits.remembered {
            self.end(id);
        } else {
            self.keep(id, Some(mad));
            self.to(id, State::Refused);
            self.table.rekey(id, |keys| {
                (keys.local_qpn, keys.remote_qpn, keys.deadline) = (None, None, Some(until));
            });
        }
    }

    /// Refuses the REP that connection `id` got: its QP is in connection `old`, which is stale.
    pub(super) fn refuse_stale(
        &mut self,
        now: Duration,
        id: CommId,
        old: CommId,
        out: &mut dyn Sink,
    ) {
        let reason = RejReason::StaleConnection;
        self.refuse(now, id, reason, &[], &[], out);
        self.rejected(id, reason, false);
        self.tear_down(now, old, out);
    }

    /// Ends a connection that the peer no longer has: a new one with its QP shows that.
    pub(super) fn tear_down(&mut self, now: Duration, id: CommId, out: &mut dyn Sink) {
        match self.table.get(id).map(|conn| conn.state) {
            Some(State::Established) => self.ask_to_end(now, id, [0; 220], out),
            Some(State::ReqReceived | State::RepReceived | State::RepSent) => {
                let timewait = self.timewait(now, id, None);
                self.rejected(id, RejReason::StaleConnection, timewait);
            }
            _ => {}
        }
    }

    fn rejected(&mut self, id: CommId, reason: RejReason, timewait: bool) {
        let (info, private_data) = (Box::default(), [0; 148].into());
        self.events.push_back(Event::Rejected { id, reason, info, private_data, timewait });
    }

    /// Tells the peer that what we have sent found no answer (IBA 12.6.7.2, reason 4): with our
    /// device's EUI-64, for the peer may know no id of ours but its sender.
    pub(super) fn give_up(&mut self, id: CommId, out: &mut dyn Sink) {
        let Some(conn) = self.table.get(id) else { return };
        let message = match conn.state {
            State::ReqSent => RejMessage::Req,
            State::RepSent => RejMessage::Rep,
            _ => RejMessage::None,
        };
        let mut rej = Rej { message, ..conn.rej(id, RejReason::Timeout) };
        put_info(&mut rej, &self.config.ca_guid.to_be_bytes());
        let (mad, route) = (pack(&rej.into(), conn.tid, 0), conn.route);
        self.counters.add(Count::Refused);
        self.send(&route, &mad, out);
    }

    /// A REJ has come.
    pub(super) fn on_rej(&mut self, now: Duration, route: &Route, rej: &Rej) -> Result<(), Drop> {
        self.counters.rejected(rej.reason);
        // A peer that gave up may never have learnt our id.
        let id = match rej.remote_comm_id {
            CommId(0) => self.table.with_remote_id(route.remote, rej.local_comm_id),
            id => Some(id),
        };
        let conn = id.and_then(|id| Some((id, self.table.get(id)?)));
        let Some((id, conn)) = conn else { return Err(Drop::UnknownId) };
        if !conn.route.same_ends(route) {
            return Err(Drop::WrongAddress);
        }
        if conn.keys.remote_id.is_some_and(|remote| remote != rej.local_comm_id) {
            return Err(Drop::WrongPeer);
        }
        let reason = rej.reason;
        let timewait = match conn.state {
            State::ReqSent if reason != RejReason::StaleConnection => {
                self.end(id);
                false
            }
            State::ReqSent | State::ReqReceived | State::RepReceived | State::RepSent => {
                self.timewait(now, id, None)
            }
            State::Established | State::DreqSent => {
                self.timewait(now, id, None);
                let how = Closed::Rejected(reason);
                self.events.push_back(Event::Disconnected { id, how });
                return Ok(());
            }
            State::DreqReceived | State::Timewait | State::Refused => {
                return Err(Drop::WrongState);
            }
        };
        let info = rej.additional_info().unwrap_or_default().into();
        let private_data = rej.private_data.into();
        self.events.push_back(Event::Rejected { id, reason, info, private_data, timewait });
        Ok(())
    }
}
