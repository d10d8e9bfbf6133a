//! The coded fields of CM messages.

use core::{fmt, time::Duration};

use crate::{
    Error, FieldValue, Mtu, Result, Wanted,
    layout::{codes, low, number_field},
};

/// A communication id: one side's name for a connection or an attempt at one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct CommId(pub u32);

impl fmt::Display for CommId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

/// What a connection is asked for: 64 bits, of which IP services use the last 32 for a port space
/// and a port (IBA annex A11.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ServiceId(pub u64);

/// The port spaces of `rdma_cm` (Linux include/uapi/rdma/rdma_user_cm.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum PortSpace {
    /// IP over InfiniBand.
    IpoIb = 0x0002,
    /// Connected services, over RC.
    Tcp = 0x0106,
    /// Datagram services, over UD.
    Udp = 0x0111,
    /// Services of any kind, with native addresses.
    Ib = 0x013f,
}

impl PortSpace {
    /// Its short name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IpoIb => "IPoIB",
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Ib => "IB",
        }
    }
}

impl ServiceId {
    /// The service at `port` of a port space.
    #[must_use]
    pub const fn new(space: PortSpace, port: u16) -> Self {
        Self((space as u64) << 16 | port as u64)
    }

    /// The service at a TCP port.
    #[must_use]
    pub const fn tcp(port: u16) -> Self {
        Self::new(PortSpace::Tcp, port)
    }

    /// The service at a UDP port.
    #[must_use]
    pub const fn udp(port: u16) -> Self {
        Self::new(PortSpace::Udp, port)
    }

    /// Port space and port, if it is a service of `rdma_cm`.
    #[must_use]
    pub const fn port(self) -> Option<(PortSpace, u16)> {
        let space = match self.0 >> 16 {
            0x0002 => PortSpace::IpoIb,
            0x0106 => PortSpace::Tcp,
            0x0111 => PortSpace::Udp,
            0x013f => PortSpace::Ib,
            _ => return None,
        };
        let [.., high, low] = self.0.to_be_bytes();
        Some((space, u16::from_be_bytes([high, low])))
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)?;
        match self.port() {
            Some((space, port)) => write!(f, " ({} port {port})", space.name()),
            None => Ok(()),
        }
    }
}

/// A time in 5 bits: 4.096 µs · 2^code, 4.096 µs to 8796 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct CmTimeout(u8);

impl CmTimeout {
    /// The longest one, code 31.
    pub const MAX: Self = Self(31);

    /// The time of `code` 0 to 31.
    ///
    /// # Errors
    /// A greater code.
    pub const fn new(code: u8) -> Result<Self> {
        if code > 31 {
            return Err(Error::new("CM", "timeout", code as u64, Wanted::AtMost(31)));
        }
        Ok(Self(code))
    }

    /// The shortest one that is no shorter than `time`; the longest if there is none.
    #[must_use]
    pub fn at_least(time: Duration) -> Self {
        (0..31).map(Self).find(|t| t.duration() >= time).unwrap_or(Self::MAX)
    }

    /// Its code, 0 to 31.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The time it stands for.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(4096 << (self.0 & 0x1f))
    }
}

impl fmt::Display for CmTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.0, self.duration())
    }
}

/// How often something is tried again: 0 to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RetryCount(u8);

impl RetryCount {
    /// The greatest count, 7. As an RNR retry count it says "without end".
    pub const MAX: Self = Self(7);

    /// A count of 0 to 7.
    ///
    /// # Errors
    /// A greater count.
    pub const fn new(count: u8) -> Result<Self> {
        if count > 7 {
            return Err(Error::new("CM", "retry count", count as u64, Wanted::AtMost(7)));
        }
        Ok(Self(count))
    }

    /// The count, 0 to 7.
    #[must_use]
    pub const fn count(self) -> u8 {
        self.0
    }

    /// How many RNR retries it allows; `None` is no limit (IBA 9.7.5.2.8).
    #[must_use]
    pub const fn rnr_limit(self) -> Option<u8> {
        if self.0 == 7 { None } else { Some(self.0) }
    }
}

/// A path MTU code as it came: 1 to 5 have a meaning, other values are answered with REJ 26.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct MtuCode(pub u8);

impl MtuCode {
    /// The MTU.
    ///
    /// # Errors
    /// Where the code is none of 1 to 5.
    pub const fn mtu(self) -> Result<Mtu> {
        Mtu::from_code(self.0)
    }
}

impl From<Mtu> for MtuCode {
    fn from(mtu: Mtu) -> Self {
        Self(mtu.code())
    }
}

impl fmt::Display for MtuCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mtu() {
            Ok(mtu) => write!(f, "{} ({} bytes)", self.0, mtu.bytes()),
            Err(_) => write!(f, "{} (reserved)", self.0),
        }
    }
}

number_field! {
    CommId, 32, |v| Self(low(v)), |v| v.0.into(), |v, _| FieldValue::Shown(v);
    ServiceId, 64, Self, |v| v.0, |v, _| FieldValue::Shown(v);
    CmTimeout, 5, |v| Self(low(v)), |v| v.0.into(), |v, _| FieldValue::Shown(v);
    RetryCount, 3, |v| Self(low(v)), |v| v.0.into(), |v, _| FieldValue::Number(v.0.into());
    MtuCode, 4, |v| Self(low(v)), |v| v.0.into(), |v, _| FieldValue::Shown(v);
}

codes! {
    /// The transport a REQ asks for. XRC is "extended" with extended transport type 1.
    TransportService: u8, 2;
    0 Rc "reliable connection",
    1 Uc "unreliable connection",
    2 Rd "reliable datagram",
    3 Extended "extended transport type",
}

codes! {
    /// Which message an MRA acknowledges.
    MraMessage: u8, 2;
    0 Req "REQ",
    1 Rep "REP",
    2 Lap "LAP",
}

codes! {
    /// Which message a REJ refuses.
    RejMessage: u8, 2;
    0 Req "REQ",
    1 Rep "REP",
    2 None "no message",
}

codes! {
    /// What became of the alternate path a REQ offered.
    Failover: u8, 2;
    0 Accepted "alternate path accepted",
    1 Unsupported "failover not supported",
    2 Rejected "alternate path rejected",
}

codes! {
    /// Why a connection is refused (IBA 12.6.7.2; Linux include/rdma/ib_cm.h).
    RejReason: u16, 16;
    1 NoQp "no QP available",
    2 NoEec "no end-to-end context available",
    3 NoResources "no resources available",
    4 Timeout "timed out",
    5 UnsupportedRequest "unsupported request",
    6 InvalidCommId "invalid communication id",
    7 InvalidCommInstance "invalid communication instance",
    8 InvalidServiceId "nothing listens at this service id",
    9 InvalidTransport "invalid transport service type",
    10 StaleConnection "stale connection",
    11 NoRdc "reliable datagram channel does not exist",
    12 InvalidGid "primary remote GID is not reached here",
    13 InvalidLid "primary remote LID is not reached here",
    14 InvalidSl "invalid primary service level",
    15 InvalidTrafficClass "invalid primary traffic class",
    16 InvalidHopLimit "invalid primary hop limit",
    17 InvalidPacketRate "invalid primary packet rate",
    18 InvalidAltGid "alternate remote GID is not reached here",
    19 InvalidAltLid "alternate remote LID is not reached here",
    20 InvalidAltSl "invalid alternate service level",
    21 InvalidAltTrafficClass "invalid alternate traffic class",
    22 InvalidAltHopLimit "invalid alternate hop limit",
    23 InvalidAltPacketRate "invalid alternate packet rate",
    24 CmRedirect "CM redirected to another port",
    25 PortRedirect "connection redirected to another port",
    26 InvalidMtu "invalid path MTU",
    27 TooFewResponderResources "too few responder resources",
    28 ConsumerDefined "refused by the program",
    29 InvalidRnrRetry "invalid RNR retry count",
    30 DuplicateCommId "communication id is in use",
    31 InvalidClassVersion "unsupported class version",
    32 InvalidFlowLabel "invalid primary flow label",
    33 InvalidAltFlowLabel "invalid alternate flow label",
    35 VendorOptionUnsupported "vendor option not supported",
}

codes! {
    /// How a service id resolution went (IBA 12.11.2; Linux include/rdma/ib_cm.h).
    SidrStatus: u8, 8;
    0 Success "QPN and Q_Key are valid",
    1 UnsupportedServiceId "service id is not supported",
    2 Rejected "refused by the service",
    3 NoQp "no QP available",
    4 Redirect "ask another port",
    5 UnsupportedVersion "unsupported class version",
}

codes! {
    /// How the load of an alternate path went (IBA 12.8.2; Linux include/rdma/ib_cm.h).
    AprStatus: u8, 8;
    0 Success "alternate path loaded",
    1 InvalidCommId "invalid communication id",
    2 Unsupported "alternate paths are not supported",
    3 Rejected "refused by the program",
    4 Redirect "ask another port",
    5 IsCurrent "the path is the current one",
    6 InvalidQpn "QPN does not match the communication id",
    7 InvalidLid "invalid LID",
    8 InvalidGid "invalid GID",
    9 InvalidFlowLabel "invalid flow label",
    10 InvalidTrafficClass "invalid traffic class",
    11 InvalidHopLimit "invalid hop limit",
    12 InvalidPacketRate "invalid packet rate",
    13 InvalidSl "invalid service level",
}
