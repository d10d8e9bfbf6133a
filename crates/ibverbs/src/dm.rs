//! Device memory: memory of the library, since there is no device.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use urxe::{Access, Backing, Buffer};

use crate::call::{Fail, code, input, pointer};
use crate::context;
use crate::domain::no_mask;
use crate::handle::next;
use crate::layout::{IbvAllocDmAttr, IbvContext, IbvDm, IbvMr, IbvPd};
use crate::mr::{self, Shown};
use crate::object::{Kind, get, kind};
use crate::pd;

/// Bytes of one allocation at most, and what the device says that it has.
pub(crate) const MOST: u64 = 1 << 20;
/// log2 of the greatest alignment: a page.
const MOST_ALIGNED: u32 = 12;

/// A piece of device memory.
#[derive(Debug)]
pub(crate) struct Dm {
    buffer: Arc<Buffer>,
}

kind!(Dm, "device memory", IbvDm);

/// # Safety
/// `attr` is null or points to the struct.
pub(crate) unsafe extern "C" fn alloc_dm(
    context: *mut IbvContext,
    attr: *mut IbvAllocDmAttr,
) -> *mut IbvDm {
    pointer("ibv_alloc_dm", || {
        context::of(context)?;
        // SAFETY: the caller's.
        let attr = unsafe { input(attr, "attr") }?;
        no_mask(attr.comp_mask, 0)?;
        if attr.length == 0 || attr.log_align_req > MOST_ALIGNED {
            return Err(Fail::invalid("wanted at least a byte, aligned to a page at most"));
        }
        if attr.length as u64 > MOST {
            let why = format!("{} bytes; the device has {MOST}", attr.length);
            return Err(Fail::new(libc::ENOMEM, why));
        }
        let buffer = Buffer::zeroed(attr.length).map_err(urxe::Error::from)?;
        let (memcpy_to_dm, memcpy_from_dm) = (Some(copy_in as _), Some(copy_out as _));
        let (comp_mask, handle) = (0, next());
        let public = IbvDm { context, memcpy_to_dm, memcpy_from_dm, comp_mask, handle };
        Ok(Dm::pool().make(|_| Ok((public, Dm { buffer })))?.public())
    })
}

pub(crate) extern "C" fn free_dm(dm: *mut IbvDm) -> c_int {
    code("ibv_free_dm", || Dm::pool().destroy(get::<Dm>(dm)?))
}

fn offset(offset: u64) -> usize {
    // Beyond all memory either way.
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// # Safety
/// `from` points to `length` bytes.
unsafe extern "C" fn copy_in(dm: *mut IbvDm, at: u64, from: *const c_void, length: usize) -> c_int {
    code("ibv_memcpy_to_dm", || {
        let buffer = &get::<Dm>(dm)?.own().buffer;
        if length == 0 {
            return Ok(());
        }
        // SAFETY: the caller's bytes.
        let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length) };
        Ok(buffer.write(offset(at), bytes).map_err(urxe::Error::from)?)
    })
}

/// # Safety
/// `to` has room for `length` bytes.
unsafe extern "C" fn copy_out(to: *mut c_void, dm: *mut IbvDm, at: u64, length: usize) -> c_int {
    code("ibv_memcpy_from_dm", || {
        let buffer = &get::<Dm>(dm)?.own().buffer;
        if length == 0 {
            return Ok(());
        }
        // SAFETY: the caller's room.
        let bytes = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), length) };
        Ok(buffer.read(offset(at), bytes).map_err(urxe::Error::from)?)
    })
}

pub(crate) extern "C" fn reg_dm_mr(
    pd: *mut IbvPd,
    dm: *mut IbvDm,
    at: u64,
    length: usize,
    access: c_uint,
) -> *mut IbvMr {
    pointer("ibv_reg_dm_mr", || {
        let (holder, context) = pd::of(pd)?;
        let memory = get::<Dm>(dm)?;
        let access = mr::access(access)?;
        if !access.contains(Access::ZERO_BASED) {
            return Err(Fail::invalid("device memory has no addresses: ZERO_BASED is wanted"));
        }
        let buffer = Arc::clone(&memory.own().buffer);
        let backing = Backing::part(buffer, offset(at), length).map_err(urxe::Error::from)?;
        let shown = Shown { context, pd, addr: std::ptr::null_mut(), length };
        mr::register(&shown, holder, backing, 0, access, Some(memory.hold()))
    })
}
