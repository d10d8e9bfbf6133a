use urxe_memory::{Config, Memory, MwType};
use urxe_wire::{ExtHeaders, FlushLevel, FlushScope, Operation};

use super::*;

const POSITIONS: [Position; 4] =
    [Position::First, Position::Middle, Position::Last, Position::Only];

/// Each operation with what the opcode table calls it and adds at the end of its message.
fn operations() -> [(SendOp, Operation, ExtHeaders); 10] {
    let (remote, rkey, none) = (0, 0, ExtHeaders::empty());
    let imm = Some([0; 4]);
    let (scope, level) = (FlushScope::Range, FlushLevel::GLOBAL);
    let cas = SendOp::CompareSwap { remote, rkey, compare: 0, swap: 0 };
    let flush = SendOp::Flush { remote, length: 0, rkey, scope, level };
    [
        (SendOp::Send { imm: None }, Operation::Send, none),
        (SendOp::Send { imm }, Operation::Send, ExtHeaders::IMM),
        (SendOp::SendInvalidate { rkey }, Operation::Send, ExtHeaders::IETH),
        (SendOp::Write { remote, rkey, imm: None }, Operation::Write, none),
        (SendOp::Write { remote, rkey, imm }, Operation::Write, ExtHeaders::IMM),
        (SendOp::Read { remote, rkey }, Operation::ReadRequest, none),
        (cas, Operation::CompareSwap, none),
        (SendOp::FetchAdd { remote, rkey, add: 0 }, Operation::FetchAdd, none),
        (flush, Operation::Flush, none),
        (SendOp::AtomicWrite { remote, rkey }, Operation::AtomicWrite, none),
    ]
}

#[test]
fn opcodes_are_those_of_the_wire_table() {
    let mut found = 0;
    for transport in [Transport::Rc, Transport::Uc, Transport::Ud, Transport::Xrc] {
        for (op, operation, extra) in operations() {
            for position in POSITIONS {
                let ends = matches!(position, Position::Last | Position::Only);
                let extra = if ends { extra } else { ExtHeaders::empty() };
                // What the transport or the operation does not have is never asked for.
                if let Some(wanted) = Opcode::find(transport, operation, position, extra) {
                    assert_eq!(opcode(transport, &op, position), wanted, "{op:?} {position:?}");
                    found += 1;
                }
            }
        }
    }
    // RC and XRC: 5 operations of 4 positions and 5 of one; UC: 5 less the 2 ends with
    // invalidation; UD: SENDs only, without and with immediate data.
    assert_eq!(found, 25 + 25 + 18 + 2);
}

#[test]
fn local_operations_have_no_opcode_of_a_request() {
    let memory = Memory::new(Config::default());
    let pd = memory.alloc_pd().expect("the first PD");
    let (mw, _) = memory.alloc_mw(pd, MwType::Type1).expect("the first window");
    let access = urxe_memory::Access::empty();
    let bind = SendOp::BindMw { mw, rkey: None, lkey: 0, addr: 0, length: 0, access };
    for op in [SendOp::LocalInvalidate { rkey: 0 }, bind] {
        assert_eq!(opcode(Transport::Rc, &op, Position::Only), Opcode::CNP);
    }
}

/// Linux include/rdma/ib_pack.h, as numbers: a wrong row of the table would else be a wrong opcode.
#[test]
fn opcodes_are_these_numbers() {
    let (remote, rkey, imm) = (0, 0, Some([0; 4]));
    let all = |op: &SendOp| POSITIONS.map(|position| opcode(Transport::Uc, op, position).0);
    assert_eq!(all(&SendOp::Send { imm: None }), [0x20, 0x21, 0x22, 0x24]);
    assert_eq!(all(&SendOp::Send { imm }), [0x20, 0x21, 0x23, 0x25]);
    assert_eq!(all(&SendOp::Write { remote, rkey, imm: None }), [0x26, 0x27, 0x28, 0x2a]);
    assert_eq!(all(&SendOp::Write { remote, rkey, imm }), [0x26, 0x27, 0x29, 0x2b]);
    let reads = POSITIONS.map(|p| response_opcode(Transport::Xrc, Response::Read(p)).0);
    assert_eq!(reads, [0xad, 0xae, 0xaf, 0xb0]);
    let others = [Response::Acknowledge, Response::Atomic];
    assert_eq!(others.map(|r| response_opcode(Transport::Rc, r).0), [0x11, 0x12]);
    let one = |op: SendOp| opcode(Transport::Xrc, &op, Position::Only).0;
    let inv = SendOp::SendInvalidate { rkey };
    assert_eq!((one(inv), opcode(Transport::Rc, &inv, Position::Last).0), (0xb7, 0x16));
    let cas = SendOp::CompareSwap { remote, rkey, compare: 0, swap: 0 };
    assert_eq!([one(cas), one(SendOp::FetchAdd { remote, rkey, add: 0 })], [0xb3, 0xb4]);
    let (scope, level) = (FlushScope::Range, FlushLevel::GLOBAL);
    let flush = SendOp::Flush { remote, length: 0, rkey, scope, level };
    assert_eq!([one(flush), one(SendOp::AtomicWrite { remote, rkey })], [0xbc, 0xbd]);
    assert_eq!(one(SendOp::Read { remote, rkey }), 0xac);
}
