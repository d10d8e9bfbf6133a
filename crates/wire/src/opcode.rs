//! The opcode table: everything that follows from the first byte of a BTH, as data.

use core::fmt;

use bitflags::bitflags;

use crate::{
    Aeth, AtomicAckEth, AtomicEth, CnpPad, Deth, Feth, Ieth, ImmDt, RdEth, Repr, Reth, XrcEth,
};

#[cfg(test)]
mod tests;

/// The transport of an opcode: its high three bits (IBA 9.2.1; Linux include/rdma/ib_pack.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Transport {
    /// Reliable connection.
    Rc = 0x00,
    /// Unreliable connection.
    Uc = 0x20,
    /// Reliable datagram. Dissected only: no NIC speaks it.
    Rd = 0x40,
    /// Unreliable datagram.
    Ud = 0x60,
    /// Congestion notification.
    Cnp = 0x80,
    /// Extended reliable connection.
    Xrc = 0xa0,
}

/// What a packet asks or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// SEND, with or without immediate data or invalidation.
    Send,
    /// RDMA WRITE, with or without immediate data.
    Write,
    /// RDMA READ request.
    ReadRequest,
    /// RDMA READ response.
    ReadResponse,
    /// ACK or NAK.
    Acknowledge,
    /// The answer to an atomic.
    AtomicAcknowledge,
    /// Compare and swap.
    CompareSwap,
    /// Fetch and add.
    FetchAdd,
    /// RESYNC of reliable datagrams.
    Resync,
    /// FLUSH.
    Flush,
    /// ATOMIC WRITE.
    AtomicWrite,
    /// Congestion notification packet.
    CongestionNotification,
}

/// Where a packet stands in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// The first of several.
    First,
    /// Neither the first nor the last.
    Middle,
    /// The last of several.
    Last,
    /// The only one.
    Only,
}

/// Who reads a packet: the peer's responder or its completer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From requester to responder.
    Request,
    /// From responder to requester.
    Response,
}

bitflags! {
    /// The headers between BTH and payload. They stand on the wire in the order of these bits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ExtHeaders: u16 {
        /// RDETH, 4 bytes: the end-to-end context of reliable datagrams.
        const RDETH = 1;
        /// DETH, 8 bytes.
        const DETH = 1 << 1;
        /// XRCETH, 4 bytes.
        const XRCETH = 1 << 2;
        /// FETH, 4 bytes.
        const FETH = 1 << 3;
        /// RETH, 16 bytes.
        const RETH = 1 << 4;
        /// AtomicETH, 28 bytes.
        const ATOMIC = 1 << 5;
        /// AETH, 4 bytes.
        const AETH = 1 << 6;
        /// AtomicAckETH, 8 bytes.
        const ATOMIC_ACK = 1 << 7;
        /// ImmDt, 4 bytes.
        const IMM = 1 << 8;
        /// IETH, 4 bytes.
        const IETH = 1 << 9;
        /// The 16 zero bytes of a CNP.
        const CNP = 1 << 10;
    }
}

impl ExtHeaders {
    /// Their summed length on the wire, bytes.
    #[must_use]
    pub const fn byte_len(self) -> usize {
        let sizes = [
            (Self::RDETH, RdEth::LEN),
            (Self::DETH, Deth::LEN),
            (Self::XRCETH, XrcEth::LEN),
            (Self::FETH, Feth::LEN),
            (Self::RETH, Reth::LEN),
            (Self::ATOMIC, AtomicEth::LEN),
            (Self::AETH, Aeth::LEN),
            (Self::ATOMIC_ACK, AtomicAckEth::LEN),
            (Self::IMM, ImmDt::LEN),
            (Self::IETH, Ieth::LEN),
            (Self::CNP, CnpPad::LEN),
        ];
        let mut sum = 0;
        let mut i = 0;
        while i < sizes.len() {
            if self.contains(sizes[i].0) {
                sum += sizes[i].1;
            }
            i += 1;
        }
        sum
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpcodeInfo {
    /// The code itself.
    pub opcode: Opcode,
    /// Its name in the style of `RC_SEND_FIRST`.
    pub name: &'static str,
    /// Its transport.
    pub transport: Transport,
    /// Its operation.
    pub operation: Operation,
    /// Its place in the message.
    pub position: Position,
    /// Request or response.
    pub direction: Direction,
    /// The headers that follow the BTH.
    pub headers: ExtHeaders,
    /// Whether a payload may follow the headers.
    pub payload: bool,
    /// Whether the responder must take a receive WQE for it.
    pub takes_recv_wqe: bool,
}

/// The first byte of a BTH; any of the 256 codes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opcode(pub u8);

impl Opcode {
    /// Congestion notification packet.
    pub const CNP: Self = Self(0x81);

    /// The code of `operation` at `position` with the given extras, if the transport has it.
    #[must_use]
    pub const fn find(
        transport: Transport,
        operation: Operation,
        position: Position,
        extra: ExtHeaders,
    ) -> Option<Self> {
        let mut i = 0;
        while i < ROWS.len() {
            let r = &ROWS[i];
            let both = ExtHeaders::IMM.union(ExtHeaders::IETH);
            if r.transport as u8 == transport as u8
                && r.operation as u8 == operation as u8
                && r.position as u8 == position as u8
                && r.headers.intersection(both).bits() == extra.bits()
            {
                return Some(r.opcode);
            }
            i += 1;
        }
        None
    }

    /// Its row, if the code is defined.
    #[must_use]
    pub const fn info(self) -> Option<&'static OpcodeInfo> {
        TABLE[self.0 as usize].as_ref()
    }

    /// Its name, if the code is defined.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.info().map(|i| i.name)
    }

    /// The row whose name is `name` (`RC_SEND_FIRST`), in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().flatten().find(|i| i.name.eq_ignore_ascii_case(name)).map(|i| i.opcode)
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "{:#04x}", self.0),
        }
    }
}

/// What an operation is, whatever its transport: the low five bits of a code.
#[derive(Clone, Copy)]
struct Row {
    operation: Operation,
    position: Position,
    direction: Direction,
    headers: ExtHeaders,
    payload: bool,
    takes_recv_wqe: bool,
}

const NONE: ExtHeaders = ExtHeaders::empty();

const fn request(operation: Operation, position: Position, headers: ExtHeaders) -> Row {
    use Operation as O;
    let payload = matches!(operation, O::Send | O::Write | O::AtomicWrite);
    let starts = matches!(position, First | Only);
    let takes_recv_wqe = match operation {
        O::Send => starts,
        O::Write => headers.contains(ExtHeaders::IMM),
        _ => false,
    };
    Row { operation, position, direction: Direction::Request, headers, payload, takes_recv_wqe }
}

const fn response(operation: Operation, position: Position, headers: ExtHeaders) -> Row {
    let payload = matches!(operation, Operation::ReadResponse);
    let direction = Direction::Response;
    Row { operation, position, direction, headers, payload, takes_recv_wqe: false }
}

macro_rules! opcodes {
    ($($code:literal $suffix:ident $row:expr => $($transport:ident)*;)*) => {
        const ROWS: &[OpcodeInfo] = &[$($(
            row(Transport::$transport, $code, opcodes!(@text $transport $suffix), $row),
        )*)*];
    };
    (@text Rc $s:ident) => { concat!("RC_", stringify!($s)) };
    (@text Uc $s:ident) => { concat!("UC_", stringify!($s)) };
    (@text Rd $s:ident) => { concat!("RD_", stringify!($s)) };
    (@text Ud $s:ident) => { concat!("UD_", stringify!($s)) };
    (@text Xrc $s:ident) => { concat!("XRC_", stringify!($s)) };
}

/// Puts what a transport adds in front of an operation's own headers.
const fn row(transport: Transport, low: u8, name: &'static str, row: Row) -> OpcodeInfo {
    let is_request = matches!(row.direction, Direction::Request);
    let added = match transport {
        Transport::Rd if is_request => ExtHeaders::RDETH.union(ExtHeaders::DETH),
        Transport::Rd => ExtHeaders::RDETH,
        Transport::Ud => ExtHeaders::DETH,
        Transport::Xrc if is_request => ExtHeaders::XRCETH,
        _ => NONE,
    };
    OpcodeInfo {
        opcode: Opcode(transport as u8 | low),
        name,
        transport,
        operation: row.operation,
        position: row.position,
        direction: row.direction,
        headers: added.union(row.headers),
        payload: row.payload,
        takes_recv_wqe: row.takes_recv_wqe,
    }
}

use ExtHeaders as H;
use Operation as O;
use Position::{First, Last, Middle, Only};

opcodes! {
    0x00 SEND_FIRST request(O::Send, First, NONE) => Rc Uc Rd Xrc;
    0x01 SEND_MIDDLE request(O::Send, Middle, NONE) => Rc Uc Rd Xrc;
    0x02 SEND_LAST request(O::Send, Last, NONE) => Rc Uc Rd Xrc;
    0x03 SEND_LAST_WITH_IMMEDIATE request(O::Send, Last, H::IMM) => Rc Uc Rd Xrc;
    0x04 SEND_ONLY request(O::Send, Only, NONE) => Rc Uc Rd Ud Xrc;
    0x05 SEND_ONLY_WITH_IMMEDIATE request(O::Send, Only, H::IMM) => Rc Uc Rd Ud Xrc;
    0x06 RDMA_WRITE_FIRST request(O::Write, First, H::RETH) => Rc Uc Rd Xrc;
    0x07 RDMA_WRITE_MIDDLE request(O::Write, Middle, NONE) => Rc Uc Rd Xrc;
    0x08 RDMA_WRITE_LAST request(O::Write, Last, NONE) => Rc Uc Rd Xrc;
    0x09 RDMA_WRITE_LAST_WITH_IMMEDIATE request(O::Write, Last, H::IMM) => Rc Uc Rd Xrc;
    0x0a RDMA_WRITE_ONLY request(O::Write, Only, H::RETH) => Rc Uc Rd Xrc;
    0x0b RDMA_WRITE_ONLY_WITH_IMMEDIATE request(O::Write, Only, H::RETH.union(H::IMM))
        => Rc Uc Rd Xrc;
    0x0c RDMA_READ_REQUEST request(O::ReadRequest, Only, H::RETH) => Rc Rd Xrc;
    0x0d RDMA_READ_RESPONSE_FIRST response(O::ReadResponse, First, H::AETH) => Rc Rd Xrc;
    0x0e RDMA_READ_RESPONSE_MIDDLE response(O::ReadResponse, Middle, NONE) => Rc Rd Xrc;
    0x0f RDMA_READ_RESPONSE_LAST response(O::ReadResponse, Last, H::AETH) => Rc Rd Xrc;
    0x10 RDMA_READ_RESPONSE_ONLY response(O::ReadResponse, Only, H::AETH) => Rc Rd Xrc;
    0x11 ACKNOWLEDGE response(O::Acknowledge, Only, H::AETH) => Rc Rd Xrc;
    0x12 ATOMIC_ACKNOWLEDGE response(O::AtomicAcknowledge, Only, H::AETH.union(H::ATOMIC_ACK))
        => Rc Rd Xrc;
    0x13 COMPARE_SWAP request(O::CompareSwap, Only, H::ATOMIC) => Rc Rd Xrc;
    0x14 FETCH_ADD request(O::FetchAdd, Only, H::ATOMIC) => Rc Rd Xrc;
    0x15 RESYNC request(O::Resync, Only, NONE) => Rd;
    0x16 SEND_LAST_WITH_INVALIDATE request(O::Send, Last, H::IETH) => Rc Xrc;
    0x17 SEND_ONLY_WITH_INVALIDATE request(O::Send, Only, H::IETH) => Rc Xrc;
    0x1c FLUSH request(O::Flush, Only, H::FETH.union(H::RETH)) => Rc Rd Xrc;
    0x1d ATOMIC_WRITE request(O::AtomicWrite, Only, H::RETH) => Rc Rd Xrc;
}

/// The one opcode that is no transport's operation (IBA A17.9.3).
const CNP: OpcodeInfo = OpcodeInfo {
    opcode: Opcode::CNP,
    name: "CNP",
    transport: Transport::Cnp,
    operation: Operation::CongestionNotification,
    position: Only,
    direction: Direction::Request,
    headers: H::CNP,
    payload: false,
    takes_recv_wqe: false,
};

const TABLE: [Option<OpcodeInfo>; 256] = {
    let mut table = [const { None }; 256];
    let mut i = 0;
    while i < ROWS.len() {
        let code = ROWS[i].opcode.0 as usize;
        assert!(table[code].is_none(), "two rows for one opcode");
        assert!(ROWS[i].opcode.0 & 0xe0 == ROWS[i].transport as u8, "a code outside its transport");
        table[code] = Some(ROWS[i]);
        i += 1;
    }
    table[Opcode::CNP.0 as usize] = Some(CNP);
    table
};

// What must hold of every row, or the crate does not build.
const _: () = {
    let mut i = 0;
    while i < 256 {
        if let Some(r) = &TABLE[i] {
            assert!(r.opcode.0 as usize == i);
            assert!(r.headers.byte_len().is_multiple_of(4), "headers keep the payload aligned");
            let is_response = matches!(r.direction, Direction::Response);
            assert!(!(is_response && r.takes_recv_wqe), "a response takes no receive WQE");
            let both = H::IMM.union(H::IETH);
            assert!(
                !r.headers.contains(both),
                "immediate data and invalidation exclude each other"
            );
            let ends = matches!(r.position, Last | Only);
            assert!(ends || !r.headers.intersects(both), "only the end carries ImmDt or IETH");
            assert!(!r.headers.contains(H::RETH.union(H::AETH)));
        }
        i += 1;
    }
};
