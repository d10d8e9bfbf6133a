//! Making and destroying QPs.

use std::ffi::c_int;
use std::sync::Arc;

use urxe::{QpCaps, QpKind, QpShare};

use crate::acks::Acks;
use crate::call::{Fail, code, input, pointer};
use crate::context;
use crate::cq;
use crate::domain::no_mask;
use crate::handle::{for_destroy, next};
use crate::layout::{
    IbvContext, IbvPd, IbvQp, IbvQpEx, IbvQpInitAttr, IbvQpOpenAttr, IbvXrcd, Zero,
};
use crate::object::{Kind, Object, get};
use crate::pd;
use crate::qp_ex::{self, Builder};
use crate::srq;
use crate::xrcd::Xrcd;

use super::{Init, Needs, Qp, kind_of};

/// What `ibv_create_qp_ex` adds.
pub(crate) struct Extras {
    /// Null where the kind takes none.
    pub(crate) xrcd: *mut IbvXrcd,
    /// Which requests will be built by `ibv_wr_*`.
    pub(crate) operations: u64,
    /// The function table, or zeros.
    pub(crate) table: IbvQpEx,
}

impl Default for Extras {
    fn default() -> Self {
        let xrcd = std::ptr::null_mut();
        Self { xrcd, operations: 0, table: IbvQpEx::zero() }
    }
}

/// Makes a QP in a PD; an XRC target is in that of its domain, and `pd` may be null.
pub(crate) fn create(
    context: *mut IbvContext,
    pd: *mut IbvPd,
    init: &IbvQpInitAttr,
    extras: &Extras,
) -> Result<*mut IbvQp, Fail> {
    let kind = kind_of(init.qp_type)?;
    let opening = Arc::clone(&context::of(context)?.own().opening);
    let target = kind == QpKind::XrcTarget;
    let holder = if target && pd.is_null() { None } else { Some(pd::of(pd)?.0) };
    // The kernel has none for these; each of our QPs is in one, and this one in one of its own.
    let alone = if holder.is_none() { Some(opening.nic.alloc_pd()?) } else { None };
    let Some(protection) = holder.map(|pd| &pd.own().pd).or(alone.as_ref()) else {
        return Err(Fail::invalid("no PD"));
    };
    let send_cq = if target { None } else { Some(cq::of(init.send_cq)?) };
    let receives = !matches!(kind, QpKind::XrcInit | QpKind::XrcTarget);
    let recv_cq = if receives { Some(cq::of(init.recv_cq)?) } else { None };
    let has_srq = receives && !init.srq.is_null();
    let srq = if has_srq { Some(srq::of(init.srq)?) } else { None };
    let xrcd = if target { Some(get::<Xrcd>(extras.xrcd)?) } else { None };
    let caps = caps(init, receives && !has_srq, extras.operations);
    let mut builder = protection.qp(kind).caps(caps);
    builder = builder.signal_all(init.sq_sig_all != 0);
    if let Some(cq) = send_cq {
        builder = builder.cq(&cq.own().cq);
    }
    if let Some(cq) = recv_cq {
        builder = builder.recv_cq(&cq.own().cq);
    }
    if let Some(srq) = srq {
        builder = builder.srq(&srq.own().srq);
    }
    if let Some(xrcd) = xrcd {
        builder = builder.xrcd(&xrcd.own().xrcd);
    }
    let qp = Arc::new(builder.build()?);
    let needs = Needs {
        _pd: holder.map(Object::hold),
        _cqs: [send_cq.map(Object::hold), recv_cq.map(Object::hold)],
        _srq: srq.map(Object::hold),
        xrcd: xrcd.map(Object::hold),
    };
    make((context, pd), (qp, None), (kind, needs), init, extras)
}

/// Bytes of an `ibv_sge`.
const SGE: u32 = 16;
/// What a QP has of inline data without being asked, at most.
const INLINE: u32 = 64;

fn caps(init: &IbvQpInitAttr, receives: bool, operations: u64) -> QpCaps {
    let cap = init.cap;
    // The word of an ATOMIC WRITE that `ibv_wr_*` builds is copied into the request.
    let word = if operations & qp_ex::ATOMIC_WRITE == 0 { 0 } else { 8 };
    // Where a request has room for SGEs it has as much for data, as with rxe, and programs that
    // asked for none rely on it (rdma_xclient; Linux drivers/infiniband/sw/rxe/rxe_qp.c).
    let sges = cap.max_send_sge.saturating_mul(SGE).min(INLINE);
    let recv = |n| if receives { n } else { 0 };
    QpCaps {
        max_send_wr: cap.max_send_wr,
        max_recv_wr: recv(cap.max_recv_wr),
        max_send_sge: cap.max_send_sge,
        max_recv_sge: recv(cap.max_recv_sge),
        max_inline_data: cap.max_inline_data.max(word).max(sges),
    }
}

fn make(
    (context, pd): (*mut IbvContext, *mut IbvPd),
    (qp, share): (Arc<urxe::Qp>, Option<QpShare>),
    (kind, needs): (QpKind, Needs),
    init: &IbvQpInitAttr,
    extras: &Extras,
) -> Result<*mut IbvQp, Fail> {
    let opening = Arc::clone(&context::of(context)?.own().opening);
    let (qpn, handle) = (qp.qpn(), next());
    let qp_base = IbvQp {
        context,
        qp_context: init.qp_context,
        pd,
        send_cq: init.send_cq,
        recv_cq: init.recv_cq,
        srq: init.srq,
        handle,
        qp_num: qpn.value(),
        qp_type: init.qp_type,
        ..IbvQp::zero()
    };
    let own = Qp {
        qp,
        share,
        kind,
        opening: Arc::clone(&opening),
        handle,
        asyncs: Acks::default(),
        init: Init(*init),
        builder: Builder::new(extras.operations),
        needs,
    };
    let object = Qp::pool().make(|_| Ok((IbvQpEx { qp_base, ..extras.table }, own)))?;
    opening.books.lock().qps.insert(object.own().entry(), object);
    Ok(object.public().cast())
}

/// # Safety
/// `init` is null or points to the struct.
pub(crate) unsafe extern "C" fn create_qp(pd: *mut IbvPd, init: *mut IbvQpInitAttr) -> *mut IbvQp {
    pointer("ibv_create_qp", || {
        let (_, context) = pd::of(pd)?;
        // SAFETY: the caller's.
        create(context, pd, unsafe { input(init, "qp_init_attr") }?, &Extras::default())
    })
}

pub(crate) extern "C" fn destroy_qp(qp: *mut IbvQp) -> c_int {
    code("ibv_destroy_qp", || {
        let object = for_destroy(get::<Qp>(qp.cast())?)?;
        let dying = Qp::pool().begin_end(object)?;
        let own = dying.own();
        own.opening.strike(|books| {
            books.qps.remove(&own.entry());
        });
        own.asyncs.wait(&own.opening);
        Ok(())
    })
}

/// `enum ibv_qp_open_attr_mask`: NUM, XRCD, CONTEXT, TYPE.
const OPEN_MASK: u32 = 0xf;
const OPEN_NEEDS: u32 = 0xb;

/// # Safety
/// `attr` is null or points to the struct.
pub(crate) unsafe extern "C" fn open_qp(
    context: *mut IbvContext,
    attr: *mut IbvQpOpenAttr,
) -> *mut IbvQp {
    pointer("ibv_open_qp", || {
        let opener = context::of(context)?;
        // SAFETY: the caller's.
        let attr = unsafe { input(attr, "qp_open_attr") }?;
        no_mask(attr.comp_mask, OPEN_MASK)?;
        if attr.comp_mask & OPEN_NEEDS != OPEN_NEEDS {
            return Err(Fail::invalid("comp_mask lacks NUM, XRCD or TYPE"));
        }
        let xrcd = get::<Xrcd>(attr.xrcd)?;
        if kind_of(attr.qp_type)? != QpKind::XrcTarget {
            return Err(Fail::invalid("only XRC_RECV QPs are shared"));
        }
        let domain = xrcd.own().xrcd.number();
        let found = Qp::pool().first(|object| {
            let own = object.own();
            let of = own.needs.xrcd.as_ref().map(|held| held.object().own().xrcd.number());
            let is = own.qp.qpn().value() == attr.qp_num && of == Some(domain);
            (is && own.opening.is_ours()).then(|| Arc::clone(&own.qp))
        });
        let why = || Fail::invalid(format!("the domain has no QP {:#x}", attr.qp_num));
        let qp = found.ok_or_else(why)?;
        let share = QpShare::new(&qp, &opener.own().opening.nic)?;
        let needs = Needs { xrcd: Some(xrcd.hold()), ..Needs::default() };
        let qp_context =
            if attr.comp_mask & 4 == 0 { std::ptr::null_mut() } else { attr.qp_context };
        let init = IbvQpInitAttr { qp_context, qp_type: attr.qp_type, ..IbvQpInitAttr::zero() };
        let none = std::ptr::null_mut();
        make(
            (context, none),
            (qp, Some(share)),
            (QpKind::XrcTarget, needs),
            &init,
            &Extras::default(),
        )
    })
}
