//! DREQ and DREP (IBA 12.6.10 and 12.6.11).

use super::CommId;
use crate::{Qpn, layout::layout};

layout! {
    /// DREQ: one side wishes to end the connection.
    Dreq, DreqView, "CM DREQ", 232;
    /// The sender's id of the connection.
    local_comm_id: CommId = (0, 0, 32);
    /// The receiver's id of the connection.
    remote_comm_id: CommId = (4, 0, 32);
    /// The receiver's QPN.
    remote_qpn: Qpn = (8, 0, 24);
    /// Reserved; 0 when sent.
    reserved11: u8 = (11, 0, 8);
    /// Private data.
    private_data: [u8; 220] = (12, 0, 1760);
}

layout! {
    /// DREP: the other side agrees to end the connection.
    Drep, DrepView, "CM DREP", 232;
    /// The sender's id of the connection.
    local_comm_id: CommId = (0, 0, 32);
    /// The receiver's id of the connection.
    remote_comm_id: CommId = (4, 0, 32);
    /// Private data.
    private_data: [u8; 224] = (8, 0, 1792);
}
