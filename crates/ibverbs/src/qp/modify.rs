//! Changing and querying QPs, and their multicast groups.

use std::ffi::c_int;

use urxe::{AttrMask, QpAttr, QpKind};

use crate::call::{Fail, code, input, output};
use crate::layout::{IbvQp, IbvQpAttr, IbvQpInitAttr, IbvQpRateLimitAttr};

use super::{attr, of};

/// `IBV_QPS_RESET`.
const RESET: c_int = 0;

/// What only the other half of an XRC connection has. perftest sets the same for both halves, as
/// for RC; it means nothing there, and is let by.
fn of_the_other(kind: QpKind) -> AttrMask {
    match kind {
        QpKind::XrcInit => AttrMask::MIN_RNR_TIMER | AttrMask::MAX_DEST_RD_ATOMIC,
        QpKind::XrcTarget => AttrMask::RETRY_CNT | AttrMask::RNR_RETRY | AttrMask::MAX_QP_RD_ATOMIC,
        _ => AttrMask::empty(),
    }
}

/// # Safety
/// `attr` is null or points to the struct.
pub(crate) unsafe extern "C" fn modify_qp(
    qp: *mut IbvQp,
    attr: *mut IbvQpAttr,
    mask: c_int,
) -> c_int {
    code("ibv_modify_qp", || {
        let object = of(qp)?;
        let own = object.own();
        let bits = mask.cast_unsigned();
        let unknown = || Fail::invalid(format!("attr_mask {bits:#x} has bits that mean nothing"));
        let mask =
            AttrMask::from_bits(bits).ok_or_else(unknown)?.difference(of_the_other(own.kind));
        // SAFETY: the caller's.
        let attr = unsafe { input(attr, "attr") }?;
        own.qp.modify(&attr::of(attr, mask, own.opening.nic.address())?, mask)?;
        if mask.contains(AttrMask::STATE) && attr.qp_state == RESET {
            // What a program polls afterwards shall be of what it posts afterwards, as with the
            // providers of real NICs (rdma-core providers/mlx5/verbs.c, mlx5_modify_qp).
            own.qp.forget_completions()?;
        }
        if mask.contains(AttrMask::STATE) {
            // SAFETY: a live object's; this field is the library's.
            unsafe { (*object.public()).qp_base.state = attr.qp_state };
        }
        Ok(())
    })
}

/// # Safety
/// `attr` and `init` are null or have room for their structs.
pub(crate) unsafe extern "C" fn query_qp(
    qp: *mut IbvQp,
    attr: *mut IbvQpAttr,
    _mask: c_int,
    init: *mut IbvQpInitAttr,
) -> c_int {
    code("ibv_query_qp", || {
        let object = of(qp)?;
        let own = object.own();
        let now = own.qp.query()?.attr;
        let made = IbvQpInitAttr { cap: attr::cap(&now.caps), ..own.init.0 };
        // SAFETY: the caller's.
        unsafe { output(init, made, "init_attr") }?;
        // SAFETY: the caller's.
        unsafe { output(attr, attr::shown(&now), "attr") }?;
        // SAFETY: a live object's; this field is the library's.
        unsafe { (*object.public()).qp_base.state = now.qp_state as c_int };
        Ok(())
    })
}

/// # Safety
/// `attr` is null or points to the struct.
pub(crate) unsafe extern "C" fn modify_rate_limit(
    qp: *mut IbvQp,
    attr: *mut IbvQpRateLimitAttr,
) -> c_int {
    code("ibv_modify_qp_rate_limit", || {
        let own = of(qp)?.own();
        // SAFETY: the caller's.
        let limit = unsafe { input(attr, "attr") }?;
        if limit.comp_mask != 0 || limit.max_burst_sz != 0 || limit.typical_pkt_sz != 0 {
            return Err(Fail::unsupported("a rate can be limited, bursts cannot"));
        }
        let rate_limit = limit.rate_limit;
        let attr = QpAttr { rate_limit, ..own.qp.query()?.attr };
        Ok(own.qp.modify(&attr, AttrMask::RATE_LIMIT)?)
    })
}
