//! The stock programs of librdmacm in the guest, connected with urxe by address and port. Who
//! requests is the side that connects.

use std::net::SocketAddr;
use std::ops::Range;

use urxe::cm::{Connection, Ending, Listener, Options, RejReason, resolve};
use urxe::{
    Access, Address, Completion, Config, Context, Cq, Error, Mr, Pd, Profile, QKey, Qp, QpKind,
    SendOp, SendWr, UdDest, WcStatus,
};

use crate::bench::{Bench, LOOK, Role};
use crate::node::PATIENCE;

const ALL: Access = Access::LOCAL_WRITE
    .union(Access::REMOTE_WRITE)
    .union(Access::REMOTE_READ)
    .union(Access::REMOTE_ATOMIC);
/// Messages of ucmatose and udaddy, and their bytes.
const MESSAGES: usize = 10;
const LEN: usize = 100;
/// The global routing header before a datagram.
const GRH: usize = 40;
const CONNECTIONS: usize = 4;

/// A device of ours beside the case's own.
struct Host {
    context: Context,
    pd: Pd,
    cq: Cq,
    mr: Mr,
}

impl Host {
    fn open(bench: &Bench) -> Self {
        let config = Config {
            address: Address::Of(bench.column.second_host()),
            port: bench.column.port(),
            profile: Profile { infinite_retry_at_7: true, ..Profile::STRICT },
            ..Config::default()
        };
        let context = Context::open(&config).unwrap();
        let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(1024).unwrap());
        let mr = pd.register(1 << 16, ALL).unwrap();
        Self { context, pd, cq, mr }
    }

    /// A QP with receives, each at the start of the region.
    fn qp(&self, kind: QpKind, receives: usize) -> Qp {
        let qp = self.pd.qp(kind).cq(&self.cq).build().unwrap();
        if kind == QpKind::Ud {
            qp.ready(QKey::RDMA_CM_UDP).unwrap();
        } else {
            qp.init().unwrap();
        }
        (0..receives).for_each(|_| self.receive(&qp));
        qp
    }

    fn receive(&self, qp: &Qp) {
        qp.post_recv(0, &[self.mr.sge(0..LEN + GRH)]).unwrap();
    }

    /// The next completion, a good one.
    fn done(&self) -> Completion {
        let done = self.cq.wait_for(PATIENCE).unwrap();
        assert_eq!(done.status, WcStatus::Success, "{}", done.explain());
        done
    }

    /// So many good completions, of receives or of sends.
    fn all_done(&self, count: usize) -> Vec<Completion> {
        (0..count).map(|_| self.done()).collect()
    }

    fn send(&self, qp: &Qp, part: Range<usize>) {
        qp.post_send(1, SendOp::Send { imm: None }, &[self.mr.sge(part)]).unwrap();
    }
}

/// A program of the guest, and what it ends with.
struct Program(String);

impl Program {
    fn start(bench: &mut Bench, command: &str) -> Self {
        let command = format!("timeout 200 {command}");
        bench.guest.begin(&format!("exec {command}")).unwrap();
        Self(command)
    }

    fn end(self, bench: &mut Bench) -> String {
        let (status, text) = bench.guest.executed(&self.0).unwrap();
        assert_eq!(status, 0, "{}: {text}", self.0);
        text
    }
}

/// Connects with a program of the guest, as soon as it listens.
fn connect(bench: &mut Bench, host: &Host, port: u16, receives: usize) -> Connection {
    let to = SocketAddr::new(bench.column.guest(), port);
    let mut connection = None;
    bench.eventually("the program to listen", |_| {
        let qp = host.qp(QpKind::Rc, receives);
        match Connection::connect(&host.context, to, qp, &Options::default()) {
            Ok(stands) => connection = Some(stands),
            Err(Error::Refused { reason: RejReason::InvalidServiceId, .. }) => {}
            Err(error) => panic!("{error}"),
        }
        connection.is_some()
    });
    connection.unwrap()
}

fn listen(host: &Host, port: u16, kind: QpKind) -> Listener {
    let at = SocketAddr::new(host.context.address(), port);
    let bound = match kind {
        QpKind::Ud => Listener::bind_datagrams(&host.context, at),
        _ => Listener::bind(&host.context, at),
    };
    bound.unwrap()
}

fn accept(bench: &mut Bench, host: &Host, listener: &Listener, receives: usize) -> Connection {
    let mut incoming = None;
    bench.eventually("a request", |_| {
        incoming = listener.incoming_within(LOOK).unwrap();
        incoming.is_some()
    });
    incoming.unwrap().accept(host.qp(QpKind::Rc, receives), &Options::default()).unwrap()
}

/// ucmatose: the server sends ten messages on each connection, the client answers them, and the
/// server ends them.
pub fn ucmatose(bench: &mut Bench) {
    let host = Host::open(bench);
    let guest = bench.column.guest();
    let (program, all) = if bench.column.role == Role::Urxe {
        let program = Program::start(bench, &format!("ucmatose -b {guest} -c {CONNECTIONS}"));
        let all: Vec<_> = (0..CONNECTIONS).map(|_| connect(bench, &host, 7471, MESSAGES)).collect();
        host.all_done(CONNECTIONS * MESSAGES);
        (program, all)
    } else {
        let listener = listen(&host, 7471, QpKind::Rc);
        let to = host.context.address();
        let program = Program::start(bench, &format!("ucmatose -s {to} -c {CONNECTIONS}"));
        let all: Vec<_> =
            (0..CONNECTIONS).map(|_| accept(bench, &host, &listener, MESSAGES)).collect();
        (program, all)
    };
    for _ in 0..MESSAGES {
        all.iter().for_each(|connection| host.send(connection.qp(), 1000..1000 + LEN));
    }
    if bench.column.role == Role::Urxe {
        // The server ends when it has all, whether or not the last ACKs have come.
        for connection in &all {
            let ending = connection.closed_within(PATIENCE).unwrap().expect("its end");
            assert!(matches!(ending, Ending::ByPeer(_)), "{ending:?}");
        }
    } else {
        // Sends and receives.
        host.all_done(2 * CONNECTIONS * MESSAGES);
        all.iter().for_each(|connection| drop(connection.disconnect().unwrap()));
    }
    let text = program.end(bench);
    assert!(text.contains("return status 0"), "{text}");
}

/// udaddy: the client asks for the server's QP, sends it ten datagrams and gets ten.
pub fn udaddy(bench: &mut Bench) {
    let host = Host::open(bench);
    let qp = host.qp(QpKind::Ud, 0);
    let whole = host.mr.sge(0..GRH + LEN);
    (0..MESSAGES).for_each(|_| qp.post_recv(0, &[whole]).unwrap());
    let guest = bench.column.guest();
    let text = if bench.column.role == Role::Urxe {
        let program = Program::start(bench, &format!("udaddy -b {guest}"));
        let mut remote = None;
        bench.eventually("the program to listen", |_| {
            let to = SocketAddr::new(guest, 7174);
            match resolve(&host.context, to, &Options::default()) {
                Ok(found) => remote = Some(found),
                Err(Error::NoService { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            remote.is_some()
        });
        let remote = remote.unwrap();
        let ah = host.pd.create_ah(&remote.ah).unwrap();
        let dest = UdDest { ah: ah.id(), qpn: remote.info.qpn, qkey: remote.info.qkey };
        datagrams(&host, &qp, dest);
        host.all_done(2 * MESSAGES);
        program.end(bench)
    } else {
        let listener = listen(&host, 7174, QpKind::Ud);
        let to = host.context.address();
        let program = Program::start(bench, &format!("udaddy -s {to}"));
        let mut incoming = None;
        bench.eventually("a question", |_| {
            incoming = listener.incoming_within(LOOK).unwrap();
            incoming.is_some()
        });
        incoming.unwrap().answer(&qp, &[]).unwrap();
        let came = host.all_done(MESSAGES);
        let attr = urxe::AhAttr { dst: guest, ..urxe::AhAttr::default() };
        let ah = host.pd.create_ah(&attr).unwrap();
        let dest = UdDest { ah: ah.id(), qpn: came[0].src_qp, qkey: QKey::RDMA_CM_UDP };
        datagrams(&host, &qp, dest);
        host.all_done(MESSAGES);
        program.end(bench)
    };
    assert!(text.contains("return status 0"), "{text}");
}

/// Ten datagrams that say which QP answers go to, as udaddy's do.
fn datagrams(host: &Host, qp: &Qp, dest: UdDest) {
    let data = [host.mr.sge(1000..1000 + LEN)];
    let imm = Some(qp.qpn().value().to_be_bytes());
    for _ in 0..MESSAGES {
        let wr = SendWr::new(1, SendOp::Send { imm }, &data);
        qp.post(&SendWr { dest: Some(dest), ..wr }).unwrap();
    }
}

/// Pings of rping, and the bytes of each.
const PINGS: usize = 5;
const PING: usize = 5000;
/// Where the server of a ping reads to, and the client's source and sink.
const SOURCE: usize = 10_000;
const SINK: usize = 20_000;
/// What rping tells of a buffer: address, key and length, big-endian.
const INFO: usize = 16;

/// rping: the client tells of a buffer, the server READs it, the client tells of another, the
/// server WRITEs to it what it has read.
pub fn rping(bench: &mut Bench) {
    let host = Host::open(bench);
    let guest = bench.column.guest();
    if bench.column.role == Role::Urxe {
        let program = Program::start(bench, &format!("rping -s -a {guest} -S {PING}"));
        let connection = connect(bench, &host, 7174, 2);
        (0..PINGS).for_each(|n| ping(&host, connection.qp(), n));
        connection.disconnect().unwrap();
        // Its server calls it a failure that the connection has ended.
        let (_, text) = bench.guest.executed(&program.0).unwrap();
        assert!(!text.contains("cq completion failed") && !text.contains("error"), "{text}");
    } else {
        let listener = listen(&host, 7174, QpKind::Rc);
        let to = host.context.address();
        let command = format!("rping -c -a {to} -S {PING} -C {PINGS} -V");
        let program = Program::start(bench, &command);
        let connection = accept(bench, &host, &listener, 2);
        (0..PINGS).for_each(|_| pong(&host, connection.qp()));
        let ending = connection.closed_within(PATIENCE).unwrap().expect("its end");
        assert!(matches!(ending, Ending::ByPeer(_)), "{ending:?}");
        drop(connection);
        program.end(bench);
    }
}

/// Waits for a message of rping's and makes room for another; gives what it says.
fn told(host: &Host, qp: &Qp) -> (u64, u32) {
    while host.done().opcode != urxe::WcOpcode::Recv {}
    let info = host.mr.to_vec(0..INFO).unwrap();
    host.receive(qp);
    let (addr, rest) = info.split_first_chunk().unwrap();
    (u64::from_be_bytes(*addr), u32::from_be_bytes(*rest.first_chunk().unwrap()))
}

fn tell(host: &Host, qp: &Qp, at: usize) {
    let addr = host.mr.addr() + at as u64;
    host.mr.write(1000, &addr.to_be_bytes()).unwrap();
    host.mr.write(1008, &host.mr.rkey().to_be_bytes()).unwrap();
    host.mr.write(1012, &(PING as u32).to_be_bytes()).unwrap();
    host.send(qp, 1000..1000 + INFO);
}

fn ping(host: &Host, qp: &Qp, n: usize) {
    // A string of C: rping WRITEs back up to its end.
    let mut data: Vec<u8> = (0..PING).map(|at| 33 + ((at * 7 + n) % 90) as u8).collect();
    data[PING - 1] = 0;
    host.mr.write(SOURCE, &data).unwrap();
    host.mr.write(SINK, &vec![0; PING]).unwrap();
    tell(host, qp, SOURCE);
    told(host, qp);
    tell(host, qp, SINK);
    told(host, qp);
    assert!(host.mr.to_vec(SINK..SINK + PING).unwrap() == data, "ping {n} came back changed");
}

fn pong(host: &Host, qp: &Qp) {
    let part = [host.mr.sge(SOURCE..SOURCE + PING)];
    let (remote, rkey) = told(host, qp);
    qp.post_send(2, SendOp::Read { remote, rkey }, &part).unwrap();
    while host.done().opcode != urxe::WcOpcode::RdmaRead {}
    host.send(qp, 1000..1000 + INFO);
    let (remote, rkey) = told(host, qp);
    qp.post_send(3, SendOp::Write { remote, rkey, imm: None }, &part).unwrap();
    host.send(qp, 1000..1000 + INFO);
}

/// 5 % of what leaves the guest is lost, and of what enters it.
fn lossy(bench: &mut Bench, run: fn(&mut Bench)) {
    for command in [
        "ip link set ifb0 mtu 9000 up",
        "tc qdisc add dev eth0 ingress",
        "tc filter add dev eth0 ingress matchall action mirred egress redirect dev ifb0",
        "tc qdisc replace dev eth0 root netem limit 10000 loss 5%",
        "tc qdisc replace dev ifb0 root netem limit 10000 loss 5%",
    ] {
        bench.exec(command);
    }
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(bench)));
    // A case that failed may have left its program running on the other session.
    let mut session = bench.watch.session().unwrap();
    for device in ["eth0 root", "ifb0 root", "eth0 ingress"] {
        assert_eq!(session.exec(&format!("tc qdisc del dev {device}")).unwrap().0, 0, "{device}");
    }
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}

pub fn ucmatose_lossy(bench: &mut Bench) {
    lossy(bench, ucmatose);
}

pub fn rping_lossy(bench: &mut Bench) {
    lossy(bench, rping);
}
