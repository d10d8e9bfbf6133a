//! Device memory: memory of the library, since there is no device.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use urxe::{Access, Backing, Buffer};

use crate::call::{Fail, code, input, pointer};
use crate::context::{self, Opening, owned};
use crate::domain::no_mask;
use crate::handle::{by_number, next};
use crate::layout::{IbvAllocDmAttr, IbvContext, IbvDm, IbvMr, IbvPd};
use crate::mr::{self, Shown};
use crate::object::{Held, Kind, Object, get, kind};
use crate::pd;

/// Bytes of one allocation at most, and what the device says that it has.
pub(crate) const MOST: u64 = 1 << 20;
/// log2 of the greatest alignment: a page.
const MOST_ALIGNED: u32 = 12;

/// A piece of device memory.
#[derive(Debug)]
pub(crate) struct Dm {
    buffer: Arc<Buffer>,
    opening: Arc<Opening>,
    handle: u32,
    /// What an import is of.
    _import_of: Option<Held<Self>>,
}

kind!(Dm, "device memory", IbvDm);

owned!(Dm, handle);

/// # Safety
/// `attr` is null or points to the struct.
pub(crate) unsafe extern "C" fn alloc_dm(
    context: *mut IbvContext,
    attr: *mut IbvAllocDmAttr,
) -> *mut IbvDm {
    pointer("ibv_alloc_dm", || {
        let opening = Arc::clone(&context::of(context)?.own().opening);
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
        make(context, Dm { buffer, opening, handle: next(), _import_of: None })
    })
}

fn make(context: *mut IbvContext, own: Dm) -> Result<*mut IbvDm, Fail> {
    let (memcpy_to_dm, memcpy_from_dm) = (Some(copy_in as _), Some(copy_out as _));
    // `IBV_DM_MASK_HANDLE`: `handle` is set.
    let (comp_mask, handle) = (1, own.handle);
    let public = IbvDm { context, memcpy_to_dm, memcpy_from_dm, comp_mask, handle };
    Ok(Dm::pool().make(|_| Ok((public, own)))?.public())
}

/// A second `ibv_dm` of the same memory, for a context that was imported.
pub(crate) extern "C" fn import_dm(context: *mut IbvContext, handle: u32) -> *mut IbvDm {
    pointer("ibv_import_dm", || {
        let opening = Arc::clone(&context::of(context)?.own().opening);
        let found = by_number(&opening, handle, Object::<Dm>::hold)?;
        let (buffer, of) = (Arc::clone(&found.object().own().buffer), Some(found));
        make(context, Dm { buffer, opening, handle, _import_of: of })
    })
}

pub(crate) extern "C" fn unimport_dm(dm: *mut IbvDm) {
    code("ibv_unimport_dm", || Dm::pool().destroy(get::<Dm>(dm)?));
}

pub(crate) extern "C" fn free_dm(dm: *mut IbvDm) -> c_int {
    code("ibv_free_dm", || Dm::pool().destroy(get::<Dm>(dm)?))
}

fn offset(offset: u64) -> usize {
    // Beyond all memory either way.
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// Devices are accessed in words of 4 bytes; programs are to find out here if they do not.
fn check_words(at: u64, length: usize) -> Result<(), Fail> {
    if at.is_multiple_of(4) && length.is_multiple_of(4) {
        return Ok(());
    }
    Err(Fail::invalid(format!("{length} bytes at {at}: both must be multiples of 4")))
}

/// # Safety
/// `from` points to `length` bytes.
unsafe extern "C" fn copy_in(dm: *mut IbvDm, at: u64, from: *const c_void, length: usize) -> c_int {
    code("ibv_memcpy_to_dm", || {
        let buffer = &get::<Dm>(dm)?.own().buffer;
        check_words(at, length)?;
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
        check_words(at, length)?;
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
