//! SRQs of identifiers.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::call::{Fail, input, number, or};
use crate::layout::{IbvPd, IbvSrqInitAttr, IbvSrqInitAttrEx, RdmaCmId, Zero};
use crate::object::Object;
use crate::srq;

use super::device;
use super::id::{self, Id, QPT_XRC_RECV};
use super::qp::{self, Queues, verbs_failed};

/// `enum ibv_srq_init_attr_mask`: TYPE, PD, XRCD, CQ.
const TYPE: u32 = 1;
const PD: u32 = 1 << 1;
const XRCD: u32 = 1 << 2;
const CQ: u32 = 1 << 3;
/// `IBV_SRQT_XRC`.
const XRC: c_int = 1;

fn create(object: &'static Object<Id>, init: &mut IbvSrqInitAttrEx) -> Result<(), Fail> {
    let id = object.read();
    if !id.srq.is_null() {
        return Err(Fail::invalid("the identifier has an SRQ already"));
    }
    if id.verbs.is_null() {
        return Err(Fail::invalid(
            "the identifier is bound to no device; resolve an address first",
        ));
    }
    if init.comp_mask & PD == 0 || init.pd.is_null() {
        init.comp_mask |= PD;
        init.pd = id.pd;
    }
    if init.comp_mask & TYPE != 0 && init.srq_type == XRC {
        if init.comp_mask & XRCD == 0 || init.xrcd.is_null() {
            init.comp_mask |= XRCD;
            init.xrcd = device::xrcd()?;
        }
        if init.comp_mask & CQ == 0 || init.cq.is_null() {
            qp::make_cqs(object, &Queues { send: 0, recv: init.attr.max_wr })?;
            init.comp_mask |= CQ;
            init.cq = object.read().recv_cq;
        }
    }
    let basic = init.comp_mask & TYPE == 0 || init.srq_type != XRC;
    let made = if basic {
        let mut plain = IbvSrqInitAttr { srq_context: init.srq_context, attr: init.attr };
        // SAFETY: a struct of ours.
        unsafe { srq::create_srq(init.pd, &raw mut plain) }
    } else {
        // SAFETY: a struct of ours.
        unsafe { srq::create_srq_ex(id.verbs, init) }
    };
    if made.is_null() {
        return Err(verbs_failed("ibv_create_srq"));
    }
    let pd = init.pd;
    object.show(|id| (id.srq, id.pd) = (made, pd));
    Ok(())
}

/// # Safety
/// `init` is null or points to the struct.
pub(super) unsafe extern "C" fn create_srq(
    id: *mut RdmaCmId,
    pd: *mut IbvPd,
    init: *mut IbvSrqInitAttr,
) -> c_int {
    number("rdma_create_srq", || {
        let object = id::of(id)?;
        // SAFETY: the caller's.
        let given = unsafe { input(init, "srq_init_attr") }?;
        let context: *mut c_void = given.srq_context;
        let mut all = IbvSrqInitAttrEx {
            srq_context: context,
            attr: given.attr,
            comp_mask: PD,
            pd,
            ..IbvSrqInitAttrEx::zero()
        };
        if object.read().qp_type == QPT_XRC_RECV {
            all.comp_mask |= TYPE;
            all.srq_type = XRC;
        }
        create(object, &mut all).map(|()| 0)
    })
}

/// # Safety
/// `init` is null or points to the struct.
pub(super) unsafe extern "C" fn create_srq_ex(
    id: *mut RdmaCmId,
    init: *mut IbvSrqInitAttrEx,
) -> c_int {
    number("rdma_create_srq_ex", || {
        let object = id::of(id)?;
        // SAFETY: the caller's.
        let mut all = *unsafe { input(init, "srq_init_attr_ex") }?;
        create(object, &mut all)?;
        // SAFETY: the caller's, as above.
        unsafe { *init = all };
        Ok(0)
    })
}

pub(super) fn destroy(object: &Object<Id>) {
    srq::destroy_srq(object.read().srq);
    object.show(|id| id.srq = ptr::null_mut());
    if object.read().qp.is_null() {
        qp::destroy_cqs(object);
    }
}

pub(super) extern "C" fn destroy_srq(id: *mut RdmaCmId) {
    or("rdma_destroy_srq", (), || {
        let object = id::of(id)?;
        if object.read().srq.is_null() {
            return Err(Fail::invalid("the identifier has no SRQ"));
        }
        destroy(object);
        Ok(())
    });
}
