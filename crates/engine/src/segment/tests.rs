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
