//! How MADs come and go.

use std::net::IpAddr;

use urxe_wire::cm::CmMessage;
use urxe_wire::{MAD_LEN, MadHeader, Qpn};

/// A whole MAD, header included.
pub type Mad = [u8; MAD_LEN];

/// Between which addresses a MAD goes, from our side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route {
    /// Our address: a MAD that came had it as its destination.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// The QP of the peer that sent it or that it is for; QP1 if nothing else is known.
    pub remote_qpn: Qpn,
}

impl Route {
    /// From `local` to QP1 of `remote`.
    #[must_use]
    pub const fn new(local: IpAddr, remote: IpAddr) -> Self {
        Self { local, remote, remote_qpn: Qpn::GSI }
    }

    /// Whether both are between the same two addresses.
    pub(crate) fn same_ends(&self, other: &Self) -> bool {
        self.local == other.local && self.remote == other.remote
    }
}

/// Takes what a [`crate::Cm`] sends: a UD SEND from QP1 with Q_Key 0x80010000.
pub trait Sink {
    /// Sends one MAD. It may be lost: what needs an answer is sent again.
    fn mad(&mut self, route: &Route, mad: &Mad);
}

impl<F: FnMut(&Route, &Mad)> Sink for F {
    fn mad(&mut self, route: &Route, mad: &Mad) {
        self(route, mad);
    }
}

/// The bytes of `message`; the ECE options of REQ and REP go in the attribute modifier.
pub(crate) fn pack(message: &CmMessage, transaction_id: u64, attribute_modifier: u32) -> Box<Mad> {
    let header = MadHeader { attribute_modifier, ..message.header(transaction_id) };
    let mut mad = Box::new([0; MAD_LEN]);
    message.emit(&header, &mut mad[..]).expect("256 bytes hold every message");
    mad
}
