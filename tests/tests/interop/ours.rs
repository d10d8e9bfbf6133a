//! A node of urxe.

use std::net::{IpAddr, UdpSocket};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery};
use rxe_lab::{Completed, Watch};
use urxe::{
    Access, AckTimeout, Address, Ah, AhAttr, Completion, Config, Context, Cq, Endpoint, Error, Mr,
    MwType, Pd, PortError, PortKind, Profile, Qp, QpKind, Qpn, RnrTimer, SendFlags, SendOp, SendWr,
    Sge, Srq, SrqAttr, UdDest, WcFlags,
};

use crate::bench::{LOOK, alive};
use crate::node::{Dest, FORGER_PORT, Node, PATIENCE, Piece, Region, Spec, pattern};

pub struct Ours {
    qps: Vec<(Option<Qp>, Spec)>,
    ahs: Vec<Ah>,
    windows: Vec<urxe::Mw>,
    mrs: Vec<Mr>,
    srq: Srq,
    cq: Cq,
    pds: Vec<Pd>,
    pub context: Context,
    watch: Watch,
}

/// What a device of ours is opened with.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Of the peer's guest.
    pub watch: Watch,
    pub address: IpAddr,
    pub port: PortKind,
    pub pcap: Option<PathBuf>,
}

impl Ours {
    pub fn open(setting: &Setting) -> Self {
        let config = Config {
            address: Address::Of(setting.address),
            port: setting.port.clone(),
            pcap: setting.pcap.clone(),
            // A guest may stand still for longer than seven timeouts last.
            profile: Profile { infinite_retry_at_7: true, ..Profile::STRICT },
            ..Config::default()
        };
        // A program that was started meanwhile may hold the last device's sockets a little longer.
        let end = Instant::now() + PATIENCE;
        let context = loop {
            match Context::open(&config) {
                Err(Error::Port(PortError::Taken(_))) if Instant::now() < end => {
                    std::thread::yield_now();
                }
                opened => break opened.unwrap(),
            }
        };
        let pd = context.alloc_pd().unwrap();
        let cq = context.create_cq(4096).unwrap();
        let srq = pd.create_srq(SrqAttr { max_wr: 512, max_sge: 4, limit: 0 }).unwrap();
        let (qps, ahs, windows, mrs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let watch = setting.watch.clone();
        Self { qps, ahs, windows, mrs, srq, cq, pds: vec![pd], context, watch }
    }

    fn qp_at(&self, qp: usize) -> &Qp {
        self.qps[qp].0.as_ref().expect("it was destroyed")
    }

    fn sges(&self, pieces: &[Piece]) -> Vec<Sge> {
        pieces.iter().map(|piece| self.mrs[piece.region].sge(piece.part.clone())).collect()
    }
}

fn completed(done: &Completion) -> Completed {
    let invalidated = done.flags.contains(WcFlags::WITH_INV);
    Completed {
        wr_id: done.wr_id,
        status: done.status as u32,
        opcode: done.opcode as u32,
        byte_len: done.byte_len,
        flags: done.flags.bits(),
        extra: if invalidated { done.invalidated } else { u32::from_be_bytes(done.imm) },
        qpn: done.qpn.value(),
        src_qp: done.src_qp.value(),
    }
}

impl Node for Ours {
    fn name(&self) -> &'static str {
        "urxe"
    }

    fn pd(&mut self) -> usize {
        self.pds.push(self.context.alloc_pd().unwrap());
        self.pds.len() - 1
    }

    fn register(&mut self, pd: usize, len: usize, access: Access) -> Region {
        let mr = self.pds[pd].register(len, access).unwrap();
        let region = Region { index: self.mrs.len(), addr: mr.addr(), rkey: mr.rkey() };
        self.mrs.push(mr);
        region
    }

    fn window(&mut self) -> usize {
        self.windows.push(self.pds[0].alloc_mw(MwType::Type2B).unwrap());
        self.windows.len() - 1
    }

    fn qp(&mut self, spec: &Spec) -> usize {
        let builder = self.pds[0].qp(spec.kind).cq(&self.cq).access(spec.access);
        let builder = if spec.shared { builder.srq(&self.srq) } else { builder };
        let qp = builder.signal_all(spec.signal_all).attr(|attr| {
            attr.path_mtu = spec.mtu;
            attr.sq_psn = spec.psn;
            (attr.max_rd_atomic, attr.max_dest_rd_atomic) = (spec.depth, spec.depth);
            (attr.retry_cnt, attr.rnr_retry) = (spec.retries, spec.rnr_retries);
            attr.timeout = AckTimeout::new(14).unwrap();
            attr.min_rnr_timer = RnrTimer::new(12).unwrap();
        });
        self.qps.push((Some(qp.build().unwrap()), *spec));
        self.qps.len() - 1
    }

    fn endpoint(&self, qp: usize) -> Endpoint {
        self.qp_at(qp).endpoint()
    }

    fn connect(&mut self, qp: usize, peer: Option<&Endpoint>) {
        match peer {
            Some(peer) => self.qp_at(qp).connect(peer).unwrap(),
            None => self.qp_at(qp).ready(self.qps[qp].1.qkey).unwrap(),
        }
    }

    fn destroy(&mut self, qp: usize) {
        self.qps[qp].0 = None;
    }

    fn join(&mut self, qp: usize, group: IpAddr) {
        self.qp_at(qp).attach_mcast(group).unwrap();
    }

    fn post(&mut self, qp: usize, id: u64, op: SendOp, pieces: &[Piece], flags: SendFlags) {
        let sges = self.sges(pieces);
        let inline = if flags.contains(SendFlags::INLINE) {
            pieces.iter().flat_map(|p| self.mrs[p.region].to_vec(p.part.clone()).unwrap()).collect()
        } else {
            Vec::new()
        };
        let wr = SendWr { flags, inline: &inline, ..SendWr::new(id, op, &sges) };
        self.qp_at(qp).post(&wr).unwrap();
    }

    fn datagram(&mut self, qp: usize, id: u64, dest: &Dest, imm: Option<[u8; 4]>, piece: &Piece) {
        let attr = AhAttr { dst: dest.address, ..AhAttr::default() };
        let ah = self.pds[0].create_ah(&attr).unwrap();
        let to = UdDest { ah: ah.id(), qpn: Qpn::new(dest.qpn), qkey: dest.qkey };
        let sges = self.sges(std::slice::from_ref(piece));
        let wr = SendWr { dest: Some(to), ..SendWr::new(id, SendOp::Send { imm }, &sges) };
        self.qp_at(qp).post(&wr).unwrap();
        self.ahs.push(ah);
    }

    fn bind(&mut self, qp: usize, id: u64, window: usize, piece: &Piece, access: Access) -> u32 {
        let (window, mr) = (&self.windows[window], &self.mrs[piece.region]);
        self.qp_at(qp).bind_mw(id, window, mr, piece.part.clone(), access).unwrap()
    }

    fn receive(&mut self, qp: usize, id: u64, pieces: &[Piece]) {
        let sges = self.sges(pieces);
        if self.qps[qp].1.shared {
            self.srq.post_recv(id, &sges).unwrap();
        } else {
            self.qp_at(qp).post_recv(id, &sges).unwrap();
        }
    }

    fn poll(&mut self, count: usize, patience: Duration) -> Vec<Completed> {
        let end = Instant::now() + patience;
        let mut got = Vec::new();
        while got.len() < count {
            let left = end.saturating_duration_since(Instant::now());
            match self.cq.wait_for(left.min(LOOK)) {
                Ok(done) => got.push(completed(&done)),
                Err(_) if left <= LOOK => break,
                Err(_) => alive(&self.watch),
            }
        }
        got
    }

    fn write(&mut self, region: usize, at: usize, bytes: &[u8]) {
        self.mrs[region].write(at, bytes).unwrap();
    }

    fn read(&mut self, region: usize, part: Range<usize>) -> Vec<u8> {
        self.mrs[region].to_vec(part).unwrap()
    }

    fn fill(&mut self, piece: &Piece, seed: usize) {
        self.write(piece.region, piece.part.start, &pattern(seed, piece.part.len()));
    }

    fn differs(&mut self, piece: &Piece, seed: usize) -> Option<String> {
        let wanted = pattern(seed, piece.part.len());
        let got = self.read(piece.region, piece.part.clone());
        let at = (0..got.len()).find(|&i| got[i] != wanted[i])?;
        Some(format!("at {at}: {}, wanted {}", got[at], wanted[at]))
    }

    fn packet(&mut self, to: IpAddr, bytes: &[u8]) {
        let socket = UdpSocket::bind((self.context.address(), FORGER_PORT)).unwrap();
        if to.is_ipv4() {
            // The IPv4 identification is then 0.
            sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DO).unwrap();
        }
        assert_eq!(socket.send_to(bytes, (to, urxe_wire::ROCE_UDP_PORT)).unwrap(), bytes.len());
    }

    fn counters(&mut self) -> String {
        let port = self.context.port_stats();
        format!("urxe counted {:?}, its port {port:?}", self.context.counters())
    }
}

/// Whether a QP of this kind has a peer.
pub const fn connected(kind: QpKind) -> bool {
    matches!(kind, QpKind::Rc | QpKind::Uc)
}
