//! Faults of the connection manager. A capture of `rping` has REQ, REP and RTU in frames 1 to 3,
//! the first request in frame 4, DREQ and DREP in frames 28 and 29.

use urxe_lint::Rule;
use urxe_wire::cm::{CommId, Rej, RejReason};
use urxe_wire::{CmMessage, MAD_LEN};

use super::Plant;
use super::tape::{CM, MAD, Tape};

const fn plant(rule: Rule, frame: usize, fault: fn(&mut Tape)) -> Plant {
    Plant { rule, healthy: || Tape::golden("rping"), fault, frame, also: &[] }
}

/// Changes a byte of a frame, whose ICRC is right.
fn set(tape: &mut Tape, frame: usize, at: usize, change: impl FnOnce(u8) -> u8) {
    let byte = &mut tape.bytes(frame)[at];
    *byte = change(*byte);
    tape.seal(frame);
}

/// Makes a REP a REJ that names an id which nobody has.
fn refuse_another(tape: &mut Tape, frame: usize) {
    let mad = &mut tape.bytes(frame)[MAD..MAD + MAD_LEN];
    let (header, CmMessage::Rep(rep)) = CmMessage::parse(mad).unwrap() else { panic!() };
    let remote_comm_id = CommId(rep.remote_comm_id.0 ^ 1);
    let reason = RejReason::ConsumerDefined;
    let rej = Rej { local_comm_id: rep.local_comm_id, remote_comm_id, reason, ..Rej::default() };
    CmMessage::Rej(rej).emit(&header, mad).unwrap();
    tape.seal(frame);
}

/// Offsets in the messages are those of IBA 12.6.5 (REQ), 12.6.8 (REP), 12.6.9 (RTU) and 12.6.10
/// (DREQ).
pub(super) const PLANTS: &[Plant] = &[
    plant(Rule::StartPsn, 4, |t| set(t, 2, CM + 22, |b| b + 1)),
    plant(Rule::CmMad, 30, |t| {
        t.copy(28, 29);
        // The class version.
        set(t, 30, MAD + 2, |_| 3);
    }),
    plant(Rule::CmField, 30, |t| {
        t.copy(1, 29);
        // The path MTU.
        set(t, 30, CM + 50, |b| b & 0x0f);
    }),
    plant(Rule::CmIds, 3, |t| set(t, 3, CM + 7, |b| b ^ 1)),
    plant(Rule::CmOrder, 28, |t| t.remove(28)),
    plant(Rule::CmQpn, 28, |t| set(t, 28, CM + 10, |b| b ^ 1)),
    plant(Rule::CmIds, 2, |t| {
        t.copy(2, 1);
        refuse_another(t, 2);
    }),
    plant(Rule::CmAddress, 30, |t| {
        t.copy(1, 29);
        // The sender's GID.
        set(t, 30, CM + 71, |b| b ^ 1);
    }),
    plant(Rule::CmAddress, 30, |t| {
        t.copy(1, 29);
        // The receiver's address in the IP header.
        set(t, 30, CM + 140 + 35, |b| b ^ 1);
    }),
    plant(Rule::CmAddress, 30, |t| {
        t.copy(1, 29);
        // The version of the IP header.
        set(t, 30, CM + 140, |_| 1);
    }),
];
