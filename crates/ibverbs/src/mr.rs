//! Memory regions.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use parking_lot::Mutex;
use urxe::{Access, Backing, Region};

use crate::call::{Fail, code, pointer};
use crate::context::{Opening, owned};
use crate::handle::{by_handle, by_number, for_destroy, next};
use crate::layout::{IbvContext, IbvMr, IbvPd, Zero};
use crate::maps;
use crate::object::{Held, Kind, Object, get, kind, ours};
use crate::pd::{self, Pd};

mod advise;
mod rereg;

pub(crate) use advise::advise_mr;
pub(crate) use rereg::rereg_mr;

/// A memory region.
#[derive(Debug)]
pub(crate) struct Mr {
    pub(crate) region: Mutex<Region>,
    opening: Arc<Opening>,
    handle: u32,
    pd: Mutex<Held<Pd>>,
    /// What else it needs: the device memory it is of.
    _of: Option<Held<crate::dm::Dm>>,
}

kind!(Mr, "MR", IbvMr);

owned!(Mr, handle);

/// The access flags of a call, as far as they mean something here.
pub(crate) fn access(bits: c_uint) -> Result<Access, Fail> {
    Ok(Access::from_verbs(bits)?)
}

/// The program's memory, looked at first: all of it must be there, as when the kernel pins it.
pub(crate) fn backing(addr: *mut c_void, length: usize, access: Access) -> Result<Backing, Fail> {
    let on_demand = access.contains(Access::ON_DEMAND);
    if on_demand && length == usize::MAX {
        if !addr.is_null() {
            return Err(Fail::invalid("a region of all memory starts at 0"));
        }
        // SAFETY: verbs' contract for an implicit on-demand region: whoever holds its key accesses
        // only addresses that the program has mapped.
        return Ok(unsafe { Backing::implicit() });
    }
    if !on_demand {
        maps::check(addr.addr(), length, access.contains(Access::LOCAL_WRITE))?;
    }
    // SAFETY: verbs' contract: the memory stays mapped until the region is deregistered; and it is
    // C's, so that no Rust reference to it exists.
    Ok(unsafe { Backing::raw(addr.cast(), length) }?)
}

/// The program's part of a region.
pub(crate) struct Shown {
    pub(crate) context: *mut IbvContext,
    pub(crate) pd: *mut IbvPd,
    pub(crate) addr: *mut c_void,
    pub(crate) length: usize,
}

/// Registers, and makes the object.
pub(crate) fn register(
    shown: &Shown,
    holder: &'static Object<Pd>,
    backing: Backing,
    iova: u64,
    access: Access,
    of: Option<Held<crate::dm::Dm>>,
) -> Result<*mut IbvMr, Fail> {
    let region = holder.own().pd.register_backing(backing, iova, access)?;
    let (lkey, rkey, handle) = (region.info().lkey, region.info().rkey, next());
    let &Shown { context, pd, addr, length } = shown;
    let public = IbvMr { context, pd, addr, length, handle, lkey, rkey };
    let own = Mr {
        region: Mutex::new(region),
        opening: Arc::clone(&holder.own().opening),
        handle,
        pd: Mutex::new(holder.hold()),
        _of: of,
    };
    Ok(Mr::pool().make(|_| Ok((public, own)))?.public())
}

fn reg(
    pd: *mut IbvPd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    bits: c_uint,
) -> Result<*mut IbvMr, Fail> {
    let (holder, context) = pd::of(pd)?;
    let access = access(bits)?;
    let backing = backing(addr, length, access)?;
    register(&Shown { context, pd, addr, length }, holder, backing, iova, access, None)
}

pub(crate) extern "C" fn reg_mr(
    pd: *mut IbvPd,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> *mut IbvMr {
    let iova = addr.addr() as u64;
    pointer("ibv_reg_mr", || reg(pd, addr, length, iova, access.cast_unsigned()))
}

pub(crate) extern "C" fn reg_mr_iova(
    pd: *mut IbvPd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_int,
) -> *mut IbvMr {
    pointer("ibv_reg_mr_iova", || reg(pd, addr, length, iova, access.cast_unsigned()))
}

pub(crate) extern "C" fn reg_mr_iova2(
    pd: *mut IbvPd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_uint,
) -> *mut IbvMr {
    pointer("ibv_reg_mr_iova2", || reg(pd, addr, length, iova, access))
}

pub(crate) extern "C" fn reg_dmabuf_mr(
    pd: *mut IbvPd,
    _offset: u64,
    _length: usize,
    _iova: u64,
    _fd: c_int,
    _access: c_int,
) -> *mut IbvMr {
    pointer("ibv_reg_dmabuf_mr", || {
        pd::of(pd)?;
        Err(Fail::unsupported("memory of other devices is out of a program's reach"))
    })
}

/// A region that reads as zeros and forgets what is written to it, wherever.
pub(crate) extern "C" fn alloc_null_mr(pd: *mut IbvPd) -> *mut IbvMr {
    pointer("ibv_alloc_null_mr", || {
        let (holder, context) = pd::of(pd)?;
        let shown = Shown { context, pd, addr: std::ptr::null_mut(), length: usize::MAX };
        register(&shown, holder, Backing::null(), 0, Access::LOCAL_WRITE, None)
    })
}

pub(crate) extern "C" fn dereg_mr(mr: *mut IbvMr) -> c_int {
    code("ibv_dereg_mr", || {
        let object = for_destroy(get::<Mr>(mr)?)?;
        if object.own().opening.is_ours() {
            let windows = object.own().region.lock().query()?.windows;
            if windows != 0 {
                let why = format!("{windows} windows are bound to the region; free them first");
                return Err(Fail::new(libc::EBUSY, why));
            }
        }
        Mr::pool().destroy(object)
    })
}

/// A second `ibv_mr` of the same region would have to stay right when the first is destroyed; so
/// each import registers nothing and holds the PD only.
pub(crate) extern "C" fn import_mr(pd: *mut IbvPd, handle: u32) -> *mut IbvMr {
    pointer("ibv_import_mr", || {
        let (holder, context) = pd::of(pd)?;
        let opening = &holder.own().opening;
        // SAFETY: a live object's.
        let keys = |mr: &'static Object<Mr>| unsafe { *mr.public() };
        let IbvMr { lkey, rkey, .. } = by_number(opening, handle, keys)?;
        let import = Import { opening: Arc::clone(opening), _pd: holder.hold() };
        let public = IbvMr { context, pd, handle, lkey, rkey, ..IbvMr::zero() };
        Ok(Import::pool().make(|_| Ok((public, import)))?.public())
    })
}

/// A region by another context.
#[derive(Debug)]
pub(crate) struct Import {
    opening: Arc<Opening>,
    _pd: Held<Pd>,
}

kind!(Import, "imported MR", IbvMr);

owned!(Import);

pub(crate) extern "C" fn unimport_mr(mr: *mut IbvMr) {
    code("ibv_unimport_mr", || Import::pool().destroy(get::<Import>(mr)?));
}

/// The region that C means.
pub(crate) fn of(mr: *const IbvMr) -> Result<&'static Object<Mr>, Fail> {
    by_handle(ours::<Mr>(mr)?)
}
