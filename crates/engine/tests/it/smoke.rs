//! Every operation between two NICs, on a link without faults.

use crate::lab::{self, BASE, Pair};
use urxe_engine::{QpKind, SendFlags, SendOp, SendWr, WcFlags, WcOpcode, WcStatus};
use urxe_wire::{FlushLevel, FlushScope};

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| u8::try_from((i * 7 + i / 256) % 256).unwrap()).collect()
}

fn bytes(node: &lab::Node, offset: usize, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    node.buffer.read(offset, &mut out).unwrap();
    out
}

#[test]
fn send_of_every_size_arrives_whole() {
    for kind in [QpKind::Rc, QpKind::Uc] {
        for len in [0u32, 1, 3, 1023, 1024, 1025, 2048, 5000] {
            let mut p = Pair::new();
            let (qa, qb) = p.connect(kind);
            let data = pattern(len as usize);
            p.a.buffer.write(0, &data).unwrap();
            p.b.recv(qb, 7, 8192, 8192);
            p.a.send_bytes(qa, 1, 0, len);
            p.settle();
            assert_eq!(p.a.done(), [(1, WcStatus::Success)], "{kind} {len}: {:#?}", p.log);
            let got = p.b.completions();
            assert_eq!(got.len(), 1, "{kind} {len}: {:#?}", p.log);
            assert_eq!((got[0].wr_id, got[0].byte_len), (7, len));
            assert_eq!(bytes(&p.b, 8192, len as usize), data);
            assert!(!p.a.nic.timers_armed() && !p.b.nic.timers_armed());
        }
    }
}

#[test]
fn write_read_and_atomics_move_what_they_should() {
    let mut p = Pair::new();
    let (qa, _) = p.connect(QpKind::Rc);
    let data = pattern(3000);
    p.a.buffer.write(0, &data).unwrap();
    let rkey = p.b.mr.rkey;
    let sges = [p.a.sge(0, 3000)];
    let write = SendOp::Write { remote: BASE + 100, rkey, imm: None };
    p.a.send(qa, &SendWr::new(1, write, &sges));
    let sges = [p.a.sge(16384, 3000)];
    p.a.send(qa, &SendWr::new(2, SendOp::Read { remote: BASE + 100, rkey }, &sges));
    p.settle();
    assert_eq!(p.a.done(), [(1, WcStatus::Success), (2, WcStatus::Success)], "{:#?}", p.log);
    assert_eq!(bytes(&p.b, 100, 3000), data);
    assert_eq!(bytes(&p.a, 16384, 3000), data);

    p.b.buffer.write(40000, &5u64.to_ne_bytes()).unwrap();
    let remote = BASE + 40000;
    let sges = [p.a.sge(0, 8)];
    p.a.send(qa, &SendWr::new(3, SendOp::FetchAdd { remote, rkey, add: 10 }, &sges));
    p.settle();
    assert_eq!(bytes(&p.a, 0, 8), 5u64.to_ne_bytes());
    let cas = SendOp::CompareSwap { remote, rkey, compare: 15, swap: 99 };
    p.a.send(qa, &SendWr::new(4, cas, &sges));
    p.settle();
    assert_eq!(bytes(&p.a, 0, 8), 15u64.to_ne_bytes());
    assert_eq!(bytes(&p.b, 40000, 8), 99u64.to_ne_bytes());
    p.a.buffer.write(0, &0x1234u64.to_ne_bytes()).unwrap();
    p.a.send(qa, &SendWr::new(5, SendOp::AtomicWrite { remote, rkey }, &sges));
    let (scope, level) = (FlushScope::Range, FlushLevel::GLOBAL);
    let flush = SendOp::Flush { remote, length: 8, rkey, scope, level };
    p.a.send(qa, &SendWr::new(6, flush, &[]));
    p.settle();
    assert_eq!(bytes(&p.b, 40000, 8), 0x1234u64.to_ne_bytes());
    let ok = WcStatus::Success;
    assert_eq!(p.a.done(), [(3, ok), (4, ok), (5, ok), (6, ok)], "{:#?}", p.log);
}

#[test]
fn immediate_data_takes_a_receive_and_is_told() {
    let mut p = Pair::new();
    let (qa, qb) = p.connect(QpKind::Rc);
    p.b.recv(qb, 70, 0, 4096);
    p.b.recv(qb, 71, 0, 4096);
    let imm = Some([1, 2, 3, 4]);
    let sges = [p.a.sge(0, 2000)];
    p.a.send(qa, &SendWr::new(1, SendOp::Send { imm }, &sges));
    let write = SendOp::Write { remote: BASE, rkey: p.b.mr.rkey, imm };
    let wr = SendWr { flags: SendFlags::SOLICITED, ..SendWr::new(2, write, &sges) };
    p.a.send(qa, &wr);
    p.settle();
    // The write was not signaled.
    assert_eq!(p.a.done(), [(1, WcStatus::Success)]);
    let got = p.b.completions();
    let told: Vec<_> = got.iter().map(|c| (c.wr_id, c.opcode, c.byte_len, c.imm)).collect();
    let imm = [1, 2, 3, 4];
    assert_eq!(told, [(70, WcOpcode::Recv, 2000, imm), (71, WcOpcode::RecvRdmaWithImm, 2000, imm)]);
    assert!(got.iter().all(|c| c.flags == WcFlags::WITH_IMM));
}

#[test]
fn a_message_survives_loss_of_any_one_packet() {
    for lost in 0..12 {
        let mut p = Pair::new();
        let (qa, qb) = p.connect(QpKind::Rc);
        let data = pattern(5000);
        p.a.buffer.write(0, &data).unwrap();
        p.b.recv(qb, 7, 8192, 8192);
        p.lose = Box::new(move |n, _| n == lost);
        p.a.send_bytes(qa, 1, 0, 5000);
        let sges = [p.a.sge(16384, 5000)];
        let read = SendOp::Read { remote: BASE + 8192, rkey: p.b.mr.rkey };
        p.a.send(qa, &SendWr::new(2, read, &sges));
        p.settle();
        let log = p.log.join("\n");
        assert_eq!(p.a.done(), [(1, WcStatus::Success), (2, WcStatus::Success)], "{lost}: {log}");
        assert_eq!(p.b.done(), [(7, WcStatus::Success)], "{lost}: {log}");
        assert_eq!(bytes(&p.a, 16384, 5000), data, "{lost}: {log}");
    }
}
