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
}

impl Departure {
    /// All, in the order of their letters.
    pub const ALL: [Self; 5] =
        [Self::FlushIcrc, Self::WindowRange, Self::LongSend, Self::StaleResponse, Self::Misaligned];

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
        }
    }
}

/// Those that a case met.
pub type Met = BTreeSet<Departure>;
