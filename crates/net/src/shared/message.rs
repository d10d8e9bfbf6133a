//! What broker and processes say to each other, one message each, in bytes.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

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
    /// This slot, which it has from a broker that is no more.
    Claim(u8),
    /// The MADs that are for a service.
    Serve(u64),
    /// Them no longer.
    Unserve(u64),
}

/// The longest request.
pub(super) const REQUEST: usize = 9;

impl Request {
    /// Writes it to `out`; gives its length.
    pub(super) fn write(self, out: &mut [u8; REQUEST]) -> usize {
        let (kind, service) = match self {
            Self::Take => (1, None),
            Self::Who => (2, None),
            Self::Mixed => (3, None),
            Self::Claim(slot) => {
                (out[0], out[1]) = (4, slot);
                return 2;
            }
            Self::Serve(service) => (5, Some(service)),
            Self::Unserve(service) => (6, Some(service)),
        };
        out[0] = kind;
        let Some(service) = service else { return 1 };
        out[1..].copy_from_slice(&service.to_ne_bytes());
        REQUEST
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let service = |rest: &[u8]| Some(u64::from_ne_bytes(rest.try_into().ok()?));
        match bytes {
            [1] => Some(Self::Take),
            [2] => Some(Self::Who),
            [3] => Some(Self::Mixed),
            [4, slot] => Some(Self::Claim(*slot)),
            [5, rest @ ..] => service(rest).map(Self::Serve),
            [6, rest @ ..] => service(rest).map(Self::Unserve),
            _ => None,
        }
    }
}

/// Process numbers by slot; 0 where nobody has it. That of [`super::GSI_SLOT`] is the broker.
pub(super) type Pids = [u32; SLOTS];

/// A process of another process namespace.
pub(super) const UNSEEN: u32 = u32::MAX;

/// The longest answer.
pub(super) const ANSWER: usize = 1 + 4 * (SLOTS + 1);

/// What the broker answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A slot, and the token of its name; its socket comes along, and what keeps the group, unless
    /// it was claimed.
    Slot(u8, Token),
    /// All slots are taken.
    Full(Pids),
    /// Who has which slot, and how many MADs were for nobody.
    Who(Pids, u32),
    /// It is so.
    Done,
    /// Another has it.
    Refused,
    /// The host refused it, with this `errno`.
    Failed(i32),
}

/// What makes the name of a slot one that nobody else can know.
pub(super) type Token = u64;

impl Answer {
    /// Writes it to `out`; gives its length.
    pub(super) fn write(&self, out: &mut [u8; ANSWER]) -> usize {
        let (kind, pids, lost) = match self {
            Self::Slot(slot, token) => {
                (out[0], out[1]) = (1, *slot);
                out[2..10].copy_from_slice(&token.to_ne_bytes());
                return 10;
            }
            Self::Failed(errno) => {
                out[0] = 7;
                out[1..5].copy_from_slice(&errno.to_ne_bytes());
                return 5;
            }
            Self::Done | Self::Refused => {
                out[0] = if *self == Self::Done { 4 } else { 5 };
                return 1;
            }
            Self::Full(pids) => (2, pids, 0),
            Self::Who(pids, lost) => (3, pids, *lost),
        };
        out[0] = kind;
        let words = pids.iter().chain([&lost]);
        for (place, word) in out[1..].as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *place = word.to_ne_bytes();
        }
        ANSWER
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let words = |rest: &[u8]| {
            let (words, left) = rest.as_chunks::<4>();
            let words: &[[u8; 4]; SLOTS + 1] = words.try_into().ok()?;
            let words = words.map(u32::from_ne_bytes);
            let (lost, pids) = words.split_last()?;
            Some((pids.try_into().ok()?, *lost)).filter(|_| left.is_empty())
        };
        match bytes {
            [1, slot, token @ ..] if usize::from(*slot) < SLOTS => {
                Some(Self::Slot(*slot, Token::from_ne_bytes(token.try_into().ok()?)))
            }
            [2, rest @ ..] => words(rest).map(|(pids, _)| Self::Full(pids)),
            [3, rest @ ..] => words(rest).map(|(pids, lost)| Self::Who(pids, lost)),
            [4] => Some(Self::Done),
            [5] => Some(Self::Refused),
            [7, errno @ ..] => Some(Self::Failed(i32::from_ne_bytes(errno.try_into().ok()?))),
            _ => None,
        }
    }
}

/// How a packet that the broker hands on has come. Its bytes, BTH to ICRC, follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Came {
    pub(super) from: SocketAddr,
    pub(super) traffic_class: u8,
    pub(super) hop_limit: u8,
}

/// The longest packet handed on: a MAD has 256 bytes.
pub(super) const PACKET: usize = 1024;
/// What is before it.
pub(super) const CAME: usize = 21;

impl Came {
    pub(super) fn to_bytes(self) -> [u8; CAME] {
        let mut out = [0; CAME];
        (out[0], out[1], out[2]) = (6, self.traffic_class, self.hop_limit);
        out[3..5].copy_from_slice(&self.from.port().to_ne_bytes());
        let ip = match self.from.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        out[5..].copy_from_slice(&ip.octets());
        out
    }

    /// What came, and the packet.
    pub(super) fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, packet) = bytes.split_first_chunk::<CAME>()?;
        let [6, traffic_class, hop_limit, a, b, ip @ ..] = *head else { return None };
        let from = SocketAddr::new(Ipv6Addr::from(ip).to_canonical(), u16::from_ne_bytes([a, b]));
        Some((Self { from, traffic_class, hop_limit }, packet))
    }
}
