//! Advice on on-demand regions: to fetch what will be accessed soon.

use std::ffi::c_int;

use urxe::{Access, MemoryError};

use crate::call::{Fail, code, input};
use crate::layout::{IbvPd, IbvSge};
use crate::object::Kind;
use crate::{maps, pd};

use super::Mr;

/// `IBV_ADVISE_MR_ADVICE_PREFETCH`, `_PREFETCH_WRITE`, `_PREFETCH_NO_FAULT`.
const PREFETCH_WRITE: c_int = 1;
const NO_FAULT: c_int = 2;

/// # Safety
/// `sges` is null or points to `count` elements.
pub(crate) unsafe extern "C" fn advise_mr(
    pd: *mut IbvPd,
    advice: c_int,
    flags: u32,
    sges: *mut IbvSge,
    count: u32,
) -> c_int {
    code("ibv_advise_mr", || {
        let (holder, _) = pd::of(pd)?;
        if !(0..=NO_FAULT).contains(&advice) {
            return Err(Fail::unsupported(format!("advice {advice}; there are 0 to 2")));
        }
        // `IBV_ADVISE_MR_FLAG_FLUSH`: to be done when the call returns, which it always is.
        if flags & !1 != 0 || count == 0 {
            return Err(Fail::invalid(format!("flags {flags:#x}, {count} elements")));
        }
        for at in 0..count as usize {
            // SAFETY: the caller's, `at` is within it.
            let sge = unsafe { input(sges.wrapping_add(at), "sg_list") }?;
            fetch(holder.own(), advice, sge)?;
        }
        Ok(())
    })
}

fn fetch(pd: &pd::Pd, advice: c_int, sge: &IbvSge) -> Result<(), Fail> {
    let found = Mr::pool().first(|object| {
        let own = object.own();
        // Locks of a parent's, before a fork, are not to be touched.
        let region = own.opening.is_ours().then(|| own.region.lock())?;
        (region.info().lkey == sge.lkey && region.is_of(&pd.pd)).then(|| object.hold())
    });
    let none = || Fail::new(libc::ENOENT, format!("no MR of the PD has lkey {:#x}", sge.lkey));
    let held = found.ok_or_else(none)?;
    let region = held.object().own().region.lock();
    let info = region.info();
    if !info.access.contains(Access::ON_DEMAND) {
        return Err(Fail::invalid("the region is not on demand: there is nothing to fetch"));
    }
    let write = advice == PREFETCH_WRITE;
    if write && !info.access.contains(Access::LOCAL_WRITE) {
        return Err(Fail::new(libc::EPERM, "the region may not be written to"));
    }
    let offset = sge.addr.wrapping_sub(info.iova);
    let length = u64::from(sge.length);
    if offset.checked_add(length).is_none_or(|end| end > info.length) {
        let (len, have) = (length, info.length);
        return Err(MemoryError::BufferRange { offset, len, have }.into());
    }
    // SAFETY: a live object's.
    let base = unsafe { (*held.object().public()).addr };
    let start = base.addr().wrapping_add(usize::try_from(offset).unwrap_or(usize::MAX));
    if advice != NO_FAULT {
        maps::check(start, sge.length as usize, write)?;
    }
    // Pages that are there are what is wanted; the host brings others in as they are touched.
    Ok(())
}
