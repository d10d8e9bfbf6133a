//! SIDR REQ and SIDR REP: from service id to QPN, for datagrams (IBA 12.11).

use super::{CommId, IpHeader, ServiceId, SidrStatus, counted, ip::ip_header};
use crate::{PKey, QKey, Qpn, Result, layout::layout};

layout! {
    /// SIDR REQ: which QP serves this service id?
    SidrReq, SidrReqView, "CM SIDR_REQ", 232;
    /// The sender's id of the question.
    request_id: CommId = (0, 0, 32);
    /// Partition key.
    pkey: PKey = (4, 0, 16);
    /// Reserved; 0 when sent.
    reserved6: u16 = (6, 0, 16);
    /// What is asked for.
    service_id: ServiceId = (8, 0, 64);
    /// Private data; of an IP service it begins with an [`IpHeader`].
    private_data: [u8; 216] = (16, 0, 1728);
}

layout! {
    /// SIDR REP: this QP, with this Q_Key.
    SidrRep, SidrRepView, "CM SIDR_REP", 232;
    /// The id of the question.
    request_id: CommId = (0, 0, 32);
    /// How it went.
    status: SidrStatus = (4, 0, 8);
    /// Bytes of the additional information that count, 0 to 72.
    info_length: u8 = (5, 0, 8);
    /// High two bytes of the ECE vendor id; reserved before ECE.
    vendor_id_high: u16 = (6, 0, 16);
    /// The QPN of the service.
    qpn: Qpn = (8, 0, 24);
    /// Low byte of the ECE vendor id; reserved before ECE.
    vendor_id_low: u8 = (11, 0, 8);
    /// What was asked for.
    service_id: ServiceId = (12, 0, 64);
    /// The Q_Key to send with.
    qkey: QKey = (20, 0, 32);
    /// Additional information, for a redirection.
    info: [u8; 72] = (24, 0, 576);
    /// Private data.
    private_data: [u8; 136] = (96, 0, 1088);
}

impl SidrReq {
    /// The IP header in front of the private data, and the 180 bytes of the program after it.
    ///
    /// # Errors
    /// Where the service id is not one of an IP port space, or the header is not of version 0 and
    /// IPv4 or IPv6.
    pub fn ip_header(&self) -> Result<(IpHeader, &[u8])> {
        ip_header("CM SIDR_REQ", self.service_id, &self.private_data)
    }
}

impl SidrRep {
    /// The additional information that counts.
    ///
    /// # Errors
    /// Where its length says more than the 72 bytes there are.
    pub fn additional_info(&self) -> Result<&[u8]> {
        counted("CM SIDR_REP", &self.info, self.info_length)
    }

    /// The ECE vendor id, 24 bits, from its two parts.
    #[must_use]
    pub const fn vendor_id(&self) -> u32 {
        (self.vendor_id_high as u32) << 8 | self.vendor_id_low as u32
    }
}
