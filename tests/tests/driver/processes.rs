//! Two programs of one host.

use urxe::{Config, Context, QpKind, SendOp, WcStatus};

use crate::peer::{Peer, hex};
use crate::rig::{PATIENCE, Side, open, patient, pattern};

fn exchange(context: &Context, settings: &[(&str, &str)]) {
    exchange_with(context, &mut Peer::start(settings));
}

/// Every reliable operation towards a peer.
pub fn exchange_with(context: &Context, peer: &mut Peer) {
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
    dying.kill();
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

/// Two peers that send to each other; the test only tells them what.
fn both_ways(mut run: impl FnMut(&mut Peer, &mut Peer)) {
    let (mut a, mut b) = (Peer::start(&[]), Peer::start(&[]));
    run(&mut a, &mut b);
    run(&mut b, &mut a);
}

/// Sends by `how` from one to the other, each message with bytes of its own.
pub fn messages(from: &mut Peer, to: &mut Peer, how: &str, headers: usize) {
    for (n, len) in [1, 7, 1000].into_iter().enumerate() {
        let byte = n + 1;
        to.order("write 0 0 4096");
        to.order(&format!("receive 0 {}", len + headers));
        from.order(&format!("write 8000 {byte} {len}"));
        from.order(&format!("{how} 8000 {len}"));
        from.done("request 77");
        to.done("request 0");
        let there = to.say(&format!("read {headers} {}", len + 1));
        let mut wanted = vec![u8::try_from(byte).unwrap(); len];
        wanted.push(0);
        assert_eq!(there, hex(&wanted), "{how} {len}");
    }
}

pub fn connected(from: &mut Peer, to: &mut Peer, kinds: [&str; 2]) -> u32 {
    let (a, b) = (from.make(kinds[0]), to.make(kinds[1]));
    from.order(&format!("connect {}", b.end));
    to.order(&format!("connect {}", a.end));
    b.srqn
}

#[test]
fn uc_between_two_processes() {
    both_ways(|a, b| {
        connected(a, b, ["uc", "uc"]);
        messages(a, b, "send", 0);
    });
}

#[test]
fn ud_between_two_processes() {
    both_ways(|a, b| {
        a.make("ud");
        let to = b.make("ud").end;
        messages(a, b, &format!("sendto {} {}", to.address, to.qpn.value()), 40);
    });
}

#[test]
fn a_shared_receive_queue_in_another_process() {
    both_ways(|a, b| {
        connected(a, b, ["rc", "srq"]);
        messages(a, b, "send", 0);
    });
}

#[test]
fn xrc_between_two_processes() {
    both_ways(|a, b| {
        let srqn = connected(a, b, ["xrc", "xrcsrq"]);
        messages(a, b, &format!("sendsrq {srqn}"), 0);
    });
}
