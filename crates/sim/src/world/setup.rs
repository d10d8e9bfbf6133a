//! Making the objects of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;

use urxe_engine::dcqcn::Params;
use urxe_engine::{
    AhAttr, Arm, NicConfig, QpAttr, QpCaps, QpId, QpInit, QpKind, SrqAttr, SrqInit, XrcdId,
};
use urxe_memory::{Backing, Buffer};
use urxe_wire::{Mtu, Psn, QKey};

use super::{Node, World};
use crate::fabric::{Fabric, FabricConfig};
use crate::link::LinkConfig;
use crate::oracle::Oracle;
use crate::plan::{MAX_INLINE, MAX_SGE};
use crate::plan::{Plan, Queue};
use crate::{Interpose, Rng, Settings};

/// The key of all datagrams.
pub(super) const Q_KEY: QKey = QKey(0x1234_5678);

/// What cannot be made is a defect of the plan or of the engine; both are ours.
fn must<T, E: Display>(what: &str, result: Result<T, E>) -> T {
    result.unwrap_or_else(|e| panic!("{what} cannot be made: {e}"))
}

fn doubles(link: &LinkConfig, settings: &Settings) -> bool {
    !link.duplicate.is_none() || !link.reorder.is_none() || !settings.faults.is_empty()
}

fn nic(plan: &Plan, node: usize, settings: &Settings) -> NicConfig {
    let n = &plan.nodes[node];
    let mut config = NicConfig::new(n.address);
    config.active_mtu = Mtu::B4096;
    config.profile = n.profile;
    config.seed = Rng::new(&[plan.seed, 4, node as u64]).between32(0, u32::MAX);
    if settings.marks() {
        config.dcqcn = Some(must("DCQCN", Params::paper().checked()));
        if let Some(rate) = settings.link.rate {
            config.line_rate = rate;
        }
    }
    config
}

impl World {
    /// The world of a plan, or of the operations `only` of it.
    pub(crate) fn new(
        plan: Arc<Plan>,
        settings: &Settings,
        only: Option<&BTreeSet<usize>>,
        keep_trace: bool,
        interpose: Box<dyn Interpose>,
    ) -> Self {
        let mut rng = Rng::new(&[plan.seed, 2]);
        let config = FabricConfig {
            seed: plan.seed,
            topology: settings.topology,
            link: settings.link,
            faults: settings.faults.clone(),
            room: rng.pick(&[1, 4, 64, 1 << 20, 1 << 20]),
            batches: rng.one_in(3),
            keep_trace,
        };
        let nics = (0..plan.nodes.len()).map(|n| nic(&plan, n, settings)).collect();
        let fabric = must("the fabric", Fabric::new(nics, config, interpose));
        let nodes: Vec<Node> = (0..plan.nodes.len()).map(|n| node(&plan, &fabric, n)).collect();
        let buffers = nodes.iter().map(|n| Arc::clone(&n.buffer)).collect();
        let oracle = Oracle::new(Arc::clone(&plan), buffers, doubles(&settings.link, settings));
        let mut world = Self {
            start: fabric.now(),
            fabric,
            oracle,
            nodes,
            regions: Vec::new(),
            keys: Vec::new(),
            windows: Vec::new(),
            srqs: Vec::new(),
            qps: Vec::new(),
            ahs: Vec::new(),
            by_qpn: BTreeMap::new(),
            sends: BTreeMap::new(),
            receives: BTreeMap::new(),
            blocked: BTreeSet::new(),
            patience: u64::try_from(settings.link.slowest().as_micros()).unwrap_or(u64::MAX),
            closing: false,
            plan,
        };
        world.line_up(only);
        world.make_memory();
        let xrcds = world.make_srqs();
        world.make_qps(&xrcds);
        world
    }

    fn line_up(&mut self, only: Option<&BTreeSet<usize>>) {
        let chosen = |id: usize| only.is_none_or(|only| only.contains(&id));
        for (id, op) in self.plan.ops.iter().enumerate().filter(|(id, _)| chosen(*id)) {
            self.sends.entry((op.conn, op.side)).or_default().ids.push(id);
        }
        for (id, recv) in self.plan.recvs.iter().enumerate().filter(|(_, r)| chosen(r.op)) {
            self.receives.entry(recv.queue).or_default().ids.push(id);
        }
        // Those of a shared queue are posted when they are due, whoever they were planned for.
        for (queue, line) in &mut self.receives {
            if matches!(queue, Queue::Shared(_)) {
                line.ids.sort_by_key(|&id| self.plan.recvs[id].at);
            }
        }
    }

    fn make_memory(&mut self) {
        for region in &self.plan.regions {
            let (nic, node) = (self.fabric.nic(region.node), &self.nodes[region.node]);
            let (base, len) = (region.base as usize, region.len as usize);
            let part = must("backing", Backing::part(Arc::clone(&node.buffer), base, len));
            let mr = nic.memory().reg_mr(node.pd, part, region.iova, region.access);
            let mr = must("a region", mr);
            self.keys.push((mr.lkey, mr.rkey));
            self.regions.push(Some(mr));
        }
        for (number, window) in self.plan.windows.iter().enumerate() {
            let (nic, node) = (self.fabric.nic(window.node), &self.nodes[window.node]);
            let (id, key) = must("a window", nic.memory().alloc_mw(node.pd, window.kind));
            self.windows.push(id);
            self.oracle.window_keys[number] = key;
        }
    }

    fn make_srqs(&mut self) -> Vec<Option<XrcdId>> {
        let mut xrcds: Vec<Option<XrcdId>> = vec![None; self.nodes.len()];
        for (number, srq) in self.plan.srqs.iter().enumerate() {
            let (nic, node) = (self.fabric.nic(srq.node), &self.nodes[srq.node]);
            let waiting = self.receives.get(&Queue::Shared(number)).map_or(0, |l| l.ids.len());
            let max_wr = u32::try_from(waiting + 1).unwrap_or(u32::MAX);
            let attr = SrqAttr { max_wr, max_sge: MAX_SGE, limit: 0 };
            let xrc = (srq.kind == QpKind::XrcInit).then(|| {
                let xrcd = *xrcds[srq.node].get_or_insert_with(|| must("XRCD", nic.alloc_xrcd()));
                (xrcd, node.cqs[number % node.cqs.len()])
            });
            let made = nic.create_srq(&SrqInit { pd: node.pd, attr, xrc });
            self.srqs.push(must("an SRQ", made));
        }
        xrcds
    }

    fn make_qps(&mut self, xrcds: &[Option<XrcdId>]) {
        for conn in 0..self.plan.conns.len() {
            let qps = [0, 1].map(|side| self.make_qp(conn, side, xrcds));
            let nodes = self.plan.conns[conn].nodes;
            let own = |side: usize| nodes[side];
            for side in 0..2 {
                self.by_qpn.insert((own(side), qps[side].value()), (conn, side));
                self.oracle.qpns[conn][side] = qps[side].value();
                let attr = self.attr(conn, side, qps[1 - side]);
                let made =
                    self.fabric.call(own(side), |nic, _, _| nic.connect_qp(qps[side], &attr));
                must("a connection", made);
            }
            let is_ud = self.plan.conns[conn].kind == QpKind::Ud;
            self.ahs.push([0, 1].map(|side| {
                let (nic, pd) = (self.fabric.nic(own(side)), self.nodes[own(side)].pd);
                is_ud.then(|| must("an AH", nic.create_ah(pd, &self.way(conn, side))))
            }));
            self.qps.push(qps.map(Some));
        }
    }

    fn make_qp(&self, conn: usize, side: usize, xrcds: &[Option<XrcdId>]) -> QpId {
        let c = &self.plan.conns[conn];
        let (node, kind) = (c.nodes[side], c.kind_of(side));
        let n = &self.nodes[node];
        let cq = |which: usize| Some(n.cqs[(conn + side + which) % n.cqs.len()]);
        let waiting = self.receives.get(&Queue::Own(conn, side)).map_or(0, |l| l.ids.len());
        let caps = QpCaps {
            max_send_wr: c.depth,
            max_recv_wr: u32::try_from(waiting).unwrap_or(u32::MAX),
            max_send_sge: MAX_SGE,
            max_recv_sge: MAX_SGE,
            max_inline_data: MAX_INLINE,
        };
        let target = kind == QpKind::XrcTarget;
        let init = QpInit {
            kind,
            pd: n.pd,
            send_cq: cq(0).filter(|_| !target),
            recv_cq: cq(1).filter(|_| !target && kind != QpKind::XrcInit),
            srq: c.srq[side].filter(|_| c.kind != QpKind::XrcInit).map(|s| self.srqs[s]),
            xrcd: xrcds[node].filter(|_| target),
            caps,
            sig_all: c.sig_all[side],
        };
        must("a QP", self.fabric.nic(node).create_qp(&init))
    }

    /// The way from a side to its peer.
    fn way(&self, conn: usize, side: usize) -> AhAttr {
        let c = &self.plan.conns[conn];
        let dst = self.plan.nodes[c.nodes[1 - side]].address;
        AhAttr { dst, traffic_class: c.traffic_class, ..AhAttr::default() }
    }

    fn attr(&self, conn: usize, side: usize, peer: QpId) -> QpAttr {
        let c = &self.plan.conns[conn];
        QpAttr {
            path_mtu: c.mtu,
            qkey: Q_KEY,
            rq_psn: Psn::new(c.psn[1 - side]),
            sq_psn: Psn::new(c.psn[side]),
            dest_qp: peer,
            access: c.access[side],
            ah: self.way(conn, side),
            max_rd_atomic: c.rd_atomic,
            max_dest_rd_atomic: c.rd_atomic,
            min_rnr_timer: c.rnr_timer,
            timeout: c.timeout,
            retry_cnt: c.retry,
            rnr_retry: c.rnr_retry,
            ..QpAttr::default()
        }
    }
}

fn node(plan: &Plan, fabric: &Fabric<super::Todo>, number: usize) -> Node {
    let nic = fabric.nic(number);
    let buffer = must("memory", Buffer::zeroed(plan.buffer_len(number)));
    let mut bytes = vec![0; buffer.len()];
    Rng::new(&[plan.seed, 3, number as u64]).fill(&mut bytes);
    must("memory", buffer.write(0, &bytes));
    let most = u32::try_from(plan.ops.len() + plan.recvs.len() + 8).unwrap_or(u32::MAX);
    let cqs: Vec<_> =
        (0..plan.nodes[number].cqs).map(|_| must("a CQ", nic.create_cq(most))).collect();
    for &cq in &cqs {
        must("arming", nic.arm_cq(cq, Arm::Next));
    }
    let pd = must("a PD", nic.memory().alloc_pd());
    Node { pd, buffer, cqs, will_poll: false }
}
