//! Where rxe departs from the specification, or from what libibverbs says, as the cases met it.

use std::collections::BTreeSet;

use urxe_lint::Rule;

/// A departure, as the page tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Departure {
    FlushIcrc,
    WindowRange,
    LongSend,
    StaleResponse,
    Misaligned,
    OldAck,
    UnknownOpcode,
}

impl Departure {
    /// All, in the order of their letters.
    pub const ALL: [Self; 7] = [
        Self::FlushIcrc,
        Self::WindowRange,
        Self::LongSend,
        Self::StaleResponse,
        Self::Misaligned,
        Self::OldAck,
        Self::UnknownOpcode,
    ];

    /// The departure by which a rule is broken that `urxe lint --profile rxe` holds against nobody.
    pub const fn known(rule: Rule) -> Option<Self> {
        match rule {
            Rule::AckBackward => Some(Self::OldAck),
            _ => None,
        }
    }

    /// Two kernels doing it, as a file of tests/captures/departures.
    pub const fn capture(self) -> Option<&'static str> {
        match self {
            Self::FlushIcrc => Some("flush_icrc"),
            Self::WindowRange => Some("window_range"),
            Self::LongSend => Some("long_send"),
            Self::StaleResponse => Some("stale_response"),
            Self::OldAck => Some("old_ack"),
            Self::UnknownOpcode => Some("unknown_opcode"),
            // It sends nothing.
            Self::Misaligned => None,
        }
    }

    /// The rules that `urxe lint` finds broken by it, and no profile knows.
    pub const fn breaks(self) -> &'static [Rule] {
        match self {
            Self::FlushIcrc => &[Rule::Icrc],
            _ => &[],
        }
    }

    /// What it is, and what shows it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::FlushIcrc => {
                "The ICRC of a FLUSH is computed over BTH, FETH and RETH twice, and so expected: \
                 rxe drops each right FLUSH, and each of its own is dropped by others. (It knows \
                 no offset of the payload of this opcode, so takes the headers for one.)"
            }
            Self::WindowRange => {
                "The range of a type 2 memory window is not looked at: a peer may access all of \
                 the region beneath it."
            }
            Self::LongSend => {
                "A SEND that is longer than its receive is answered with a NAK remote operational \
                 error, where IBA 9.7.5.2.8 has invalid request."
            }
            Self::StaleResponse => {
                "Responses that come in another order end the connection: the request that rxe \
                 waits for completes as a success, all behind it as flushed, and no completion \
                 tells of an error. IBA 9.7.6.1 has them dropped."
            }
            Self::Misaligned => {
                "rxe's library posts no atomic out of alignment, so that none was sent to urxe."
            }
            Self::OldAck => {
                "The ACK of a duplicate names the last SEND or WRITE, though READs or atomics \
                 behind it were answered since: ACKs go back. IBA C9-105 has the latest acknowledged."
            }
            Self::UnknownOpcode => {
                "A request of RC whose opcode is not defined is dropped, where IBA 9.6.1.1.2 has a \
                 NAK invalid request."
            }
        }
    }
}

/// Those that a case met.
pub type Met = BTreeSet<Departure>;
