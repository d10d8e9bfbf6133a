//! Enhanced connection establishment: vendors' options in REQ and REP, for QPs that the program
//! makes itself.

use std::ffi::c_int;

use urxe::cm::Ece;

use crate::call::{input, number, output};
use crate::layout::{IbvEce, RdmaCmId};

use super::id;

/// # Safety
/// `ece` is null or points to the struct.
pub(super) unsafe extern "C" fn set_local_ece(id: *mut RdmaCmId, ece: *mut IbvEce) -> c_int {
    number("rdma_set_local_ece", || {
        let object = id::of(id)?;
        // SAFETY: the caller's.
        let given = unsafe { input(ece, "ece") }?;
        object.own().state.lock().local_ece =
            Ece { vendor_id: given.vendor_id, options: given.options };
        Ok(0)
    })
}

/// # Safety
/// `ece` is null or has room for the struct.
pub(super) unsafe extern "C" fn get_remote_ece(id: *mut RdmaCmId, ece: *mut IbvEce) -> c_int {
    number("rdma_get_remote_ece", || {
        let Ece { vendor_id, options } = id::of(id)?.own().state.lock().remote_ece;
        // SAFETY: the caller's.
        unsafe { output(ece, IbvEce { vendor_id, options, comp_mask: 0 }, "ece") }.map(|()| 0)
    })
}
