//! What must hold when a run has come to rest.

use urxe_engine::{QpKind, WcStatus};

use super::{Invariant, Oracle, Phase, RecvPhase, Verdict, bytes_of};
use crate::plan::{Ends, Queue, What};

impl Oracle {
    /// All packets have arrived and no timer is armed: what has not completed now never will.
    pub(crate) fn at_rest(&mut self) -> Verdict {
        for conn in 0..self.sides.len() {
            for side in 0..2 {
                if !self.sides[conn][side].gone {
                    self.settle(conn, side)?;
                }
            }
        }
        for conn in 0..self.sides.len() {
            for side in 0..2 {
                self.check_arrivals(conn, side)?;
            }
        }
        Ok(())
    }

    /// What is left must be unsignaled, and done.
    fn settle(&mut self, conn: usize, side: usize) -> Verdict {
        while let Some(&id) = self.sides[conn][side].posted.get(self.sides[conn][side].settled) {
            let failed = self.sides[conn][side].failed.is_some();
            if self.op(id).signaled || self.plan.conns[conn].sig_all[side] || failed {
                let what = format!("{} never completed", self.plan.describe(id));
                return self.fail(Invariant::ExactlyOnce, what);
            }
            self.sides[conn][side].settled += 1;
            self.good_op(id)?;
        }
        Ok(())
    }

    /// A message whose sender was told that it is done has been received.
    fn check_arrivals(&self, conn: usize, side: usize) -> Verdict {
        if !self.plan.conns[conn].reliable() {
            return Ok(());
        }
        let arrived = self.sides[conn][1 - side].arrived;
        for (place, &id) in self.sides[conn][side].messages.iter().enumerate() {
            if self.phases[id] == Phase::Good && place >= arrived {
                let what = format!("{} is done, but was not received", self.plan.describe(id));
                return self.fail(Invariant::Received, what);
            }
        }
        Ok(())
    }

    /// All QPs have gone to error: receives that were left have been flushed.
    pub(crate) fn at_end(&mut self) -> Verdict {
        for (id, recv) in self.plan.recvs.iter().enumerate() {
            let Queue::Own(conn, side) = recv.queue else { continue };
            if self.recvs[id] == RecvPhase::Posted && !self.sides[conn][side].gone {
                let what = format!("receive {id} of pair {conn} side {side} never completed");
                return self.fail(Invariant::ExactlyOnce, what);
            }
        }
        self.check_failures()?;
        self.check_slips()?;
        self.check_words()?;
        self.check_unfinished()?;
        self.check_receives()?;
        self.check_frozen()?;
        self.check_all()
    }

    /// What did not complete well may have been done in part.
    fn check_unfinished(&mut self) -> Verdict {
        for id in 0..self.plan.ops.len() {
            let posted = matches!(self.phases[id], Phase::Posted | Phase::Failed(_));
            let conn = self.plan.conns[self.op(id).conn];
            let unsure = posted || self.phases[id] == Phase::Good && !conn.reliable();
            if !unsure || self.op(id).ends != Ends::Well {
                continue;
            }
            let who = self.plan.describe(id);
            let op = self.op(id).clone();
            let packet = conn.mtu.bytes() as usize;
            match op.what {
                What::Write { remote, .. } | What::AtomicWrite(remote) => {
                    let data = self.data(id);
                    self.may_hold(&who, &[remote.span], &data, packet, conn.reliable())?;
                }
                What::Read(remote) => {
                    let data = self.gather(&[remote.span]);
                    self.may_hold(&who, &op.local, &data, packet, true)?;
                }
                What::Add { .. } | What::Swap { .. } => self.adopt(&op.local),
                _ => {}
            }
        }
        Ok(())
    }

    /// A message that was not received whole may have left its first packets in the next receive.
    fn check_receives(&mut self) -> Verdict {
        for id in 0..self.plan.recvs.len() {
            let done = self.recvs[id] == RecvPhase::Done(WcStatus::Success);
            if self.recvs[id] == RecvPhase::Waiting || done {
                continue;
            }
            let queue = self.plan.recvs[id].queue;
            let local = self.plan.recvs[id].local.clone();
            if self.recvs[id] == RecvPhase::Done(WcStatus::LocProtErr) && self.is_datagram(queue) {
                // The header may have been placed before the rest was found to have no place.
                self.adopt(&local);
                continue;
            }
            let candidates = self.next_messages(queue, id);
            if candidates.iter().any(|&(_, kind)| kind == QpKind::Uc) {
                // Any number of broken messages may have left their packets there.
                self.adopt(&local);
                continue;
            }
            let mut verdict = Ok(());
            for (message, _) in candidates {
                let who = format!("receive {id}, next for {}", self.plan.describe(message));
                let data = self.data(message);
                let packet = self.plan.conns[self.op(message).conn].mtu.bytes() as usize;
                verdict = self.may_hold(&who, &local, &data, packet, true);
                if verdict.is_ok() {
                    break;
                }
            }
            verdict?;
        }
        Ok(())
    }

    fn is_datagram(&self, queue: Queue) -> bool {
        let kind = match queue {
            Queue::Own(conn, _) => self.plan.conns[conn].kind,
            Queue::Shared(srq) => self.plan.srqs[srq].kind,
        };
        kind == QpKind::Ud
    }

    /// The messages that may have begun in a receive which did not complete.
    fn next_messages(&self, queue: Queue, recv: usize) -> Vec<(usize, QpKind)> {
        let mut found = Vec::new();
        for (conn, c) in self.plan.conns.iter().enumerate() {
            for side in 0..2 {
                let s = &self.sides[conn][side];
                let at_hand = match queue {
                    Queue::Own(of, at) => {
                        let is_next = s.rq.get(s.rq_good) == Some(&recv) || c.kind == QpKind::Uc;
                        (of, at) == (conn, side) && is_next
                    }
                    Queue::Shared(srq) => c.srq[side] == Some(srq),
                };
                let peer = &self.sides[conn][1 - side];
                match c.kind {
                    _ if !at_hand => {}
                    QpKind::Uc => found.extend(peer.messages.iter().map(|&m| (m, c.kind))),
                    QpKind::Ud => {}
                    _ => found.extend(peer.messages.get(s.arrived).map(|&m| (m, c.kind))),
                }
            }
        }
        found.retain(|&(message, _)| matches!(self.op(message).what, What::Send { .. }));
        found
    }

    fn check_frozen(&self) -> Verdict {
        for (&region, bytes) in &self.frozen {
            let who = format!("region {region}, which was deregistered");
            self.must_hold(Invariant::Stray, &who, &[self.whole(region)], 0, bytes)?;
        }
        Ok(())
    }

    /// Every byte that no work request named is as it was.
    fn check_all(&self) -> Verdict {
        for (node, model) in self.model.iter().enumerate() {
            let actual = bytes_of(&self.buffers[node]);
            let Some(at) = (0..model.len()).find(|&i| model[i] != actual[i]) else {
                continue;
            };
            let region = self.plan.regions.iter().position(|r| {
                r.node == node && (r.base as usize..(r.base + r.len) as usize).contains(&at)
            });
            let place = match region {
                Some(r) => {
                    let offset = at as u64 - u64::from(self.plan.regions[r].base);
                    format!("region {r} address {:#x}", self.plan.regions[r].start() + offset)
                }
                None => "outside all regions".to_owned(),
            };
            let differ = (0..model.len()).filter(|&i| model[i] != actual[i]).count();
            let what = format!(
                "node {node}: {differ} bytes changed, the first at {at:#x} of its memory \
                 ({place}): got {:#04x}, wanted {:#04x}",
                actual[at], model[at]
            );
            return self.fail(Invariant::Stray, what);
        }
        Ok(())
    }
}
