//! One NIC with any number of QPs and regions, and a peer that costs next to nothing: what is
//! measured is the engine.
#![expect(clippy::unwrap_used, reason = "where setting up fails nothing can be measured")]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use urxe_engine::{
    AhAttr, CqId, Nic, NicConfig, Path, Payload, QpAttr, QpCaps, QpId, QpInit, QpKind, Received,
    RecvWr, SendOp, SendWr, Time, Transmit, WcStatus,
};
use urxe_memory::{Access, Backing, Buffer, PdId, Sge};
use urxe_wire::{AckTimeout, Aeth, Bth, Credit, Ext, Mtu, Opcode, Psn, Qpn, Reth, Roce, Syndrome};

const US: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const BASE: u64 = 0x10_0000;
/// The longest message: one packet.
const LONGEST: u32 = 4096;

/// What is done, over and over, each time on a QP and a region chosen at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Post a SEND, its packet goes out, its ACK comes, poll its completion.
    Send,
    /// As `Send`, an RDMA WRITE.
    Write,
    /// As `Write`, but each QP always has one in flight, so that all of their timers run.
    Busy,
    /// Post a receive, a SEND ONLY comes, an ACK goes out, poll its completion.
    Receive,
    /// An RDMA WRITE ONLY comes, an ACK goes out.
    Written,
}

impl Way {
    /// Each of them.
    pub const ALL: [Self; 5] = [Self::Send, Self::Write, Self::Busy, Self::Receive, Self::Written];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Write => "write",
            Self::Busy => "busy",
            Self::Receive => "receive",
            Self::Written => "written",
        }
    }
}

/// What a load is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What is done.
    pub way: Way,
    /// QPs.
    pub qps: usize,
    /// How many of them are ever used, spread over all; 0 for all.
    pub active: usize,
    /// Memory regions.
    pub regions: usize,
    /// Bytes of a message, at most 4096: one packet.
    pub bytes: u32,
    /// Whether the payload of what goes out is copied behind its header, as a port's batch does.
    pub copies: bool,
}

impl Shape {
    /// One QP, one region, 64 bytes, no copy.
    #[must_use]
    pub const fn of(way: Way) -> Self {
        Self { way, qps: 1, active: 0, regions: 1, bytes: 64, copies: false }
    }
}

/// Keeps the PSN of the last packet.
#[derive(Debug, Default)]
struct Last {
    packets: u64,
    psn: [u8; 3],
    /// Where packets are copied to.
    batch: Option<Vec<u8>>,
}

impl Transmit for Last {
    fn room(&self) -> usize {
        64
    }

    fn packet(&mut self, _: &Path, header: &[u8], payload: Payload<'_>, _: usize) {
        self.packets += 1;
        self.psn.copy_from_slice(&header[9..12]);
        if let Some(batch) = &mut self.batch {
            batch.clear();
            batch.extend_from_slice(header);
            payload.append_to(batch);
        }
    }
}

/// A NIC at work.
#[derive(Debug)]
pub struct Load {
    nic: Nic,
    cq: CqId,
    qps: Vec<Entry>,
    /// How many of them are used, spread over all.
    active: usize,
    /// The regions' keys.
    keys: Vec<u32>,
    way: Way,
    bytes: u32,
    random: u64,
    now: Time,
    sink: Last,
    /// The packet that comes, but for its QP, PSN and key.
    packet: Vec<u8>,
}

#[derive(Debug)]
struct Entry {
    qpn: QpId,
    /// Of the packet in flight, or the next to come.
    psn: u32,
}

impl Load {
    /// Makes the NIC, its QPs and regions.
    ///
    /// # Panics
    /// Where the shape has no QP, no region or longer messages than a packet holds.
    #[must_use]
    pub fn new(shape: &Shape) -> Self {
        let Shape { way, qps, regions, bytes, copies, .. } = *shape;
        assert!(qps > 0 && regions > 0 && bytes <= LONGEST, "{shape:?}");
        let mut config = NicConfig::new(US);
        config.active_mtu = Mtu::B4096;
        let nic = Nic::new(config).unwrap();
        let pd = nic.memory().alloc_pd().unwrap();
        let cq = nic.create_cq(256).unwrap();
        let buffer = Buffer::zeroed(LONGEST as usize).unwrap();
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        let register = |_| {
            let backing = Backing::buffer(Arc::clone(&buffer));
            nic.memory().reg_mr(pd, backing, BASE, access).unwrap().lkey
        };
        let keys = (0..regions).map(register).collect();
        let qps: Vec<_> = (0..qps).map(|_| Entry { qpn: connect(&nic, pd, cq), psn: 0 }).collect();
        let (random, now) = (0x2545_f491_4f6c_dd1d, Time::from_nanos(1_000_000));
        let batch = copies.then(|| Vec::with_capacity(2 * LONGEST as usize));
        let (sink, packet) = (Last { batch, ..Last::default() }, packet(way, bytes));
        let active = if shape.active == 0 { qps.len() } else { shape.active };
        let mut load = Self { nic, cq, qps, active, keys, way, bytes, random, now, sink, packet };
        if way == Way::Busy {
            (0..load.qps.len()).for_each(|at| load.begin(at, 0));
        }
        load
    }

    /// One message: the engine handles two packets.
    ///
    /// # Panics
    /// Where it does not complete.
    pub fn step(&mut self) {
        let (at, mr) = self.choose();
        self.now = Time::from_nanos(self.now.as_nanos() + 100);
        match self.way {
            Way::Send | Way::Write => {
                self.begin(at, mr);
                self.acknowledge(at);
                self.poll();
            }
            Way::Busy => {
                self.acknowledge(at);
                self.poll();
                self.begin(at, mr);
            }
            Way::Receive => {
                let sges = [self.sge(mr)];
                let wr = RecvWr { wr_id: 1, sges: &sges };
                self.nic.post_recv(self.now, self.qps[at].qpn, &wr).unwrap();
                self.come(at);
                self.poll();
            }
            Way::Written => {
                let key = self.keys[mr].to_be_bytes();
                self.packet[20..24].copy_from_slice(&key);
                self.come(at);
            }
        }
    }

    /// Packets that have gone out.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sink.packets
    }

    /// A random QP and a random region; the sequence is the same in every run (xorshift64).
    fn choose(&mut self) -> (usize, usize) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let at = |bits: u64, len: usize| (usize::try_from(bits & 0xffff_ffff).unwrap() * len) >> 32;
        let spread = self.qps.len() / self.active;
        let qp = at(self.random, self.active) * spread;
        (qp, at(self.random >> 32, self.keys.len()))
    }

    fn sge(&self, mr: usize) -> Sge {
        Sge { addr: BASE, length: self.bytes, lkey: self.keys[mr] }
    }

    fn begin(&mut self, at: usize, mr: usize) {
        let sges = [self.sge(mr)];
        let op = match self.way {
            Way::Send => SendOp::Send { imm: None },
            _ => SendOp::Write { remote: BASE, rkey: 1, imm: None },
        };
        let wr = SendWr::new(1, op, &sges);
        let entry = &mut self.qps[at];
        self.nic.post_send(self.now, entry.qpn, &wr, &mut self.sink).unwrap();
        let [a, b, c] = self.sink.psn;
        entry.psn = u32::from_be_bytes([0, a, b, c]);
    }

    fn acknowledge(&mut self, at: usize) {
        let entry = &self.qps[at];
        self.packet[5..8].copy_from_slice(&entry.qpn.value().to_be_bytes()[1..]);
        self.packet[9..12].copy_from_slice(&entry.psn.to_be_bytes()[1..]);
        self.arrive();
    }

    fn come(&mut self, at: usize) {
        let entry = &mut self.qps[at];
        self.packet[5..8].copy_from_slice(&entry.qpn.value().to_be_bytes()[1..]);
        self.packet[9..12].copy_from_slice(&entry.psn.to_be_bytes()[1..]);
        entry.psn = (entry.psn + 1) & 0x00ff_ffff;
        self.arrive();
    }

    fn arrive(&mut self) {
        let received = Received {
            src: PEER,
            dst: US,
            src_port: 0xc000,
            traffic_class: 0,
            hop_limit: 64,
            bytes: &self.packet,
        };
        self.nic.receive(self.now, &received, &mut self.sink);
    }

    fn poll(&self) {
        let done = self.nic.poll_one(self.cq).unwrap().expect("each message completes");
        assert_eq!(done.status, WcStatus::Success);
    }
}

fn connect(nic: &Nic, pd: PdId, cq: CqId) -> QpId {
    let caps = QpCaps {
        max_send_wr: 16,
        max_recv_wr: 16,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 0,
    };
    let (kind, cq, srq, xrcd, sig_all) = (QpKind::Rc, Some(cq), None, None, false);
    let init = QpInit { kind, pd, send_cq: cq, recv_cq: cq, srq, xrcd, caps, sig_all };
    let qp = nic.create_qp(&init).unwrap();
    let attr = QpAttr {
        path_mtu: Mtu::B4096,
        dest_qp: Qpn::new(0x77),
        access: Access::REMOTE_WRITE,
        ah: AhAttr { dst: PEER, ..AhAttr::default() },
        max_rd_atomic: 1,
        max_dest_rd_atomic: 1,
        timeout: AckTimeout::new(14).unwrap(),
        retry_cnt: 7,
        rnr_retry: 7,
        ..QpAttr::default()
    };
    nic.connect_qp(qp, &attr).unwrap();
    qp
}

fn packet(way: Way, length: u32) -> Vec<u8> {
    let name = match way {
        Way::Send | Way::Write | Way::Busy => "RC_ACKNOWLEDGE",
        Way::Receive => "RC_SEND_ONLY",
        Way::Written => "RC_RDMA_WRITE_ONLY",
    };
    let mut bth = Bth::new(Opcode::from_name(name).unwrap(), Qpn::new(0), Psn::ZERO);
    let payload = vec![7; length as usize];
    let (mut ext, mut bytes) = (Ext::NONE, &payload[..]);
    match way {
        Way::Send | Way::Write | Way::Busy => {
            ext.aeth = Some(Aeth::new(Syndrome::Ack(Credit::UNLIMITED), Psn::ZERO));
            bytes = &[];
        }
        Way::Receive => bth.ack_req = true,
        Way::Written => {
            bth.ack_req = true;
            ext.reth = Some(Reth { va: BASE, rkey: 0, dma_len: length });
        }
    }
    let roce = Roce::new(bth, ext, bytes);
    let mut out = vec![0; roce.len()];
    roce.emit(&mut out).unwrap();
    out
}
