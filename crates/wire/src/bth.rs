//! BTH: the base transport header that every packet has (IBA 9.2).

use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    byteorder::{BE, U16, U32},
};

use crate::{Error, Header, Opcode, PKey, Psn, Qpn, Repr, Result, Wanted};

/// A BTH over its 12 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct View {
    opcode: u8,
    flags: u8,
    pkey: U16<BE>,
    dest_qp: U32<BE>,
    psn: U32<BE>,
}

impl Header for View {
    const NAME: &'static str = "BTH";
}

impl View {
    /// The opcode.
    #[must_use]
    pub const fn opcode(&self) -> Opcode {
        Opcode(self.opcode)
    }

    /// Pad bytes between payload and ICRC, 0 to 3.
    #[must_use]
    pub const fn pad(&self) -> u8 {
        self.flags >> 4 & 3
    }

    /// Transport header version; 0 is the only one.
    #[must_use]
    pub const fn version(&self) -> u8 {
        self.flags & 0xf
    }

    /// The destination QPN.
    #[must_use]
    pub const fn dest_qp(&self) -> Qpn {
        Qpn::new(self.dest_qp.get())
    }

    /// The PSN.
    #[must_use]
    pub const fn psn(&self) -> Psn {
        Psn::new(self.psn.get())
    }
}

/// A BTH as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    /// What the packet is and which headers follow.
    pub opcode: Opcode,
    /// SE: the responder's completion is solicited.
    pub solicited: bool,
    /// MigReq: path migration state. Hardware sends 1, rxe 0.
    pub mig_req: bool,
    /// Pad bytes between payload and ICRC, 0 to 3.
    pub pad: u8,
    /// Partition key.
    pub pkey: PKey,
    /// FECN: the packet met congestion on its way (not covered by the ICRC).
    pub fecn: bool,
    /// BECN: the peer is told of congestion (not covered by the ICRC).
    pub becn: bool,
    /// The six reserved bits beside FECN and BECN, 0 to 63; 0 when sent.
    pub reserved6: u8,
    /// Destination QPN.
    pub dest_qp: Qpn,
    /// AckReq: the responder shall acknowledge.
    pub ack_req: bool,
    /// The seven reserved bits beside AckReq, 0 to 127; 0 when sent.
    pub reserved7: u8,
    /// Packet sequence number.
    pub psn: Psn,
}

impl Bth {
    /// A BTH with the default P_Key and all flags, pad and reserved bits 0.
    #[must_use]
    pub const fn new(opcode: Opcode, dest_qp: Qpn, psn: Psn) -> Self {
        Self {
            opcode,
            solicited: false,
            mig_req: false,
            pad: 0,
            pkey: PKey::DEFAULT,
            fecn: false,
            becn: false,
            reserved6: 0,
            dest_qp,
            ack_req: false,
            reserved7: 0,
            psn,
        }
    }
}

impl Repr for Bth {
    type View = View;

    fn from_view(v: &View) -> Result<Self> {
        if v.version() != 0 {
            // IBA 9.2: any other header version is dropped.
            let got = u64::from(v.version());
            return Err(Error::new(View::NAME, "version", got, Wanted::Exactly(0)));
        }
        let (qp, psn) = (v.dest_qp.as_bytes(), v.psn.as_bytes());
        Ok(Self {
            opcode: v.opcode(),
            solicited: v.flags & 0x80 != 0,
            mig_req: v.flags & 0x40 != 0,
            pad: v.pad(),
            pkey: PKey(v.pkey.get()),
            fecn: qp[0] & 0x80 != 0,
            becn: qp[0] & 0x40 != 0,
            reserved6: qp[0] & 0x3f,
            dest_qp: v.dest_qp(),
            ack_req: psn[0] & 0x80 != 0,
            reserved7: psn[0] & 0x7f,
            psn: v.psn(),
        })
    }

    fn to_view(&self) -> View {
        let bit = |on: bool, shift: u32| u32::from(on) << shift;
        let flags =
            u8::from(self.solicited) << 7 | u8::from(self.mig_req) << 6 | (self.pad & 3) << 4;
        let qp = bit(self.fecn, 31)
            | bit(self.becn, 30)
            | u32::from(self.reserved6 & 0x3f) << 24
            | self.dest_qp.value();
        let psn = bit(self.ack_req, 31) | u32::from(self.reserved7 & 0x7f) << 24 | self.psn.value();
        View {
            opcode: self.opcode.0,
            flags,
            pkey: U16::new(self.pkey.0),
            dest_qp: U32::new(qp),
            psn: U32::new(psn),
        }
    }
}
