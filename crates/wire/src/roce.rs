//! The transport packet, BTH to ICRC, as it stands in a UDP payload (IBA 9.1, A17.3).

use crate::{
    Aeth, AtomicAckEth, AtomicEth, Bth, CnpPad, Deth, Error, ExtHeaders, Feth, ICRC_LEN, Ieth,
    ImmDt, Opcode, OpcodeInfo, RdEth, Repr, Result, Reth, Wanted, XrcEth,
};

#[cfg(test)]
mod tests;

/// Defines [`Ext`] and its walk over the headers, which stand on the wire in this order.
macro_rules! ext {
    ($($(#[$doc:meta])* $field:ident $flag:ident $ty:ident;)*) => {
        /// The extension headers of a packet; which ones there are follows from its opcode.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct Ext {
            $($(#[$doc])* pub $field: Option<$ty>,)*
        }

        impl Ext {
            /// No extension header.
            pub const NONE: Self = Self { $($field: None,)* };

            /// Which headers are there.
            #[must_use]
            pub const fn headers(&self) -> ExtHeaders {
                let mut all = ExtHeaders::empty();
                $(if self.$field.is_some() {
                    all = all.union(ExtHeaders::$flag);
                })*
                all
            }

            /// Takes `headers` off the front of `bytes`; gives them and what follows.
            ///
            /// # Errors
            /// Where `bytes` are too few or a field holds what its header cannot hold.
            pub fn parse(headers: ExtHeaders, bytes: &[u8]) -> Result<(Self, &[u8])> {
                let mut ext = Self::NONE;
                let mut rest = bytes;
                $(if headers.contains(ExtHeaders::$flag) {
                    let (header, after) = $ty::parse(rest)?;
                    ext.$field = Some(header);
                    rest = after;
                })*
                Ok((ext, rest))
            }

            /// Writes the headers to the front of `out`; gives their length.
            ///
            /// # Errors
            /// Where `out` is too short.
            pub fn emit(&self, out: &mut [u8]) -> Result<usize> {
                let mut at = 0;
                $(if let Some(header) = &self.$field {
                    at += header.emit(out.get_mut(at..).unwrap_or_default())?;
                })*
                Ok(at)
            }
        }
    };
}

ext! {
    /// End-to-end context of a reliable datagram.
    rdeth RDETH RdEth;
    /// Queue key and source QPN of a datagram.
    deth DETH Deth;
    /// The SRQ of an XRC request.
    xrceth XRCETH XrcEth;
    /// What a FLUSH covers.
    feth FETH Feth;
    /// The remote range.
    reth RETH Reth;
    /// An atomic's target and operands.
    atomic ATOMIC AtomicEth;
    /// How a request fared.
    aeth AETH Aeth;
    /// What stood at an atomic's target.
    atomic_ack ATOMIC_ACK AtomicAckEth;
    /// Immediate data.
    imm IMM ImmDt;
    /// The key a SEND invalidates.
    ieth IETH Ieth;
    /// The 16 bytes of a CNP.
    cnp CNP CnpPad;
}

/// The longest BTH and extension headers that any opcode has, bytes.
pub const MAX_HEADER_LEN: usize = {
    let mut max = 0;
    let mut code = 0u8;
    loop {
        if let Some(info) = Opcode(code).info()
            && info.header_len() > max
        {
            max = info.header_len();
        }
        if code == u8::MAX {
            break max;
        }
        code += 1;
    }
};

/// BTH and every extension header there is, bytes.
const ALL_HEADERS_LEN: usize = Bth::LEN + ExtHeaders::all().byte_len();

impl OpcodeInfo {
    /// Length of BTH and extension headers, bytes.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        Bth::LEN + self.headers.byte_len()
    }
}

/// A transport packet. What parses emits the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roce<'a> {
    /// Base transport header; its `pad` is the length of `pad`.
    pub bth: Bth,
    /// The headers that its opcode asks for, no more and no less.
    pub ext: Ext,
    /// The message's bytes; empty where the opcode carries none.
    pub payload: &'a [u8],
    /// The 0 to 3 bytes that fill the payload up to a multiple of four; zero when sent.
    pub pad: &'a [u8],
    /// The ICRC as it stands on the wire, right or wrong.
    pub icrc: [u8; ICRC_LEN],
}

impl<'a> Roce<'a> {
    /// A packet with the pad that `payload` needs (`bth.pad` is set) and an ICRC of zeros, to be
    /// computed once the IP header is known.
    #[must_use]
    pub fn new(mut bth: Bth, ext: Ext, payload: &'a [u8]) -> Self {
        bth.pad = pad_for(payload.len());
        let pad = &[0; 3][..usize::from(bth.pad)];
        Self { bth, ext, payload, pad, icrc: [0; ICRC_LEN] }
    }

    /// The packet that `bytes`, a whole UDP payload, hold. The ICRC is not checked.
    ///
    /// # Errors
    /// Where the opcode is not defined, bytes are missing, bytes follow headers that allow no
    /// payload, the pad count does not fit, or a header holds what it cannot hold.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (bth, rest) = Bth::parse(bytes)?;
        let info = defined(bth.opcode)?;
        let (ext, rest) = Ext::parse(info.headers, rest)?;
        let Some((body, &icrc)) = rest.split_last_chunk() else {
            return Err(Error::short("ICRC", rest.len(), ICRC_LEN));
        };
        check_body(info, body.len(), bth.pad)?;
        let (payload, pad) = body.split_at(body.len() - usize::from(bth.pad));
        Ok(Self { bth, ext, payload, pad, icrc })
    }

    /// Length of BTH and extension headers, bytes.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        Bth::LEN + self.ext.headers().byte_len()
    }

    /// Length of the whole, BTH to ICRC, bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.header_len() + self.payload.len() + self.pad.len() + ICRC_LEN
    }

    /// Never: a packet has at least a BTH.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes BTH and extension headers to the front of `out`; gives their length.
    ///
    /// # Errors
    /// As [`emit_headers`].
    pub fn emit_headers(&self, out: &mut [u8]) -> Result<usize> {
        emit_headers(&self.bth, &self.ext, out)
    }

    /// BTH and extension headers as bytes, whether or not they fit the opcode, and their length.
    pub(crate) fn header_bytes(&self) -> ([u8; ALL_HEADERS_LEN], usize) {
        let mut bytes = [0; ALL_HEADERS_LEN];
        // There is room for all headers at once, so that nothing can fail.
        let bth = self.bth.emit(&mut bytes).unwrap_or_default();
        let ext = self.ext.emit(&mut bytes[bth..]).unwrap_or_default();
        (bytes, bth + ext)
    }

    /// Whether the packet would parse again as it is.
    pub(crate) fn check(&self) -> Result<()> {
        if self.pad.len() != usize::from(self.bth.pad) {
            let wanted = Wanted::Exactly(self.pad.len() as u64);
            return Err(Error::new("BTH", "pad count", u64::from(self.bth.pad), wanted));
        }
        let info = defined(self.bth.opcode)?;
        check_ext(info, &self.ext)?;
        check_body(info, self.payload.len() + self.pad.len(), self.bth.pad)
    }

    /// Writes the packet, ICRC as it is, to the front of `out`; gives its length.
    ///
    /// # Errors
    /// Where the packet would not parse again (see [`Self::parse`]) or `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize> {
        self.check()?;
        let len = self.len();
        if out.len() < len {
            return Err(Error::short("packet", out.len(), len));
        }
        let headers = self.emit_headers(out)?;
        let (payload, rest) = out[headers..len].split_at_mut(self.payload.len());
        let (pad, icrc) = rest.split_at_mut(self.pad.len());
        payload.copy_from_slice(self.payload);
        pad.copy_from_slice(self.pad);
        icrc.copy_from_slice(&self.icrc);
        Ok(len)
    }
}

/// The pad bytes that fill a payload of `len` bytes up to a multiple of four, 0 to 3 (IBA 9.2.4).
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "two bits fit")]
pub const fn pad_for(len: usize) -> u8 {
    (len.wrapping_neg() & 3) as u8
}

/// Writes BTH and extension headers to the front of `out` and gives their length, for a sender
/// that gathers payload, pad and ICRC itself.
///
/// # Errors
/// Where the opcode is not defined, `ext` is not what it asks for, or `out` is too short.
pub fn emit_headers(bth: &Bth, ext: &Ext, out: &mut [u8]) -> Result<usize> {
    check_ext(defined(bth.opcode)?, ext)?;
    let bth_len = bth.emit(out)?;
    Ok(bth_len + ext.emit(&mut out[bth_len..])?)
}

fn defined(opcode: Opcode) -> Result<&'static OpcodeInfo> {
    opcode.info().ok_or_else(|| {
        Error::new("BTH", "opcode", u64::from(opcode.0), Wanted::OneOf("the defined opcodes"))
    })
}

fn check_ext(info: &OpcodeInfo, ext: &Ext) -> Result<()> {
    let (got, wanted) = (ext.headers(), info.headers);
    if got == wanted {
        return Ok(());
    }
    let wanted = Wanted::Exactly(u64::from(wanted.bits()));
    Err(Error::new("packet", "extension header bits", u64::from(got.bits()), wanted))
}

/// Whether `body` bytes of payload and pad, `pad` of them pad, may follow the headers.
fn check_body(info: &OpcodeInfo, body: usize, pad: u8) -> Result<()> {
    if !info.payload && body != 0 {
        return Err(Error::new(info.name, "payload length", body as u64, Wanted::Exactly(0)));
    }
    if body < usize::from(pad) {
        return Err(Error::new("BTH", "pad count", u64::from(pad), Wanted::AtMost(body as u64)));
    }
    if !body.is_multiple_of(4) {
        // IBA 9.2.4: with the pad, a payload is whole 32-bit words.
        let wanted = Wanted::OneOf("the multiples of 4");
        return Err(Error::new(info.name, "payload and pad length", body as u64, wanted));
    }
    Ok(())
}
