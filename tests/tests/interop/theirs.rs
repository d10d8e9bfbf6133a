//! A node of the kernel's rxe, through a guest's agent.

use std::fmt::Write;
use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

use rxe_lab::{Completed, Reply, Session};
use urxe::{Access, Endpoint, QpKind, Qpn, SendFlags, SendOp};

use crate::node::{Dest, FORGER_PORT, Node, Piece, Region, Spec};
use crate::ours::connected;

pub struct Theirs {
    pub session: Session,
    address: IpAddr,
    pds: usize,
    regions: usize,
    /// Their keys.
    windows: Vec<u32>,
    ahs: usize,
    qps: Vec<(Qpn, Spec)>,
}

impl Theirs {
    pub fn open(session: Session, address: IpAddr) -> Self {
        let (qps, windows) = (Vec::new(), Vec::new());
        let mut node = Self { session, address, pds: 0, regions: 0, windows, ahs: 0, qps };
        node.pd();
        node.ask("cq size=4096");
        node.ask("srq pd=0 size=512");
        node
    }

    pub fn ask(&mut self, request: &str) -> Reply {
        self.session.ask(request).unwrap_or_else(|error| panic!("{error}"))
    }
}

fn sges(pieces: &[Piece]) -> String {
    pieces.iter().fold(String::new(), |mut text, Piece { region, part }| {
        write!(text, " sge={region}:{}:{}", part.start, part.len()).unwrap();
        text
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// An operation in the agent's words.
fn operation(op: SendOp, pieces: &[Piece]) -> String {
    let imm_of = |imm: Option<[u8; 4]>| {
        let number = imm.map(u32::from_be_bytes);
        number.map_or(String::new(), |n| format!("_imm imm={n}"))
    };
    let sges = sges(pieces);
    match op {
        SendOp::Send { imm } => format!("send{}{sges}", imm_of(imm)),
        SendOp::SendInvalidate { rkey } => format!("send_inv rkey={rkey}{sges}"),
        SendOp::Write { remote, rkey, imm } => {
            format!("write{} remote={remote} rkey={rkey}{sges}", imm_of(imm))
        }
        SendOp::Read { remote, rkey } => format!("read remote={remote} rkey={rkey}{sges}"),
        SendOp::CompareSwap { remote, rkey, compare, swap } => {
            format!("cas remote={remote} rkey={rkey} compare_add={compare} swap={swap}{sges}")
        }
        SendOp::FetchAdd { remote, rkey, add } => {
            format!("faa remote={remote} rkey={rkey} compare_add={add}{sges}")
        }
        SendOp::Flush { remote, length, rkey, scope, level } => {
            let (level, scope) = (level.bits(), scope as u8);
            let range = format!("remote={remote} length={length} rkey={rkey}");
            format!("flush {range} type={level} level={scope}")
        }
        SendOp::AtomicWrite { remote, rkey } => {
            let Piece { region, part } = &pieces[0];
            let at = part.start;
            format!("atomic_write remote={remote} rkey={rkey} mr={region} offset={at}")
        }
        SendOp::LocalInvalidate { rkey } => format!("local_inv rkey={rkey}"),
        SendOp::BindMw { .. } => unreachable!("binds have a call of their own"),
    }
}

impl Node for Theirs {
    fn name(&self) -> &'static str {
        "rxe"
    }

    fn pd(&mut self) -> usize {
        self.ask("pd");
        self.pds += 1;
        self.pds - 1
    }

    fn register(&mut self, pd: usize, len: usize, access: Access) -> Region {
        let reply = self.ask(&format!("mr pd={pd} length={len} access={}", access.bits()));
        self.regions += 1;
        let rkey = u32::try_from(reply.number("rkey").unwrap()).unwrap();
        Region { index: self.regions - 1, addr: reply.number("addr").unwrap(), rkey }
    }

    fn window(&mut self) -> usize {
        let reply = self.ask("mw pd=0 type=2");
        self.windows.push(u32::try_from(reply.number("rkey").unwrap()).unwrap());
        self.windows.len() - 1
    }

    fn qp(&mut self, spec: &Spec) -> usize {
        let kind = match spec.kind {
            QpKind::Rc => "rc",
            QpKind::Uc => "uc",
            _ => "ud",
        };
        let srq = if spec.shared { " srq=0" } else { "" };
        let all = u8::from(spec.signal_all);
        let reply = self.ask(&format!("qp pd=0 type={kind} cq=0 sig_all={all}{srq}"));
        let qpn = Qpn::new(u32::try_from(reply.number("qpn").unwrap()).unwrap());
        self.qps.push((qpn, *spec));
        self.qps.len() - 1
    }

    fn endpoint(&self, qp: usize) -> Endpoint {
        let (qpn, spec) = self.qps[qp];
        Endpoint { address: self.address, qpn, psn: spec.psn }
    }

    fn connect(&mut self, qp: usize, peer: Option<&Endpoint>) {
        let spec = self.qps[qp].1;
        let (psn, address) = (spec.psn.value(), self.address);
        let head = format!("modify qp={qp}");
        if !connected(spec.kind) {
            self.ask(&format!("{head} state=init pkey=0 port=1 qkey={}", spec.qkey.0));
            self.ask(&format!("{head} state=rtr"));
            self.ask(&format!("{head} state=rts sq_psn={psn}"));
            return;
        }
        let peer = peer.expect("it is connected");
        self.ask(&format!("{head} state=init pkey=0 port=1 access={}", spec.access.bits()));
        let reliable = spec.kind == QpKind::Rc;
        let (depth, mtu) = (spec.depth, spec.mtu.code());
        let responder = format!("max_dest_rd={depth} min_rnr=12");
        self.ask(&format!(
            "{head} state=rtr mtu={mtu} dest={} rq_psn={} dgid={} sgid={address} {}",
            peer.qpn.value(),
            peer.psn.value(),
            peer.address,
            if reliable { &responder } else { "" }
        ));
        let (retries, rnr) = (spec.retries, spec.rnr_retries);
        let requester = format!("timeout=14 retry={retries} rnr_retry={rnr} max_rd={depth}");
        let requester = if reliable { &requester } else { "" };
        self.ask(&format!("{head} state=rts sq_psn={psn} {requester}"));
    }

    fn destroy(&mut self, qp: usize) {
        self.ask(&format!("destroy qp={qp}"));
    }

    fn join(&mut self, qp: usize, group: IpAddr) {
        self.ask(&format!("attach qp={qp} group={group}"));
    }

    fn post(&mut self, qp: usize, id: u64, op: SendOp, pieces: &[Piece], flags: SendFlags) {
        let op = operation(op, pieces);
        let flags = flags.bits();
        self.ask(&format!("send qp={qp} id={id} flags={flags} op={op}"));
    }

    fn datagram(&mut self, qp: usize, id: u64, dest: &Dest, imm: Option<[u8; 4]>, piece: &Piece) {
        self.ask(&format!("ah pd=0 dgid={} sgid={}", dest.address, self.address));
        self.ahs += 1;
        let op = operation(SendOp::Send { imm }, std::slice::from_ref(piece));
        let (ah, qpn, qkey) = (self.ahs - 1, dest.qpn, dest.qkey.0);
        self.ask(&format!("send qp={qp} id={id} ah={ah} dest={qpn} qkey={qkey} op={op}"));
    }

    fn bind(&mut self, qp: usize, id: u64, window: usize, piece: &Piece, access: Access) -> u32 {
        let old = self.windows[window];
        let rkey = (old & !0xff) | (old.wrapping_add(1) & 0xff);
        self.windows[window] = rkey;
        let Piece { region, part } = piece;
        self.ask(&format!(
            "send qp={qp} id={id} op=bind mw={window} rkey={rkey} mr={region} offset={} length={} \
             access={}",
            part.start,
            part.len(),
            access.bits()
        ));
        rkey
    }

    fn receive(&mut self, qp: usize, id: u64, pieces: &[Piece]) {
        let queue = if self.qps[qp].1.shared { "srq=0".to_owned() } else { format!("qp={qp}") };
        self.ask(&format!("recv {queue} id={id}{}", sges(pieces)));
    }

    fn poll(&mut self, count: usize, patience: Duration) -> Vec<Completed> {
        let reply = self.ask(&format!("poll cq=0 count={count} ms={}", patience.as_millis()));
        reply.completions().unwrap()
    }

    fn write(&mut self, region: usize, at: usize, bytes: &[u8]) {
        let hex = hex(bytes);
        self.ask(&format!("write mr={region} offset={at} hex={hex}"));
    }

    fn read(&mut self, region: usize, part: Range<usize>) -> Vec<u8> {
        let (at, len) = (part.start, part.len());
        let reply = self.ask(&format!("read mr={region} offset={at} length={len}"));
        let hex = if len == 0 { "" } else { reply.text("hex").unwrap() };
        let byte = |i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap();
        (0..len).map(byte).collect()
    }

    fn fill(&mut self, Piece { region, part }: &Piece, seed: usize) {
        let (at, len) = (part.start, part.len());
        self.ask(&format!("fill mr={region} offset={at} length={len} seed={seed}"));
    }

    fn differs(&mut self, Piece { region, part }: &Piece, seed: usize) -> Option<String> {
        let (at, len) = (part.start, part.len());
        let reply = self.ask(&format!("check mr={region} offset={at} length={len} seed={seed}"));
        (reply.number("same").unwrap() != 1).then(|| format!("{reply:?}"))
    }

    fn packet(&mut self, to: IpAddr, bytes: &[u8]) {
        let hex = hex(bytes);
        self.ask(&format!("packet to={to} from={FORGER_PORT} hex={hex}"));
    }

    fn counters(&mut self) -> String {
        let folder = "/sys/class/infiniband/rxe0/ports/1/hw_counters";
        let told = self.session.exec(&format!("cd {folder} && grep -v '^0$' *"));
        told.map_or_else(
            |e| e.to_string(),
            |(_, text)| format!("rxe counted {}", text.replace('\n', " ")),
        )
    }
}
