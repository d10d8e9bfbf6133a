//! Completions as C knows them.

use std::ffi::c_int;

use urxe::{Completion, Rule, WcFlags};

use crate::layout::IbvWc;

/// Immediate data, or the key that was invalidated: they share a field.
pub(crate) fn imm(completion: &Completion) -> u32 {
    if completion.flags.contains(WcFlags::WITH_INV) {
        completion.invalidated
    } else {
        u32::from_ne_bytes(completion.imm)
    }
}

/// Why a request failed, as a number; in words `URXE_LOG=debug` tells it.
pub(crate) fn vendor_err(completion: &Completion) -> u32 {
    let Some(cause) = &completion.cause else { return 0 };
    match cause.rule {
        Rule::RetryExhausted => 0x01,
        Rule::RnrExhausted => 0x02,
        Rule::NakInvalidRequest => 0x03,
        Rule::NakRemoteAccess => 0x04,
        Rule::NakRemoteOperational => 0x05,
        Rule::Flushed => 0x06,
        Rule::LocalKey(_) => 0x10,
        Rule::RemoteKey(_) => 0x11,
        Rule::Misaligned(_) => 0x12,
        Rule::Bind(_) => 0x13,
        Rule::ResponseOpcode(_) => 0x20,
        Rule::ResponseLength(..) => 0x21,
        Rule::OpcodeSequence(_) => 0x22,
        Rule::UnknownOpcode(_) => 0x23,
        Rule::NotAllowed(_) => 0x24,
        Rule::TooManyReads => 0x25,
        Rule::RequestLength(..) => 0x26,
        Rule::MessageTooLong(..) => 0x27,
        // One that is younger than this list.
        _ => 0xff,
    }
}

/// A completion. `sl` goes with those that have a GRH.
pub(crate) fn of(completion: &Completion, sl: u8) -> IbvWc {
    let datagram = completion.flags.contains(WcFlags::GRH);
    IbvWc {
        wr_id: completion.wr_id,
        status: completion.status as c_int,
        opcode: completion.opcode as c_int,
        vendor_err: vendor_err(completion),
        byte_len: completion.byte_len,
        imm_data: imm(completion),
        qp_num: completion.qpn.value(),
        src_qp: completion.src_qp.value(),
        wc_flags: completion.flags.bits(),
        pkey_index: completion.pkey_index,
        slid: 0,
        sl: if datagram { sl } else { 0 },
        dlid_path_bits: 0,
    }
}
