//! Thread domains and parent domains. Neither changes what a software NIC does: its locks are its
//! own, and it takes its memory itself.

use std::ffi::c_int;
use std::sync::Arc;

use crate::call::{Fail, code, input, pointer};
use crate::context::{self, Opening, owned};
use crate::layout::{IbvContext, IbvParentDomainInitAttr, IbvPd, IbvTd, IbvTdInitAttr};
use crate::object::{Kind, get, kind};
use crate::pd;
use crate::pd::Pd;

/// A thread domain.
#[derive(Debug)]
pub(crate) struct Td {
    opening: Arc<Opening>,
}

kind!(Td, "thread domain", IbvTd);

owned!(Td);

/// # Safety
/// `attr` is null or points to the struct.
pub(crate) unsafe extern "C" fn alloc_td(
    context: *mut IbvContext,
    attr: *mut IbvTdInitAttr,
) -> *mut IbvTd {
    pointer("ibv_alloc_td", || {
        let opening = Arc::clone(&context::of(context)?.own().opening);
        // SAFETY: the caller's.
        let mask = unsafe { input(attr, "init_attr") }?.comp_mask;
        no_mask(mask, 0)?;
        let made = Td::pool().make(|_| Ok((IbvTd { context }, Td { opening })))?;
        Ok(made.public())
    })
}

pub(crate) fn no_mask(mask: u32, known: u32) -> Result<(), Fail> {
    let unknown = mask & !known;
    if unknown == 0 {
        return Ok(());
    }
    Err(Fail::unsupported(format!("comp_mask has {unknown:#x}; known is {known:#x}")))
}

pub(crate) extern "C" fn dealloc_td(td: *mut IbvTd) -> c_int {
    code("ibv_dealloc_td", || Td::pool().destroy(get::<Td>(td)?))
}

/// `IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS`, `_PD_CONTEXT`.
const PARENT_MASK: u32 = 3;

/// # Safety
/// `attr` is null or points to the struct.
pub(crate) unsafe extern "C" fn alloc_parent_domain(
    context: *mut IbvContext,
    attr: *mut IbvParentDomainInitAttr,
) -> *mut IbvPd {
    pointer("ibv_alloc_parent_domain", || {
        let opening = Arc::clone(&context::of(context)?.own().opening);
        // SAFETY: the caller's.
        let attr = unsafe { input(attr, "attr") }?;
        if attr.comp_mask & !PARENT_MASK != 0 {
            return Err(Fail::invalid(format!("comp_mask {:#x}; known is 3", attr.comp_mask)));
        }
        let (base, _) = pd::of(attr.pd)?;
        let td = if attr.td.is_null() { None } else { Some(get::<Td>(attr.td)?.hold()) };
        let real = base.own().pd.clone();
        let parent = Some((get::<Pd>(attr.pd)?.hold(), td));
        pd::make(context, opening, real, parent)
    })
}
