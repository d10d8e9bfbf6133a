//! A NIC under test, its memory, and a peer made by hand: a test reads as what is sent and
//! received, at what time.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use urxe_engine::{
    AhAttr, Completion, CqId, Event, Nic, NicConfig, Path, Payload, Profile, QpAttr, QpCaps, QpId,
    QpInit, QpKind, Received, RecvWr, SendOp, SendWr, Time, Transmit, WcStatus, Why,
};
use urxe_memory::{Access, Backing, Buffer, MrInfo, PdId, Sge};
use urxe_wire::{
    AckTimeout, Aeth, Bth, Credit, Ext, Mtu, NakCode, Opcode, Psn, QKey, Qpn, Repr, RnrTimer, Roce,
    Syndrome,
};

pub(crate) const US: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub(crate) const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
pub(crate) const PEER_QPN: Qpn = Qpn::new(0x77);
/// Start of our packets and of the peer's.
pub(crate) const SQ_PSN: u32 = 100;
pub(crate) const RQ_PSN: u32 = 500;
pub(crate) const Q_KEY: QKey = QKey(0x1111_1111);

/// All that left a NIC.
#[derive(Default)]
pub(crate) struct Sink {
    pub(crate) sent: Vec<Sent>,
    pub(crate) full: bool,
    /// How many more packets it takes; `None` for any number.
    pub(crate) room: Option<usize>,
    /// Why the next packet is sent.
    why: Option<Why>,
}

/// A packet that left.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) path: Path,
    /// BTH to ICRC; the ICRC is zero.
    pub(crate) bytes: Vec<u8>,
    /// Why it was sent, if the engine said so.
    pub(crate) why: Option<Why>,
}

impl Sent {
    pub(crate) fn roce(&self) -> Roce<'_> {
        Roce::parse(&self.bytes).unwrap()
    }

    /// One line: opcode, PSN, what counts.
    pub(crate) fn line(&self) -> String {
        describe(&self.roce())
    }

    /// As it comes to the peer.
    pub(crate) fn received(&self) -> Received<'_> {
        Received {
            src: self.path.src,
            dst: self.path.dst,
            src_port: self.path.src_port,
            traffic_class: self.path.traffic_class,
            hop_limit: self.path.hop_limit,
            bytes: &self.bytes,
        }
    }
}

pub(crate) fn describe(p: &Roce<'_>) -> String {
    let mut line = format!("{} psn={}", p.bth.opcode, p.bth.psn);
    let mut add = |s: String| {
        line.push(' ');
        line.push_str(&s);
    };
    if p.bth.ack_req {
        add("ackreq".into());
    }
    if p.bth.solicited {
        add("se".into());
    }
    if let Some(a) = p.ext.aeth {
        match a.syndrome {
            Syndrome::Ack(c) if c == Credit::UNLIMITED => add("ack".into()),
            Syndrome::Ack(c) => add(format!("ack credits={}", c.messages().unwrap())),
            Syndrome::RnrNak(t) => add(format!("rnr-nak {:?}", t.duration())),
            Syndrome::Nak(code) => add(format!("nak {code:?}")),
            Syndrome::Reserved(bits) => add(format!("reserved {bits:#x}")),
        }
        add(format!("msn={}", a.msn));
    }
    if let Some(r) = p.ext.reth {
        add(format!("va={:#x} rkey={:#x} dmalen={}", r.va, r.rkey, r.dma_len));
    }
    if let Some(a) = p.ext.atomic {
        add(format!("va={:#x} swap/add={} compare={}", a.va, a.swap_add, a.compare));
    }
    if let Some(a) = p.ext.atomic_ack {
        add(format!("original={}", a.original));
    }
    if let Some(i) = p.ext.imm {
        add(format!("imm={:?}", i.data));
    }
    if let Some(i) = p.ext.ieth {
        add(format!("inv={:#x}", i.rkey));
    }
    if let Some(d) = p.ext.deth {
        add(format!("qkey={:#x} from={}", d.qkey.0, d.src_qp));
    }
    if let Some(x) = p.ext.xrceth {
        add(format!("srqn={}", x.srqn));
    }
    if !p.payload.is_empty() {
        add(format!("len={}", p.payload.len()));
    }
    line
}

impl Transmit for Sink {
    fn room(&self) -> usize {
        if self.full { 0 } else { self.room.unwrap_or(64) }
    }

    fn why(&mut self, why: Why) {
        self.why = Some(why);
    }

    fn packet(&mut self, path: &Path, header: &[u8], payload: Payload<'_>, pad: usize) {
        let mut bytes = header.to_vec();
        payload.append_to(&mut bytes);
        bytes.resize(bytes.len() + pad + 4, 0);
        self.room = self.room.map(|room| room.checked_sub(1).unwrap());
        let why = self.why.take();
        self.sent.push(Sent { path: *path, bytes, why });
    }
}

/// A NIC with a PD, a CQ for all, a 64 KiB region with all rights, and virtual time.
pub(crate) struct Node {
    pub(crate) nic: Nic,
    pub(crate) now: Time,
    pub(crate) pd: PdId,
    pub(crate) cq: CqId,
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) mr: MrInfo,
    pub(crate) sink: Sink,
    pub(crate) peer: IpAddr,
}

pub(crate) fn all_rights() -> Access {
    Access::LOCAL_WRITE
        | Access::REMOTE_READ
        | Access::REMOTE_WRITE
        | Access::REMOTE_ATOMIC
        | Access::MW_BIND
        | Access::FLUSH_GLOBAL
        | Access::FLUSH_PERSISTENT
}

/// Where the region of a [`Node`] starts, as peers see it.
pub(crate) const BASE: u64 = 0x10_0000;
pub(crate) const SIZE: usize = 1 << 16;

impl Node {
    pub(crate) fn new(us: IpAddr, peer: IpAddr, edit: impl FnOnce(&mut NicConfig)) -> Self {
        let mut config = NicConfig::new(us);
        config.active_mtu = Mtu::B4096;
        edit(&mut config);
        let nic = Nic::new(config).unwrap();
        let pd = nic.memory().alloc_pd().unwrap();
        let cq = nic.create_cq(256).unwrap();
        let buffer = Buffer::zeroed(SIZE).unwrap();
        let backing = Backing::buffer(Arc::clone(&buffer));
        let mr = nic.memory().reg_mr(pd, backing, BASE, all_rights()).unwrap();
        let now = Time::from_nanos(1_000_000);
        Self { nic, now, pd, cq, buffer, mr, sink: Sink::default(), peer }
    }

    /// An SGE of the region.
    pub(crate) fn sge(&self, offset: u64, length: u32) -> Sge {
        Sge { addr: BASE + offset, length, lkey: self.mr.lkey }
    }

    pub(crate) fn init(&self, kind: QpKind) -> QpInit {
        let caps = QpCaps {
            max_send_wr: 64,
            max_recv_wr: 64,
            max_send_sge: 4,
            max_recv_sge: 4,
            max_inline_data: 128,
        };
        let cq = Some(self.cq);
        let (pd, srq, xrcd, sig_all) = (self.pd, None, None, false);
        QpInit { kind, pd, send_cq: cq, recv_cq: cq, srq, xrcd, caps, sig_all }
    }

    pub(crate) fn attr(&self) -> QpAttr {
        QpAttr {
            path_mtu: Mtu::B1024,
            qkey: Q_KEY,
            rq_psn: Psn::new(RQ_PSN),
            sq_psn: Psn::new(SQ_PSN),
            dest_qp: PEER_QPN,
            access: all_rights(),
            ah: AhAttr { dst: self.peer, ..AhAttr::default() },
            max_rd_atomic: 4,
            max_dest_rd_atomic: 4,
            min_rnr_timer: RnrTimer::new(12).unwrap(),
            // 4.096 µs · 2^10 = 4.194304 ms
            timeout: AckTimeout::new(10).unwrap(),
            retry_cnt: 7,
            rnr_retry: 7,
            ..QpAttr::default()
        }
    }

    /// A QP of `kind` in RTS, set as `edit` says.
    pub(crate) fn qp(&mut self, kind: QpKind, edit: impl FnOnce(&mut QpInit, &mut QpAttr)) -> QpId {
        let (mut init, mut attr) = (self.init(kind), self.attr());
        edit(&mut init, &mut attr);
        let qp = self.nic.create_qp(&init).unwrap();
        self.nic.connect_qp(qp, &attr).unwrap();
        qp
    }

    pub(crate) fn send(&mut self, qp: QpId, wr: &SendWr<'_>) {
        self.nic.post_send(self.now, qp, wr, &mut self.sink).unwrap();
    }

    /// A signaled SEND of `length` bytes from `offset`.
    pub(crate) fn send_bytes(&mut self, qp: QpId, wr_id: u64, offset: u64, length: u32) {
        let sges = [self.sge(offset, length)];
        self.send(qp, &SendWr::new(wr_id, SendOp::Send { imm: None }, &sges));
    }

    pub(crate) fn recv(&mut self, qp: QpId, wr_id: u64, offset: u64, length: u32) {
        let sges = [self.sge(offset, length)];
        self.nic.post_recv(self.now, qp, &RecvWr { wr_id, sges: &sges }).unwrap();
    }

    /// What was sent since the last call, a line each.
    pub(crate) fn sent(&mut self) -> Vec<String> {
        self.sink.sent.drain(..).map(|s| s.line()).collect()
    }

    pub(crate) fn completions(&mut self) -> Vec<Completion> {
        let mut all = Vec::new();
        self.nic.poll_cq(self.cq, &mut all, usize::MAX).unwrap();
        all
    }

    /// The completions since the last call: number and status.
    pub(crate) fn done(&mut self) -> Vec<(u64, WcStatus)> {
        self.completions().iter().map(|c| (c.wr_id, c.status)).collect()
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.nic.take_event()).collect()
    }

    /// Time goes on to the next deadline, which is done. Gives how long that took.
    pub(crate) fn next_deadline(&mut self) -> Option<Duration> {
        let deadline = self.nic.next_deadline()?;
        let wait = deadline.at.saturating_since(self.now);
        self.now = self.now.max(deadline.at);
        self.nic.expire(self.now, &mut self.sink);
        Some(wait)
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.nic.expire(self.now, &mut self.sink);
    }

    /// A packet of the hand-made peer arrives.
    pub(crate) fn arrive(&mut self, bth: Bth, ext: Ext, payload: &[u8]) {
        let bytes = bytes_of(bth, ext, payload);
        self.arrive_bytes(&bytes);
    }

    pub(crate) fn arrive_bytes(&mut self, bytes: &[u8]) {
        let packet = Received {
            src: self.peer,
            dst: self.nic.config().addresses[0],
            src_port: 0xc000,
            traffic_class: 0,
            hop_limit: 64,
            bytes,
        };
        self.nic.receive(self.now, &packet, &mut self.sink);
    }

    /// An ACK, RNR NAK or NAK of the peer for our QP.
    pub(crate) fn arrive_aeth(&mut self, qp: QpId, psn: u32, syndrome: Syndrome, msn: u32) {
        let bth = Bth::new(op("RC_ACKNOWLEDGE"), qp, Psn::new(psn));
        let ext = Ext { aeth: Some(Aeth::new(syndrome, Psn::new(msn))), ..Ext::NONE };
        self.arrive(bth, ext, &[]);
    }

    pub(crate) fn arrive_ack(&mut self, qp: QpId, psn: u32, msn: u32) {
        self.arrive_aeth(qp, psn, Syndrome::Ack(Credit::UNLIMITED), msn);
    }

    pub(crate) fn arrive_nak(&mut self, qp: QpId, psn: u32, code: NakCode, msn: u32) {
        self.arrive_aeth(qp, psn, Syndrome::Nak(code), msn);
    }

    /// A request of the peer for our QP.
    pub(crate) fn arrive_request(
        &mut self,
        qp: QpId,
        name: &str,
        psn: u32,
        ext: Ext,
        payload: &[u8],
    ) {
        let mut bth = Bth::new(op(name), qp, Psn::new(psn));
        bth.ack_req = !matches!(name.rsplit('_').next(), Some("FIRST" | "MIDDLE"));
        self.arrive(bth, ext, payload);
    }
}

pub(crate) fn bytes_of(bth: Bth, ext: Ext, payload: &[u8]) -> Vec<u8> {
    let packet = Roce::new(bth, ext, payload);
    let mut bytes = vec![0; packet.len()];
    packet.emit(&mut bytes).unwrap();
    bytes
}

pub(crate) fn op(name: &str) -> Opcode {
    Opcode::from_name(name).unwrap_or_else(|| panic!("no opcode {name}"))
}

/// A NIC whose peer is made by hand.
pub(crate) fn lab() -> Node {
    Node::new(US, PEER, |_| {})
}

pub(crate) fn lab_with(profile: Profile) -> Node {
    Node::new(US, PEER, |c| c.profile = profile)
}

/// Says of a packet, by its number and line, whether it is lost.
pub(crate) type Loses = Box<dyn FnMut(usize, &str) -> bool>;

/// Two NICs and what is between them: nothing but time.
pub(crate) struct Pair {
    pub(crate) a: Node,
    pub(crate) b: Node,
    /// What went over, both ways, a line each.
    pub(crate) log: Vec<String>,
    /// Says of each packet whether it is lost: its number from 0, and its line.
    pub(crate) lose: Loses,
    count: usize,
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(edit: impl Fn(&mut NicConfig)) -> Self {
        let (a, b) = (Node::new(US, PEER, &edit), Node::new(PEER, US, &edit));
        Self { a, b, log: Vec::new(), lose: Box::new(|_, _| false), count: 0 }
    }

    /// A QP of `kind` on each, connected with each other.
    pub(crate) fn connect(&mut self, kind: QpKind) -> (QpId, QpId) {
        self.connect_as(kind, |_, _| {})
    }

    pub(crate) fn connect_as(
        &mut self,
        kind: QpKind,
        edit: impl Fn(&mut QpInit, &mut QpAttr),
    ) -> (QpId, QpId) {
        let make = |node: &mut Node| {
            let (mut init, mut attr) = (node.init(kind), node.attr());
            edit(&mut init, &mut attr);
            (node.nic.create_qp(&init).unwrap(), attr)
        };
        let ((qa, attr_a), (qb, attr_b)) = (make(&mut self.a), make(&mut self.b));
        let psn = attr_a.sq_psn;
        let join = |node: &Node, own, other, attr: &QpAttr| {
            let attr = QpAttr { dest_qp: other, rq_psn: psn, sq_psn: psn, ..*attr };
            node.nic.connect_qp(own, &attr).unwrap();
        };
        join(&self.a, qa, qb, &attr_a);
        join(&self.b, qb, qa, &attr_b);
        (qa, qb)
    }

    /// Carries packets until none is left.
    pub(crate) fn run(&mut self) {
        loop {
            let mut moved = false;
            for to_b in [true, false] {
                let (from, to, mark) = if to_b {
                    (&mut self.a, &mut self.b, "→")
                } else {
                    (&mut self.b, &mut self.a, "←")
                };
                for packet in std::mem::take(&mut from.sink.sent) {
                    moved = true;
                    let line = packet.line();
                    let lost = (self.lose)(self.count, &line);
                    self.count += 1;
                    self.log.push(format!("{mark} {line}{}", if lost { " LOST" } else { "" }));
                    if !lost {
                        to.nic.receive(to.now, &packet.received(), &mut to.sink);
                    }
                }
                from.nic.pump(from.now, &mut from.sink);
            }
            if !moved {
                return;
            }
        }
    }

    /// Carries packets and lets time pass until nothing waits; panics if that takes for ever.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            self.run();
            let next = [&self.a, &self.b].map(|n| n.nic.next_deadline().map(|d| d.at));
            let Some(at) = next.into_iter().flatten().min() else {
                return;
            };
            for node in [&mut self.a, &mut self.b] {
                node.now = node.now.max(at);
                node.nic.expire(node.now, &mut node.sink);
            }
        }
        panic!("still busy after 10,000 deadlines:\n{}", self.log.join("\n"));
    }
}

pub(crate) fn bth_of(bytes: &[u8]) -> Bth {
    Bth::parse(bytes).unwrap().0
}
