//! Which opcode a packet gets: of a work request, and of a response.

use urxe_wire::{ExtHeaders, Opcode, Operation, Position, Transport};

use crate::wr::SendOp;

#[cfg(test)]
mod tests;

const NONE: ExtHeaders = ExtHeaders::empty();

/// The table's code of an operation without the transport's base, found when this is compiled.
const fn code(operation: Operation, position: Position, extra: ExtHeaders) -> u8 {
    match Opcode::find(Transport::Rc, operation, position, extra) {
        Some(opcode) => opcode.0 - Transport::Rc as u8,
        None => panic!("RC has all operations"),
    }
}

/// Codes of a message of several packets; what is extra is in its last one.
#[derive(Clone, Copy)]
struct Codes {
    first: u8,
    middle: u8,
    last: u8,
    only: u8,
}

impl Codes {
    const fn of(operation: Operation, extra: ExtHeaders) -> Self {
        Self {
            first: code(operation, Position::First, NONE),
            middle: code(operation, Position::Middle, NONE),
            last: code(operation, Position::Last, extra),
            only: code(operation, Position::Only, extra),
        }
    }

    const fn at(self, position: Position) -> u8 {
        match position {
            Position::First => self.first,
            Position::Middle => self.middle,
            Position::Last => self.last,
            Position::Only => self.only,
        }
    }
}

const SEND: Codes = Codes::of(Operation::Send, NONE);
const SEND_IMM: Codes = Codes::of(Operation::Send, ExtHeaders::IMM);
const SEND_INV: Codes = Codes::of(Operation::Send, ExtHeaders::IETH);
const WRITE: Codes = Codes::of(Operation::Write, NONE);
const WRITE_IMM: Codes = Codes::of(Operation::Write, ExtHeaders::IMM);
const READ_RESPONSE: Codes = Codes::of(Operation::ReadResponse, NONE);

/// The code of an operation of one packet.
const fn only(operation: Operation) -> u8 {
    code(operation, Position::Only, NONE)
}

/// The opcode of the packet at `position` of `op`. Local operations have none; they get CNP's,
/// which never leaves (the QP does them without a packet).
pub(crate) const fn opcode(transport: Transport, op: &SendOp, position: Position) -> Opcode {
    let low = match op {
        SendOp::Send { imm: None } => SEND.at(position),
        SendOp::Send { imm: Some(_) } => SEND_IMM.at(position),
        SendOp::SendInvalidate { .. } => SEND_INV.at(position),
        SendOp::Write { imm: None, .. } => WRITE.at(position),
        SendOp::Write { imm: Some(_), .. } => WRITE_IMM.at(position),
        SendOp::Read { .. } => const { only(Operation::ReadRequest) },
        SendOp::CompareSwap { .. } => const { only(Operation::CompareSwap) },
        SendOp::FetchAdd { .. } => const { only(Operation::FetchAdd) },
        SendOp::Flush { .. } => const { only(Operation::Flush) },
        SendOp::AtomicWrite { .. } => const { only(Operation::AtomicWrite) },
        SendOp::LocalInvalidate { .. } | SendOp::BindMw { .. } => return Opcode::CNP,
    };
    Opcode(transport as u8 | low)
}

/// What a responder sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    /// A part of a READ's data, or what says that a FLUSH or ATOMIC WRITE is done.
    Read(Position),
    Atomic,
    /// An ACK or NAK.
    Acknowledge,
}

/// The opcode of a response.
pub(crate) const fn response_opcode(transport: Transport, response: Response) -> Opcode {
    let low = match response {
        Response::Read(position) => READ_RESPONSE.at(position),
        Response::Atomic => const { only(Operation::AtomicAcknowledge) },
        Response::Acknowledge => const { only(Operation::Acknowledge) },
    };
    Opcode(transport as u8 | low)
}
