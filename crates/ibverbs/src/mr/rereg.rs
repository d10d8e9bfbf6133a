//! Re-registration.

use std::ffi::{c_int, c_void};

use crate::call::{Fail, number, set_errno};
use crate::layout::{IbvMr, IbvPd};
use crate::pd;

use super::{access, backing, of};

/// `IBV_REREG_MR_CHANGE_TRANSLATION`, `_PD`, `_ACCESS`.
const TRANSLATION: c_int = 1;
const PD: c_int = 1 << 1;
const ACCESS: c_int = 1 << 2;
/// `IBV_REREG_MR_ERR_INPUT`: the region is as it was. All failures are such, for nothing changes
/// until all is known to be right.
const INPUT: c_int = -1;

/// # Safety
/// As of registered memory: the new memory stays mapped until the region is deregistered or
/// registered anew.
pub(crate) unsafe extern "C" fn rereg_mr(
    mr: *mut IbvMr,
    flags: c_int,
    pd: *mut IbvPd,
    addr: *mut c_void,
    length: usize,
    bits: c_int,
) -> c_int {
    let done = number("ibv_rereg_mr", || {
        let known = TRANSLATION | PD | ACCESS;
        if flags == 0 || flags & !known != 0 {
            return Err(Fail::invalid(format!("flags {flags:#x}; some of 7 are wanted")));
        }
        let object = of(mr)?;
        let mut region = object.own().region.lock();
        let holder = if flags & PD == 0 { None } else { Some(pd::of(pd)?.0) };
        let rights =
            if flags & ACCESS == 0 { region.info().access } else { access(bits.cast_unsigned())? };
        let memory = if flags & TRANSLATION == 0 {
            None
        } else if addr.is_null() || length == 0 {
            return Err(Fail::invalid("a new translation needs an address and a length"));
        } else {
            Some((backing(addr, length, rights)?, addr.addr() as u64))
        };
        let rights = (flags & ACCESS != 0).then_some(rights);
        region.reregister(holder.map(|pd| &pd.own().pd), memory, rights)?;
        let public = object.public();
        // SAFETY: a live object's, which the program leaves alone during the call.
        let shown = unsafe { &mut *public };
        (shown.lkey, shown.rkey) = (region.info().lkey, region.info().rkey);
        if flags & TRANSLATION != 0 {
            (shown.addr, shown.length) = (addr, length);
        }
        if let Some(holder) = holder {
            *object.own().pd.lock() = holder.hold();
            shown.pd = pd;
        }
        Ok(0)
    });
    if done == 0 {
        set_errno(0);
        return 0;
    }
    INPUT
}
