//! Queue pairs.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use urxe::{QpKind, QpShare, Qpn};

use crate::acks::Acks;
use crate::call::{Fail, code};
use crate::context::{Opening, owned};
use crate::cq::Cq;
use crate::handle::by_handle;
use crate::layout::{IbvQp, IbvQpEx, IbvQpInitAttr};
use crate::object::{Held, Object, kind, ours};
use crate::pd::Pd;
use crate::qp_ex::Builder;
use crate::srq::Srq;
use crate::xrcd::Xrcd;

mod attr;
mod create;
mod modify;
mod post;

pub(crate) use attr::shown;
pub(crate) use create::{Extras, create, create_qp, destroy_qp, open_qp};
pub(crate) use modify::{modify_qp, modify_rate_limit, query_qp};
pub(crate) use post::{destination, inline, post_recv, post_send, request};

/// A queue pair. All have the room of an `ibv_qp_ex`.
#[derive(Debug)]
pub(crate) struct Qp {
    /// Shared by all that `ibv_open_qp` opened.
    pub(crate) qp: Arc<urxe::Qp>,
    /// What one of those has of its own. All hear of the QP's events (Linux
    /// drivers/infiniband/core/verbs.c, __ib_shared_qp_event_handler).
    share: Option<QpShare>,
    pub(crate) kind: QpKind,
    pub(crate) opening: Arc<Opening>,
    handle: u32,
    pub(crate) asyncs: Acks,
    /// What it was made with.
    init: Init,
    /// Requests that `ibv_wr_*` builds.
    pub(crate) builder: Builder,
    needs: Needs,
}

kind!(Qp, "QP", IbvQpEx);

owned!(Qp, qp_base.handle);

impl Qp {
    /// What the books have it under.
    fn entry(&self) -> (Qpn, u32) {
        (self.qp.qpn(), self.share.as_ref().map_or(0, QpShare::number))
    }
}

/// What `ibv_query_qp` tells of the call that made a QP.
#[derive(Debug)]
struct Init(IbvQpInitAttr);

// SAFETY: its pointers are the program's and only handed back to it.
unsafe impl Send for Init {}
// SAFETY: likewise; nothing in it changes.
unsafe impl Sync for Init {}

/// Keeps these from being destroyed before the QP.
#[derive(Debug, Default)]
struct Needs {
    _pd: Option<Held<Pd>>,
    _cqs: [Option<Held<Cq>>; 2],
    _srq: Option<Held<Srq>>,
    xrcd: Option<Held<Xrcd>>,
}

/// The QP that C means.
pub(crate) fn of(qp: *mut IbvQp) -> Result<&'static Object<Qp>, Fail> {
    by_handle(ours::<Qp>(qp.cast())?)
}

/// Whether the bytes of a message are placed in the order of their addresses: all are, whatever
/// the operation.
pub(crate) extern "C" fn query_data_in_order(qp: *mut IbvQp, _op: c_int, flags: u32) -> c_int {
    // It has no way to fail: what is not known is not so.
    c_int::from(flags == 0 && of(qp).is_ok())
}

/// The QP as one whose requests are built piece by piece, if it was made to be.
pub(crate) extern "C" fn to_qp_ex(qp: *mut IbvQp) -> *mut IbvQpEx {
    crate::call::pointer("ibv_qp_to_qp_ex", || {
        let object = of(qp)?;
        if object.own().builder.operations() == 0 {
            return Err(Fail::invalid("the QP was made without send_ops_flags"));
        }
        Ok(object.public())
    })
}

/// Vendors' ways to agree on more than the specification has: none.
pub(crate) extern "C" fn no_ece(qp: *mut IbvQp, _ece: *mut crate::layout::IbvEce) -> c_int {
    code("ibv_query_ece, ibv_set_ece", || {
        of(qp)?;
        Err(Fail::unsupported("urxe has no enhanced connection establishment"))
    })
}

/// The kind of QP that C asks for.
fn kind_of(qp_type: c_int) -> Result<QpKind, Fail> {
    let kind = c_uint::try_from(qp_type).ok().and_then(QpKind::from_verbs);
    kind.ok_or_else(|| {
        Fail::unsupported(format!("QP type {qp_type}; RC, UC, UD, XRC_SEND and XRC_RECV exist"))
    })
}
