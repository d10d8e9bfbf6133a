//! What broker and processes say to each other: one message each way, in bytes.

use super::SLOTS;

/// What a process asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// A slot.
    Take,
    /// Who has which slot.
    Who,
    /// Runs of packets come that are not all for one slot: they must not be gathered any more.
    Mixed,
}

impl Request {
    pub(super) const fn to_bytes(self) -> [u8; 1] {
        match self {
            Self::Take => [1],
            Self::Who => [2],
            Self::Mixed => [3],
        }
    }

    pub(super) const fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [1] => Some(Self::Take),
            [2] => Some(Self::Who),
            [3] => Some(Self::Mixed),
            _ => None,
        }
    }
}

/// Process numbers by slot; 0 where nobody has it. That of [`super::GSI_SLOT`] is the broker.
pub(super) type Pids = [u32; SLOTS];

/// The longest answer.
pub(super) const LONGEST: usize = 1 + 4 * SLOTS;

/// What the broker answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A slot; its socket comes along, and what keeps the group.
    Slot(u8),
    /// All slots are taken.
    Full(Pids),
    /// Who has which slot.
    Who(Pids),
}

impl Answer {
    /// Writes it to `out`; gives its length.
    pub(super) fn write(&self, out: &mut [u8; LONGEST]) -> usize {
        let (kind, pids) = match self {
            Self::Slot(slot) => {
                (out[0], out[1]) = (1, *slot);
                return 2;
            }
            Self::Full(pids) => (2, pids),
            Self::Who(pids) => (3, pids),
        };
        out[0] = kind;
        for (place, pid) in out[1..].as_chunks_mut::<4>().0.iter_mut().zip(pids) {
            *place = pid.to_ne_bytes();
        }
        LONGEST
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let pids = |rest: &[u8]| {
            let (words, left) = rest.as_chunks::<4>();
            let words: &[[u8; 4]; SLOTS] = words.try_into().ok()?;
            left.is_empty().then(|| words.map(u32::from_ne_bytes))
        };
        match bytes {
            [1, slot] if usize::from(*slot) < SLOTS => Some(Self::Slot(*slot)),
            [2, rest @ ..] => pids(rest).map(Self::Full),
            [3, rest @ ..] => pids(rest).map(Self::Who),
            _ => None,
        }
    }
}
