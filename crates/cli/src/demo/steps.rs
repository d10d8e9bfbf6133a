//! What the demo shows, a step a function. Each checks what it did.

use std::time::Duration;

use urxe::{
    Access, AhAttr, Completion, Context, Cq, Error, Mr, Pd, Qp, QpAttr, QpKind, SendOp, SendWr,
    UdDest, WcFlags, WcStatus,
};
use urxe_wire::{AckTimeout, Mtu, QKey, RnrTimer};

/// A step: what it is called, what a reader shall see in it, and what it does.
pub(super) struct Step {
    /// A few words.
    pub(super) title: &'static str,
    /// What to look at.
    pub(super) look: &'static str,
    /// Does it; gives what came of it in a line.
    pub(super) run: fn(&World) -> Result<String, Fault>,
    /// Whether the links lose packets meanwhile.
    pub(super) lossy: bool,
}

/// What went wrong in a step.
#[derive(Debug)]
pub(super) struct Fault(pub String);

impl<E: std::error::Error> From<E> for Fault {
    fn from(e: E) -> Self {
        Self(e.to_string())
    }
}

/// Two devices.
pub(super) struct World {
    /// The one that begins.
    pub(super) alice: Context,
    /// Its peer.
    pub(super) bob: Context,
}

/// One side of a connection, and memory with a pattern of its own.
pub(super) struct Side {
    /// Memory: 64 KiB.
    pub(super) mr: Mr,
    /// Where all completes.
    pub(super) cq: Cq,
    /// The QP; dropped first.
    pub(super) qp: Qp,
}

const SIZE: usize = 64 << 10;
const ALL: Access = Access::LOCAL_WRITE
    .union(Access::REMOTE_READ)
    .union(Access::REMOTE_WRITE)
    .union(Access::REMOTE_ATOMIC);

/// A pattern that tells its place.
fn pattern(len: usize) -> Vec<u8> {
    (0u8..=250).cycle().take(len).collect()
}

fn side(context: &Context, kind: QpKind, edit: fn(&mut QpAttr)) -> Result<Side, Error> {
    let pd: Pd = context.alloc_pd()?;
    let mr = pd.register(SIZE, ALL)?;
    let cq = context.create_cq(256)?;
    let qp = pd.qp(kind).cq(&cq).access(ALL).attr(edit).build()?;
    Ok(Side { mr, cq, qp })
}

fn quick(attr: &mut QpAttr) {
    attr.path_mtu = Mtu::B1024;
    // 4.096 µs · 2^11 = 8.4 ms, so that a reader does not wait for retries.
    attr.timeout = AckTimeout::new(11).unwrap_or_default();
    attr.min_rnr_timer = RnrTimer::new(10).unwrap_or_default();
}

impl World {
    fn pair(&self, kind: QpKind) -> Result<(Side, Side), Error> {
        self.pair_with(kind, quick)
    }

    fn pair_with(&self, kind: QpKind, edit: fn(&mut QpAttr)) -> Result<(Side, Side), Error> {
        let (a, b) = (side(&self.alice, kind, edit)?, side(&self.bob, kind, edit)?);
        if kind == QpKind::Ud {
            a.qp.ready(QKey(0x1234))?;
            b.qp.ready(QKey(0x1234))?;
        } else {
            a.qp.connect(&b.qp.endpoint())?;
            b.qp.connect(&a.qp.endpoint())?;
        }
        a.mr.write(0, &pattern(SIZE / 2))?;
        Ok((a, b))
    }
}

fn good(done: &Completion) -> Result<(), Fault> {
    if done.status == WcStatus::Success { Ok(()) } else { Err(Fault(done.explain())) }
}

fn expect(what: &str, holds: bool) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(Fault(format!("{what}: it is not so"))) }
}

/// All steps, in their order.
pub(super) const STEPS: &[Step] = &[
    Step {
        title: "SEND over a reliable connection",
        look: "three packets, one ACK for all of them",
        run: send,
        lossy: false,
    },
    Step {
        title: "RDMA WRITE",
        look: "bob's program does nothing: his memory changes",
        run: write,
        lossy: false,
    },
    Step {
        title: "SEND and WRITE with immediate data",
        look: "four bytes more in the last packet; the WRITE takes a receive",
        run: immediate,
        lossy: false,
    },
    Step {
        title: "RDMA READ",
        look: "the response takes as many PSNs as it has packets",
        run: read,
        lossy: false,
    },
    Step {
        title: "FETCH_ADD and CMP_SWAP",
        look: "the answer brings what stood there before",
        run: atomics,
        lossy: false,
    },
    Step {
        title: "unreliable connection (UC)",
        look: "nothing is acknowledged",
        run: unreliable,
        lossy: false,
    },
    Step {
        title: "datagram (UD)",
        look: "a Q_Key, the sender's QPN; 40 bytes of header come before the data",
        run: datagram,
        lossy: false,
    },
    Step {
        title: "all of it again, with 5 % of the packets lost",
        look: "NAKs, timeouts, packets sent again; the data is right all the same",
        run: lossy,
        lossy: true,
    },
    Step {
        title: "receiver not ready (RNR)",
        look: "an RNR NAK says how long to wait; then the message is sent again",
        run: not_ready,
        lossy: false,
    },
    Step {
        title: "a wrong rkey",
        look: "NAK remote access error; both QPs are in error after it",
        run: wrong_rkey,
        lossy: false,
    },
    Step {
        title: "a dead peer",
        look: "the same packet again and again, one timeout apart, then an error",
        run: dead_peer,
        lossy: false,
    },
];

fn send(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Rc)?;
    let len = 2 * mtu(&a)? + 500;
    b.qp.post_recv(7, &[b.mr.sge(0..SIZE)])?;
    a.qp.post_send(1, SendOp::Send { imm: None }, &[a.mr.sge(0..len)])?;
    good(&a.cq.wait_one()?)?;
    let got = b.cq.wait_one()?;
    good(&got)?;
    expect("the length is told", got.byte_len as usize == len)?;
    expect("the data is right", b.mr.to_vec(0..len)? == pattern(len))?;
    Ok(format!("{len} bytes arrived in bob's receive"))
}

fn write(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Rc)?;
    let op = SendOp::Write { remote: b.mr.addr() + 256, rkey: b.mr.rkey(), imm: None };
    a.qp.post_send(1, op, &[a.mr.sge(0..1000)])?;
    good(&a.cq.wait_one()?)?;
    expect("the data is right", b.mr.to_vec(256..1256)? == pattern(1000))?;
    expect("nothing beside it has changed", b.mr.to_vec(1256..1300)? == [0; 44])?;
    Ok("1000 bytes stand in bob's memory at offset 256".into())
}

fn immediate(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Rc)?;
    b.qp.post_recv(7, &[b.mr.sge(0..256)])?;
    b.qp.post_recv(8, &[])?;
    let imm = Some([0xca, 0xfe, 0, 1]);
    a.qp.post_send(1, SendOp::Send { imm }, &[a.mr.sge(0..10)])?;
    let op = SendOp::Write { remote: b.mr.addr() + 512, rkey: b.mr.rkey(), imm };
    a.qp.post_send(2, op, &[a.mr.sge(0..64)])?;
    for wr_id in [7, 8] {
        let got = b.cq.wait_one()?;
        good(&got)?;
        expect("receives are taken in order", got.wr_id == wr_id)?;
        expect("it says that it has immediate data", got.flags.contains(WcFlags::WITH_IMM))?;
        expect("the immediate data is right", Some(got.imm) == imm)?;
    }
    good(&a.cq.wait_one()?)?;
    good(&a.cq.wait_one()?)?;
    expect("the written data is right", b.mr.to_vec(512..576)? == pattern(64))?;
    Ok("0xcafe0001 came with both".into())
}

fn read(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Rc)?;
    let len = 2 * mtu(&a)? + 100;
    b.mr.write(0, &pattern(len))?;
    let op = SendOp::Read { remote: b.mr.addr(), rkey: b.mr.rkey() };
    a.qp.post_send(1, op, &[a.mr.sge(SIZE / 2..SIZE / 2 + len)])?;
    good(&a.cq.wait_one()?)?;
    expect("the data is right", a.mr.to_vec(SIZE / 2..SIZE / 2 + len)? == pattern(len))?;
    Ok(format!("{len} bytes came from bob's memory"))
}

fn atomics(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Rc)?;
    b.mr.write(0, &40u64.to_ne_bytes())?;
    let (remote, rkey) = (b.mr.addr(), b.mr.rkey());
    let cell = [a.mr.sge(0..8)];
    let before = |s: &Side| -> Result<u64, Fault> {
        let mut word = [0; 8];
        s.mr.read(0, &mut word)?;
        Ok(u64::from_ne_bytes(word))
    };
    a.qp.post_send(1, SendOp::FetchAdd { remote, rkey, add: 2 }, &cell)?;
    good(&a.cq.wait_one()?)?;
    expect("FETCH_ADD gives 40", before(&a)? == 40)?;
    a.qp.post_send(2, SendOp::CompareSwap { remote, rkey, compare: 42, swap: 7 }, &cell)?;
    good(&a.cq.wait_one()?)?;
    expect("CMP_SWAP gives 42", before(&a)? == 42)?;
    expect("7 stands there now", before(&b)? == 7)?;
    Ok("40 → 42 → 7".into())
}

fn unreliable(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Uc)?;
    b.qp.post_recv(7, &[b.mr.sge(0..256)])?;
    let op = SendOp::Write { remote: b.mr.addr() + 1024, rkey: b.mr.rkey(), imm: None };
    a.qp.post_send(1, op, &[a.mr.sge(0..100)])?;
    a.qp.post_send(2, SendOp::Send { imm: None }, &[a.mr.sge(0..100)])?;
    good(&a.cq.wait_one()?)?;
    good(&a.cq.wait_one()?)?;
    good(&b.cq.wait_one()?)?;
    expect("the sent data is right", b.mr.to_vec(0..100)? == pattern(100))?;
    expect("the written data is right", b.mr.to_vec(1024..1124)? == pattern(100))?;
    Ok("a SEND and a WRITE arrived, without an ACK".into())
}

fn datagram(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Ud)?;
    b.qp.post_recv(7, &[b.mr.sge(0..256)])?;
    let pd = world.alice.alloc_pd()?;
    let ah = pd.create_ah(&AhAttr { dst: world.bob.address(), ..AhAttr::default() })?;
    let dest = UdDest { ah: ah.id(), qpn: b.qp.qpn(), qkey: QKey(0x1234) };
    let sges = [a.mr.sge(0..100)];
    let wr = SendWr { dest: Some(dest), ..SendWr::new(1, SendOp::Send { imm: None }, &sges) };
    a.qp.post(&wr)?;
    good(&a.cq.wait_one()?)?;
    let got = b.cq.wait_one()?;
    good(&got)?;
    expect("the sender is told", got.src_qp == a.qp.qpn())?;
    expect("40 bytes of header count", got.byte_len == 140)?;
    expect("the data is right", b.mr.to_vec(40..140)? == pattern(100))?;
    Ok(format!("100 bytes came from QP {}", got.src_qp))
}

fn lossy(world: &World) -> Result<String, Fault> {
    for _ in 0..4 {
        for run in [send, write, immediate, read, atomics] {
            run(world)?;
        }
    }
    // Enough packets that some are lost, whatever the seed.
    let (a, b) = world.pair(QpKind::Rc)?;
    for n in 0..60 {
        let op = SendOp::Write { remote: b.mr.addr(), rkey: b.mr.rkey(), imm: None };
        a.qp.post_send(n, op, &[a.mr.sge(0..3000)])?;
    }
    for n in 0..60 {
        let done = a.cq.wait_one()?;
        good(&done)?;
        expect("completions come in order", done.wr_id == n)?;
    }
    expect("the data is right", b.mr.to_vec(0..3000)? == pattern(3000))?;
    Ok("80 operations of every kind; each completed once, in order, with the right data".into())
}

fn not_ready(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Rc)?;
    a.qp.post_send(1, SendOp::Send { imm: None }, &[a.mr.sge(0..100)])?;
    // Bob takes the packet and has no receive for it.
    while !world.bob.counters().iter().any(|&(name, n)| name == "out_of_buffer" && n != 0) {
        world.bob.progress();
    }
    b.qp.post_recv(7, &[b.mr.sge(0..256)])?;
    good(&b.cq.wait_one()?)?;
    good(&a.cq.wait_one()?)?;
    expect("the data is right", b.mr.to_vec(0..100)? == pattern(100))?;
    Ok("the SEND waited for bob's receive".into())
}

fn wrong_rkey(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Rc)?;
    let op = SendOp::Write { remote: b.mr.addr(), rkey: b.mr.rkey() ^ 1, imm: None };
    a.qp.post_send(1, op, &[a.mr.sge(0..100)])?;
    let done = a.cq.wait_one()?;
    expect("it is refused", done.status == WcStatus::RemAccessErr)?;
    expect("nothing was written", b.mr.to_vec(0..100)? == [0; 100])?;
    Ok(done.explain())
}

fn dead_peer(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair_with(QpKind::Rc, |attr| {
        quick(attr);
        attr.retry_cnt = 3;
    })?;
    drop(b);
    a.qp.post_send(1, SendOp::Send { imm: None }, &[a.mr.sge(0..100)])?;
    let done = a.cq.wait_for(Duration::from_secs(10))?;
    expect("it fails", done.status == WcStatus::RetryExcErr)?;
    Ok(done.explain())
}

/// Bytes of a full packet.
fn mtu(side: &Side) -> Result<usize, Fault> {
    Ok(side.qp.query()?.attr.path_mtu.bytes() as usize)
}
