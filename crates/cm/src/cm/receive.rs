//! Each message to its place.

use std::time::Duration;

use urxe_wire::cm::{
    Apr, AprStatus, CmAttribute, CmMessage, CommId, Lap, Rej, RejMessage, RejReason, SidrRep,
    SidrStatus,
};
use urxe_wire::{MAD_LEN, MadHeader, ManagementClass, Method, Repr};

use super::Cm;
use crate::{Count, Drop, Route, Sink, State};

/// The class version that is spoken here.
const CLASS_VERSION: u8 = 2;

impl Cm {
    /// Takes the payload of a UD SEND to QP1, which came along `route`. Whatever the bytes are,
    /// they are answered, acted upon or dropped with a reason that is counted.
    pub fn receive(&mut self, now: Duration, route: &Route, mad: &[u8], out: &mut dyn Sink) {
        let (header, message) = match CmMessage::parse(mad) {
            Ok(parsed) => parsed,
            Err(error) => {
                tracing::debug!(%error, from = %route.remote, "no CM message");
                return self.unparsed(route, mad, out);
            }
        };
        self.counters.came(message.attribute());
        let done = match &message {
            CmMessage::Req(req) => self.on_req(now, route, &header, req, out),
            CmMessage::Mra(mra) => self.on_mra(now, route, mra),
            CmMessage::Rej(rej) => self.on_rej(now, route, rej),
            CmMessage::Rep(rep) => self.on_rep(now, route, &header, rep, out),
            CmMessage::Rtu(rtu) => self.on_rtu(route, rtu),
            CmMessage::Dreq(dreq) => self.on_dreq(now, route, &header, dreq, out),
            CmMessage::Drep(drep) => self.on_drep(now, route, drep),
            CmMessage::SidrReq(req) => self.on_sidr_req(route, &header, req, out),
            CmMessage::SidrRep(rep) => self.on_sidr_rep(route, &header, rep),
            CmMessage::Lap(lap) => self.on_lap(route, &header, lap, out),
            // We never ask for one.
            CmMessage::Apr(_) => Err(Drop::AlternatePath),
        };
        if let Err(why) = done {
            self.dropped(why, route, message.name());
        }
    }

    /// What is no message of version 2: a request of another version is told which is spoken here
    /// (IBA 12.6.7.2, reason 31).
    fn unparsed(&mut self, route: &Route, mad: &[u8], out: &mut dyn Sink) {
        let other_version = |header: &MadHeader| {
            header.base_version == 1
                && header.class == ManagementClass::Communication
                && header.method == Method::Send
                && header.class_version != CLASS_VERSION
        };
        let parsed = MadHeader::parse(mad).ok().filter(|(header, _)| other_version(header));
        let Some((header, body)) = parsed.filter(|_| mad.len() == MAD_LEN) else {
            return self.dropped(Drop::Malformed, route, "MAD");
        };
        let [a, b, c, d] = [body[0], body[1], body[2], body[3]];
        let sender = CommId(u32::from_be_bytes([a, b, c, d]));
        match CmAttribute::from_code(header.attribute_id) {
            CmAttribute::Req => {
                let (message, reason) = (RejMessage::Req, RejReason::InvalidClassVersion);
                let mut rej = Rej { remote_comm_id: sender, message, reason, ..Rej::default() };
                super::refuse::put_info(&mut rej, &[CLASS_VERSION]);
                self.counters.add(Count::Refused);
                self.answer(route, &header, rej, out);
            }
            CmAttribute::SidrReq => {
                let status = SidrStatus::UnsupportedVersion;
                let rep = SidrRep { request_id: sender, status, ..SidrRep::default() };
                self.answer(route, &header, rep, out);
            }
            _ => {}
        }
        self.dropped(Drop::ClassVersion, route, "MAD");
    }

    /// Alternate paths are not supported; who asks for one is told so.
    fn on_lap(
        &mut self,
        route: &Route,
        header: &MadHeader,
        lap: &Lap,
        out: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let found = self.find(route, lap.remote_comm_id, lap.local_comm_id);
        let established = |id| self.state(id) == Some(State::Established);
        let status = match found {
            Ok(id) if established(id) => AprStatus::Unsupported,
            Ok(_) | Err(Drop::UnknownId) => AprStatus::InvalidCommId,
            Err(why) => return Err(why),
        };
        let (local_comm_id, remote_comm_id) = (lap.remote_comm_id, lap.local_comm_id);
        let apr = Apr { local_comm_id, remote_comm_id, status, ..Apr::default() };
        self.answer(route, header, apr, out);
        Err(Drop::AlternatePath)
    }
}
