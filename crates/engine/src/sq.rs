//! The send queue: WQEs from posted to completed, and which PSNs they hold.

use std::collections::VecDeque;
use std::sync::Arc;

use urxe_memory::{MAX_SGE, Sge};
use urxe_wire::{Psn, QKey, Qpn};

use crate::ah::Ah;
use crate::reason::Cause;
use crate::types::{WcOpcode, WcStatus};
use crate::wr::{PostError, SendFlags, SendOp, SendWr};

#[cfg(test)]
mod tests;

/// Where a send WQE is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Posted; no PSN is assigned.
    Posted,
    /// It holds PSNs; some of its packets have been sent.
    Started,
    /// Acknowledged, or done where nothing acknowledges.
    Done,
    /// It cannot be done, as [`Sq::failure`] says. Told when all before it are.
    Failed,
}

/// A send WQE.
#[derive(Debug)]
pub(crate) struct Wqe {
    pub(crate) wr_id: u64,
    pub(crate) op: SendOp,
    pub(crate) flags: SendFlags,
    /// Bytes of the message; for READs those that come back.
    pub(crate) length: u32,
    pub(crate) dest: Option<(Arc<Ah>, Qpn, QKey)>,
    pub(crate) remote_srqn: u32,
    pub(crate) stage: Stage,
    /// Its first PSN, once started.
    pub(crate) first_psn: Psn,
    /// How many PSNs it takes: request packets, for a READ those of the response.
    pub(crate) psns: u32,
    slot: u32,
    sge_count: u8,
    inline: bool,
}

impl Wqe {
    /// One past its last PSN.
    pub(crate) const fn end_psn(&self) -> Psn {
        self.first_psn.add(self.psns)
    }

    /// Whether the peer answers it with data of its own rather than an ACK alone.
    pub(crate) const fn awaits_response(&self) -> bool {
        matches!(
            self.op,
            SendOp::Read { .. }
                | SendOp::CompareSwap { .. }
                | SendOp::FetchAdd { .. }
                | SendOp::Flush { .. }
                | SendOp::AtomicWrite { .. }
        )
    }

    /// Whether it never leaves this NIC.
    pub(crate) const fn is_local(&self) -> bool {
        matches!(self.op, SendOp::LocalInvalidate { .. } | SendOp::BindMw { .. })
    }

    /// Whether it takes a receive WQE at the peer.
    pub(crate) const fn takes_recv_wqe(&self) -> bool {
        matches!(
            self.op,
            SendOp::Send { .. }
                | SendOp::SendInvalidate { .. }
                | SendOp::Write { imm: Some(_), .. }
        )
    }

    /// What its completion calls it.
    pub(crate) const fn wc_opcode(&self) -> WcOpcode {
        match self.op {
            SendOp::Send { .. } | SendOp::SendInvalidate { .. } => WcOpcode::Send,
            SendOp::Write { .. } => WcOpcode::RdmaWrite,
            SendOp::Read { .. } => WcOpcode::RdmaRead,
            SendOp::CompareSwap { .. } => WcOpcode::CompSwap,
            SendOp::FetchAdd { .. } => WcOpcode::FetchAdd,
            SendOp::Flush { .. } => WcOpcode::Flush,
            SendOp::AtomicWrite { .. } => WcOpcode::AtomicWrite,
            SendOp::LocalInvalidate { .. } => WcOpcode::LocalInv,
            SendOp::BindMw { .. } => WcOpcode::BindMw,
        }
    }
}

/// The local memory of a WQE.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Local<'a> {
    Sges(&'a [Sge]),
    Inline(&'a [u8]),
}

/// A QP's send queue. WQEs have indices that count up for ever.
///
/// It has room for [`FIRST_SLOTS`] WQEs, and as it fills up for twice as many until it has its
/// capacity; it never shrinks. So a queue costs what its program makes of it, and posting
/// allocates nothing but when more requests wait than ever before.
#[derive(Debug)]
pub(crate) struct Sq {
    ring: VecDeque<Wqe>,
    capacity: usize,
    max_sge: usize,
    max_inline: usize,
    /// WQEs that `sges` and `inline` have room for now.
    slots: usize,
    sges: Box<[Sge]>,
    inline: Box<[u8]>,
    first: u64,
    next_slot: usize,
    /// Why the WQE of this index cannot be done. One is enough: nothing behind it is sent, and
    /// what is behind it is flushed with it.
    failure: Option<(u64, WcStatus, Cause)>,
}

/// WQEs that a queue has room for as it is made.
pub(crate) const FIRST_SLOTS: usize = 4;

impl Sq {
    pub(crate) fn new(capacity: usize, max_sge: usize, max_inline: usize) -> Self {
        let (slots, max_sge) = (capacity.min(FIRST_SLOTS), max_sge.min(MAX_SGE));
        Self {
            ring: VecDeque::with_capacity(slots),
            capacity,
            max_sge,
            max_inline,
            slots,
            sges: vec![Sge::default(); slots * max_sge].into(),
            inline: vec![0; slots * max_inline].into(),
            first: 0,
            next_slot: 0,
            failure: None,
        }
    }

    /// Makes room for more WQEs than ever waited.
    fn grow(&mut self) {
        let slots = self.capacity.min(self.slots * 2);
        let (sge, inline) = (self.max_sge, self.max_inline);
        let mut sges = vec![Sge::default(); slots * sge];
        let mut bytes = vec![0; slots * inline];
        for (to, wqe) in (0..).zip(&mut self.ring) {
            let (from, at) = (wqe.slot as usize, to as usize);
            sges[at * sge..][..sge].copy_from_slice(&self.sges[from * sge..][..sge]);
            bytes[at * inline..][..inline].copy_from_slice(&self.inline[from * inline..][..inline]);
            wqe.slot = to;
        }
        self.ring.reserve_exact(slots - self.ring.len());
        self.next_slot = self.ring.len();
        self.slots = slots;
        self.sges = sges.into();
        self.inline = bytes.into();
    }

    /// Index of the oldest WQE.
    pub(crate) const fn first(&self) -> u64 {
        self.first
    }

    /// Index that the next WQE posted will get.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.ring.len() as u64
    }

    pub(crate) fn get(&self, index: u64) -> Option<&Wqe> {
        let at = index.checked_sub(self.first)?;
        self.ring.get(usize::try_from(at).ok()?)
    }

    pub(crate) fn get_mut(&mut self, index: u64) -> Option<&mut Wqe> {
        let at = index.checked_sub(self.first)?;
        self.ring.get_mut(usize::try_from(at).ok()?)
    }

    pub(crate) fn front(&self) -> Option<&Wqe> {
        self.ring.front()
    }

    pub(crate) fn pop(&mut self) -> Option<Wqe> {
        let wqe = self.ring.pop_front()?;
        self.first += 1;
        Some(wqe)
    }

    /// The WQE `index` cannot be done.
    pub(crate) fn fail(&mut self, index: u64, status: WcStatus, cause: Cause) {
        let Some(wqe) = self.get_mut(index) else { return };
        wqe.stage = Stage::Failed;
        let counts = |at: u64| self.first <= at && at < index;
        if self.failure.is_none_or(|(at, ..)| !counts(at)) {
            self.failure = Some((index, status, cause));
        }
    }

    /// Why the oldest WQE cannot be done, if it cannot.
    pub(crate) fn failure(&self) -> Option<(WcStatus, Cause)> {
        let (index, status, cause) = self.failure?;
        let failed = self.front().is_some_and(|w| w.stage == Stage::Failed);
        (failed && index == self.first).then_some((status, cause))
    }

    pub(crate) fn clear(&mut self) {
        self.first = self.end();
        self.ring.clear();
    }

    /// The local memory of `wqe`.
    pub(crate) fn local(&self, wqe: &Wqe) -> Local<'_> {
        let slot = wqe.slot as usize;
        if wqe.inline {
            let at = slot * self.max_inline;
            return Local::Inline(&self.inline[at..at + wqe.length as usize]);
        }
        let at = slot * self.max_sge;
        Local::Sges(&self.sges[at..at + usize::from(wqe.sge_count)])
    }

    /// How many requests it takes now, and how many it holds at most.
    pub(crate) fn room(&self) -> (usize, usize) {
        (self.capacity.saturating_sub(self.ring.len()), self.capacity)
    }

    /// Checks that the data of a request is none too long for a WQE.
    pub(crate) fn check_data(&self, wr: &SendWr<'_>) -> Result<(), PostError> {
        if wr.flags.contains(SendFlags::INLINE) {
            let (got, max) = (wr.inline.len(), self.max_inline);
            if got > max {
                return Err(PostError::InlineTooLong { got, max });
            }
        } else {
            let (got, max) = (wr.sges.len(), self.max_sge);
            if got > max {
                return Err(PostError::TooManySges { got, max });
            }
        }
        Ok(())
    }

    /// Adds a request whose operation the caller has checked; `length` is its message's.
    pub(crate) fn post(
        &mut self,
        wr: &SendWr<'_>,
        length: u32,
        dest: Option<(Arc<Ah>, Qpn, QKey)>,
    ) -> Result<(), PostError> {
        if self.ring.len() >= self.capacity {
            let capacity = u32::try_from(self.capacity).unwrap_or(u32::MAX);
            return Err(PostError::Full { capacity });
        }
        self.check_data(wr)?;
        if self.ring.len() == self.slots {
            self.grow();
        }
        let inline = wr.flags.contains(SendFlags::INLINE);
        let slot = self.next_slot;
        let mut sge_count = 0;
        if inline {
            let at = slot * self.max_inline;
            self.inline[at..at + wr.inline.len()].copy_from_slice(wr.inline);
        } else {
            let got = wr.sges.len();
            sge_count = u8::try_from(got).unwrap_or(u8::MAX); // at most MAX_SGE
            let at = slot * self.max_sge;
            self.sges[at..at + got].copy_from_slice(wr.sges);
        }
        self.next_slot = if slot + 1 == self.slots { 0 } else { slot + 1 };
        self.ring.push_back(Wqe {
            wr_id: wr.wr_id,
            op: wr.op,
            flags: wr.flags,
            length,
            dest,
            remote_srqn: wr.remote_srqn,
            stage: Stage::Posted,
            first_psn: Psn::ZERO,
            psns: 0,
            slot: u32::try_from(slot).unwrap_or(u32::MAX),
            sge_count,
            inline,
        });
        Ok(())
    }

    /// The started WQE that holds `psn`, looked for from `from` on.
    pub(crate) fn find(&self, from: u64, psn: Psn) -> Option<u64> {
        let mut index = from.max(self.first);
        loop {
            let wqe = self.get(index)?;
            if wqe.psns != 0 && psn.since(wqe.first_psn) < wqe.psns {
                return Some(index);
            }
            if matches!(wqe.stage, Stage::Posted | Stage::Failed) {
                return None;
            }
            index += 1;
        }
    }
}
