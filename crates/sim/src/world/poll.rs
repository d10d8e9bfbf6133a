//! Taking completions and events.

use urxe_engine::{Arm, AsyncEvent, Completion, Event};

use super::World;
use crate::oracle::{Invariant, RECV, Verdict};

impl World {
    /// Takes all events; an armed program then polls the CQs that told.
    pub(super) fn take_events(&mut self, node: usize, armed: bool) -> Verdict {
        while let Some(event) = self.fabric.nic(node).take_event() {
            match event {
                Event::Completion(cq) if armed => {
                    let (interpose, nic) = self.fabric.interpose(node);
                    if !interpose.told(node, nic) {
                        continue;
                    }
                    // Armed before it is polled, so that nothing slips between.
                    let rearmed = self.fabric.nic(node).arm_cq(cq, Arm::Next);
                    rearmed
                        .map_err(|e| self.oracle.violation(Invariant::Accepted, e.to_string()))?;
                    if let Some(number) = self.nodes[node].cqs.iter().position(|&c| c == cq) {
                        self.poll_cq(node, number)?;
                    }
                }
                Event::Completion(_) => {}
                Event::Async(event) => self.on_event(node, event)?,
            }
        }
        Ok(())
    }

    fn on_event(&self, node: usize, event: AsyncEvent) -> Verdict {
        let qp = match event {
            AsyncEvent::QpReqErr(qp) | AsyncEvent::QpAccessErr(qp) | AsyncEvent::QpFatal(qp) => qp,
            AsyncEvent::CqErr(..) => {
                let what = format!("node {node}: {event:?}, but the CQ has room for all");
                return Err(self.oracle.violation(Invariant::Accepted, what));
            }
            _ => return Ok(()),
        };
        match self.by_qpn.get(&(node, qp.value())) {
            Some(&(conn, side)) => self.oracle.event(conn, side, event),
            None => {
                let what = format!("node {node}: {event:?} of a QP that there is not");
                Err(self.oracle.violation(Invariant::Status, what))
            }
        }
    }

    /// Polls all CQs of a node until they are empty.
    pub(super) fn poll(&mut self, node: usize) -> Verdict {
        for number in 0..self.nodes[node].cqs.len() {
            self.poll_cq(node, number)?;
        }
        Ok(())
    }

    fn poll_cq(&mut self, node: usize, number: usize) -> Verdict {
        let mut taken = Vec::new();
        let polled =
            self.fabric.nic(node).poll_cq(self.nodes[node].cqs[number], &mut taken, usize::MAX);
        polled.map_err(|e| self.oracle.violation(Invariant::Accepted, e.to_string()))?;
        if taken.is_empty() {
            return Ok(());
        }
        self.fabric.interpose(node).0.polled(node, &mut taken);
        for completion in &taken {
            self.completed(node, completion)?;
        }
        self.unblock()
    }

    fn completed(&mut self, node: usize, c: &Completion) -> Verdict {
        let Some(&(conn, side)) = self.by_qpn.get(&(node, c.qpn.value())) else {
            let what = format!("node {node}: a completion of QP {}, which there is not", c.qpn);
            return Err(self.oracle.violation(Invariant::ExactlyOnce, what));
        };
        if c.wr_id & RECV != 0 {
            return self.oracle.received(conn, side, c);
        }
        let harm = self.harm(conn);
        self.oracle.sent(conn, side, c, harm)?;
        if c.status == urxe_engine::WcStatus::Success {
            self.bound(usize::try_from(c.wr_id).unwrap_or(usize::MAX));
        }
        Ok(())
    }
}
