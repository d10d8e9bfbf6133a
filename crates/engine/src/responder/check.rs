//! Checks of a request before anything of it is done, in the order of IBA 9.7.4.1.

use urxe_memory::Access;
use urxe_wire::{MAX_MESSAGE, Operation, Position};

use super::{Message, Refusal, Request, execute};
use crate::conn::Conn;
use crate::reason::Rule;

/// Whether the opcode can follow the packet before it.
pub(super) fn sequence(message: Message, request: &Request<'_>) -> Result<(), Refusal> {
    let info = request.info;
    let fits = match message {
        Message::None => request.starts(),
        Message::Send => info.operation == Operation::Send && !request.starts(),
        Message::Write { .. } => info.operation == Operation::Write && !request.starts(),
        Message::Broken => false,
    };
    if fits { Ok(()) } else { Err(Refusal::Invalid(Rule::OpcodeSequence(info.opcode))) }
}

/// Whether this QP lets the peer do this at all.
pub(super) fn allowed(request: &Request<'_>, conn: &Conn) -> Result<(), Refusal> {
    let need = match request.info.operation {
        Operation::Send => Access::empty(),
        // Linux sw/rxe/rxe_resp.c, check_qp_attr_access.
        Operation::Flush => {
            request.ext().feth.map_or(Access::empty(), |feth| execute::flush_rights(&feth))
        }
        Operation::Write | Operation::AtomicWrite => Access::REMOTE_WRITE,
        Operation::ReadRequest => Access::REMOTE_READ,
        Operation::CompareSwap | Operation::FetchAdd => Access::REMOTE_ATOMIC,
        _ => return Err(Refusal::Invalid(Rule::NotAllowed(request.info.opcode))),
    };
    if !conn.access.contains(need) {
        return Err(Refusal::Invalid(Rule::NotAllowed(request.info.opcode)));
    }
    let saves = !matches!(request.info.operation, Operation::Send | Operation::Write);
    if saves && conn.max_dest_rd_atomic == 0 {
        return Err(Refusal::Invalid(Rule::TooManyReads));
    }
    Ok(())
}

/// Whether the payload is as long as its place in the message asks (IBA C9-94).
pub(super) fn length(message: Message, request: &Request<'_>, conn: &Conn) -> Result<(), Refusal> {
    let got = request.len();
    let wrong = |wanted| Err(Refusal::Invalid(Rule::RequestLength(got, wanted)));
    let dma_len = request.ext().reth.map_or(0, |reth| reth.dma_len);
    if dma_len > MAX_MESSAGE {
        return wrong(MAX_MESSAGE);
    }
    if request.info.operation == Operation::AtomicWrite {
        return if got == 8 && dma_len == 8 { Ok(()) } else { wrong(8) };
    }
    let left = match (request.info.operation, message) {
        (Operation::Write, Message::Write { left, .. }) => Some(left),
        (Operation::Write, _) => Some(dma_len),
        _ => None,
    };
    match (request.info.position, left) {
        (Position::First | Position::Middle, _) if got != conn.mtu => wrong(conn.mtu),
        (Position::First | Position::Middle, Some(left)) if left <= conn.mtu => wrong(left),
        (Position::Last | Position::Only, Some(left)) if got != left => wrong(left),
        (Position::Last, _) if got == 0 => wrong(1),
        _ if got > conn.mtu => wrong(conn.mtu),
        _ => Ok(()),
    }
}
