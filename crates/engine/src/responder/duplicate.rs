//! Requests that were served before (IBA 9.7.5.1).

use urxe_memory::Access;
use urxe_wire::{Operation, Psn, Reth};

use super::{Action, Env, Receives, Reply, Request, Responder, Saved};
use crate::reason::Drop;

impl Responder {
    pub(super) fn on_duplicate<R: Receives>(
        &mut self,
        request: &Request<'_>,
        env: &Env<'_, R>,
    ) -> Action {
        let psn = request.psn();
        match request.info.operation {
            Operation::Send | Operation::Write => {
                // IBA C9-105: acknowledge the latest, execute nothing.
                self.acknowledge(self.epsn.sub(1));
                Action::Duplicate
            }
            Operation::ReadRequest => self.read_again(psn, request, env),
            _ => self.answer_again(psn, request.info.operation),
        }
    }

    /// A READ may be asked for again from where its response was lost. Rights are checked and
    /// memory is read anew (IBA 9.7.5.1).
    fn read_again<R: Receives>(
        &mut self,
        psn: Psn,
        request: &Request<'_>,
        env: &Env<'_, R>,
    ) -> Action {
        let reth = request.ext().reth.unwrap_or_default();
        let saved = self.saved.iter().find_map(|saved| match *saved {
            Saved::Read { first, psns, va, rkey, length } if psn.since(first) < psns => {
                Some((first, psns, va, rkey, length))
            }
            _ => None,
        });
        let Some((first, psns, va, rkey, length)) = saved else {
            return Action::Drop(Drop::StaleDuplicate);
        };
        let skipped = psn.since(first);
        let offset = u64::from(skipped) * u64::from(env.conn.mtu);
        let within = offset + u64::from(reth.dma_len) <= u64::from(length);
        if reth.rkey != rkey || reth.va != va.wrapping_add(offset) || !within {
            return Action::Drop(Drop::BadDuplicate);
        }
        if !self.may_read(&reth, env) {
            return Action::Drop(Drop::BadDuplicate);
        }
        let msn = self.msn;
        let (pd, va, left, started) = (env.conn.pd, reth.va, reth.dma_len, false);
        // An answer to the same READ that still waits is overtaken.
        let waiting = self.replies.iter().enumerate().find_map(|(at, reply)| match reply {
            Reply::Read { psn, again, .. } if psn.since(first) < psns => Some((at, *again)),
            _ => None,
        });
        if let Some((at, again)) = waiting {
            self.replies[at] = Reply::Read { psn, pd, va, rkey, left, started, msn, again };
        } else if !self.queue_again(Reply::Read {
            psn,
            pd,
            va,
            rkey,
            left,
            started,
            msn,
            again: true,
        }) {
            return Action::Drop(Drop::BadDuplicate);
        }
        Action::Duplicate
    }

    /// Duplicates are owed no more answers at a time than first requests, and do not count as such:
    /// the peer may have had the first answer meanwhile and ask for something new.
    fn queue_again(&mut self, reply: Reply) -> bool {
        self.owed(true) < self.depth && self.queue(reply)
    }

    fn may_read<R: Receives>(&self, reth: &Reth, env: &Env<'_, R>) -> bool {
        let (pd, qpn) = (env.conn.pd, env.conn.qpn.value());
        let len = u64::from(reth.dma_len);
        len == 0 || env.memory.remote(pd, qpn, reth.rkey, reth.va, len, Access::REMOTE_READ).is_ok()
    }

    /// Atomics, FLUSH and ATOMIC WRITE are never done twice: the saved answer goes again, or,
    /// if it is gone, none (IBA 9.7.5.1).
    fn answer_again(&mut self, psn: Psn, operation: Operation) -> Action {
        let atomic = matches!(operation, Operation::CompareSwap | Operation::FetchAdd);
        let msn = self.msn;
        let reply = self.saved.iter().find_map(|saved| match *saved {
            Saved::Atomic { psn: p, original } if atomic && p == psn => {
                Some(Reply::Atomic { psn, original, msn, again: true })
            }
            Saved::Empty { psn: p } if !atomic && p == psn => {
                Some(Reply::Empty { psn, msn, again: true })
            }
            _ => None,
        });
        let Some(reply) = reply else {
            return Action::Drop(Drop::StaleDuplicate);
        };
        let waits = self.replies.iter().any(|r| match r {
            Reply::Atomic { psn: p, .. } | Reply::Empty { psn: p, .. } => *p == psn,
            _ => false,
        });
        if !waits && !self.queue_again(reply) {
            return Action::Drop(Drop::BadDuplicate);
        }
        Action::Duplicate
    }
}
