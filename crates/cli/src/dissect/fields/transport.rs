//! BTH and the extension headers.

use urxe_wire::{
    Aeth, AtomicAckEth, AtomicEth, Bth, CnpPad, Deth, Ext, Feth, FlushLevel, FlushScope, Ieth,
    ImmDt, RdEth, Repr, Reth, XrcEth,
};

use super::{HeaderFields, Value};
use crate::dissect::words;

/// A BTH.
#[must_use]
pub(crate) fn bth(at: usize, h: &Bth) -> HeaderFields {
    let opcode = match h.opcode.name() {
        Some(name) => Value::CodedHex(h.opcode.0.into(), 8, name.to_owned()),
        None => Value::Hex(h.opcode.0.into(), 8),
    };
    HeaderFields::new("BTH", at, Bth::LEN)
        .with("opcode", 0, 1, opcode)
        .with("solicited", 1, 1, Value::Flag(h.solicited))
        .with("mig_req", 1, 1, Value::Flag(h.mig_req))
        .with("pad", 1, 1, Value::Number(h.pad.into()))
        .with("version", 1, 1, Value::Number(0))
        .with("pkey", 2, 2, Value::Hex(h.pkey.0.into(), 16))
        .with("fecn", 4, 1, Value::Flag(h.fecn))
        .with("becn", 4, 1, Value::Flag(h.becn))
        .with("reserved_6", 4, 1, Value::Number(h.reserved6.into()))
        .with("dest_qp", 5, 3, Value::Hex(h.dest_qp.value().into(), 24))
        .with("ack_req", 8, 1, Value::Flag(h.ack_req))
        .with("reserved_7", 8, 1, Value::Number(h.reserved7.into()))
        .with("psn", 9, 3, Value::Number(h.psn.value().into()))
}

/// The extension headers from `at` on, in the order they stand in.
#[must_use]
pub(crate) fn extensions(at: usize, ext: &Ext) -> Vec<HeaderFields> {
    let mut all: Vec<HeaderFields> = Vec::new();
    let mut at = at;
    for make in EXTENSIONS {
        if let Some(header) = make(at, ext) {
            at += header.len;
            all.push(header);
        }
    }
    all
}

type MakeExtension = fn(usize, &Ext) -> Option<HeaderFields>;

const EXTENSIONS: [MakeExtension; 11] = [
    |at, e| e.rdeth.as_ref().map(|h| rdeth(at, h)),
    |at, e| e.deth.as_ref().map(|h| deth(at, h)),
    |at, e| e.xrceth.as_ref().map(|h| xrceth(at, h)),
    |at, e| e.feth.as_ref().map(|h| feth(at, h)),
    |at, e| e.reth.as_ref().map(|h| reth(at, h)),
    |at, e| e.atomic.as_ref().map(|h| atomic(at, h)),
    |at, e| e.aeth.as_ref().map(|h| aeth(at, h)),
    |at, e| e.atomic_ack.as_ref().map(|h| atomic_ack(at, h)),
    |at, e| e.imm.as_ref().map(|h| imm(at, h)),
    |at, e| e.ieth.as_ref().map(|h| ieth(at, h)),
    |at, e| e.cnp.as_ref().map(|h| cnp(at, h)),
];

fn rdeth(at: usize, h: &RdEth) -> HeaderFields {
    HeaderFields::new("RDETH", at, RdEth::LEN)
        .with("reserved", 0, 1, Value::Number(h.reserved.into()))
        .with("ee_context", 1, 3, Value::Hex(h.ee_context.into(), 24))
}

fn deth(at: usize, h: &Deth) -> HeaderFields {
    HeaderFields::new("DETH", at, Deth::LEN)
        .with("qkey", 0, 4, Value::Hex(h.qkey.0.into(), 32))
        .with("reserved", 4, 1, Value::Number(h.reserved.into()))
        .with("src_qp", 5, 3, Value::Hex(h.src_qp.value().into(), 24))
}

fn xrceth(at: usize, h: &XrcEth) -> HeaderFields {
    HeaderFields::new("XRCETH", at, XrcEth::LEN)
        .with("reserved", 0, 1, Value::Number(h.reserved.into()))
        .with("srqn", 1, 3, Value::Hex(h.srqn.into(), 24))
}

fn feth(at: usize, h: &Feth) -> HeaderFields {
    let scope = match h.scope {
        FlushScope::Range => "range of the RETH",
        FlushScope::MemoryRegion => "whole memory region",
    };
    HeaderFields::new("FETH", at, Feth::LEN)
        .with("reserved", 0, 4, Value::Number(h.reserved.into()))
        .with("selectivity", 3, 1, Value::Coded(h.scope as u64, scope.to_owned()))
        .with("placement", 3, 1, level(h.level))
}

fn level(level: FlushLevel) -> Value {
    Value::Coded(level.bits().into(), words::flush_level(level))
}

fn reth(at: usize, h: &Reth) -> HeaderFields {
    HeaderFields::new("RETH", at, Reth::LEN)
        .with("va", 0, 8, Value::Hex(h.va, 64))
        .with("rkey", 8, 4, Value::Hex(h.rkey.into(), 32))
        .with("length", 12, 4, Value::Number(h.dma_len.into()))
}

fn atomic(at: usize, h: &AtomicEth) -> HeaderFields {
    HeaderFields::new("AtomicETH", at, AtomicEth::LEN)
        .with("va", 0, 8, Value::Hex(h.va, 64))
        .with("rkey", 8, 4, Value::Hex(h.rkey.into(), 32))
        .with("swap_or_add", 12, 8, Value::Hex(h.swap_add, 64))
        .with("compare", 20, 8, Value::Hex(h.compare, 64))
}

fn aeth(at: usize, h: &Aeth) -> HeaderFields {
    let meaning = words::syndrome(h.syndrome);
    HeaderFields::new("AETH", at, Aeth::LEN)
        .with("reserved", 0, 1, Value::Flag(h.reserved))
        .with("syndrome", 0, 1, Value::CodedHex(h.syndrome.bits().into(), 8, meaning))
        .with("msn", 1, 3, Value::Number(h.msn.value().into()))
}

fn atomic_ack(at: usize, h: &AtomicAckEth) -> HeaderFields {
    HeaderFields::new("AtomicAckETH", at, AtomicAckEth::LEN).with(
        "original",
        0,
        8,
        Value::Hex(h.original, 64),
    )
}

fn imm(at: usize, h: &ImmDt) -> HeaderFields {
    let value = u32::from_be_bytes(h.data);
    HeaderFields::new("ImmDt", at, ImmDt::LEN).with("data", 0, 4, Value::Hex(value.into(), 32))
}

fn ieth(at: usize, h: &Ieth) -> HeaderFields {
    HeaderFields::new("IETH", at, Ieth::LEN).with("rkey", 0, 4, Value::Hex(h.rkey.into(), 32))
}

fn cnp(at: usize, h: &CnpPad) -> HeaderFields {
    HeaderFields::new("CNP", at, CnpPad::LEN).with(
        "reserved",
        0,
        16,
        Value::Bytes(h.bytes.to_vec()),
    )
}
