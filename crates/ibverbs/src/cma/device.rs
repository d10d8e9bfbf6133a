//! The device as identifiers have it: one context for all of them, with a PD and an XRC domain for
//! those that bring none. It stays open, as the manual page of `rdma_get_devices` says.

use std::ffi::c_int;
use std::net::IpAddr;
use std::ptr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::call::{Fail, or, pointer};
use crate::context::{self, Opening};
use crate::layout::{IbvContext, IbvPd, IbvXrcd, IbvXrcdInitAttr};
use crate::object::get;
use crate::pd::Pd;
use crate::xrcd::Xrcd;
use crate::{device, fork, pd, xrcd as xrcds};

/// What identifiers share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    context: usize,
    pd: usize,
    pub(super) opening: Arc<Opening>,
}

impl Shared {
    pub(super) fn context(&self) -> *mut IbvContext {
        ptr::with_exposed_provenance_mut(self.context)
    }

    pub(super) fn pd(&self) -> *mut IbvPd {
        ptr::with_exposed_provenance_mut(self.pd)
    }

    /// Whether it is of this process still, and the program has destroyed nothing of it.
    fn lives(&self) -> bool {
        self.opening.nic.is_ours()
            && context::of(self.context()).is_ok()
            && get::<Pd>(self.pd()).is_ok()
    }
}

static SHARED: Mutex<Option<Shared>> = Mutex::new(None);

/// The device, opened if need be: at `wanted`, if its address is free to choose.
pub(super) fn shared(wanted: Option<IpAddr>) -> Result<Shared, Fail> {
    let shared = &mut *SHARED.lock();
    if let Some(open) = shared.as_ref().filter(|open| open.lives()) {
        return Ok(open.clone());
    }
    let context = context::open(device::the_device()?, wanted)?;
    let opening = Arc::clone(&context::of(context)?.own().opening);
    let pd = pd::alloc(context)?;
    let open = Shared { context: context.expose_provenance(), pd: pd.expose_provenance(), opening };
    *shared = Some(open.clone());
    Ok(open)
}

/// The address of the XRC domain of identifiers.
static DOMAIN: Mutex<usize> = Mutex::new(0);

/// # Safety
/// The process is a child of a fork, and no other thread is there.
pub(super) unsafe fn in_child() {
    // SAFETY: the caller's.
    unsafe { fork::renew(&SHARED, None) };
    // SAFETY: the caller's.
    unsafe { fork::renew(&DOMAIN, 0) };
}

/// The XRC domain of identifiers.
pub(super) fn xrcd() -> Result<*mut IbvXrcd, Fail> {
    /// FD and OFLAGS are given: no file, and a new domain.
    const WANTED: IbvXrcdInitAttr = IbvXrcdInitAttr { comp_mask: 3, fd: -1, oflags: libc::O_CREAT };
    let shared = shared(None)?;
    let domain = &mut *DOMAIN.lock();
    let there = ptr::with_exposed_provenance_mut(*domain);
    let of_it = get::<Xrcd>(there).is_ok_and(|xrcd| {
        use crate::context::Owned as _;
        Arc::ptr_eq(xrcd.own().opening(), &shared.opening)
    });
    if of_it {
        return Ok(there);
    }
    let mut wanted = WANTED;
    // SAFETY: a struct of ours.
    let made = unsafe { xrcds::open_xrcd(shared.context(), &raw mut wanted) };
    if made.is_null() {
        return Err(Fail::host("ibv_open_xrcd"));
    }
    *domain = made.expose_provenance();
    Ok(made)
}

/// # Safety
/// `count` is null or points to an int.
pub(super) unsafe extern "C" fn get_devices(count: *mut c_int) -> *mut *mut IbvContext {
    pointer("rdma_get_devices", || {
        let context = shared(None)?.context();
        // SAFETY: plain allocation of two pointers, zeroed.
        let list = unsafe { libc::calloc(2, size_of::<*mut IbvContext>()) };
        let list = list.cast::<*mut IbvContext>();
        if list.is_null() {
            return Err(Fail::host("calloc"));
        }
        // SAFETY: it has room for two.
        unsafe { list.write(context) };
        if !count.is_null() {
            // SAFETY: the caller's int.
            unsafe { count.write(1) };
        }
        Ok(list)
    })
}

/// # Safety
/// `list` is null or was given by [`get_devices`] and not freed.
pub(super) unsafe extern "C" fn free_devices(list: *mut *mut IbvContext) {
    or("rdma_free_devices", (), || {
        // SAFETY: it was allocated with calloc; null is nothing to free.
        unsafe { libc::free(list.cast()) };
        Ok(())
    });
}
