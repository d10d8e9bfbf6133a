//! The end of a run: all at rest, then all destroyed.

use std::fmt::Display;
use std::sync::Arc;

use urxe_engine::QpState;

use super::World;
use crate::oracle::{Invariant, Verdict};
use crate::plan::Polling;

impl World {
    pub(super) fn finish(&mut self) -> Verdict {
        self.check_rest()?;
        self.poll_all()?;
        self.oracle.at_rest()?;
        self.closing = true;
        for conn in 0..self.plan.conns.len() {
            for side in 0..2 {
                if !self.oracle.is_gone(conn, side) {
                    self.modify(conn, side, QpState::Err)?;
                }
            }
        }
        self.run_to_rest()?;
        self.check_rest()?;
        self.poll_all()?;
        for node in 0..self.nodes.len() {
            let memory = Arc::clone(&self.nodes[node].buffer);
            let (interpose, nic) = self.fabric.interpose(node);
            interpose.rested(node, nic, &memory);
        }
        self.oracle.at_end()?;
        self.destroy_all()
    }

    /// An armed program has polled all that it was told of: there must be no more.
    fn poll_all(&mut self) -> Verdict {
        for node in 0..self.nodes.len() {
            let armed = self.plan.nodes[node].polling == Polling::Armed;
            for &cq in &self.nodes[node].cqs {
                let info = self.fabric.nic(node).query_cq(cq);
                let waiting = info.map_or(0, |i| i.waiting);
                if armed && waiting != 0 {
                    let what = format!("node {node}: {waiting} completions wait in CQ {}", cq.0);
                    return Err(self.oracle.violation(Invariant::Notified, what));
                }
            }
            self.poll(node)?;
        }
        Ok(())
    }

    fn check_rest(&self) -> Verdict {
        for node in 0..self.nodes.len() {
            let nic = self.fabric.nic(node);
            let deadline = nic.next_deadline().map(|d| d.to_string());
            let (work, armed) = (nic.has_work(), nic.timers_armed());
            if work || armed || deadline.is_some() {
                let what = format!(
                    "node {node}: work {work}, timers armed {armed}, deadline {deadline:?}, though \
                     nothing is under way"
                );
                return Err(self.oracle.violation(Invariant::Rest, what));
            }
        }
        Ok(())
    }

    fn destroy_all(&mut self) -> Verdict {
        for conn in 0..self.plan.conns.len() {
            for side in 0..2 {
                self.destroy(conn, side)?;
            }
        }
        for (number, node) in self.nodes.iter().enumerate() {
            let nic = self.fabric.nic(number);
            for (window, id) in self.windows.iter().enumerate() {
                if self.plan.windows[window].node == number {
                    self.gone("a window", nic.memory().dealloc_mw(*id))?;
                }
            }
            for (region, mr) in self.regions.iter().enumerate() {
                if let Some(mr) = mr.filter(|_| self.plan.regions[region].node == number) {
                    self.gone("a region", nic.memory().dereg_mr(mr.id))?;
                }
            }
            for (conn, ahs) in self.ahs.iter().enumerate() {
                for side in (0..2).filter(|&s| self.plan.conns[conn].nodes[s] == number) {
                    if let Some(ah) = ahs[side] {
                        self.gone("an AH", nic.destroy_ah(ah))?;
                    }
                }
            }
            for (srq, id) in self.srqs.iter().enumerate() {
                if self.plan.srqs[srq].node == number {
                    self.gone("an SRQ", nic.destroy_srq(*id))?;
                }
            }
            for &cq in &node.cqs {
                self.gone("a CQ", nic.destroy_cq(cq))?;
            }
            self.gone("a PD", nic.memory().dealloc_pd(node.pd))?;
            let (mrs, mws) = (nic.memory().mr_count(), nic.memory().mw_count());
            if (mrs, mws) != (0, 0) {
                let what = format!("node {number}: {mrs} regions and {mws} windows are left");
                return Err(self.oracle.violation(Invariant::Leak, what));
            }
        }
        Ok(())
    }

    fn gone<T, E: Display>(&self, what: &str, result: Result<T, E>) -> Verdict {
        match result {
            Ok(_) => Ok(()),
            Err(e) => {
                let what = format!("{what} cannot be destroyed: {e}");
                Err(self.oracle.violation(Invariant::Leak, what))
            }
        }
    }
}
