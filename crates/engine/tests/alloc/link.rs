//! Two NICs and a link between them that uses its buffers again, and loses what it is told to.

use std::net::{IpAddr, Ipv4Addr};

use urxe_engine::{
    AhAttr, Completion, CqId, Nic, NicConfig, Path, Payload, QpAttr, QpCaps, QpId, QpInit, QpKind,
    Received, SrqAttr, SrqId, SrqInit, Time, Transmit, WcStatus,
};
use urxe_memory::{Access, Backing, Buffer, MrInfo, PdId, Sge};
use urxe_wire::{AckTimeout, Mtu, Psn, QKey, RnrTimer};

pub(crate) const BASE: u64 = 0x10_0000;
const SIZE: usize = 1 << 16;

/// Packets on their way; their buffers stay.
pub(crate) struct Flight {
    slots: Vec<(Option<Path>, Vec<u8>)>,
    len: usize,
}

/// Packets that one takes.
const ROOM: usize = 64;

impl Flight {
    fn new() -> Self {
        let slots = (0..ROOM).map(|_| (None, Vec::with_capacity(8192))).collect();
        Self { slots, len: 0 }
    }
}

impl Transmit for Flight {
    fn room(&self) -> usize {
        ROOM - self.len
    }

    fn packet(&mut self, path: &Path, header: &[u8], payload: Payload<'_>, pad: usize) {
        let (at, bytes) = &mut self.slots[self.len];
        *at = Some(*path);
        bytes.clear();
        bytes.extend_from_slice(header);
        payload.append_to(bytes);
        bytes.resize(bytes.len() + pad + 4, 0);
        self.len += 1;
    }
}

/// A NIC, its memory, and what it has sent.
pub(crate) struct Node {
    pub(crate) nic: Nic,
    pub(crate) pd: PdId,
    pub(crate) cq: CqId,
    pub(crate) srq: SrqId,
    pub(crate) mr: MrInfo,
    pub(crate) done: Vec<Completion>,
    pub(crate) out: Flight,
}

impl Node {
    pub(crate) fn new(own: u8) -> Self {
        let mut config = NicConfig::new(address(own));
        config.active_mtu = Mtu::B4096;
        let nic = Nic::new(config).unwrap();
        let pd = nic.memory().alloc_pd().unwrap();
        let cq = nic.create_cq(1024).unwrap();
        let attr = SrqAttr { max_wr: 64, max_sge: 2, limit: 0 };
        let srq = nic.create_srq(&SrqInit { pd, attr, xrc: None }).unwrap();
        let backing = Backing::buffer(Buffer::zeroed(SIZE).unwrap());
        let access = Access::LOCAL_WRITE | Access::REMOTE;
        let mr = nic.memory().reg_mr(pd, backing, BASE, access).unwrap();
        let (done, out) = (Vec::with_capacity(1024), Flight::new());
        Self { nic, pd, cq, srq, mr, done, out }
    }

    pub(crate) fn sge(&self, offset: u64, length: u32) -> Sge {
        Sge { addr: BASE + offset, length, lkey: self.mr.lkey }
    }

    pub(crate) fn create(&self, kind: QpKind, srq: bool, caps: QpCaps) -> QpId {
        let (cq, srq) = (Some(self.cq), srq.then_some(self.srq));
        let (pd, xrcd, sig_all) = (self.pd, None, true);
        let init = QpInit { kind, pd, send_cq: cq, recv_cq: cq, srq, xrcd, caps, sig_all };
        self.nic.create_qp(&init).unwrap()
    }

    pub(crate) fn connect(&self, qp: QpId, peer: IpAddr, dest_qp: QpId) {
        let attr = QpAttr {
            path_mtu: Mtu::B1024,
            qkey: Q_KEY,
            dest_qp,
            rq_psn: Psn::new(0xff_ff00),
            sq_psn: Psn::new(0xff_ff00),
            access: Access::REMOTE,
            ah: AhAttr { dst: peer, traffic_class: 2, ..AhAttr::default() },
            max_rd_atomic: 4,
            max_dest_rd_atomic: 4,
            min_rnr_timer: RnrTimer::new(12).unwrap(),
            timeout: AckTimeout::new(10).unwrap(),
            retry_cnt: 7,
            rnr_retry: 7,
            ..QpAttr::default()
        };
        self.nic.connect_qp(qp, &attr).unwrap();
    }

    /// Polls all completions, which must be good ones.
    fn poll(&mut self) {
        self.done.clear();
        self.nic.poll_cq(self.cq, &mut self.done, usize::MAX).unwrap();
        let failed = self.done.iter().find(|c| c.status != WcStatus::Success);
        assert_eq!(failed, None);
    }
}

pub(crate) const Q_KEY: QKey = QKey(0x1111_1111);

pub(crate) fn address(node: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, node))
}

pub(crate) struct Link {
    pub(crate) nodes: [Node; 2],
    pub(crate) now: Time,
    /// One packet of so many is lost; 0 for none.
    pub(crate) lose: u64,
    /// One packet of so many is marked by the network; 0 for none.
    pub(crate) mark: u64,
    count: u64,
    arriving: Flight,
}

impl Link {
    pub(crate) fn new() -> Self {
        let (nodes, now) = ([Node::new(1), Node::new(2)], Time::from_nanos(1));
        Self { nodes, now, lose: 0, mark: 0, count: 0, arriving: Flight::new() }
    }

    /// A QP on each side, connected with each other.
    pub(crate) fn pair(&self, kind: QpKind, srq: bool) -> [QpId; 2] {
        let caps = QpCaps {
            max_send_wr: 32,
            max_recv_wr: 32,
            max_send_sge: 2,
            max_recv_sge: 2,
            max_inline_data: 64,
        };
        let [a, b] = &self.nodes;
        let qps = [a.create(kind, srq, caps), b.create(kind, srq, caps)];
        a.connect(qps[0], address(2), qps[1]);
        b.connect(qps[1], address(1), qps[0]);
        qps
    }

    /// Carries packets and lets time pass until nothing waits.
    pub(crate) fn settle(&mut self) {
        while self.moves() || self.next_deadline() {}
    }

    /// As [`Self::settle`], but does `late` once only time can help.
    pub(crate) fn settle_after(&mut self, late: impl FnOnce(&mut Self)) {
        while self.moves() {}
        late(self);
        self.settle();
    }

    /// Carries what waits; says whether there was anything.
    fn moves(&mut self) -> bool {
        let moved = self.carry(0) | self.carry(1);
        for node in &mut self.nodes {
            node.poll();
            while node.nic.take_event().is_some() {}
        }
        moved
    }

    /// Time goes on to the next deadline, if there is one.
    fn next_deadline(&mut self) -> bool {
        let next = self.nodes.iter().filter_map(|n| n.nic.next_deadline()).map(|d| d.at).min();
        let Some(at) = next else { return false };
        self.now = self.now.max(at);
        for node in &mut self.nodes {
            node.nic.expire(self.now, &mut node.out);
        }
        true
    }

    /// Takes what one node has sent to the other; says whether there was anything.
    fn carry(&mut self, from: usize) -> bool {
        std::mem::swap(&mut self.nodes[from].out, &mut self.arriving);
        let node = &mut self.nodes[1 - from];
        let sent = std::mem::take(&mut self.arriving.len);
        for (path, bytes) in &self.arriving.slots[..sent] {
            self.count += 1;
            let every = |n: u64| n != 0 && self.count.is_multiple_of(n);
            let Some(path) = path.filter(|_| !every(self.lose)) else { continue };
            let packet = Received {
                src: path.src,
                dst: path.dst,
                src_port: path.src_port,
                traffic_class: if every(self.mark) { 3 } else { path.traffic_class },
                hop_limit: path.hop_limit,
                bytes,
            };
            node.nic.receive(self.now, &packet, &mut node.out);
        }
        for node in &mut self.nodes {
            node.nic.pump(self.now, &mut node.out);
        }
        sent != 0
    }
}
