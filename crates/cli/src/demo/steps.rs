//! What the demo shows, a step a function. Each checks what it did.

use std::time::Instant;

use urxe::{AhAttr, QpKind, SendOp, SendWr, UdDest, WcFlags, WcStatus};
use urxe_wire::QKey;

use super::world::{Fault, PATIENCE, SIZE, Side, World, pattern};
use crate::ending;

/// A step: what it is called, what a reader shall see in it, and what it does.
pub(super) struct Step {
    /// A few words.
    pub(super) title: &'static str,
    /// What to look at.
    pub(super) look: &'static str,
    /// What happens in it, for one who has never seen it.
    pub(super) story: &'static str,
    /// Does it; gives what came of it in a line.
    pub(super) run: fn(&World) -> Result<String, Fault>,
    /// Whether the links lose packets meanwhile.
    pub(super) lossy: bool,
}

fn expect(what: &str, holds: bool) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(Fault(format!("{what}: it is not so"))) }
}

/// All steps, in their order.
pub(super) const STEPS: &[Step] = &[
    Step {
        title: "SEND over a reliable connection",
        look: "three packets, one ACK for all of them",
        story: "Bob's program says where a message may go: it posts a receive. Alice's program \
            posts a send. Her NIC cuts the message into packets and numbers them (PSN); bob's \
            NIC puts the bytes straight into his program's memory and acknowledges. Then each \
            program finds a completion (CQE) that says so.",
        run: send,
        lossy: false,
    },
    Step {
        title: "RDMA WRITE",
        look: "bob's program does nothing: his memory changes",
        story: "This is what RDMA is named for. Alice knows an address in bob's memory and the \
            key to it (rkey). Her NIC sends both with the data, and bob's NIC writes it there. \
            Bob's program posts nothing and is told nothing.",
        run: write,
        lossy: false,
    },
    Step {
        title: "SEND and WRITE with immediate data",
        look: "four bytes more in the last packet; the WRITE takes a receive",
        story: "Immediate data are four bytes that come with the completion. A WRITE with them \
            takes one of bob's receives, only to tell his program that data has been written.",
        run: immediate,
        lossy: false,
    },
    Step {
        title: "RDMA READ",
        look: "the response takes as many PSNs as it has packets",
        story: "The other way round: alice's NIC asks, bob's NIC reads his memory and sends it. \
            One request may bring many packets; each has its PSN, which the request has taken \
            in advance.",
        run: read,
        lossy: false,
    },
    Step {
        title: "FETCH_ADD and CMP_SWAP",
        look: "the answer brings what stood there before",
        story: "Atomics change eight bytes of bob's memory in one go, even if many ask at once: \
            counters and locks are made of them. The old value comes back.",
        run: atomics,
        lossy: false,
    },
    Step {
        title: "unreliable connection (UC)",
        look: "nothing is acknowledged",
        story: "The same operations without promises: what gets lost stays lost, and alice's \
            completion only says that the packets have left.",
        run: unreliable,
        lossy: false,
    },
    Step {
        title: "datagram (UD)",
        look: "a Q_Key, the sender's QPN; 40 bytes of header come before the data",
        story: "No connection at all: one QP can send to any other. Each message is one packet, \
            shows a key (Q_Key) to be let in, and says who sent it. The first 40 bytes of bob's \
            receive hold the packet's IP header.",
        run: datagram,
        lossy: false,
    },
    Step {
        title: "all of it again, with 5\u{a0}% of the packets lost",
        look: "NAKs, timeouts, packets sent again; the data is right all the same",
        story: "Now the network loses packets. A gap in the PSNs makes bob send a NAK; where even \
            that is lost, or the last packet is, alice's timeout helps. The programs see nothing \
            of it but time.",
        run: lossy,
        lossy: true,
    },
    Step {
        title: "receiver not ready (RNR)",
        look: "an RNR NAK says how long to wait; then the message is sent again",
        story: "A SEND arrives before bob has posted a receive. His NIC says so, and how long \
            to wait before trying again.",
        run: not_ready,
        lossy: false,
    },
    Step {
        title: "a wrong rkey",
        look: "NAK remote access error; both QPs are in error after it",
        story: "Alice shows a key that does not open bob's memory. His NIC writes nothing and \
            refuses; the connection is over, and alice's completion says why.",
        run: wrong_rkey,
        lossy: false,
    },
    Step {
        title: "a dead peer",
        look: "the same packet again and again, one timeout apart, then an error",
        story: "Bob's QP is gone. Nobody answers; alice's NIC tries again three times, then \
            gives up and says so in the completion.",
        run: dead_peer,
        lossy: false,
    },
];

fn send(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Rc)?;
    // Three packets, of whatever size.
    let len = 2 * world.full() + world.full() / 2;
    b.recv(7, 0..SIZE)?;
    a.send(1, SendOp::Send { imm: None }, 0..len)?;
    a.good()?;
    let got = b.good()?;
    expect("the length is told", got.byte_len as usize == len)?;
    expect("the data is right", b.mr.to_vec(0..len)? == pattern(len))?;
    Ok(format!("{len} bytes arrived in bob's receive"))
}

fn write(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Rc)?;
    let op = SendOp::Write { remote: b.mr.addr() + 256, rkey: b.mr.rkey(), imm: None };
    a.send(1, op, 0..1000)?;
    a.good()?;
    expect("the data is right", b.mr.to_vec(256..1256)? == pattern(1000))?;
    expect("nothing beside it has changed", b.mr.to_vec(1256..1300)? == [0; 44])?;
    Ok("1000 bytes stand in bob's memory at offset 256".into())
}

fn immediate(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Rc)?;
    b.recv(7, 0..256)?;
    b.recv(8, 0..0)?;
    let imm = Some([0xca, 0xfe, 0, 1]);
    a.send(1, SendOp::Send { imm }, 0..10)?;
    let op = SendOp::Write { remote: b.mr.addr() + 512, rkey: b.mr.rkey(), imm };
    a.send(2, op, 0..64)?;
    for wr_id in [7, 8] {
        let got = b.good()?;
        expect("receives are taken in order", got.wr_id == wr_id)?;
        expect("it says that it has immediate data", got.flags.contains(WcFlags::WITH_IMM))?;
        expect("the immediate data is right", Some(got.imm) == imm)?;
    }
    a.good()?;
    a.good()?;
    expect("the written data is right", b.mr.to_vec(512..576)? == pattern(64))?;
    Ok("0xcafe0001 came with both".into())
}

fn read(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Rc)?;
    let len = 2 * world.full() + 100;
    b.fill(0, &pattern(len))?;
    let op = SendOp::Read { remote: b.mr.addr(), rkey: b.mr.rkey() };
    a.send(1, op, SIZE / 2..SIZE / 2 + len)?;
    a.good()?;
    expect("the data is right", a.mr.to_vec(SIZE / 2..SIZE / 2 + len)? == pattern(len))?;
    Ok(format!("{len} bytes came from bob's memory"))
}

fn atomics(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Rc)?;
    b.fill(0, &40u64.to_ne_bytes())?;
    let (remote, rkey) = (b.mr.addr(), b.mr.rkey());
    let word = |s: &Side| -> Result<u64, Fault> {
        let mut word = [0; 8];
        s.mr.read(0, &mut word)?;
        Ok(u64::from_ne_bytes(word))
    };
    a.send(1, SendOp::FetchAdd { remote, rkey, add: 2 }, 0..8)?;
    a.good()?;
    expect("FETCH_ADD gives 40", word(&a)? == 40)?;
    a.send(2, SendOp::CompareSwap { remote, rkey, compare: 42, swap: 7 }, 0..8)?;
    a.good()?;
    expect("CMP_SWAP gives 42", word(&a)? == 42)?;
    expect("7 stands there now", word(&b)? == 7)?;
    Ok("40 → 42 → 7".into())
}

fn unreliable(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Uc)?;
    b.recv(7, 0..256)?;
    let op = SendOp::Write { remote: b.mr.addr() + 1024, rkey: b.mr.rkey(), imm: None };
    a.send(1, op, 0..100)?;
    a.send(2, SendOp::Send { imm: None }, 0..100)?;
    a.good()?;
    a.good()?;
    b.good()?;
    expect("the sent data is right", b.mr.to_vec(0..100)? == pattern(100))?;
    expect("the written data is right", b.mr.to_vec(1024..1124)? == pattern(100))?;
    Ok("a SEND and a WRITE arrived, without an ACK".into())
}

fn datagram(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Ud)?;
    b.recv(7, 0..256)?;
    let ah = a.pd.create_ah(&AhAttr { dst: world.bob.address(), ..AhAttr::default() })?;
    let dest = UdDest { ah: ah.id(), qpn: b.qp.qpn(), qkey: QKey(0x1234) };
    let sges = [a.mr.sge(0..100)];
    let wr = SendWr { dest: Some(dest), ..SendWr::new(1, SendOp::Send { imm: None }, &sges) };
    a.post(&wr)?;
    a.good()?;
    let got = b.good()?;
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
    let len = 3 * world.full() - 72;
    for n in 0..60 {
        let op = SendOp::Write { remote: b.mr.addr(), rkey: b.mr.rkey(), imm: None };
        a.send(n, op, 0..len)?;
    }
    for n in 0..60 {
        expect("completions come in order", a.good()?.wr_id == n)?;
    }
    expect("the data is right", b.mr.to_vec(0..len)? == pattern(len))?;
    world.settle();
    let lost = world.recorder.lost();
    expect("packets were lost", lost > 0)?;
    Ok(format!("{lost} packets were lost; 88 operations, each done once, in order, data right"))
}

fn not_ready(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Rc)?;
    a.send(1, SendOp::Send { imm: None }, 0..100)?;
    // Bob takes the packet and has no receive for it.
    let until = Instant::now() + PATIENCE;
    while !world.bob.counters().iter().any(|&(name, n)| name == "out_of_buffer" && n != 0) {
        ending::check()?;
        world.bob.progress();
        expect("bob's NIC says that there is no receive", Instant::now() < until)?;
    }
    b.recv(7, 0..256)?;
    b.good()?;
    a.good()?;
    expect("the data is right", b.mr.to_vec(0..100)? == pattern(100))?;
    Ok("the SEND waited for bob's receive".into())
}

fn wrong_rkey(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair(QpKind::Rc)?;
    let op = SendOp::Write { remote: b.mr.addr(), rkey: b.mr.rkey() ^ 1, imm: None };
    a.send(1, op, 0..100)?;
    let done = a.done()?;
    expect("it is refused", done.status == WcStatus::RemAccessErr)?;
    expect("nothing was written", b.mr.to_vec(0..100)? == [0; 100])?;
    Ok(done.explain())
}

fn dead_peer(world: &World) -> Result<String, Fault> {
    let (a, b) = world.pair_with(QpKind::Rc, |attr| attr.retry_cnt = 3)?;
    drop(b);
    a.send(1, SendOp::Send { imm: None }, 0..100)?;
    let done = a.done()?;
    expect("it fails", done.status == WcStatus::RetryExcErr)?;
    Ok(done.explain())
}
