//! What a QP is brought to RTS with, and to the error state.

use std::ffi::c_int;

use urxe::{AttrMask, QpState};

use crate::call::{Fail, input, number, output};
use crate::layout::{IbvQp, IbvQpAttr, RdmaCmId, Zero};
use crate::object::Object;
use crate::qp;

use super::connect;
use super::id::{self, Id};
use super::qp::done;

/// `enum ibv_qp_state`.
pub(super) const INIT: c_int = 1;
pub(super) const RTR: c_int = 2;
pub(super) const RTS: c_int = 3;
const ERR: c_int = 6;

/// `IBV_QP_STATE`.
pub(super) const STATE: c_int = 1;

pub(super) fn modify(qp: *mut IbvQp, attr: &mut IbvQpAttr, mask: c_int) -> Result<(), Fail> {
    // SAFETY: a struct of ours.
    done("ibv_modify_qp", unsafe { qp::modify_qp(qp, attr, mask) })
}

/// Fills in what the step to `attr.qp_state` takes; gives the mask.
pub(super) fn fill(object: &Object<Id>, attr: &mut IbvQpAttr) -> Result<c_int, Fail> {
    let to = match attr.qp_state {
        INIT => QpState::Init,
        RTR => QpState::Rtr,
        RTS => QpState::Rts,
        other => {
            return Err(Fail::invalid(format!("qp_state {other}; wanted INIT, RTR or RTS")));
        }
    };
    let state = object.own().state.lock();
    let (filled, mask) = connect::link(&state)?.qp_attr(to)?;
    let shown = qp::shown(&filled);
    *attr = IbvQpAttr { cap: attr.cap, ..shown };
    if mask.contains(AttrMask::TIMEOUT)
        && let Some(timeout) = state.options.ack_timeout
    {
        attr.timeout = timeout;
    }
    Ok(mask.bits().cast_signed())
}

/// Brings the identifier's QP to RTS. 255 READs and atomics are as many as were agreed on.
pub(super) fn ready(
    object: &Object<Id>,
    responder_resources: u8,
    initiator_depth: u8,
) -> Result<(), Fail> {
    let qp = object.read().qp;
    let mut attr = IbvQpAttr { qp_state: INIT, ..IbvQpAttr::zero() };
    let mask = fill(object, &mut attr)?;
    modify(qp, &mut attr, mask)?;
    attr.qp_state = RTR;
    let mask = fill(object, &mut attr)?;
    if responder_resources != u8::MAX {
        attr.max_dest_rd_atomic = responder_resources.min(attr.max_dest_rd_atomic);
    }
    modify(qp, &mut attr, mask)?;
    attr.qp_state = RTS;
    let mask = fill(object, &mut attr)?;
    if initiator_depth != u8::MAX {
        attr.max_rd_atomic = initiator_depth.min(attr.max_rd_atomic);
    }
    modify(qp, &mut attr, mask)
}

/// Ends what the identifier's QP does, if it has one.
pub(super) fn stop(object: &Object<Id>) {
    let qp = object.read().qp;
    if !qp.is_null() {
        let mut attr = IbvQpAttr { qp_state: ERR, ..IbvQpAttr::zero() };
        let _ = modify(qp, &mut attr, STATE);
    }
}

/// # Safety
/// `attr` and `mask` are null or point to their types.
pub(super) unsafe extern "C" fn init_qp_attr(
    id: *mut RdmaCmId,
    attr: *mut IbvQpAttr,
    mask: *mut c_int,
) -> c_int {
    number("rdma_init_qp_attr", || {
        let object = id::of(id)?;
        // SAFETY: the caller's.
        let mut filled = *unsafe { input(attr, "qp_attr") }?;
        let bits = fill(object, &mut filled)?;
        // SAFETY: the caller's.
        unsafe { output(mask, bits, "qp_attr_mask") }?;
        // SAFETY: the caller's, as above.
        unsafe { *attr = filled };
        Ok(0)
    })
}
