//! Connections by address and port, over real devices.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::thread::{self, JoinHandle};

use urxe::cm::{
    CmTimeout, Connection, Ending, Incoming, Listener, Options, PathParams, State, Timing,
};
use urxe::{Address, Config, Context, Cq, Error, Mr, Pd, Qp, QpKind, SendOp};

use crate::rig::{ALL, PATIENCE, SIZE, eventually, open, quick};

mod closing;
mod failing;
mod setting_up;
mod shared;
mod stepwise;
mod storm;

/// A device with what QPs need.
pub struct Host {
    pub context: Context,
    pub pd: Pd,
    pub cq: Cq,
    pub mr: Mr,
}

impl Host {
    pub fn on(context: Context) -> Self {
        let pd = context.alloc_pd().unwrap();
        let cq = context.create_cq(4096).unwrap();
        let mr = pd.register(SIZE, ALL).unwrap();
        Self { context, pd, cq, mr }
    }

    pub fn open() -> Self {
        Self::on(open())
    }

    pub fn with_faults(faults: &str) -> Self {
        let config = Config { faults: faults.into(), ..crate::rig::patient() };
        Self::on(Context::open(&config).unwrap())
    }

    pub fn at(address: IpAddr) -> Self {
        let address = Address::Of(address);
        let config = Config { address, shared: Some(true), ..crate::rig::patient() };
        Self::on(Context::open(&config).unwrap())
    }

    /// A QP that can take receives.
    pub fn qp(&self, kind: QpKind) -> Qp {
        let qp = self.pd.qp(kind).cq(&self.cq).attr(quick).build().unwrap();
        qp.init().unwrap();
        qp
    }

    pub fn addr(&self, port: u16) -> SocketAddr {
        (self.context.address(), port).into()
    }

    pub fn listen(&self) -> Listener {
        Listener::bind(&self.context, self.addr(0)).unwrap()
    }

    pub fn connect(&self, to: SocketAddr, options: &Options<'_>) -> Result<Connection, Error> {
        Connection::connect(&self.context, to, self.qp(QpKind::Rc), options)
    }

    pub fn accept(&self, incoming: Incoming, options: &Options<'_>) -> Result<Connection, Error> {
        incoming.accept(self.qp(QpKind::Rc), options)
    }

    /// Nothing of a connection is left, timewait included.
    pub fn is_idle(&self) {
        eventually("an idle manager", || self.context.cm_stats().is_idle().then_some(()));
        assert_eq!(self.context.counts().qps, 1, "QP1 stays, no other");
    }

    pub fn count(&self, name: &str) -> u64 {
        let counters = self.context.cm_counters();
        counters.iter().find(|(n, _)| *n == name).map_or(0, |&(_, n)| n)
    }
}

pub fn code(n: u8) -> CmTimeout {
    CmTimeout::new(n).unwrap()
}

/// Asks again after 0.2 s, fifteen times; an ended connection is remembered for 67 ms.
pub fn soon() -> Options<'static> {
    let timing =
        Timing { remote_response: code(15), local_response: code(15), ..Timing::default() };
    let path = PathParams { packet_lifetime: code(13), ..PathParams::default() };
    Options { timing, path: Some(path), ..Options::default() }
}

/// Connects `a` with `b`, which accepts in another thread.
pub fn connected(a: &Host, b: &Host, options: &Options<'_>) -> (Connection, Connection) {
    let listener = b.listen();
    thread::scope(|scope| {
        let far = scope.spawn(|| {
            let incoming = listener.incoming_within(PATIENCE).unwrap().expect("a request");
            b.accept(incoming, options).unwrap()
        });
        let near = a.connect(listener.local_addr(), options).unwrap();
        (near, far.join().unwrap())
    })
}

/// A message each way over a connection.
pub fn talk(a: (&Host, &Connection), b: (&Host, &Connection)) {
    for ((from, out), (to, into)) in [(a, b), (b, a)] {
        into.qp().post_recv(7, &[to.mr.sge(1000..2000)]).unwrap();
        from.mr.write(0, b"a word").unwrap();
        out.qp().post_send(8, SendOp::Send { imm: None }, &[from.mr.sge(0..6)]).unwrap();
        let sent = from.cq.wait_for(PATIENCE).unwrap();
        assert!(sent.wr_id == 8 && sent.cause.is_none(), "{}", sent.explain());
        let got = to.cq.wait_for(PATIENCE).unwrap();
        assert_eq!((got.wr_id, got.byte_len), (7, 6), "{}", got.explain());
        assert_eq!(to.mr.to_vec(1000..1006).unwrap(), b"a word");
    }
}

/// A whole life of a connection.
pub fn life(a: &Host, b: &Host) {
    let (near, far) = connected(a, b, &soon());
    assert_eq!(near.peer_addr().map(|to| to.ip()), Some(b.context.address()));
    assert_eq!(far.peer_addr(), near.local_addr());
    talk((a, &near), (b, &far));
    let ending = near.disconnect().unwrap();
    assert!(matches!(ending, Ending::Closed(urxe::cm::Closed::Agreed)), "{ending:?}");
    assert!(matches!(far.wait_closed().unwrap(), Ending::ByPeer(_)));
    drop((near, far));
    a.is_idle();
    b.is_idle();
}

#[test]
fn ipv4_from_request_to_timewait() {
    life(&Host::open(), &Host::open());
}

#[test]
fn ipv6_from_request_to_timewait() {
    let here = IpAddr::V6(Ipv6Addr::LOCALHOST);
    life(&Host::at(here), &Host::at(here));
}

#[test]
fn a_device_connects_with_itself() {
    let host = Host::open();
    life(&host, &Host::on(host.context.clone()));
}

/// A thread that accepts one connection after the other until its listener hears nothing more.
pub fn server(host: Host, listener: Listener, count: usize) -> JoinHandle<(Host, usize)> {
    thread::spawn(move || {
        let mut all = Vec::new();
        let mut established = 0;
        for _ in 0..count {
            let incoming = listener.incoming_within(PATIENCE).unwrap().expect("a request");
            // Of an attempt whose peer has given up nothing is left.
            if let Ok(connection) = host.accept(incoming, &soon()) {
                established += 1;
                all.push(connection);
            }
        }
        for connection in all {
            connection.closed_within(PATIENCE).unwrap().expect("its end");
        }
        drop(listener);
        (host, established)
    })
}

#[test]
fn many_connections_over_a_link_that_loses_doubles_and_reorders() {
    let faults = "tx.loss=10%,tx.duplicate=10%,tx.reorder=10%";
    let (a, b) = (Host::with_faults(faults), Host::with_faults(faults));
    let listener = b.listen();
    let to = listener.local_addr();
    let far = server(b, listener, 30);
    let all: Vec<_> = (0..30).map(|_| a.connect(to, &soon()).unwrap()).collect();
    assert!(all.iter().all(|c| c.id().state() == Some(State::Established)));
    drop(all);
    let (b, established) = far.join().unwrap();
    assert_eq!(established, 30);
    a.is_idle();
    b.is_idle();
}
