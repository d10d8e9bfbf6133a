//! MRA and REJ (IBA 12.6.6 and 12.6.7).

use super::{CmTimeout, CommId, MraMessage, RejMessage, RejReason, counted};
use crate::{Result, layout::layout};

layout! {
    /// MRA: a message has come, but the answer to it takes longer than the timeout.
    Mra, MraView, "CM MRA", 232;
    /// The sender's id of the connection.
    local_comm_id: CommId = (0, 0, 32);
    /// The receiver's id of the connection.
    remote_comm_id: CommId = (4, 0, 32);
    /// The message that has come.
    message: MraMessage = (8, 0, 2);
    /// Reserved; 0 when sent.
    reserved8: u8 = (8, 2, 6);
    /// How long the answer may take from now.
    service_timeout: CmTimeout = (9, 0, 5);
    /// Reserved; 0 when sent.
    reserved9: u8 = (9, 5, 3);
    /// Private data.
    private_data: [u8; 222] = (10, 0, 1776);
}

layout! {
    /// REJ: a connection is refused or an attempt at one given up.
    Rej, RejView, "CM REJ", 232;
    /// The sender's id of the connection; 0 if it has none.
    local_comm_id: CommId = (0, 0, 32);
    /// The receiver's id of the connection.
    remote_comm_id: CommId = (4, 0, 32);
    /// The message that is refused.
    message: RejMessage = (8, 0, 2);
    /// Reserved; 0 when sent.
    reserved8: u8 = (8, 2, 6);
    /// Bytes of the additional information that count, 0 to 72.
    info_length: u8 = (9, 0, 7);
    /// Reserved; 0 when sent.
    reserved9: u8 = (9, 7, 1);
    /// Why.
    reason: RejReason = (10, 0, 16);
    /// Additional information: for some reasons, the value that would have been right.
    info: [u8; 72] = (12, 0, 576);
    /// Private data.
    private_data: [u8; 148] = (84, 0, 1184);
}

impl Rej {
    /// The additional information that counts.
    ///
    /// # Errors
    /// Where its length says more than the 72 bytes there are.
    pub fn additional_info(&self) -> Result<&[u8]> {
        counted("CM REJ", &self.info, self.info_length)
    }
}
