//! Faults of the connection manager. A capture of `rping` has REQ, REP and RTU in frames 1 to 3,
//! the first request in frame 4, DREQ and DREP in frames 28 and 29.

use urxe_lint::Rule;

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
];
