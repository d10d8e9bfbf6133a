//! A NIC with QPs of every kind towards a hostile peer, and one QP towards an honest one.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use urxe_engine::{
    AhAttr, AhId, AttrMask, CqId, Nic, NicConfig, Path, Payload, Profile, QpAttr, QpCaps, QpId,
    QpInit, QpKind, QpState, Received, RecvWr, SendFlags, SendOp, SendWr, SrqAttr, SrqInit, Time,
    Transmit, UdDest,
};
use urxe_memory::{Access, Backing, Buffer, MrInfo, PdId, Sge};
use urxe_wire::{AckTimeout, FlushLevel, FlushScope, Mtu, Psn, QKey, Qpn, RnrTimer};

use super::hostile;
use crate::fuzz::choices::Choices;

const US: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const FRIEND: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
pub(super) const HOSTILE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));
const SIZE: usize = 8192;
pub(super) const BASE: u64 = 0x1000;
const SECRET: u8 = 0xa5;

/// What left a NIC.
#[derive(Default)]
pub(super) struct Sink {
    pub(super) sent: Vec<(Path, Vec<u8>)>,
    full: bool,
}

impl Transmit for Sink {
    fn room(&self) -> usize {
        if self.full { 0 } else { 64 }
    }

    fn packet(&mut self, path: &Path, header: &[u8], payload: Payload<'_>, pad: usize) {
        let mut bytes = header.to_vec();
        payload.append_to(&mut bytes);
        bytes.resize(bytes.len() + pad + 4, 0);
        self.sent.push((*path, bytes));
    }
}

/// A NIC and what a program has of it.
pub(super) struct Host {
    pub(super) nic: Nic,
    pd: PdId,
    cq: CqId,
    buffer: Arc<Buffer>,
    pub(super) mr: MrInfo,
}

fn rights() -> Access {
    Access::LOCAL_WRITE
        | Access::REMOTE_READ
        | Access::REMOTE_WRITE
        | Access::REMOTE_ATOMIC
        | Access::MW_BIND
        | Access::FLUSH_GLOBAL
}

impl Host {
    fn new(address: IpAddr, profile: Profile) -> Self {
        let config = NicConfig { profile, ..NicConfig::new(address) };
        let nic = Nic::new(config).expect("a plain configuration");
        let pd = nic.memory().alloc_pd().expect("the first PD");
        let cq = nic.create_cq(4096).expect("the first CQ");
        let buffer = Buffer::zeroed(SIZE).expect("8 KiB");
        let backing = Backing::buffer(Arc::clone(&buffer));
        let mr = nic.memory().reg_mr(pd, backing, BASE, rights()).expect("the first region");
        Self { nic, pd, cq, buffer, mr }
    }

    fn qp(&self, kind: QpKind, pd: PdId, cq: CqId, more: impl FnOnce(&mut QpInit)) -> QpId {
        let caps = QpCaps {
            max_send_wr: 16,
            max_recv_wr: 16,
            max_send_sge: 2,
            max_recv_sge: 2,
            max_inline_data: 32,
        };
        let cq = Some(cq);
        let (srq, xrcd, sig_all) = (None, None, true);
        let mut init = QpInit { kind, pd, send_cq: cq, recv_cq: cq, srq, xrcd, caps, sig_all };
        more(&mut init);
        self.nic.create_qp(&init).expect("a plain QP")
    }
}

fn attr(dst: IpAddr, dest_qp: Qpn) -> QpAttr {
    QpAttr {
        path_mtu: Mtu::B256,
        qkey: QKey(7),
        rq_psn: Psn::new(0x00ff_fff0),
        sq_psn: Psn::new(0x00ff_fff0),
        dest_qp,
        access: rights(),
        ah: AhAttr { dst, ..AhAttr::default() },
        max_rd_atomic: 4,
        max_dest_rd_atomic: 4,
        min_rnr_timer: RnrTimer::new(1).expect("a code"),
        timeout: AckTimeout::new(5).expect("a code"),
        retry_cnt: 7,
        rnr_retry: 7,
        ..QpAttr::default()
    }
}

/// The whole scene.
pub(super) struct World {
    pub(super) us: Host,
    friend: Host,
    /// QPs that the hostile peer sends to.
    pub(super) qps: Vec<QpId>,
    /// Our QP towards the friend, and its CQ; memory of a PD of its own.
    safe: (QpId, CqId, u32),
    secret: Arc<Buffer>,
    pub(super) secret_rkey: u32,
    friend_qp: QpId,
    ah: AhId,
    now: Time,
    pub(super) sink: Sink,
    friend_sink: Sink,
    posted: u64,
    completed: u64,
}

impl World {
    pub(super) fn new(flavour: u8) -> Self {
        let profile = Profile::ALL[usize::from(flavour) % Profile::ALL.len()];
        let us = Host::new(US, profile);
        let friend = Host::new(FRIEND, Profile::STRICT);
        let (qps, ah) = hostile_qps(&us);
        // What the hostile peer must never reach: another PD, no remote rights.
        let pd = us.nic.memory().alloc_pd().expect("the second PD");
        let cq = us.nic.create_cq(64).expect("the second CQ");
        let secret = Buffer::zeroed(SIZE).expect("8 KiB");
        secret.write(0, &[SECRET; SIZE]).expect("its own length");
        let backing = Backing::buffer(Arc::clone(&secret));
        let access = Access::LOCAL_WRITE;
        let mr = us.nic.memory().reg_mr(pd, backing, BASE, access).expect("a second region");
        let safe = us.qp(QpKind::Rc, pd, cq, |_| {});
        let friend_qp = friend.qp(QpKind::Rc, friend.pd, friend.cq, |_| {});
        us.nic.connect_qp(safe, &attr(FRIEND, friend_qp)).expect("a plain connection");
        friend.nic.connect_qp(friend_qp, &attr(US, safe)).expect("a plain connection");
        Self {
            us,
            friend,
            qps,
            safe: (safe, cq, mr.lkey),
            secret,
            secret_rkey: mr.rkey,
            friend_qp,
            ah,
            now: Time::from_nanos(1),
            sink: Sink::default(),
            friend_sink: Sink::default(),
            posted: 0,
            completed: 0,
        }
    }

    /// One operation.
    pub(super) fn step(&mut self, c: &mut Choices<'_>) {
        match c.byte() % 12 {
            0 | 1 => self.post_send(c),
            2 => self.post_recv(c),
            3..=5 => {
                let bytes = hostile::packet(self, c);
                self.arrive(&bytes, c.byte());
            }
            6 => {
                let n = c.below(200);
                let bytes = c.bytes(n);
                self.arrive(bytes, 0);
            }
            7 => self.pass(Duration::from_micros(u64::from(c.number() % 100_000))),
            8 => self.modify(c),
            9 => self.sink.full = c.byte() & 1 != 0,
            10 => self.renew_memory(c),
            _ => self.poll(),
        }
        self.carry();
    }

    fn arrive(&mut self, bytes: &[u8], traffic_class: u8) {
        let packet = Received {
            src: HOSTILE,
            dst: US,
            src_port: 0xc000,
            traffic_class,
            hop_limit: 64,
            bytes,
        };
        self.us.nic.receive(self.now, &packet, &mut self.sink);
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.us.nic.expire(self.now, &mut self.sink);
        self.friend.nic.expire(self.now, &mut self.friend_sink);
    }

    fn post_send(&mut self, c: &mut Choices<'_>) {
        let qp = self.qps[c.below(self.qps.len())];
        let (remote, rkey) = (u64::from(c.byte()) * 8, c.number());
        let imm = (c.byte() & 1 != 0).then_some([1, 2, 3, 4]);
        let (scope, level) = (FlushScope::Range, FlushLevel::GLOBAL);
        let op = match c.byte() % 9 {
            0 => SendOp::Send { imm },
            1 => SendOp::Write { remote, rkey, imm },
            2 => SendOp::Read { remote, rkey },
            3 => SendOp::CompareSwap { remote, rkey, compare: 0, swap: 1 },
            4 => SendOp::FetchAdd { remote, rkey, add: 1 },
            5 => SendOp::Flush { remote, length: 8, rkey, scope, level },
            6 => SendOp::AtomicWrite { remote, rkey },
            7 => SendOp::SendInvalidate { rkey },
            _ => SendOp::LocalInvalidate { rkey },
        };
        let length = if c.byte() & 1 == 0 { 8 } else { c.number() % 3000 };
        let sges = [Sge { addr: BASE + u64::from(c.byte()), length, lkey: self.us.mr.lkey }];
        let dest = UdDest { ah: self.ah, qpn: Qpn::new(c.number()), qkey: QKey(7) };
        let fence = if c.byte() & 1 == 0 { SendFlags::FENCE } else { SendFlags::empty() };
        let wr = SendWr {
            dest: (c.byte() & 1 == 0).then_some(dest),
            flags: SendFlags::SIGNALED | fence,
            ..SendWr::new(self.posted, op, &sges)
        };
        let posted = self.us.nic.post_send(self.now, qp, &wr, &mut self.sink);
        self.posted += u64::from(posted.is_ok());
    }

    fn post_recv(&mut self, c: &mut Choices<'_>) {
        let qp = self.qps[c.below(self.qps.len())];
        let length = c.number() % 4096;
        let sges = [Sge { addr: BASE + u64::from(c.byte()), length, lkey: self.us.mr.lkey }];
        let wr = RecvWr { wr_id: self.posted, sges: &sges };
        self.posted += u64::from(self.us.nic.post_recv(self.now, qp, &wr).is_ok());
    }

    fn modify(&mut self, c: &mut Choices<'_>) {
        let qp = self.qps[c.below(self.qps.len())];
        let to = QpState::ALL[c.below(QpState::ALL.len())];
        let mut new = attr(HOSTILE, Qpn::new(c.number() % 64));
        new.qp_state = to;
        let mask = if c.byte() & 1 == 0 {
            AttrMask::STATE | AttrMask::from_bits_truncate(c.number())
        } else {
            AttrMask::STATE
        };
        // Most of these are refused; what counts is that none breaks anything.
        let _ = self.us.nic.modify_qp(qp, &new, mask);
        if c.byte() & 1 == 0 {
            let _ = self.us.nic.connect_qp(qp, &attr(HOSTILE, new.dest_qp));
        }
    }

    /// Deregisters the region under traffic and registers it anew.
    fn renew_memory(&mut self, c: &mut Choices<'_>) {
        let access = if c.byte() & 1 == 0 { rights() } else { Access::LOCAL_WRITE };
        let memory = self.us.nic.memory();
        if memory.dereg_mr(self.us.mr.id).is_ok() {
            let backing = Backing::buffer(Arc::clone(&self.us.buffer));
            let mr = memory.reg_mr(self.us.pd, backing, BASE, access);
            self.us.mr = mr.expect("there was one a moment ago");
        }
    }

    fn poll(&mut self) {
        let mut all = Vec::new();
        let polled = self.us.nic.poll_cq(self.us.cq, &mut all, usize::MAX);
        self.completed += polled.expect("the CQ exists") as u64;
        assert!(self.completed <= self.posted, "more completions than work requests");
        while self.us.nic.take_event().is_some() {}
    }

    /// Carries what is for the friend, and back.
    fn carry(&mut self) {
        for (path, bytes) in std::mem::take(&mut self.sink.sent) {
            if path.dst == FRIEND {
                let packet = received(&path, &bytes);
                self.friend.nic.receive(self.now, &packet, &mut self.friend_sink);
            }
        }
        for (path, bytes) in std::mem::take(&mut self.friend_sink.sent) {
            let packet = received(&path, &bytes);
            self.us.nic.receive(self.now, &packet, &mut self.sink);
        }
    }

    /// What must hold at the end.
    pub(super) fn judge(&mut self) {
        self.sink.full = false;
        self.us.nic.pump(self.now, &mut self.sink);
        self.poll();
        let (qp, cq, lkey) = self.safe;
        let sges = [Sge { addr: BASE, length: 1000, lkey: self.friend.mr.lkey }];
        let wr = RecvWr { wr_id: 1, sges: &sges };
        self.friend.nic.post_recv(self.now, self.friend_qp, &wr).expect("the friend is well");
        let sges = [Sge { addr: BASE, length: 1000, lkey }];
        let wr = SendWr::new(1, SendOp::Send { imm: None }, &sges);
        let posted = self.us.nic.post_send(self.now, qp, &wr, &mut self.sink);
        posted.expect("a QP that the hostile peer has no part in takes work");
        for _ in 0..20 {
            self.carry();
        }
        let done = self.us.nic.poll_one(cq).expect("the CQ exists");
        let status = done.map(|c| c.status);
        assert_eq!(status, Some(urxe_engine::WcStatus::Success), "the safe QP does not work");
        let mut got = vec![0; 1000];
        self.friend.buffer.read(0, &mut got).expect("it is longer");
        assert!(got.iter().all(|&b| b == SECRET), "the friend got something else");
        let mut secret = vec![0; SIZE];
        self.secret.read(0, &mut secret).expect("its own length");
        assert!(secret.iter().all(|&b| b == SECRET), "memory that was not lent was changed");
    }
}

fn received<'a>(path: &Path, bytes: &'a [u8]) -> Received<'a> {
    Received {
        src: path.src,
        dst: path.dst,
        src_port: path.src_port,
        traffic_class: path.traffic_class,
        hop_limit: path.hop_limit,
        bytes,
    }
}

/// QPs of every kind, connected with the hostile peer.
fn hostile_qps(us: &Host) -> (Vec<QpId>, AhId) {
    let xrcd = us.nic.alloc_xrcd().expect("the first domain");
    let attr_srq = SrqAttr { max_wr: 16, max_sge: 1, limit: 0 };
    let init = SrqInit { pd: us.pd, attr: attr_srq, xrc: Some((xrcd, us.cq)) };
    us.nic.create_srq(&init).expect("the first SRQ");
    let mut qps = Vec::new();
    for kind in [QpKind::Rc, QpKind::Uc, QpKind::Ud, QpKind::XrcInit, QpKind::XrcTarget] {
        let qp = us.qp(kind, us.pd, us.cq, |init| {
            if kind == QpKind::XrcTarget {
                (init.xrcd, init.send_cq, init.recv_cq) = (Some(xrcd), None, None);
            }
            if kind == QpKind::XrcInit {
                init.recv_cq = None;
            }
        });
        us.nic.connect_qp(qp, &attr(HOSTILE, Qpn::new(0x99))).expect("a plain connection");
        qps.push(qp);
    }
    let ah = AhAttr { dst: HOSTILE, ..AhAttr::default() };
    (qps, us.nic.create_ah(us.pd, &ah).expect("the first AH"))
}
