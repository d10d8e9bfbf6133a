//! Whose a MAD is. Allocates nothing: the broker may not.

use std::net::IpAddr;

use urxe_wire::cm::CmMessage;
use urxe_wire::{Bth, Deth, ICRC_LEN, MAD_LEN, Opcode, Qpn, Repr};

const UD_SEND_ONLY: Opcode = Opcode(0x64);

/// Whom a packet to QP1 is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// Whoever serves this service; it opens an exchange.
    Service(Opening),
    /// The slot that the receiver's id of the exchange starts with: its upper six bits.
    Slot(u8),
    /// It is no CM message.
    Nobody,
}

/// What tells the first message of an exchange from all others, and is the same when it is sent
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) from: IpAddr,
    pub(super) service: u64,
    id: u32,
    transaction: u64,
}

impl To {
    /// Reads a packet, BTH to ICRC.
    pub(super) fn of(packet: &[u8], from: IpAddr) -> Self {
        Self::read(packet, from).unwrap_or(Self::Nobody)
    }

    fn read(packet: &[u8], from: IpAddr) -> Option<Self> {
        let (bth, rest) = Bth::parse(packet).ok()?;
        if bth.dest_qp != Qpn::GSI || bth.opcode != UD_SEND_ONLY {
            return None;
        }
        let (_, rest) = Deth::parse(rest).ok()?;
        let (mad, _) = rest.split_at_checked(MAD_LEN)?;
        if rest.len() != MAD_LEN + ICRC_LEN {
            return None;
        }
        let (header, message) = CmMessage::parse(mad).ok()?;
        let opening = |service, id| {
            let transaction = header.transaction_id;
            Self::Service(Opening { from, service, id, transaction })
        };
        let slot = |id: u32| Self::Slot(u8::try_from(id >> 26).unwrap_or(0));
        Some(match &message {
            CmMessage::Req(req) => opening(req.service_id.0, req.local_comm_id.0),
            CmMessage::SidrReq(req) => opening(req.service_id.0, req.request_id.0),
            CmMessage::SidrRep(rep) => slot(rep.request_id.0),
            other => slot(other.remote_comm_id()?.0),
        })
    }
}

/// Openings that may come again, each with whom it went to.
const RECENT: usize = 128;
/// Services at once.
const SERVICES: usize = 1024;

/// Who serves what.
pub(super) struct Register {
    services: [Option<(u64, u8)>; SERVICES],
    recent: [Option<(Opening, u8)>; RECENT],
    next: usize,
}

impl Register {
    pub(super) const fn new() -> Self {
        Self { services: [None; SERVICES], recent: [None; RECENT], next: 0 }
    }

    /// Says whether the slot has the service now.
    pub(super) fn serve(&mut self, service: u64, slot: u8) -> bool {
        if let Some((_, holder)) = self.services.iter().flatten().find(|(s, _)| *s == service) {
            return *holder == slot;
        }
        let free = self.services.iter_mut().find(|s| s.is_none());
        free.map(|place| *place = Some((service, slot))).is_some()
    }

    pub(super) fn unserve(&mut self, service: u64, slot: u8) {
        self.services.iter_mut().filter(|s| **s == Some((service, slot))).for_each(|s| *s = None);
    }

    /// The slot is somebody else's from now on.
    pub(super) fn forget(&mut self, slot: u8) {
        let services = self.services.iter_mut();
        services.filter(|s| s.is_some_and(|(_, holder)| holder == slot)).for_each(|s| *s = None);
        let recent = self.recent.iter_mut();
        recent.filter(|r| r.is_some_and(|(_, holder)| holder == slot)).for_each(|r| *r = None);
    }

    /// Whom an opening is for. One that was seen goes where it went, though its service is no
    /// longer served. If nobody serves it, it is for anyone who serves anything, to reject it.
    pub(super) fn find(&mut self, opening: &Opening) -> Option<u8> {
        if let Some((_, slot)) = self.recent.iter().flatten().find(|(o, _)| o == opening) {
            return Some(*slot);
        }
        let all = || self.services.iter().flatten();
        let one = all().find(|(service, _)| *service == opening.service).or_else(|| all().next());
        let (_, slot) = *one?;
        self.recent[self.next] = Some((*opening, slot));
        self.next = (self.next + 1) % RECENT;
        Some(slot)
    }
}
