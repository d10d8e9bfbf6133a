//! Packets that no requester would send, from the requester's address: what the network made late,
//! and what a peer of another age may send.

use urxe::{Psn, SendOp, WcStatus};
use urxe_wire::{AtomicEth, Bth, Ext, IcrcPrefix, Opcode, Reth, Roce};

use super::reliable::write_op;
use crate::bench::{Bench, Pair, Role};
use crate::departures::Departure;
use crate::node::{FORGER_PORT, Spec, pattern};

/// Sends a packet to the responder's QP, from the requester's address.
fn forge(bench: &mut Bench, p: &Pair, opcode: &str, n: u32, ext: Ext, payload: &[u8]) {
    forge_as(bench, p, Opcode::from_name(opcode).unwrap(), None, n, ext, payload);
}

/// The same; `instead` goes where the opcode stands. `n` counts from the first PSN.
fn forge_as(
    bench: &mut Bench,
    p: &Pair,
    opcode: Opcode,
    instead: Option<u8>,
    n: u32,
    ext: Ext,
    payload: &[u8],
) {
    let (from, to) = (bench.a.endpoint(p.qa), bench.b.endpoint(p.qb));
    let psn = Psn::new(from.psn.value()).add(n);
    let bth = Bth { ack_req: true, mig_req: true, ..Bth::new(opcode, to.qpn, psn) };
    let roce = Roce::new(bth, ext, payload);
    let mut bytes = vec![0; roce.len()];
    roce.emit(&mut bytes).unwrap();
    bytes[0] = instead.unwrap_or(bytes[0]);
    let len = bytes.len();
    // Linux gives an unconnected socket's datagrams the identification 0.
    let prefix = IcrcPrefix::socket(from.address, to.address, FORGER_PORT, 0, len as u16).unwrap();
    let icrc = prefix.compute(&bytes[..len - 4]);
    bytes[len - 4..].copy_from_slice(&icrc);
    bench.a.packet(to.address, &bytes);
}

/// A SEND of three packets, which finds the connection as it was.
fn lives(bench: &mut Bench, p: &Pair, id: u64) {
    bench.a.fill(&p.ra.piece(0..3000), 5);
    bench.a.send(p.qa, id, SendOp::Send { imm: None }, &[p.ra.piece(0..3000)]);
    assert_eq!(bench.a.done(1)[0].wr_id, id);
    let got = bench.b.done(1)[0];
    assert_eq!((got.wr_id, got.byte_len), (id, 3000), "{got:?}");
    bench.b.holds(&p.rb.piece(40_000..43_000), 5, "SEND after forged packets");
}

/// An opcode of a transport that nobody has defined is dropped. One of RC is an invalid request, if
/// it is its turn (IBA 9.6.1.1.2).
pub fn unknown_opcode(bench: &mut Bench) {
    let p = bench.pair(&Spec::default());
    for id in 1..3 {
        bench.b.receive(p.qb, id, &[p.rb.piece(40_000..48_192)]);
    }
    undefined(bench, &p, 0xff, 0);
    lives(bench, &p, 1);
    undefined(bench, &p, 0x1f, 3);
    if bench.column.role == Role::Urxe {
        lives(bench, &p, 2);
        bench.met.insert(Departure::UnknownOpcode);
    } else {
        let got = bench.b.next();
        assert_eq!((got.wr_id, got.status), (2, WcStatus::WrFlushErr as u32));
    }
}

/// A request of eight bytes whose opcode is not defined.
pub fn undefined(bench: &mut Bench, p: &Pair, opcode: u8, n: u32) {
    let only = Opcode::from_name("RC_SEND_ONLY").unwrap();
    forge_as(bench, p, only, Some(opcode), n, Ext::NONE, &[1; 8]);
}

/// What was executed comes again, long after: it is not executed again.
pub fn late_duplicate(bench: &mut Bench) {
    let p = bench.pair(&Spec::default());
    for id in 1..3 {
        bench.b.receive(p.qb, id, &[p.rb.piece(40_000..48_192)]);
    }
    bench.b.write(p.rb.index, 8192, &7_u64.to_ne_bytes());
    bench.a.fill(&p.ra.piece(0..100), 3);
    let add = SendOp::FetchAdd { remote: p.rb.addr + 8192, rkey: p.rb.rkey, add: 1 };
    bench.a.send(p.qa, 1, SendOp::Send { imm: None }, &[p.ra.piece(0..100)]);
    bench.a.send(p.qa, 2, write_op(&p, None), &[p.ra.piece(0..100)]);
    bench.a.send(p.qa, 3, add, &[p.ra.piece(4096..4104)]);
    bench.a.done(3);
    assert_eq!(bench.b.done(1)[0].wr_id, 1);
    bench.b.holds(&p.rb.piece(0..100), 3, "WRITE");
    // The responder's program goes on with its memory.
    bench.b.fill(&p.rb.piece(0..100), 4);
    bench.b.fill(&p.rb.piece(40_000..40_100), 4);
    let (va, rkey) = (p.rb.addr, p.rb.rkey);
    let data = pattern(3, 100);
    let reth = Ext { reth: Some(Reth { va, rkey, dma_len: 100 }), ..Ext::NONE };
    let atomic = AtomicEth { va: va + 8192, rkey, swap_add: 1, compare: 0 };
    let atomic = Ext { atomic: Some(atomic), ..Ext::NONE };
    for _ in 0..2 {
        forge(bench, &p, "RC_SEND_ONLY", 0, Ext::NONE, &data);
        forge(bench, &p, "RC_RDMA_WRITE_ONLY", 1, reth, &data);
        forge(bench, &p, "RC_FETCH_ADD", 2, atomic, &[]);
    }
    bench.b.holds(&p.rb.piece(40_000..40_100), 4, "a SEND that came again");
    lives(bench, &p, 2);
    bench.b.holds(&p.rb.piece(0..100), 4, "a WRITE that came again");
    assert_eq!(bench.b.read(p.rb.index, 8192..8200), 8_u64.to_ne_bytes(), "added once");
    assert!(bench.a.poll(1, std::time::Duration::ZERO).is_empty(), "completed once");
}
