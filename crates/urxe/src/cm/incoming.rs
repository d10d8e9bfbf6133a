//! A request that waits for its answer.

use std::net::SocketAddr;

use urxe_engine::{QpKind, QpState};
use urxe_wire::cm::{CmTimeout, RejReason};

use super::attr::{Upto, adopt};
use super::connection::failed;
use super::{Channel, ConnInfo, ConnParam, Connection, Id, Options, What};
use crate::{Error, Qp};

/// A peer asks for a connection, or for the QP of a service. Dropping it refuses.
#[derive(Debug)]
pub struct Incoming {
    pub(super) id: Id,
    pub(super) channel: Channel,
    pub(super) info: ConnInfo,
}

impl Incoming {
    /// Who asks; the port is 0 if the request does not say it.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.id.peer_addr()
    }

    /// What the peer says of itself, its private data among it.
    #[must_use]
    pub const fn info(&self) -> &ConnInfo {
        &self.info
    }

    /// Kind of the QP that goes with the peer's: RC, UC, `XrcTarget`; UD for a question of service.
    #[must_use]
    pub const fn kind(&self) -> QpKind {
        self.info.kind
    }

    /// Accepts with a QP in RESET or INIT, which is in RTS when this returns. (Receives that shall
    /// be there before the peer's first message are posted before, after [`Qp::init`].) Waits for
    /// the peer, or its first data.
    ///
    /// # Errors
    /// Where the QP is of another kind or device, or an option out of range: the peer is refused
    /// then. Where the peer does not answer, or has given up.
    pub fn accept(self, qp: Qp, options: &Options<'_>) -> Result<Connection, Error> {
        let Self { id, channel, info } = self;
        qp.goes_with(id.handle(), info.kind)?;
        let peer = id.peer_addr();
        adopt(&qp, &id, Upto::Rtr)?;
        id.agree()?;
        id.accept(&options.param(qp.qpn(), qp.has_srq()))?;
        loop {
            let Some(event) = channel.wait_event(None)? else { continue };
            match event.what {
                What::Established { .. } => break,
                other => failed(peer, other)?,
            }
        }
        if let Err(error) = adopt(&qp, &id, Upto::Rts)
            && qp.query()?.attr.qp_state != QpState::Err
        {
            return Err(error);
        }
        Ok(Connection::new(id, channel, qp, info))
    }

    /// Tells a QP to who asks for a service's: its number and its key, with up to 136 bytes.
    ///
    /// # Errors
    /// Where a connection is asked for, or the QP is no UD QP of this device.
    pub fn answer(self, qp: &Qp, private_data: &[u8]) -> Result<(), Error> {
        qp.goes_with(self.id.handle(), self.info.kind)?;
        let qkey = Some(qp.query()?.attr.qkey);
        self.id.accept(&ConnParam { qkey, private_data, ..ConnParam::new(qp.qpn()) })
    }

    /// Refuses, with up to 148 bytes for the peer's program.
    ///
    /// # Errors
    /// Where private data is too long, or the peer has given up already.
    pub fn reject(self, private_data: &[u8]) -> Result<(), Error> {
        self.id.reject(RejReason::ConsumerDefined, private_data)
    }

    /// Tells the peer that the answer takes up to `time` from now.
    ///
    /// # Errors
    /// Where the peer has given up already.
    pub fn wait_for_me(&self, time: CmTimeout) -> Result<(), Error> {
        self.id.mra(time, &[])
    }

    /// Its end as an [`Id`], with the channel of its events, for programs that go on step by step.
    #[must_use]
    pub fn into_parts(self) -> (Id, Channel, ConnInfo) {
        (self.id, self.channel, self.info)
    }
}
