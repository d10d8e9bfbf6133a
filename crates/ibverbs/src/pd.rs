//! Protection domains.

use std::ffi::c_int;
use std::sync::Arc;

use crate::call::{Fail, code, pointer};
use crate::context::{self, Opening, owned};
use crate::domain::Td;
use crate::handle::{by_handle, by_number, for_destroy, next};
use crate::layout::{IbvContext, IbvPd};
use crate::object::{Held, Kind, Object, get, kind, ours};

/// A protection domain: one of its own, or a parent domain that stands for another.
#[derive(Debug)]
pub(crate) struct Pd {
    pub(crate) pd: urxe::Pd,
    pub(crate) opening: Arc<Opening>,
    pub(crate) handle: u32,
    /// What a parent domain is made of.
    _parent: Option<Parent>,
}

/// The PD that another stands for, and the thread domain it is of.
type Parent = (Held<Pd>, Option<Held<Td>>);

kind!(Pd, "PD", IbvPd);

owned!(Pd, handle);

/// The PD that C means, and the context it is used through.
pub(crate) fn of(pd: *mut IbvPd) -> Result<(&'static Object<Pd>, *mut IbvContext), Fail> {
    let object = by_handle(ours::<Pd>(pd)?)?;
    // SAFETY: a live object's.
    let context = unsafe { (*object.public()).context };
    Ok((object, context))
}

pub(crate) fn make(
    context: *mut IbvContext,
    opening: Arc<Opening>,
    pd: urxe::Pd,
    parent: Option<Parent>,
) -> Result<*mut IbvPd, Fail> {
    let handle = next();
    let public = IbvPd { context, handle };
    let made = Pd::pool().make(|_| Ok((public, Pd { pd, opening, handle, _parent: parent })))?;
    Ok(made.public())
}

pub(crate) fn alloc(context: *mut IbvContext) -> Result<*mut IbvPd, Fail> {
    let opening = Arc::clone(&context::of(context)?.own().opening);
    let pd = opening.nic.alloc_pd()?;
    make(context, opening, pd, None)
}

pub(crate) extern "C" fn alloc_pd(context: *mut IbvContext) -> *mut IbvPd {
    pointer("ibv_alloc_pd", || alloc(context))
}

pub(crate) extern "C" fn dealloc_pd(pd: *mut IbvPd) -> c_int {
    code("ibv_dealloc_pd", || Pd::pool().destroy(for_destroy(get::<Pd>(pd)?)?))
}

/// A second `ibv_pd` of the same PD, for a context that was imported.
pub(crate) extern "C" fn import_pd(context: *mut IbvContext, handle: u32) -> *mut IbvPd {
    pointer("ibv_import_pd", || {
        let opening = Arc::clone(&context::of(context)?.own().opening);
        let found = by_number(&opening, handle, Object::<Pd>::hold)?;
        let (pd, parent) = (found.object().own().pd.clone(), Some((found, None)));
        let public = IbvPd { context, handle };
        let made =
            Pd::pool().make(|_| Ok((public, Pd { pd, opening, handle, _parent: parent })))?;
        Ok(made.public())
    })
}

pub(crate) extern "C" fn unimport_pd(pd: *mut IbvPd) {
    code("ibv_unimport_pd", || Pd::pool().destroy(get::<Pd>(pd)?));
}
