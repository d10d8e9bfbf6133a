//! Shared receive queues.

use std::ffi::c_int;
use std::sync::Arc;

use urxe::SrqAttr;

use crate::acks::Acks;
use crate::call::{Fail, code, input, output, pointer};
use crate::context::{self, Opening, owned};
use crate::cq::{self, Cq};
use crate::handle::{by_handle, for_destroy, next};
use crate::layout::{
    IbvContext, IbvPd, IbvRecvWr, IbvSrq, IbvSrqAttr, IbvSrqInitAttr, IbvSrqInitAttrEx, Zero,
};
use crate::object::{Held, Kind, Object, get, kind, ours};
use crate::pd::{self, Pd};
use crate::recv;
use crate::xrcd::Xrcd;

/// A shared receive queue.
#[derive(Debug)]
pub(crate) struct Srq {
    pub(crate) srq: urxe::Srq,
    opening: Arc<Opening>,
    handle: u32,
    pub(crate) asyncs: Acks,
    is_xrc: bool,
    _pd: Held<Pd>,
    _xrc: Option<(Held<Xrcd>, Held<Cq>)>,
}

kind!(Srq, "SRQ", IbvSrq);

owned!(Srq, handle);

/// The SRQ that C means.
pub(crate) fn of(srq: *mut IbvSrq) -> Result<&'static Object<Srq>, Fail> {
    by_handle(ours::<Srq>(srq)?)
}

type Xrc = (&'static Object<Xrcd>, &'static Object<Cq>);

fn create(
    pd: *mut IbvPd,
    srq_context: *mut std::ffi::c_void,
    attr: &IbvSrqAttr,
    xrc: Option<Xrc>,
) -> Result<*mut IbvSrq, Fail> {
    let (holder, context) = pd::of(pd)?;
    // The limit is armed by `ibv_modify_srq`.
    let wanted = SrqAttr { max_wr: attr.max_wr, max_sge: attr.max_sge.max(1), limit: 0 };
    let srq = match xrc {
        None => holder.own().pd.create_srq(wanted)?,
        Some((xrcd, cq)) => {
            urxe::Srq::xrc(&holder.own().pd, wanted, &xrcd.own().xrcd, &cq.own().cq)?
        }
    };
    let (number, handle) = (srq.number(), next());
    let opening = Arc::clone(&holder.own().opening);
    let own = Srq {
        srq,
        opening: Arc::clone(&opening),
        handle,
        asyncs: Acks::default(),
        is_xrc: xrc.is_some(),
        _pd: holder.hold(),
        _xrc: xrc.map(|(xrcd, cq)| (xrcd.hold(), cq.hold())),
    };
    let public = IbvSrq { context, srq_context, pd, handle, ..IbvSrq::zero() };
    let object = Srq::pool().make(|_| Ok((public, own)))?;
    opening.books.lock().srqs.insert(number, object);
    Ok(object.public())
}

/// # Safety
/// `init` is null or points to the struct.
pub(crate) unsafe extern "C" fn create_srq(
    pd: *mut IbvPd,
    init: *mut IbvSrqInitAttr,
) -> *mut IbvSrq {
    pointer("ibv_create_srq", || {
        // SAFETY: the caller's.
        let init = unsafe { input(init, "srq_init_attr") }?;
        create(pd, init.srq_context, &init.attr, None)
    })
}

/// `enum ibv_srq_init_attr_mask`.
const TYPE: u32 = 1;
const PD: u32 = 1 << 1;
const XRCD: u32 = 1 << 2;
const CQ: u32 = 1 << 3;
/// `IBV_SRQT_BASIC`, `IBV_SRQT_XRC`.
const BASIC: c_int = 0;
const XRC: c_int = 1;

/// # Safety
/// `init` is null or points to the struct.
pub(crate) unsafe extern "C" fn create_srq_ex(
    context: *mut IbvContext,
    init: *mut IbvSrqInitAttrEx,
) -> *mut IbvSrq {
    pointer("ibv_create_srq_ex", || {
        context::of(context)?;
        // SAFETY: the caller's.
        let init = unsafe { input(init, "srq_init_attr_ex") }?;
        let has = |bit| init.comp_mask & bit != 0;
        if !has(PD) {
            return Err(Fail::invalid("comp_mask has no PD"));
        }
        let xrc = match if has(TYPE) { init.srq_type } else { BASIC } {
            BASIC => None,
            XRC if has(XRCD) && has(CQ) => Some((get::<Xrcd>(init.xrcd)?, cq::of(init.cq)?)),
            XRC => return Err(Fail::invalid("an XRC SRQ needs an XRC domain and a CQ")),
            kind => return Err(Fail::unsupported(format!("SRQ type {kind}; 0 and 1 exist"))),
        };
        create(init.pd, init.srq_context, &init.attr, xrc)
    })
}

pub(crate) extern "C" fn destroy_srq(srq: *mut IbvSrq) -> c_int {
    code("ibv_destroy_srq", || {
        let dying = Srq::pool().begin_end(for_destroy(get::<Srq>(srq)?)?)?;
        let own = dying.own();
        own.opening.strike(|books| _ = books.srqs.remove(&own.srq.number()));
        own.asyncs.wait(&own.opening);
        Ok(())
    })
}

/// `IBV_SRQ_MAX_WR`, `IBV_SRQ_LIMIT`.
const MAX_WR: c_int = 1;
const LIMIT: c_int = 1 << 1;

/// # Safety
/// `attr` is null or points to the struct.
pub(crate) unsafe extern "C" fn modify_srq(
    srq: *mut IbvSrq,
    attr: *mut IbvSrqAttr,
    mask: c_int,
) -> c_int {
    code("ibv_modify_srq", || {
        let object = of(srq)?;
        // SAFETY: the caller's.
        let attr = unsafe { input(attr, "srq_attr") }?;
        if mask & !(MAX_WR | LIMIT) != 0 {
            return Err(Fail::invalid(format!("mask {mask:#x}; MAX_WR and LIMIT exist")));
        }
        let limit = (mask & LIMIT != 0).then_some(attr.srq_limit);
        let max_wr = (mask & MAX_WR != 0).then_some(attr.max_wr);
        Ok(object.own().srq.modify(limit, max_wr)?)
    })
}

/// # Safety
/// `attr` is null or has room for the struct.
pub(crate) unsafe extern "C" fn query_srq(srq: *mut IbvSrq, attr: *mut IbvSrqAttr) -> c_int {
    code("ibv_query_srq", || {
        let SrqAttr { max_wr, max_sge, limit } = of(srq)?.own().srq.query()?;
        let found = IbvSrqAttr { max_wr, max_sge, srq_limit: limit };
        // SAFETY: the caller's.
        unsafe { output(attr, found, "srq_attr") }
    })
}

/// # Safety
/// `number` is null or has room for the answer.
pub(crate) unsafe extern "C" fn get_srq_num(srq: *mut IbvSrq, number: *mut u32) -> c_int {
    code("ibv_get_srq_num", || {
        let own = of(srq)?.own();
        if !own.is_xrc {
            return Err(Fail::unsupported("only XRC SRQs have a number that peers know"));
        }
        // SAFETY: the caller's.
        unsafe { output(number, own.srq.number(), "srq_num") }
    })
}

/// # Safety
/// `wr` is null or points to a list of requests, `bad` has room for a pointer.
pub(crate) unsafe extern "C" fn post_srq_recv(
    srq: *mut IbvSrq,
    wr: *mut IbvRecvWr,
    bad: *mut *mut IbvRecvWr,
) -> c_int {
    code("ibv_post_srq_recv", || {
        // SAFETY: the caller's.
        let list = unsafe { recv::List::new(wr, bad) };
        list.post(|| Ok(&get::<Srq>(srq)?.own().srq), |srq, id, sges| Ok(srq.post_recv(id, sges)?))
    })
}
