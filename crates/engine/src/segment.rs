//! Which opcode a packet of a work request gets.

use urxe_wire::{Opcode, Position, Transport};

use crate::wr::SendOp;

#[cfg(test)]
mod tests;

/// The opcode of the packet at `position` of `op`. Local operations have none; they get CNP's,
/// which never leaves (the QP does them without a packet).
pub(crate) const fn opcode(transport: Transport, op: &SendOp, position: Position) -> Opcode {
    use Position::{First, Last, Middle, Only};
    let low = match op {
        SendOp::Send { imm } => match (position, imm.is_some()) {
            (First, _) => 0x00,
            (Middle, _) => 0x01,
            (Last, false) => 0x02,
            (Last, true) => 0x03,
            (Only, false) => 0x04,
            (Only, true) => 0x05,
        },
        SendOp::SendInvalidate { .. } => match position {
            First => 0x00,
            Middle => 0x01,
            Last => 0x16,
            Only => 0x17,
        },
        SendOp::Write { imm, .. } => match (position, imm.is_some()) {
            (First, _) => 0x06,
            (Middle, _) => 0x07,
            (Last, false) => 0x08,
            (Last, true) => 0x09,
            (Only, false) => 0x0a,
            (Only, true) => 0x0b,
        },
        SendOp::Read { .. } => 0x0c,
        SendOp::CompareSwap { .. } => 0x13,
        SendOp::FetchAdd { .. } => 0x14,
        SendOp::Flush { .. } => 0x1c,
        SendOp::AtomicWrite { .. } => 0x1d,
        SendOp::LocalInvalidate { .. } | SendOp::BindMw { .. } => return Opcode::CNP,
    };
    Opcode(transport as u8 | low)
}
