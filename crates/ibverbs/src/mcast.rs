//! Multicast groups of QPs.

use std::ffi::c_int;

use urxe::Gid;

use crate::call::{code, input};
use crate::layout::IbvQp;
use crate::qp;

/// # Safety
/// `gid` is null or points to one.
pub(crate) unsafe extern "C" fn attach_mcast(
    qp: *mut IbvQp,
    gid: *const [u8; 16],
    _lid: u16,
) -> c_int {
    code("ibv_attach_mcast", || {
        // SAFETY: the caller's.
        let group = Gid(*unsafe { input(gid, "gid") }?).ip();
        Ok(qp::of(qp)?.own().qp.attach_mcast(group)?)
    })
}

/// # Safety
/// `gid` is null or points to one.
pub(crate) unsafe extern "C" fn detach_mcast(
    qp: *mut IbvQp,
    gid: *const [u8; 16],
    _lid: u16,
) -> c_int {
    code("ibv_detach_mcast", || {
        // SAFETY: the caller's.
        let group = Gid(*unsafe { input(gid, "gid") }?).ip();
        Ok(qp::of(qp)?.own().qp.detach_mcast(group)?)
    })
}
