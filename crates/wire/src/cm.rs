//! Connection management: the messages by which QPs are brought together (IBA chapter 12).
//!
//! Each message is a MAD of 256 bytes: a [`MadHeader`] and a body of 232. [`CmMessage`] holds any
//! of them. Every body of the right length is a message, whatever its fields hold, for a bad value
//! is answered with a REJ rather than dropped; so the codes keep values they do not know.

use core::ops::Range;

use crate::{
    Error, FieldValue, Fields, MAD_HEADER_LEN, MAD_LEN, MadHeader, ManagementClass, Method, Repr,
    Result, Wanted, layout::codes,
};

mod codes;
mod disconnect;
mod ip;
mod lap;
mod rej;
mod rep;
mod req;
mod sidr;

pub use codes::{
    AprStatus, CmTimeout, CommId, Failover, MraMessage, MtuCode, PortSpace, RejMessage, RejReason,
    RetryCount, ServiceId, SidrStatus, TransportService,
};
pub use disconnect::{Drep, DrepView, Dreq, DreqView};
pub use ip::{IpAddresses, IpHeader, IpHeaderView};
pub use lap::{Apr, AprView, Lap, LapView};
pub use rej::{Mra, MraView, Rej, RejView};
pub use rep::{Rep, RepView, Rtu, RtuView};
pub use req::{Req, ReqPath, ReqPathView, ReqView};
pub use sidr::{SidrRep, SidrRepView, SidrReq, SidrReqView};

/// Base version of every MAD.
const BASE_VERSION: u8 = 1;
/// The class version of connection management.
const CLASS_VERSION: u8 = 2;

codes! {
    /// Which message a MAD of the communication class is (IBA 12.6).
    CmAttribute: u16, 16;
    0x10 Req "connection request",
    0x11 Mra "message receipt acknowledged",
    0x12 Rej "rejected",
    0x13 Rep "connection reply",
    0x14 Rtu "ready to use",
    0x15 Dreq "disconnection request",
    0x16 Drep "disconnection reply",
    0x17 SidrReq "service id resolution request",
    0x18 SidrRep "service id resolution reply",
    0x19 Lap "load alternate path",
    0x1a Apr "alternate path response",
}

macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A CM message of any kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CmMessage {
            $($(#[$doc])* $name($name),)*
        }

        $(const _: () = assert!(<$name as Repr>::LEN == MAD_LEN - MAD_HEADER_LEN);)*

        impl CmMessage {
            /// Which message it is.
            #[must_use]
            pub const fn attribute(&self) -> CmAttribute {
                match self { $(Self::$name(_) => CmAttribute::$name,)* }
            }

            /// Its name, as in errors: `CM REQ`.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => <<$name as Repr>::View as crate::Header>::NAME,)*
                }
            }

            fn parse_body(attribute: CmAttribute, body: &[u8]) -> Result<Self> {
                match attribute {
                    $(CmAttribute::$name => Ok(Self::$name($name::parse(body)?.0)),)*
                    CmAttribute::Other(id) => {
                        let wanted = Wanted::Between(0x10, 0x1a);
                        Err(Error::new("CM", "attribute id", id.into(), wanted))
                    }
                }
            }

            fn emit_body(&self, out: &mut [u8]) -> Result<usize> {
                match self { $(Self::$name(message) => message.emit(out),)* }
            }

            fn body(&self) -> &dyn Fields {
                match self { $(Self::$name(message) => message,)* }
            }
        }

        $(impl From<$name> for CmMessage {
            fn from(message: $name) -> Self {
                Self::$name(message)
            }
        })*
    };
}

messages! {
    /// The active side asks for a connection.
    Req,
    /// "I have your message; my answer takes a while."
    Mra,
    /// A request or reply is refused, or a connection attempt given up.
    Rej,
    /// The passive side accepts.
    Rep,
    /// The active side has seen the reply and is ready.
    Rtu,
    /// One side wishes to end the connection.
    Dreq,
    /// The other side agrees.
    Drep,
    /// Which QP serves this service id?
    SidrReq,
    /// This QP, with this Q_Key.
    SidrRep,
    /// Use this path as the alternate one.
    Lap,
    /// How the load of an alternate path went.
    Apr,
}

impl CmMessage {
    /// Reads a whole MAD, the payload of a UD SEND to QP1.
    ///
    /// # Errors
    /// Where the MAD is not 256 bytes long or not a message of this class: base version 1, class 7,
    /// class version 2, method 3 (send), attribute 0x10 to 0x1a. A receiver that wants to answer
    /// another class version (REJ 31) reads the [`MadHeader`] alone.
    pub fn parse(mad: &[u8]) -> Result<(MadHeader, Self)> {
        if mad.len() != MAD_LEN {
            let wanted = Wanted::Exactly(MAD_LEN as u64);
            return Err(Error::new("MAD", "length", mad.len() as u64, wanted));
        }
        let (header, body) = MadHeader::parse(mad)?;
        let fixed = [
            ("base version", header.base_version, BASE_VERSION),
            ("class", header.class.code(), ManagementClass::Communication.code()),
            ("class version", header.class_version, CLASS_VERSION),
            ("method", header.method.code(), Method::Send.code()),
        ];
        for (field, got, wanted) in fixed {
            if got != wanted {
                return Err(Error::new("MAD", field, got.into(), Wanted::Exactly(wanted.into())));
            }
        }
        let message = Self::parse_body(CmAttribute::from_code(header.attribute_id), body)?;
        Ok((header, message))
    }

    /// The header to send it with; an answer carries the transaction id of its question.
    #[must_use]
    pub fn header(&self, transaction_id: u64) -> MadHeader {
        MadHeader {
            base_version: BASE_VERSION,
            class: ManagementClass::Communication,
            class_version: CLASS_VERSION,
            method: Method::Send,
            transaction_id,
            attribute_id: self.attribute().code(),
            ..MadHeader::default()
        }
    }

    /// Writes the MAD of `header` and this message to the front of `out`; gives its length, 256.
    /// The attribute id is the message's own.
    ///
    /// # Errors
    /// Where `out` is too short; nothing is written then.
    pub fn emit(&self, header: &MadHeader, out: &mut [u8]) -> Result<usize> {
        if out.len() < MAD_LEN {
            return Err(Error::short("MAD", out.len(), MAD_LEN));
        }
        let header = MadHeader { attribute_id: self.attribute().code(), ..*header };
        let (front, body) = out.split_at_mut(MAD_HEADER_LEN);
        Ok(header.emit(front)? + self.emit_body(body)?)
    }

    /// The sender's id of the connection; none on SIDR messages, which have a request id.
    #[must_use]
    pub const fn local_comm_id(&self) -> Option<CommId> {
        match self {
            Self::Req(m) => Some(m.local_comm_id),
            Self::Mra(m) => Some(m.local_comm_id),
            Self::Rej(m) => Some(m.local_comm_id),
            Self::Rep(m) => Some(m.local_comm_id),
            Self::Rtu(m) => Some(m.local_comm_id),
            Self::Dreq(m) => Some(m.local_comm_id),
            Self::Drep(m) => Some(m.local_comm_id),
            Self::Lap(m) => Some(m.local_comm_id),
            Self::Apr(m) => Some(m.local_comm_id),
            Self::SidrReq(_) | Self::SidrRep(_) => None,
        }
    }

    /// The receiver's id of the connection; none on a REQ, which opens one, and on SIDR messages.
    #[must_use]
    pub const fn remote_comm_id(&self) -> Option<CommId> {
        match self {
            Self::Mra(m) => Some(m.remote_comm_id),
            Self::Rej(m) => Some(m.remote_comm_id),
            Self::Rep(m) => Some(m.remote_comm_id),
            Self::Rtu(m) => Some(m.remote_comm_id),
            Self::Dreq(m) => Some(m.remote_comm_id),
            Self::Drep(m) => Some(m.remote_comm_id),
            Self::Lap(m) => Some(m.remote_comm_id),
            Self::Apr(m) => Some(m.remote_comm_id),
            Self::Req(_) | Self::SidrReq(_) | Self::SidrRep(_) => None,
        }
    }
}

impl Fields for CmMessage {
    /// The fields of the message; after a REQ or SIDR REQ of an IP service, its IP header as a
    /// group.
    fn for_each_field(&self, f: &mut dyn FnMut(&'static str, Range<usize>, FieldValue<'_>)) {
        let mut data = 0;
        self.body().for_each_field(&mut |name, bits, value| {
            if name == "private_data" {
                data = bits.start;
            }
            f(name, bits, value);
        });
        let ip = match self {
            Self::Req(req) => req.ip_header().ok(),
            Self::SidrReq(req) => req.ip_header().ok(),
            _ => None,
        };
        if let Some((header, _)) = ip {
            f("ip_header", data..data + IpHeader::LEN * 8, FieldValue::Group(&header));
        }
    }
}

/// Private data of `N` bytes that begins with `data`; the rest is zero.
///
/// # Errors
/// Where `data` is longer than `N`.
pub fn private_data<const N: usize>(data: &[u8]) -> Result<[u8; N]> {
    let mut out = [0; N];
    let Some(front) = out.get_mut(..data.len()) else {
        let wanted = Wanted::AtMost(N as u64);
        return Err(Error::new("CM", "private data length", data.len() as u64, wanted));
    };
    front.copy_from_slice(data);
    Ok(out)
}

/// The part of an information field that its length field counts.
fn counted<'a>(header: &'static str, info: &'a [u8], len: u8) -> Result<&'a [u8]> {
    info.get(..usize::from(len)).ok_or_else(|| {
        Error::new(header, "information length", len.into(), Wanted::AtMost(info.len() as u64))
    })
}

#[cfg(test)]
mod tests;
