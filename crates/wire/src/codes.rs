//! Coded fields as types that cannot hold a bad value.

use core::fmt;
use core::time::Duration;

use crate::{Error, Result, Wanted};

#[cfg(test)]
mod tests;

/// A 24-bit queue pair number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Qpn(u32);

impl Qpn {
    /// QP1, the general services QP; connection management runs on it.
    pub const GSI: Self = Self(1);
    /// The destination of every multicast packet (IBA 10.5.2).
    pub const MULTICAST: Self = Self(0x00ff_ffff);

    /// The QPN of the low 24 bits of `value`; the high 8 bits are dropped.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(value & 0x00ff_ffff)
    }

    /// Its value, 0 to 2^24 − 1.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Qpn({:#08x})", self.0)
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}

/// A partition key: a 15-bit partition and, in bit 15, full membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PKey(pub u16);

impl PKey {
    /// The default partition, full member.
    pub const DEFAULT: Self = Self(0xffff);

    /// Whether packets with key `other` may reach a port that has this key: the low 15 bits are
    /// equal and not both are limited members (IBA 10.9.3).
    #[must_use]
    pub const fn matches(self, other: Self) -> bool {
        (self.0 ^ other.0) & 0x7fff == 0 && (self.0 | other.0) & 0x8000 != 0
    }
}

/// A queue key, which a datagram must carry to be let into a QP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct QKey(pub u32);

impl QKey {
    /// The key of QP1 (IBA 3.5.3).
    pub const GSI: Self = Self(0x8001_0000);
    /// The key of `rdma_cm`'s UD ids (Linux include/rdma/rdma_cm.h).
    pub const RDMA_CM_UDP: Self = Self(0x0123_4567);

    /// Whether this key, in a work request, asks for the QP's own key in its place (IBA 10.2.5).
    #[must_use]
    pub const fn asks_for_own(self) -> bool {
        self.0 & 0x8000_0000 != 0
    }
}

/// A path MTU: the payload of a full packet, 256 to 4096 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Mtu {
    /// 256 bytes, code 1.
    B256 = 1,
    /// 512 bytes, code 2.
    B512 = 2,
    /// 1024 bytes, code 3.
    B1024 = 3,
    /// 2048 bytes, code 4.
    B2048 = 4,
    /// 4096 bytes, code 5.
    B4096 = 5,
}

impl Mtu {
    /// All of them, smallest first.
    pub const ALL: [Self; 5] = [Self::B256, Self::B512, Self::B1024, Self::B2048, Self::B4096];

    /// The MTU of `code` 1 to 5 (`enum ibv_mtu`).
    ///
    /// # Errors
    /// Any other code.
    pub const fn from_code(code: u8) -> Result<Self> {
        match code {
            1..=5 => Ok(Self::ALL[code as usize - 1]),
            _ => Err(Error::new("path", "MTU code", code as u64, Wanted::Between(1, 5))),
        }
    }

    /// The MTU of `bytes` 256, 512, 1024, 2048 or 4096.
    ///
    /// # Errors
    /// Any other size.
    pub const fn from_bytes(bytes: u32) -> Result<Self> {
        match bytes {
            256 => Ok(Self::B256),
            512 => Ok(Self::B512),
            1024 => Ok(Self::B1024),
            2048 => Ok(Self::B2048),
            4096 => Ok(Self::B4096),
            _ => Err(Error::new(
                "path",
                "MTU",
                bytes as u64,
                Wanted::OneOf("256, 512, 1024, 2048, 4096"),
            )),
        }
    }

    /// The largest MTU whose packets fit a link of `link_mtu` bytes: the longest packet that has a
    /// payload, an XRC RDMA WRITE with immediate over IPv6, takes 88 bytes more (IPv6 40, UDP 8,
    /// BTH 12, XRCETH 4, RETH 16, ImmDt 4, ICRC 4). rxe counts 80 (its RXE_MAX_HDR_LENGTH).
    #[must_use]
    pub fn largest_for_link(link_mtu: u32) -> Option<Self> {
        const OVERHEAD: u32 = 88;
        Self::ALL.into_iter().rev().find(|m| m.bytes() + OVERHEAD <= link_mtu)
    }

    /// Its code, 1 to 5.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Its payload, bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        128 << self as u32
    }
}

/// How long a requester waits after an RNR NAK: a code 0 to 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct RnrTimer(u8);

/// Hundredths of a millisecond for the codes 0 to 31 (Linux include/rdma/ib_verbs.h).
const RNR_10US: [u32; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

impl RnrTimer {
    /// The timer of `code` 0 to 31.
    ///
    /// # Errors
    /// A greater code.
    pub const fn new(code: u8) -> Result<Self> {
        if code > 31 {
            return Err(Error::new("QP", "RNR timer", code as u64, Wanted::AtMost(31)));
        }
        Ok(Self(code))
    }

    /// The timer of the low five bits of a syndrome.
    #[must_use]
    pub const fn from_syndrome(syndrome: u8) -> Self {
        Self(syndrome & 0x1f)
    }

    /// Its code, 0 to 31.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The least time to wait, 10 µs to 655.36 ms.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_micros(RNR_10US[(self.0 & 0x1f) as usize] as u64 * 10)
    }
}

/// The local ACK timeout: a code 0 to 31; 4.096 µs · 2^code, 0 waits for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct AckTimeout(u8);

impl AckTimeout {
    /// The timeout of `code` 0 to 31.
    ///
    /// # Errors
    /// A greater code.
    pub const fn new(code: u8) -> Result<Self> {
        if code > 31 {
            return Err(Error::new("QP", "local ACK timeout", code as u64, Wanted::AtMost(31)));
        }
        Ok(Self(code))
    }

    /// Its code, 0 to 31.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The time to wait, 8.192 µs to 8796 s; `None` waits for ever (IBA 9.7.6.1.3).
    #[must_use]
    pub const fn duration(self) -> Option<Duration> {
        match self.0 {
            0 => None,
            code => Some(Duration::from_nanos(4096u64 << (code & 0x1f))),
        }
    }
}

/// End-to-end credits in an ACK: how many more messages the responder has receive WQEs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Credit(u8);

/// Messages for the codes 0 to 30 (Linux drivers/infiniband/sw/rdmavt/rc.c).
const CREDITS: [u16; 31] = [
    0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
];

impl Credit {
    /// "No credit limit": the responder does not count (code 31).
    pub const UNLIMITED: Self = Self(31);

    /// The credit of `code` 0 to 31.
    ///
    /// # Errors
    /// A greater code.
    pub const fn new(code: u8) -> Result<Self> {
        if code > 31 {
            return Err(Error::new("AETH", "credit", code as u64, Wanted::AtMost(31)));
        }
        Ok(Self(code))
    }

    /// The credit of the low five bits of a syndrome.
    #[must_use]
    pub const fn from_syndrome(syndrome: u8) -> Self {
        Self(syndrome & 0x1f)
    }

    /// The greatest code that promises no more than `messages` receive WQEs.
    #[must_use]
    pub fn for_messages(messages: u32) -> Self {
        let above = CREDITS.partition_point(|&c| u32::from(c) <= messages);
        Self(u8::try_from(above - 1).unwrap_or(30))
    }

    /// Its code, 0 to 31.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// How many messages it allows; `None` is no limit.
    #[must_use]
    pub fn messages(self) -> Option<u16> {
        CREDITS.get(usize::from(self.0)).copied()
    }
}
