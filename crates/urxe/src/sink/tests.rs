use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use urxe_engine::Count;
use urxe_net::{Port, PortCaps, PortError, PortStats, RxBatch};

use super::*;
use crate::handle::Handle;
use crate::link::Link;
use crate::{Access, Config, Context, Cq, Mr, Mtu, Pd, Qp, QpKind, SendOp};

/// A port that takes packets or has no room.
#[derive(Debug)]
struct Gate {
    port: Box<dyn Port>,
    open: Arc<AtomicBool>,
}

impl Port for Gate {
    fn caps(&self) -> &PortCaps {
        self.port.caps()
    }

    fn send(&self, batch: &mut TxBatch) -> io::Result<()> {
        if self.open.load(SeqCst) { self.port.send(batch) } else { Ok(()) }
    }

    fn recv(&self, batch: &mut RxBatch) -> io::Result<usize> {
        self.port.recv(batch)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.port.fd()
    }

    fn wait_writable(&self, timeout_ms: i32) -> io::Result<()> {
        self.port.wait_writable(timeout_ms)
    }

    fn join(&self, group: IpAddr) -> Result<(), PortError> {
        self.port.join(group)
    }

    fn leave(&self, group: IpAddr) -> Result<(), PortError> {
        self.port.leave(group)
    }

    fn stats(&self) -> &PortStats {
        self.port.stats()
    }

    fn check(&self) -> Result<(), PortError> {
        self.port.check()
    }
}

struct Side {
    context: Context,
    _pd: Pd,
    cq: Cq,
    mr: Mr,
    qp: Qp,
}

const SIZE: usize = 4 << 20;
const ALL: Access = Access::LOCAL_WRITE.union(Access::REMOTE_WRITE);

impl Side {
    fn new(context: Context) -> Self {
        let pd = context.alloc_pd().unwrap();
        let cq = context.create_cq(64).unwrap();
        let mr = pd.register(SIZE, ALL).unwrap();
        let mtu = |attr: &mut urxe_engine::QpAttr| attr.path_mtu = Mtu::B1024;
        let qp = pd.qp(QpKind::Uc).cq(&cq).access(ALL).attr(mtu).build().unwrap();
        Self { context, _pd: pd, cq, mr, qp }
    }

    fn device(&self) -> &Device {
        self.context.device.live().unwrap()
    }

    /// Its device, without the background thread.
    fn alone(&self) -> &Device {
        let device = self.device();
        device.end_thread();
        device
    }

    fn write(&self, wr_id: u64, to: &Self, len: usize) {
        let op = SendOp::Write { remote: to.mr.addr(), rkey: to.mr.rkey(), imm: None };
        self.qp.post_send(wr_id, op, &[self.mr.sge(0..len)]).unwrap();
    }

    fn sent(&self) -> u64 {
        self.device().nic.counters().get(Count::TxPackets)
    }

    fn completed(&self) -> usize {
        self.cq.query().unwrap().waiting
    }
}

/// Two UC QPs; the first one's port has a gate.
fn gated() -> (Side, Side, Arc<AtomicBool>) {
    let config = Config::default();
    let open = Arc::new(AtomicBool::new(true));
    let gate = Arc::clone(&open);
    let near = Handle::of(|| {
        let Link { port, tap } = Link::open(&config)?;
        Device::over(Link { port: Box::new(Gate { port, open: gate }), tap }, &config)
    });
    let near = Side::new(Context { device: Arc::new(near.unwrap()) });
    let far = Side::new(Context::open(&config).unwrap());
    near.qp.connect(&far.qp.endpoint()).unwrap();
    far.qp.connect(&near.qp.endpoint()).unwrap();
    (near, far, open)
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_port_without_room_gets_no_more_and_loses_nothing() {
    let (near, far, open) = gated();
    let device = near.alone();
    open.store(false, SeqCst);
    (0..8).for_each(|n| near.write(n, &far, 64 << 10));
    // One batch waits; the rest the engine keeps.
    assert_eq!(near.sent(), 64);
    assert!(device.tx.is_blocked() && device.nic.has_work());
    device.progress();
    assert_eq!(near.sent(), 64);
    open.store(true, SeqCst);
    let mut calls = 0;
    until("the port has room", || {
        device.progress();
        calls += 1;
        near.completed() == 8
    });
    assert!(calls <= 3, "512 packets, 256 a call: {calls}");
    until("nothing was lost", || far.context.port_stats().rx_packets == 512);
    assert_eq!(near.context.port_stats().tx_given_up, 0);
    assert!(!device.tx.is_blocked() && !device.nic.has_work());
}

/// Nobody calls; the background thread sees that there is room again.
#[test]
fn the_background_thread_goes_on_when_the_port_has_room() {
    let (near, far, open) = gated();
    open.store(false, SeqCst);
    near.write(1, &far, 256 << 10);
    until("it is blocked", || near.device().tx.is_blocked());
    assert_eq!((near.completed(), near.sent()), (0, 64));
    open.store(true, SeqCst);
    until("all is sent", || near.completed() == 1);
    assert_eq!((near.sent(), near.context.port_stats().tx_given_up), (256, 0));
}

/// A post of a long message sends so much and returns; the rest goes without another call.
#[test]
fn a_post_sends_a_bounded_number_of_batches() {
    let (near, far, _) = gated();
    let device = near.alone();
    near.write(1, &far, SIZE);
    assert_eq!(near.sent(), (BATCHES * TX_PACKETS) as u64);
    assert_eq!(near.completed(), 0);
    until("polls do the rest", || {
        device.progress();
        near.completed() == 1
    });
    let (near, far, _) = gated();
    near.write(1, &far, SIZE);
    until("the thread does the rest", || near.completed() == 1);
    assert_eq!(near.sent(), SIZE as u64 / 1024);
}

/// What a QP has in a batch that has not left, no other thread's batch overtakes.
#[test]
fn a_qp_whose_packets_wait_sends_through_no_other_sink() {
    let (near, far, _) = gated();
    let device = near.alone();
    let other = near._pd.qp(QpKind::Uc).cq(&near.cq).access(ALL).build().unwrap();
    other.connect(&far.qp.endpoint()).unwrap();
    let op = SendOp::Write { remote: far.mr.addr(), rkey: far.mr.rkey(), imm: None };
    let post = |qp: &Qp, sink: &mut Sink<'_>| {
        let sges = [near.mr.sge(0..8)];
        let wr = urxe_engine::SendWr::new(1, op, &sges);
        device.nic.post_send(device.now(), qp.qpn(), &wr, sink).unwrap();
    };
    device.with_sink(|first| {
        post(&near.qp, first);
        assert_eq!(near.sent(), 1);
        device.with_sink(|second| {
            post(&near.qp, second);
            assert_eq!(near.sent(), 1, "its first packet has not left");
            post(&other, second);
            assert_eq!(near.sent(), 2, "another QP's may");
        });
        assert_eq!(near.sent(), 2);
    });
    assert_eq!(near.sent(), 3, "who lets it go goes on with it");
}

#[test]
fn a_device_that_ends_waits_a_little_for_room() {
    let (near, far, open) = gated();
    near.alone();
    open.store(false, SeqCst);
    near.write(1, &far, 8);
    let device = near.device();
    assert!(device.tx.is_blocked());
    std::thread::scope(|scope| {
        scope.spawn(|| device.last_packets());
        open.store(true, SeqCst);
    });
    until("it arrived", || far.context.port_stats().rx_packets == 1);
    open.store(false, SeqCst);
    near.write(2, &far, 8);
    device.last_packets();
    assert_eq!(near.context.port_stats().tx_given_up, 1);
}

/// A panic of an observer in the middle of a batch leaves other QPs able to send.
#[test]
fn a_sink_lets_its_qps_go_whatever_happens() {
    let (near, far, _) = gated();
    let device = near.alone();
    let broke = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        device.with_sink(|sink| {
            let sges = [near.mr.sge(0..8)];
            let op = SendOp::Write { remote: far.mr.addr(), rkey: far.mr.rkey(), imm: None };
            let wr = urxe_engine::SendWr::new(1, op, &sges);
            device.nic.post_send(device.now(), near.qp.qpn(), &wr, sink).unwrap();
            panic!("on purpose");
        })
    }));
    assert!(broke.is_err());
    assert_eq!(near.context.port_stats().tx_given_up, 1);
    near.write(2, &far, 8);
    assert_eq!((near.completed(), near.context.port_stats().tx_packets), (2, 1));
}
