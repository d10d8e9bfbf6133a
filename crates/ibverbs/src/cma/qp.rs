//! QPs of identifiers, with the CQs that a program does not bring.

use std::ffi::c_int;
use std::ptr;

use crate::call::{Fail, input, number, or};
use crate::layout::{
    IbvCompChannel, IbvContext, IbvCq, IbvPd, IbvQp, IbvQpAttr, IbvQpInitAttr, IbvQpInitAttrEx,
    RdmaCmId, Zero,
};
use crate::object::Object;
use crate::{channel, cq, pd, qp, qp_ex};

use super::attrs;
use super::device;
use super::id::{self, Id, QPT_UD, QPT_XRC_RECV, QPT_XRC_SEND};

/// `enum ibv_qp_init_attr_mask`.
const PD: u32 = 1;
const XRCD: u32 = 1 << 1;

/// The error that a call of verbs has set.
pub(super) fn verbs_failed(call: &str) -> Fail {
    Fail::host(call)
}

/// The errno that a call of verbs gave.
pub(super) fn done(call: &str, errno: c_int) -> Result<(), Fail> {
    if errno == 0 { Ok(()) } else { Err(Fail::new(errno, format!("{call} failed"))) }
}

/// Which queues a program leaves to the library, and how long: 0 for none.
pub(super) struct Queues {
    pub(super) send: u32,
    pub(super) recv: u32,
}

/// A completion queue with a channel, whose context is the identifier.
fn one_cq(
    object: &Object<Id>,
    verbs: *mut IbvContext,
    length: u32,
) -> Result<(*mut IbvCompChannel, *mut IbvCq), Fail> {
    let events = channel::create_comp_channel(verbs);
    if events.is_null() {
        return Err(verbs_failed("ibv_create_comp_channel"));
    }
    let length = c_int::try_from(length).unwrap_or(c_int::MAX);
    let made = cq::create_cq(verbs, length, object.public().cast(), events, 0);
    if made.is_null() {
        let fail = verbs_failed("ibv_create_cq");
        channel::destroy_comp_channel(events);
        return Err(fail);
    }
    Ok((events, made))
}

/// Makes the queues that are wanted and are not there yet.
pub(super) fn make_cqs(object: &Object<Id>, wanted: &Queues) -> Result<(), Fail> {
    let verbs = object.read().verbs;
    if wanted.recv != 0 && object.read().recv_cq.is_null() {
        let (events, made) = one_cq(object, verbs, wanted.recv)?;
        object.show(|id| (id.recv_cq_channel, id.recv_cq) = (events, made));
    }
    if wanted.send != 0 && object.read().send_cq.is_null() {
        let (events, made) = one_cq(object, verbs, wanted.send)?;
        object.show(|id| (id.send_cq_channel, id.send_cq) = (events, made));
    }
    Ok(())
}

pub(super) fn destroy_cqs(object: &Object<Id>) {
    let id = object.read();
    // An XRC target shares them with its SRQ, with which they go.
    if id.qp_type == QPT_XRC_RECV && !id.srq.is_null() {
        return;
    }
    if !id.recv_cq.is_null() {
        cq::destroy_cq(id.recv_cq);
    }
    if !id.send_cq.is_null() && id.send_cq != id.recv_cq {
        cq::destroy_cq(id.send_cq);
    }
    if !id.recv_cq_channel.is_null() {
        channel::destroy_comp_channel(id.recv_cq_channel);
    }
    if !id.send_cq_channel.is_null() && id.send_cq_channel != id.recv_cq_channel {
        channel::destroy_comp_channel(id.send_cq_channel);
    }
    object.show(|id| {
        (id.send_cq, id.recv_cq) = (ptr::null_mut(), ptr::null_mut());
        (id.send_cq_channel, id.recv_cq_channel) = (ptr::null_mut(), ptr::null_mut());
    });
}

fn queues(qp_type: c_int, init: &IbvQpInitAttrEx) -> Queues {
    let receives = !matches!(qp_type, QPT_XRC_SEND | QPT_XRC_RECV);
    let sends = qp_type != QPT_XRC_RECV;
    Queues {
        send: if sends && init.send_cq.is_null() { init.cap.max_send_wr } else { 0 },
        recv: if receives && init.recv_cq.is_null() { init.cap.max_recv_wr } else { 0 },
    }
}

/// Makes a QP and brings it to INIT, or one of datagrams to RTS.
pub(super) fn create(object: &'static Object<Id>, init: &mut IbvQpInitAttrEx) -> Result<(), Fail> {
    let id = object.read();
    if !id.qp.is_null() {
        return Err(Fail::invalid("the identifier has a QP already"));
    }
    if id.verbs.is_null() {
        return Err(Fail::invalid(
            "the identifier is bound to no device; resolve an address first",
        ));
    }
    if init.comp_mask & PD == 0 || init.pd.is_null() {
        init.comp_mask |= PD;
        init.pd = id.pd;
    } else if pd::of(init.pd)?.1 != id.verbs {
        return Err(Fail::invalid("the PD is of another context than the identifier's"));
    }
    let other =
        |ours: *mut IbvCq, given: *mut IbvCq| !ours.is_null() && !given.is_null() && ours != given;
    if other(id.recv_cq, init.recv_cq) || other(id.send_cq, init.send_cq) {
        return Err(Fail::invalid("the identifier has other CQs already"));
    }
    if id.qp_type == QPT_XRC_RECV && init.comp_mask & XRCD == 0 {
        init.comp_mask |= XRCD;
        init.xrcd = device::xrcd()?;
    }
    make_cqs(object, &queues(id.qp_type, init))?;
    let id = object.read();
    if init.send_cq.is_null() {
        init.send_cq = id.send_cq;
    }
    if init.recv_cq.is_null() {
        init.recv_cq = id.recv_cq;
    }
    if init.srq.is_null() {
        init.srq = id.srq;
    }
    // SAFETY: a struct of ours.
    let made = unsafe { qp_ex::create_qp_ex(id.verbs, init) };
    if made.is_null() {
        let fail = verbs_failed("ibv_create_qp_ex");
        destroy_cqs(object);
        return Err(fail);
    }
    if let Err(fail) = begin(object, made) {
        qp::destroy_qp(made);
        destroy_cqs(object);
        return Err(fail);
    }
    let pd = init.pd;
    object.show(|id| (id.qp, id.pd) = (made, if pd.is_null() { id.pd } else { pd }));
    Ok(())
}

/// Brings a new QP as far as it can go by itself.
fn begin(object: &Object<Id>, made: *mut IbvQp) -> Result<(), Fail> {
    /// `IBV_QP_SQ_PSN`.
    const SQ_PSN: c_int = 1 << 16;
    let mut attr = IbvQpAttr { qp_state: attrs::INIT, ..IbvQpAttr::zero() };
    let mask = attrs::fill(object, &mut attr)?;
    attrs::modify(made, &mut attr, mask)?;
    if object.read().qp_type == QPT_UD {
        attr.qp_state = attrs::RTR;
        attrs::modify(made, &mut attr, attrs::STATE)?;
        (attr.qp_state, attr.sq_psn) = (attrs::RTS, 0);
        attrs::modify(made, &mut attr, attrs::STATE | SQ_PSN)?;
    }
    Ok(())
}

fn extended(init: &IbvQpInitAttr, pd: *mut IbvPd) -> IbvQpInitAttrEx {
    IbvQpInitAttrEx {
        qp_context: init.qp_context,
        send_cq: init.send_cq,
        recv_cq: init.recv_cq,
        srq: init.srq,
        cap: init.cap,
        qp_type: init.qp_type,
        sq_sig_all: init.sq_sig_all,
        comp_mask: if pd.is_null() { 0 } else { PD },
        pd,
        ..IbvQpInitAttrEx::zero()
    }
}

/// As `rdma_create_qp`; gives what the QP was made with.
pub(super) fn create_plain(
    object: &'static Object<Id>,
    pd: *mut IbvPd,
    init: &IbvQpInitAttr,
) -> Result<IbvQpInitAttr, Fail> {
    let mut all = extended(init, pd);
    create(object, &mut all)?;
    Ok(all.base())
}

/// # Safety
/// `init` is null or points to the struct.
pub(super) unsafe extern "C" fn create_qp(
    id: *mut RdmaCmId,
    pd: *mut IbvPd,
    init: *mut IbvQpInitAttr,
) -> c_int {
    number("rdma_create_qp", || {
        let object = id::of(id)?;
        // SAFETY: the caller's.
        let given = unsafe { input(init, "qp_init_attr") }?;
        let made = create_plain(object, pd, given)?;
        // SAFETY: the caller's, as above.
        unsafe { *init = made };
        Ok(0)
    })
}

/// # Safety
/// `init` is null or points to the struct.
pub(super) unsafe extern "C" fn create_qp_ex(
    id: *mut RdmaCmId,
    init: *mut IbvQpInitAttrEx,
) -> c_int {
    number("rdma_create_qp_ex", || {
        let object = id::of(id)?;
        // SAFETY: the caller's.
        let mut all = *unsafe { input(init, "qp_init_attr") }?;
        create(object, &mut all)?;
        // SAFETY: the caller's, as above.
        unsafe { *init = all };
        Ok(0)
    })
}

pub(super) fn destroy(object: &Object<Id>) {
    qp::destroy_qp(object.read().qp);
    object.show(|id| id.qp = ptr::null_mut());
    destroy_cqs(object);
}

pub(super) extern "C" fn destroy_qp(id: *mut RdmaCmId) {
    or("rdma_destroy_qp", (), || {
        let object = id::of(id)?;
        if object.read().qp.is_null() {
            return Err(Fail::invalid("the identifier has no QP"));
        }
        destroy(object);
        Ok(())
    });
}
