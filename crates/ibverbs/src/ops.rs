//! The functions that a context holds for inline calls.

use crate::layout::{IbvContextOps, VerbsContext, Zero};
use crate::{cq, cq_ex, dm, domain, mr, mw, qp, qp_ex, query, srq, xrcd};

/// Those that every program has called since the first version.
pub(crate) fn basic() -> IbvContextOps {
    IbvContextOps {
        _compat_query_device: Some(query::query_device),
        _compat_query_port: Some(query::query_port),
        alloc_mw: Some(mw::alloc_mw),
        bind_mw: Some(mw::bind_mw),
        dealloc_mw: Some(mw::dealloc_mw),
        poll_cq: Some(cq::poll_cq),
        req_notify_cq: Some(cq::req_notify_cq),
        post_srq_recv: Some(srq::post_srq_recv),
        post_send: Some(qp::post_send),
        post_recv: Some(qp::post_recv),
        ..IbvContextOps::zero()
    }
}

/// Those in front of the context. What is null here fails with EOPNOTSUPP in the inline function.
pub(crate) fn extended() -> VerbsContext {
    VerbsContext {
        query_port: Some(query::query_port_sized),
        advise_mr: Some(mr::advise_mr),
        alloc_null_mr: Some(mr::alloc_null_mr),
        reg_dm_mr: Some(dm::reg_dm_mr),
        alloc_dm: Some(dm::alloc_dm),
        free_dm: Some(dm::free_dm),
        modify_qp_rate_limit: Some(qp::modify_rate_limit),
        alloc_parent_domain: Some(domain::alloc_parent_domain),
        dealloc_td: Some(domain::dealloc_td),
        alloc_td: Some(domain::alloc_td),
        modify_cq: Some(cq::modify_cq),
        query_rt_values: Some(query::query_rt_values),
        create_cq_ex: Some(cq_ex::create_cq_ex),
        query_device_ex: Some(query::query_device_ex),
        open_qp: Some(qp::open_qp),
        create_qp_ex: Some(qp_ex::create_qp_ex),
        get_srq_num: Some(srq::get_srq_num),
        create_srq_ex: Some(srq::create_srq_ex),
        open_xrcd: Some(xrcd::open_xrcd),
        close_xrcd: Some(xrcd::close_xrcd),
        ..VerbsContext::zero()
    }
}
