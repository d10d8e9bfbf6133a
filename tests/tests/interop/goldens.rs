//! Records what two kernels say to each other: captures for tests/captures, and one of each way in
//! which rxe departs from the specification.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rxe_lab::{BRIDGE, Lab, guest_v4};
use urxe::{Access, FlushLevel, FlushScope, SendOp, WcStatus};
use urxe_lint::{Profile, Rule};

use crate::bench::{Bench, Column, Pair, Role};
use crate::cases::errors::rnr_naks;
use crate::cases::faults::{incoming, traffic};
use crate::cases::forged::undefined;
use crate::cases::reliable::{read_op, write_op};
use crate::departures::{Departure, Met};
use crate::node::{Node, Spec};
use crate::runner::judge;
use crate::say;
use crate::theirs::Theirs;

/// A long one.
const LONG: &str = "stale_response.pcap";

/// A conversation, and the file that it is recorded in.
type Scene = (&'static str, fn(&mut Bench, &Path));

const SCENES: &[Scene] = &[
    ("rnr_nak", |b, f| recorded(b, f, rnr_nak)),
    ("remote_access", |b, f| recorded(b, f, |b| refused(b, WcStatus::RemAccessErr))),
    ("invalid_request", |b, f| recorded(b, f, |b| refused(b, WcStatus::RemInvReqErr))),
    ("send_invalidate", |b, f| recorded(b, f, send_invalidate)),
    ("write_imm", |b, f| recorded(b, f, write_imm)),
    ("read_resume", read_resume),
    ("atomic_write", |b, f| recorded(b, f, atomic_write)),
    ("departures/flush_icrc", |b, f| recorded(b, f, flush)),
    ("departures/window_range", |b, f| recorded(b, f, window_range)),
    ("departures/long_send", |b, f| recorded(b, f, long_send)),
    ("departures/stale_response", stale_response),
    ("departures/old_ack", old_ack),
    ("departures/unknown_opcode", |b, f| recorded(b, f, unknown_opcode)),
];

/// Records all of them, or those whose names hold all `words`.
pub fn record(lab: &Lab, words: &[String]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("captures");
    fs::create_dir_all(folder.join("departures")).unwrap();
    for (name, scene) in SCENES {
        if words.iter().all(|word| name.contains(word)) {
            let node = |guest| {
                let session = lab.guest(guest).session().unwrap();
                Box::new(Theirs::open(session, guest_v4(guest)))
            };
            let (a, b, watch) = (node(1), node(2), lab.guest(2).watch().clone());
            let column = Column { role: Role::Rxe, v6: false, raw: false };
            let guest = lab.guest(2).session().unwrap();
            let mut bench = Bench { a, b, column, guest, watch, met: Met::new() };
            scene(&mut bench, &folder.join(name).with_extension("pcap"));
            say(&format!("recorded {name}"));
        }
    }
}

/// dumpcap on the bridge.
struct Recorder(Child);

impl Recorder {
    fn start(file: &Path) -> Self {
        let mut dumpcap = Command::new("dumpcap");
        dumpcap.args(["-q", "-P", "-i", BRIDGE, "-f", "udp port 4791"]);
        if file.ends_with(LONG) {
            // Of hundreds of packets the headers are enough.
            dumpcap.args(["-s", "100"]);
        }
        dumpcap.arg("-w").arg(file);
        let mut child = dumpcap.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with("File:")), "dumpcap did not start");
        Self(child)
    }

    /// Ends the file, once all that passed is in it.
    fn end(mut self, bench: &mut Bench) {
        bench.exec("sleep 1");
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        self.0.wait().unwrap();
    }
}

fn recorded(bench: &mut Bench, file: &Path, scene: impl FnOnce(&mut Bench)) {
    let recorder = Recorder::start(file);
    scene(bench);
    recorder.end(bench);
}

/// Records a scene again and again, until it has what is wanted.
fn until(
    bench: &mut Bench,
    file: &Path,
    mut scene: impl FnMut(&mut Bench),
    mut has: impl FnMut(&mut Bench) -> bool,
) {
    for _ in 0..50 {
        recorded(bench, file, &mut scene);
        if has(bench) {
            return;
        }
    }
    panic!("{}: not seen in 50 tries", file.display());
}

fn pair(bench: &mut Bench) -> Pair {
    let p = bench.pair(&Spec::default());
    bench.a.fill(&p.ra.piece(0..8192), 1);
    bench.b.fill(&p.rb.piece(0..65_536), 2);
    p
}

fn rnr_nak(bench: &mut Bench) {
    let p = pair(bench);
    for len in [100, 3000] {
        let before = rnr_naks(bench);
        bench.a.send(p.qa, 1, SendOp::Send { imm: None }, &[p.ra.piece(0..len)]);
        bench.eventually("an RNR NAK", |bench| rnr_naks(bench) > before);
        bench.b.receive(p.qb, 2, &[p.rb.piece(0..8192)]);
        bench.a.done(1);
        bench.b.done(1);
    }
}

/// A wrong key for each kind of access, or a QP without the right to it.
fn refused(bench: &mut Bench, wanted: WcStatus) {
    let invalid = wanted == WcStatus::RemInvReqErr;
    let access = if invalid { Access::empty() } else { Spec::DEFAULT.access };
    for n in 0..3 {
        let p = bench.pair_of(&Spec::default(), &Spec { access, ..Spec::default() });
        let rkey = if invalid { p.rb.rkey } else { p.rb.rkey ^ 0x5500 };
        let remote = p.rb.addr;
        let (op, len) = [
            (SendOp::Write { remote, rkey, imm: None }, 100),
            (SendOp::Read { remote, rkey }, 100),
            (SendOp::FetchAdd { remote, rkey, add: 1 }, 8),
        ][n];
        bench.a.send(p.qa, 1, op, &[p.ra.piece(0..len)]);
        assert_eq!(bench.a.next().status, wanted as u32);
    }
}

/// A window of 4096 bytes.
fn window(bench: &mut Bench, p: &Pair) -> u32 {
    let window = bench.b.window();
    let rkey = bench.b.bind(p.qb, 900, window, &p.rb.piece(0..4096), Access::REMOTE_WRITE);
    bench.b.done(1);
    rkey
}

fn send_invalidate(bench: &mut Bench) {
    let p = pair(bench);
    for len in [100, 2000] {
        let rkey = window(bench, &p);
        bench.b.receive(p.qb, 2, &[p.rb.piece(4096..8192)]);
        bench.a.send(p.qa, 1, SendOp::SendInvalidate { rkey }, &[p.ra.piece(0..len)]);
        bench.a.done(1);
        bench.b.done(1);
    }
}

fn write_imm(bench: &mut Bench) {
    let p = pair(bench);
    for len in [0, 100, 3000] {
        bench.b.receive(p.qb, 2, &[]);
        let write = write_op(&p, Some([0xde, 0xad, 0xbe, 0xef]));
        bench.a.send(p.qa, 1, write, &[p.ra.piece(0..len)]);
        bench.a.done(1);
        bench.b.done(1);
    }
}

fn atomic_write(bench: &mut Bench) {
    let p = pair(bench);
    for n in 0..3 {
        let op = SendOp::AtomicWrite { remote: p.rb.addr + 8 * n, rkey: p.rb.rkey };
        bench.a.send(p.qa, n, op, &[p.ra.piece(16..24)]);
        bench.a.done(1);
    }
}

/// Runs something while what leaves the responder suffers faults.
fn with_faults<T>(bench: &mut Bench, faults: &str, f: impl FnOnce(&mut Bench) -> T) -> T {
    bench.exec(&format!("tc qdisc replace dev eth0 root netem limit 10000 {faults}"));
    let result = f(bench);
    bench.exec("tc qdisc del dev eth0 root");
    result
}

/// How many requests came to the responder twice.
fn duplicates(node: &mut dyn Node) -> u64 {
    let counters = node.counters();
    let rest = counters.split("duplicate_request:").nth(1).unwrap_or("0");
    rest.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn read_resume(bench: &mut Bench, file: &Path) {
    let before = duplicates(&mut *bench.b);
    let scene = |bench: &mut Bench| {
        let p = pair(bench);
        with_faults(bench, "loss 8%", |bench| {
            bench.a.send(p.qa, 1, read_op(&p), &[p.ra.piece(0..20_000)]);
            bench.a.done(1);
        });
    };
    until(bench, file, scene, |bench| duplicates(&mut *bench.b) > before);
}

fn flush(bench: &mut Bench) {
    let p = pair(bench);
    let (remote, rkey, level) = (p.rb.addr, p.rb.rkey, FlushLevel::GLOBAL);
    for scope in [FlushScope::Range, FlushScope::MemoryRegion] {
        bench.a.send(p.qa, 1, write_op(&p, None), &[p.ra.piece(0..100)]);
        bench.a.send(p.qa, 2, SendOp::Flush { remote, length: 100, rkey, scope, level }, &[]);
        bench.a.done(2);
    }
}

fn window_range(bench: &mut Bench) {
    let p = pair(bench);
    let rkey = window(bench, &p);
    let write = SendOp::Write { remote: p.rb.addr + 4000, rkey, imm: None };
    bench.a.send(p.qa, 1, write, &[p.ra.piece(0..200)]);
    bench.a.done(1);
}

fn long_send(bench: &mut Bench) {
    let p = pair(bench);
    bench.b.receive(p.qb, 5, &[p.rb.piece(0..10)]);
    bench.a.send(p.qa, 1, SendOp::Send { imm: None }, &[p.ra.piece(0..11)]);
    assert_eq!(bench.a.next().status, WcStatus::RemOpErr as u32);
}

fn unknown_opcode(bench: &mut Bench) {
    let p = pair(bench);
    bench.b.receive(p.qb, 1, &[p.rb.piece(0..8192)]);
    undefined(bench, &p, 0x1f, 0);
    bench.a.send(p.qa, 1, SendOp::Send { imm: None }, &[p.ra.piece(0..100)]);
    bench.a.done(1);
}

fn stale_response(bench: &mut Bench, file: &Path) {
    let scene = |bench: &mut Bench| {
        let p = bench.pair(&Spec::default());
        with_faults(bench, "delay 2ms reorder 90%", |bench| traffic(bench, &p, 1));
    };
    until(bench, file, scene, |bench| bench.met.contains(&Departure::StaleResponse));
}

/// Answers are lost behind the capture; here it is the second node that requests.
fn old_ack(bench: &mut Bench, file: &Path) {
    let scene = |bench: &mut Bench| {
        let p = pair(bench);
        for n in 0..4 {
            bench.a.receive(p.qa, n, &[p.ra.piece(0..8192)]);
        }
        incoming(bench, "loss 15%", |bench| {
            for n in 0..4 {
                let read = SendOp::Read { remote: p.ra.addr, rkey: p.ra.rkey };
                bench.b.send(p.qb, n, SendOp::Send { imm: None }, &[p.rb.piece(0..100)]);
                bench.b.send(p.qb, n, read, &[p.rb.piece(8192..11_192)]);
            }
            bench.b.done(8);
        });
    };
    until(bench, file, scene, |_| {
        let found = [Profile::Strict, Profile::Rxe].map(|profile| judge(file, profile).unwrap());
        found[0].iter().any(|f| f.rule == Rule::AckBackward) && found[1].is_empty()
    });
}
