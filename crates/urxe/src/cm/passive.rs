//! The side that is asked; and what both sides do until the end.

use std::net::SocketAddr;

use urxe_cm::{Accept, Listen, SidrAnswer};
use urxe_net::PortError;
use urxe_wire::cm::{CmTimeout, RejReason, ServiceId, SidrStatus};

use super::dispatch::SERVICE_QKEY;
use super::manager::Manager;
use super::state::{Entry, Role, State};
use super::{ConnParam, Id, IdNumber};
use crate::Error;
use crate::device::Device;

/// Requests that may wait where a program does not say how many.
const BACKLOG: usize = 1024;
/// Ports that are tried where any will do: others may be of processes that share the address.
const TRIES: usize = 64;

impl Id {
    /// Takes requests to its port: each comes as a [`super::What::ConnectRequest`]. At most
    /// `backlog` of them wait for the program's answer; more are dropped, and asked again by their
    /// senders. 0 takes 1024. An id that is not bound is bound to a free port.
    ///
    /// # Errors
    /// Where another id, or a process that shares the address, listens to the port; where it is at
    /// something already.
    pub fn listen(&self, backlog: usize) -> Result<(), Error> {
        let device = self.handle().live()?;
        let own = device.address();
        let manager = device.manager()?;
        let chosen = match self.local_addr() {
            Some(_) => false,
            None => {
                self.bind(SocketAddr::new(own, 0))?;
                true
            }
        };
        let mut tries = if chosen { TRIES } else { 1 };
        loop {
            tries -= 1;
            match manager.listen(device, self.number(), backlog) {
                Err(Error::Port(PortError::ServiceTaken { .. })) if tries > 0 => {
                    self.with(|state, _, _| state.bind_another(self.number(), own))?;
                }
                done => return done,
            }
        }
    }

    /// Accepts a request with a QP, which should be in RTR or RTS. [`super::What::Established`]
    /// follows. Of UD it tells the QP, and nothing follows.
    ///
    /// # Errors
    /// Where there is no request that waits, or private data is too long.
    pub fn accept(&self, param: &ConnParam<'_>) -> Result<(), Error> {
        self.with(|state, now, out| {
            let entry = state.entry(self.number())?;
            match entry.role {
                Role::Conn(conn) => {
                    let accept = Accept {
                        srq: param.srq,
                        responder_resources: param.responder_resources,
                        initiator_depth: param.initiator_depth,
                        flow_control: param.flow_control,
                        rnr_retry_count: param.rnr_retry_count,
                        ece: param.ece,
                        private_data: param.private_data,
                        ..Accept::new(param.qpn, entry.psn)
                    };
                    state.cm.accept(now, conn, &accept, out)?;
                }
                Role::Question(question) => {
                    let answer = SidrAnswer {
                        qkey: param.qkey.unwrap_or(SERVICE_QKEY),
                        ece: param.ece,
                        private_data: param.private_data,
                        ..SidrAnswer::qp(param.qpn)
                    };
                    state.cm.sidr_answer(now, question, &answer, out)?;
                    state.over(question);
                }
                _ => return Err(wrong("accept", "a request that waits for an answer")),
            }
            state.entry_mut(self.number())?.qpn = Some(param.qpn);
            Ok(())
        })
    }

    /// Our QP is in RTS: the peer that accepted is told so, and the connection stands.
    ///
    /// # Errors
    /// Where the peer has not accepted, or private data is longer than 224 bytes.
    pub fn establish(&self, private_data: &[u8]) -> Result<(), Error> {
        self.with(|state, _, out| match state.entry(self.number())?.role {
            Role::Conn(conn) => Ok(state.cm.establish(conn, private_data, out)?),
            _ => Err(wrong("establish", "a connection that the peer has accepted")),
        })
    }

    /// Data has come to the QP: the connection that we accepted stands, though its RTU is late or
    /// lost. Says whether that was news. (A QP in RTR tells of its first packet by itself.)
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn notify_established(&self) -> Result<bool, Error> {
        self.with(|state, _, _| {
            let qpn = state.entry(self.number())?.qpn;
            Ok(qpn.is_some_and(|qpn| state.cm.notify_established(qpn)))
        })
    }

    /// Refuses a request, or an acceptance; programs that have no better reason give
    /// [`RejReason::ConsumerDefined`]. A question of service is answered with "rejected".
    ///
    /// # Errors
    /// Where there is nothing to refuse, or private data is longer than 148 bytes (UD: 136).
    pub fn reject(&self, reason: RejReason, private_data: &[u8]) -> Result<(), Error> {
        self.with(|state, now, out| match state.entry(self.number())?.role {
            Role::Conn(conn) => {
                state.cm.reject(now, conn, reason, &[], private_data, out)?;
                if state.cm.state(conn).is_none_or(|state| state == urxe_cm::State::Refused) {
                    state.over(conn);
                }
                Ok(())
            }
            Role::Question(question) => {
                let no = SidrAnswer { private_data, ..SidrAnswer::no(SidrStatus::Rejected) };
                state.cm.sidr_answer(now, question, &no, out)?;
                state.over(question);
                Ok(())
            }
            _ => Err(wrong("reject", "a request or acceptance that waits for an answer")),
        })
    }

    /// Tells the peer that the answer to its request or acceptance takes up to `time` from now.
    ///
    /// # Errors
    /// Where it waits for no answer, or private data is longer than 222 bytes.
    pub fn mra(&self, time: CmTimeout, private_data: &[u8]) -> Result<(), Error> {
        self.with(|state, _, out| match state.entry(self.number())?.role {
            Role::Conn(conn) => Ok(state.cm.mra(conn, time, private_data, out)?),
            _ => Err(wrong("mra", "a request or acceptance that waits for an answer")),
        })
    }

    /// Ends the connection, or agrees that the peer ends it. In the first case
    /// [`super::What::Disconnected`] follows; in both, [`super::What::TimewaitExit`]. The QP should
    /// be in ERR.
    ///
    /// # Errors
    /// Where there is no established connection, or private data is longer than 220 bytes (224 to
    /// agree).
    pub fn disconnect(&self, private_data: &[u8]) -> Result<(), Error> {
        self.with(|state, now, out| match state.entry(self.number())?.role {
            Role::Conn(conn) => Ok(state.cm.disconnect(now, conn, private_data, out)?),
            _ => Err(wrong("disconnect", "an established connection")),
        })
    }
}

const fn wrong(call: &'static str, wanted: &'static str) -> Error {
    Error::IdState { call, wanted }
}

impl State {
    /// The port it has is a process's that shares the address: another one.
    fn bind_another(&mut self, id: IdNumber, own: std::net::IpAddr) -> Result<(), Error> {
        let entry = self.entry_mut(id)?;
        let (space, old) = (entry.space, entry.local.take());
        self.bind(id, SocketAddr::new(own, 0))?;
        if let Some(old) = old {
            self.ports.free(space, old.port());
        }
        Ok(())
    }
}

impl Manager {
    fn listen(&self, device: &Device, id: IdNumber, backlog: usize) -> Result<(), Error> {
        let _one = self.services.lock();
        let service_id = self.with(device, |state, _, _| {
            let entry = state.entry(id)?;
            let (Role::Idle, Some(local)) = (entry.role, entry.local) else {
                return Err(wrong("listen", "an idle id with an address"));
            };
            let backlog = if backlog == 0 { BACKLOG } else { backlog };
            let service_id = ServiceId::new(entry.space, local.port());
            let address = Some(local.ip()).filter(|ip| !ip.is_unspecified());
            let listen = Listen { service_id, address, backlog, ip: true };
            let listener = state.cm.listen(&listen)?;
            state.begin(id, Role::Listener(listener, service_id));
            Ok(service_id)
        })?;
        // Where the address is shared, its broker hands MADs on by service.
        let served = device.port.serve(service_id.0, true);
        if served.is_err() {
            self.forget_listener(device, id);
        }
        Ok(served?)
    }

    /// Where the id is a listener, it is none any more.
    pub(super) fn stop_listening(&self, device: &Device, id: IdNumber) {
        let role = |state: &State| state.ids.get(&id).map(|entry| entry.role);
        if !matches!(self.look(role), Some(Role::Listener(..))) {
            return;
        }
        let _one = self.services.lock();
        if let Some(service) = self.forget_listener(device, id)
            && let Err(error) = device.port.serve(service.0, false)
        {
            tracing::warn!(%error, "a service could not be given back to the broker");
        }
    }

    fn forget_listener(&self, device: &Device, id: IdNumber) -> Option<ServiceId> {
        self.with(device, |state, now, out| {
            let entry = state.ids.get_mut(&id)?;
            let Role::Listener(listener, service) = entry.role else { return None };
            entry.role = Role::Idle;
            state.by_listener.remove(&listener);
            // It exists: nothing else takes it away.
            let _ = state.cm.unlisten(now, listener, out);
            // One of any address and one of ours may serve the same.
            let same = |entry: &Entry| matches!(entry.role, Role::Listener(_, s) if s == service);
            Some(service).filter(|_| !state.ids.values().any(same))
        })
    }
}
