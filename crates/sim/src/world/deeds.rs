//! What a plan does beside posting.

use urxe_engine::{AttrMask, QpAttr, QpState};

use super::{Todo, World};
use crate::oracle::{Invariant, Verdict};
use crate::plan::DeedKind;

impl World {
    pub(super) fn do_deed(&mut self, number: usize) -> Verdict {
        let what = self.plan.deeds[number].what;
        if let Some((conn, side)) = what.qp() {
            // What completed before is told before.
            let node = self.plan.conns[conn].nodes[side];
            self.poll(node)?;
        }
        match what {
            DeedKind::Dereg(region) => self.deregister(region),
            DeedKind::ToError(conn, side) => {
                self.oracle.stopped(conn, side);
                self.modify(conn, side, QpState::Err)
            }
            DeedKind::Reset(conn, side) => {
                self.oracle.gone(conn, side);
                self.modify(conn, side, QpState::Reset)
            }
            DeedKind::Destroy(conn, side) => {
                self.oracle.gone(conn, side);
                self.destroy(conn, side)
            }
            DeedKind::Drain(conn, side, length) => {
                if self.state(conn, side) == Some(QpState::Rts) {
                    let later = self.fabric.now() + length;
                    self.fabric.at(later, Todo::Resume(conn, side));
                    self.modify(conn, side, QpState::Sqd)?;
                }
                Ok(())
            }
            DeedKind::Cut(a, b, length) => {
                let now = self.fabric.now();
                self.fabric.cut(a, b, now, now + length);
                Ok(())
            }
        }
    }

    fn state(&self, conn: usize, side: usize) -> Option<QpState> {
        let node = self.plan.conns[conn].nodes[side];
        let info = self.fabric.nic(node).query_qp(self.qps[conn][side]?);
        info.ok().map(|i| i.attr.qp_state)
    }

    /// A drained queue goes on, unless its QP has failed or gone meanwhile.
    pub(super) fn resume(&mut self, conn: usize, side: usize) -> Verdict {
        if self.state(conn, side) != Some(QpState::Sqd) {
            return Ok(());
        }
        self.modify(conn, side, QpState::Rts)
    }

    fn deregister(&mut self, region: usize) -> Verdict {
        let Some(mr) = self.regions[region].take() else { return Ok(()) };
        let node = self.plan.regions[region].node;
        let done = self.fabric.nic(node).memory().dereg_mr(mr.id);
        done.map_err(|e| self.oracle.violation(Invariant::Accepted, e.to_string()))?;
        self.oracle.deregistered(region);
        Ok(())
    }

    pub(super) fn modify(&mut self, conn: usize, side: usize, to: QpState) -> Verdict {
        let Some(qp) = self.qps[conn][side] else { return Ok(()) };
        let node = self.plan.conns[conn].nodes[side];
        let attr = QpAttr { qp_state: to, ..QpAttr::default() };
        let done = self.fabric.call(node, |nic, _, _| nic.modify_qp(qp, &attr, AttrMask::STATE));
        done.map_err(|e| self.oracle.violation(Invariant::Accepted, e.to_string()))?;
        self.look(node)
    }

    pub(super) fn destroy(&mut self, conn: usize, side: usize) -> Verdict {
        let Some(qp) = self.qps[conn][side].take() else { return Ok(()) };
        let node = self.plan.conns[conn].nodes[side];
        let done = self.fabric.call(node, |nic, _, _| nic.destroy_qp(qp));
        done.map_err(|e| self.oracle.violation(Invariant::Leak, e.to_string()))?;
        self.look(node)
    }
}
