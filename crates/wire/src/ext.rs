//! The extension headers between BTH and payload (IBA 9.3; FETH: Linux drivers/infiniband/sw/rxe).

use crate::{Credit, Error, Psn, QKey, Qpn, Repr, Result, RnrTimer, Wanted, view};

/// RETH: the remote range of an RDMA operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Reth {
    /// Remote virtual address, bytes.
    pub va: u64,
    /// Remote key.
    pub rkey: u32,
    /// Length of the whole message, bytes, 0 to 2^31.
    pub dma_len: u32,
}

impl Repr for Reth {
    type View = view::Reth;

    fn from_view(v: &view::Reth) -> Result<Self> {
        Ok(Self { va: v.va.get(), rkey: v.rkey.get(), dma_len: v.dma_len.get() })
    }

    fn to_view(&self) -> view::Reth {
        view::Reth { va: self.va.into(), rkey: self.rkey.into(), dma_len: self.dma_len.into() }
    }
}

/// Why a responder refuses (the low five bits of a NAK syndrome; IBA 9.7.5.2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum NakCode {
    /// A PSN is missing; go back to the one this NAK names.
    PsnSequence = 0,
    /// The request was not allowed or not understood.
    InvalidRequest = 1,
    /// Key, range or rights of the remote memory were wrong.
    RemoteAccess = 2,
    /// The responder failed by itself.
    RemoteOperational = 3,
    /// Invalid RD request; never on RC.
    InvalidRdRequest = 4,
}

/// An AETH's first byte. Bit 7 is reserved and kept as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// Acknowledged; so many more messages are welcome.
    Ack(Credit),
    /// No receive WQE; try again after this time.
    RnrNak(RnrTimer),
    /// Refused.
    Nak(NakCode),
    /// A code no rule gives a meaning: bits 6–5 are 10, or an unknown NAK code.
    Reserved(u8),
}

impl Syndrome {
    /// The syndrome of a byte whose bit 7 is 0; every value has one.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0x60 {
            0x00 => Self::Ack(Credit::from_syndrome(bits)),
            0x20 => Self::RnrNak(RnrTimer::from_syndrome(bits)),
            0x60 => match bits & 0x1f {
                0 => Self::Nak(NakCode::PsnSequence),
                1 => Self::Nak(NakCode::InvalidRequest),
                2 => Self::Nak(NakCode::RemoteAccess),
                3 => Self::Nak(NakCode::RemoteOperational),
                4 => Self::Nak(NakCode::InvalidRdRequest),
                _ => Self::Reserved(bits & 0x7f),
            },
            _ => Self::Reserved(bits & 0x7f),
        }
    }

    /// Its byte, bit 7 being 0.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Ack(credit) => credit.code(),
            Self::RnrNak(timer) => 0x20 | timer.code(),
            Self::Nak(code) => 0x60 | code as u8,
            Self::Reserved(bits) => bits & 0x7f,
        }
    }
}

/// AETH: how a request fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aeth {
    /// ACK, RNR NAK or NAK.
    pub syndrome: Syndrome,
    /// The reserved bit 7 beside the syndrome; false when sent.
    pub reserved: bool,
    /// Message sequence number, 24 bits: how many requests the responder has completed.
    pub msn: Psn,
}

impl Aeth {
    /// An AETH whose reserved bit is 0.
    #[must_use]
    pub const fn new(syndrome: Syndrome, msn: Psn) -> Self {
        Self { syndrome, reserved: false, msn }
    }
}

impl Repr for Aeth {
    type View = view::Aeth;

    fn from_view(v: &view::Aeth) -> Result<Self> {
        let [byte, ..] = v.0.to_bytes();
        Ok(Self {
            syndrome: Syndrome::from_bits(byte & 0x7f),
            reserved: byte & 0x80 != 0,
            msn: Psn::new(v.0.get()),
        })
    }

    fn to_view(&self) -> view::Aeth {
        let byte = u32::from(self.reserved) << 7 | u32::from(self.syndrome.bits());
        view::Aeth((byte << 24 | self.msn.value()).into())
    }
}

/// AtomicETH: the target and operands of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AtomicEth {
    /// Remote virtual address, 8-byte aligned.
    pub va: u64,
    /// Remote key.
    pub rkey: u32,
    /// The value to swap in, or to add.
    pub swap_add: u64,
    /// The value to compare with.
    pub compare: u64,
}

impl Repr for AtomicEth {
    type View = view::AtomicEth;

    fn from_view(v: &view::AtomicEth) -> Result<Self> {
        Ok(Self {
            va: v.va.get(),
            rkey: v.rkey.get(),
            swap_add: v.swap_add.get(),
            compare: v.compare.get(),
        })
    }

    fn to_view(&self) -> view::AtomicEth {
        view::AtomicEth {
            va: self.va.into(),
            rkey: self.rkey.into(),
            swap_add: self.swap_add.into(),
            compare: self.compare.into(),
        }
    }
}

/// AtomicAckETH: what stood at the target before the atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AtomicAckEth {
    /// The original value.
    pub original: u64,
}

impl Repr for AtomicAckEth {
    type View = view::AtomicAckEth;

    fn from_view(v: &view::AtomicAckEth) -> Result<Self> {
        Ok(Self { original: v.0.get() })
    }

    fn to_view(&self) -> view::AtomicAckEth {
        view::AtomicAckEth(self.original.into())
    }
}

/// ImmDt: immediate data, in the byte order the program gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ImmDt {
    /// The four bytes as they stand on the wire.
    pub data: [u8; 4],
}

impl Repr for ImmDt {
    type View = view::ImmDt;

    fn from_view(v: &view::ImmDt) -> Result<Self> {
        Ok(Self { data: v.0 })
    }

    fn to_view(&self) -> view::ImmDt {
        view::ImmDt(self.data)
    }
}

/// IETH: the key a SEND invalidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Ieth {
    /// Remote key.
    pub rkey: u32,
}

impl Repr for Ieth {
    type View = view::Ieth;

    fn from_view(v: &view::Ieth) -> Result<Self> {
        Ok(Self { rkey: v.0.get() })
    }

    fn to_view(&self) -> view::Ieth {
        view::Ieth(self.rkey.into())
    }
}

/// DETH: who sent a datagram, and the key it brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Deth {
    /// Queue key.
    pub qkey: QKey,
    /// The reserved byte before the source QPN; 0 when sent.
    pub reserved: u8,
    /// Source QPN.
    pub src_qp: Qpn,
}

impl Repr for Deth {
    type View = view::Deth;

    fn from_view(v: &view::Deth) -> Result<Self> {
        let [reserved, ..] = v.src_qp.to_bytes();
        let src_qp = Qpn::new(v.src_qp.get());
        Ok(Self { qkey: QKey(v.qkey.get()), reserved, src_qp })
    }

    fn to_view(&self) -> view::Deth {
        let src = u32::from(self.reserved) << 24 | self.src_qp.value();
        view::Deth { qkey: self.qkey.0.into(), src_qp: src.into() }
    }
}

/// XRCETH: the SRQ an XRC request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct XrcEth {
    /// The reserved first byte; 0 when sent.
    pub reserved: u8,
    /// SRQ number, 24 bits.
    pub srqn: u32,
}

impl Repr for XrcEth {
    type View = view::XrcEth;

    fn from_view(v: &view::XrcEth) -> Result<Self> {
        let [reserved, ..] = v.0.to_bytes();
        Ok(Self { reserved, srqn: v.0.get() & 0x00ff_ffff })
    }

    fn to_view(&self) -> view::XrcEth {
        view::XrcEth((u32::from(self.reserved) << 24 | self.srqn & 0x00ff_ffff).into())
    }
}

/// RDETH: the end-to-end context of a reliable datagram. Dissected only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RdEth {
    /// The reserved first byte; 0 when sent.
    pub reserved: u8,
    /// End-to-end context number, 24 bits.
    pub ee_context: u32,
}

impl Repr for RdEth {
    type View = view::RdEth;

    fn from_view(v: &view::RdEth) -> Result<Self> {
        let [reserved, ..] = v.0.to_bytes();
        Ok(Self { reserved, ee_context: v.0.get() & 0x00ff_ffff })
    }

    fn to_view(&self) -> view::RdEth {
        view::RdEth((u32::from(self.reserved) << 24 | self.ee_context & 0x00ff_ffff).into())
    }
}

/// What a FLUSH covers: bits 5–4 of a FETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FlushScope {
    /// The range of the RETH.
    Range = 0,
    /// The whole memory region; address and length do not count.
    MemoryRegion = 1,
}

/// How far a FLUSH carries data: bits 3–0 of a FETH, which may be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlushLevel(u8);

impl FlushLevel {
    /// Visible to all of the target's host.
    pub const GLOBAL: Self = Self(1);
    /// Safe in the target's persistent memory.
    pub const PERSISTENT: Self = Self(2);

    /// The level of the low four bits of `bits`.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0xf)
    }

    /// Its four bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether all of `other` is asked for.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both levels together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// FETH: what a FLUSH covers and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feth {
    /// The 26 reserved bits; 0 when sent.
    pub reserved: u32,
    /// Selectivity.
    pub scope: FlushScope,
    /// Placement type.
    pub level: FlushLevel,
}

impl Feth {
    /// A FETH whose reserved bits are 0.
    #[must_use]
    pub const fn new(scope: FlushScope, level: FlushLevel) -> Self {
        Self { reserved: 0, scope, level }
    }
}

impl Repr for Feth {
    type View = view::Feth;

    fn from_view(v: &view::Feth) -> Result<Self> {
        let word = v.0.get();
        let scope = match word >> 4 & 3 {
            0 => FlushScope::Range,
            1 => FlushScope::MemoryRegion,
            other => {
                let wanted = Wanted::OneOf("0 (range), 1 (memory region)");
                return Err(Error::new("FETH", "selectivity", u64::from(other), wanted));
            }
        };
        let [.., low] = v.0.to_bytes();
        Ok(Self { reserved: word >> 6, scope, level: FlushLevel::from_bits(low) })
    }

    fn to_view(&self) -> view::Feth {
        let scope = (self.scope as u32) << 4;
        view::Feth((self.reserved << 6 | scope | u32::from(self.level.bits())).into())
    }
}

/// The 16 bytes after a CNP's BTH; zero when sent, kept as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CnpPad {
    /// The bytes.
    pub bytes: [u8; 16],
}

impl Repr for CnpPad {
    type View = view::CnpPad;

    fn from_view(v: &view::CnpPad) -> Result<Self> {
        Ok(Self { bytes: v.0 })
    }

    fn to_view(&self) -> view::CnpPad {
        view::CnpPad(self.bytes)
    }
}
