//! Two programs of one host.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use urxe::{Config, Context, Endpoint, QpKind, SendOp, WcStatus};

use crate::rig::{PATIENCE, Side, open, patient, pattern};

/// A peer in a process of its own.
struct Peer {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    end: Endpoint,
    remote: u64,
    rkey: u32,
}

impl Peer {
    fn start(settings: &[(&str, &str)]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_urxe-peer"))
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = process.stdin.take().unwrap();
        let mut answers = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        let parts: Vec<&str> = line.split_whitespace().collect();
        let end = parts[..3].join(" ").parse().unwrap();
        let (remote, rkey) = (parts[3].parse().unwrap(), parts[4].parse().unwrap());
        Self { process, orders, answers, end, remote, rkey }
    }

    fn say(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn connect(&mut self, side: &Side) {
        assert_eq!(self.say(&format!("connect {}", side.qp.endpoint())), "ok");
        side.qp.connect(&self.end).unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Gone already, where the test killed it.
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn exchange(context: &Context, settings: &[(&str, &str)]) {
    let mut peer = Peer::start(settings);
    let a = Side::new(context, QpKind::Rc);
    peer.connect(&a);
    for n in 0..8 {
        let len = 500 * n + 1;
        a.mr.write(0, &pattern(n, len)).unwrap();
        assert_eq!(peer.say(&format!("receive {n} {len}")), "ok");
        let imm = Some([1, 2, 3, 4]).filter(|_| n % 2 == 0);
        a.qp.post_send(1, SendOp::Send { imm }, &[a.mr.sge(0..len)]).unwrap();
        a.done();
        let done = peer.say("wait");
        assert!(done.contains(&format!("request {n}")) && done.contains("is done"), "{done}");
        let there = peer.say(&format!("read {} {len}", n * 4096));
        assert_eq!(there, hex(&pattern(n, len)), "SEND of {len}");
    }
    let (remote, rkey) = (peer.remote, peer.rkey);
    a.qp.post_send(2, SendOp::Write { remote, rkey, imm: None }, &[a.mr.sge(0..3000)]).unwrap();
    a.done();
    assert_eq!(peer.say("read 0 3000"), hex(&a.mr.to_vec(0..3000).unwrap()));
    assert_eq!(peer.say("write 0 165 9000"), "ok");
    a.qp.post_send(3, SendOp::Read { remote, rkey }, &[a.mr.sge(0..9000)]).unwrap();
    a.done();
    assert_eq!(a.mr.to_vec(0..9000).unwrap(), [165; 9000]);
    peer.say("write 0 0 8");
    a.qp.post_send(4, SendOp::FetchAdd { remote, rkey, add: 5 }, &[a.mr.sge(0..8)]).unwrap();
    let swap = SendOp::CompareSwap { remote, rkey, compare: 5, swap: 6 };
    a.qp.post_send(5, swap, &[a.mr.sge(8..16)]).unwrap();
    a.done();
    a.done();
    assert_eq!(a.mr.to_vec(8..16).unwrap(), 5_u64.to_ne_bytes());
    assert_eq!(peer.say("read 0 8"), hex(&6_u64.to_ne_bytes()));
}

#[test]
fn every_reliable_operation() {
    exchange(&open(), &[]);
}

#[test]
fn every_reliable_operation_over_a_faulty_link() {
    let faults = "tx.loss=5%,tx.duplicate=5%,tx.reorder=5%,tx.corrupt=5%";
    let config = Config { faults: faults.into(), ..patient() };
    exchange(&Context::open(&config).unwrap(), &[("URXE_FAULTS", faults)]);
}

#[test]
fn a_killed_peer_costs_its_connections_and_nothing_else() {
    let context = Context::open(&Config::default()).unwrap();
    let mut peers = [Peer::start(&[]), Peer::start(&[])];
    let sides = [0, 1].map(|i| {
        let side = Side::new(&context, QpKind::Rc);
        peers[i].connect(&side);
        side
    });
    let [dying, other] = &mut peers;
    let write = |peer: &Peer| SendOp::Write { remote: peer.remote, rkey: peer.rkey, imm: None };
    // In the middle of traffic.
    for n in 0..100 {
        sides[0].qp.post_send(n, write(dying), &[sides[0].mr.sge(0..20_000)]).unwrap();
    }
    sides[0].done();
    dying.process.kill().unwrap();
    dying.process.wait().unwrap();
    // Whatever arrived before, this one does not.
    sides[0].qp.post_send(100, write(dying), &[sides[0].mr.sge(0..8)]).unwrap();
    let mut statuses = Vec::new();
    for _ in 1..=100 {
        statuses.push(sides[0].cq.wait_for(PATIENCE).unwrap().status);
    }
    let failed =
        statuses.iter().position(|s| *s != WcStatus::Success).expect("the last cannot arrive");
    assert_eq!(statuses[failed], WcStatus::RetryExcErr, "{statuses:?}");
    assert!(statuses[failed + 1..].iter().all(|s| *s == WcStatus::WrFlushErr), "{statuses:?}");
    // The other one's connection stands.
    sides[1].mr.write(0, b"still here").unwrap();
    sides[1].qp.post_send(1, write(other), &[sides[1].mr.sge(0..10)]).unwrap();
    sides[1].done();
    assert_eq!(other.say("read 0 10"), hex(b"still here"));
}
