//! Faults that name their packet: QP, opcode, PSN, and which time it is seen.

use std::time::Duration;

use urxe_wire::{Bth, Opcode, Psn, Qpn, Repr};

use crate::frame;
use crate::link::Orders;

/// What a packet is known by on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Destination QP.
    pub qpn: u32,
    /// Opcode.
    pub opcode: u8,
    /// PSN.
    pub psn: u32,
}

impl Key {
    /// The key of a frame this fabric built.
    #[must_use]
    pub fn of(packet: &[u8]) -> Self {
        match Bth::parse(frame::transport(packet)) {
            Ok((bth, _)) => {
                Self { qpn: bth.dest_qp.value(), opcode: bth.opcode.0, psn: bth.psn.value() }
            }
            Err(_) => Self { qpn: 0, opcode: 0xff, psn: 0 },
        }
    }
}

/// What is done to the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It is lost.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// It arrives so much later, behind those after it.
    Delay(Duration),
    /// It arrives with bits flipped.
    Corrupt,
}

/// A fault and the packets it is for. What is `None` fits all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Destination QP.
    pub qpn: Option<Qpn>,
    /// Opcode.
    pub opcode: Option<Opcode>,
    /// PSN.
    pub psn: Option<Psn>,
    /// Which time a packet of this QP, opcode and PSN is sent, from 1.
    pub nth: Option<u32>,
    /// What is done.
    pub kind: FaultKind,
}

impl Fault {
    /// A fault for all packets.
    #[must_use]
    pub const fn all(kind: FaultKind) -> Self {
        Self { qpn: None, opcode: None, psn: None, nth: None, kind }
    }

    fn fits(&self, key: Key, nth: u32) -> bool {
        self.qpn.is_none_or(|q| q.value() == key.qpn)
            && self.opcode.is_none_or(|o| o.0 == key.opcode)
            && self.psn.is_none_or(|p| p.value() == key.psn)
            && self.nth.is_none_or(|n| n == nth)
    }
}

/// What the faults that fit say together.
pub(crate) fn orders(faults: &[Fault], key: Key, nth: u32) -> Orders {
    let mut orders = Orders::default();
    for fault in faults.iter().filter(|f| f.fits(key, nth)) {
        match fault.kind {
            FaultKind::Drop => orders.drop = true,
            FaultKind::Duplicate => orders.duplicate = true,
            FaultKind::Delay(hold) => orders.hold = Some(hold),
            FaultKind::Corrupt => orders.corrupt = true,
        }
    }
    orders
}
