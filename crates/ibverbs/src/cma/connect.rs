//! The active side, and the end of connections.

use std::ffi::{c_int, c_void};

use urxe::Qpn;
use urxe::cm::{ConnParam, Ece, Id as Link, RejReason, RetryCount};

use crate::call::{Fail, input, number};
use crate::layout::{RdmaCmId, RdmaConnParam};
use crate::object::Object;
use crate::qp;

use super::event::{CONNECT_ERROR, DISCONNECTED, ESTABLISHED, REJECTED, complete};
use super::id::{self, Id};
use super::state::{State, Step};
use super::told::{About, Told};
use super::{attrs, device};

/// `IBV_EVENT_COMM_EST`.
const COMM_EST: c_int = 4;

/// Private data of the program's.
///
/// # Safety
/// `data` is null or has `len` bytes.
pub(super) unsafe fn bytes(data: *const c_void, len: u8) -> Result<Vec<u8>, Fail> {
    if len == 0 {
        return Ok(Vec::new());
    }
    if data.is_null() {
        return Err(Fail::invalid(format!("private_data is null, private_data_len {len}")));
    }
    // SAFETY: the caller's.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len.into()) };
    Ok(bytes.to_vec())
}

/// The parameters that the program gave, if it did, and its private data.
///
/// # Safety
/// `param` is null or points to the struct, whose data are as long as it says.
pub(super) unsafe fn given(
    param: *const RdmaConnParam,
) -> Result<(Option<RdmaConnParam>, Vec<u8>), Fail> {
    if param.is_null() {
        return Ok((None, Vec::new()));
    }
    // SAFETY: the caller's.
    let param = *unsafe { input(param, "conn_param") }?;
    // SAFETY: the caller's.
    let data = unsafe { bytes(param.private_data, param.private_data_len) }?;
    Ok((Some(param), data))
}

/// READs and atomics at once, as many as the device can where 255 is given.
pub(super) fn depths(param: Option<&RdmaConnParam>) -> Result<(u8, u8), Fail> {
    let caps = device::shared(None)?.opening.nic.query_device();
    let most = caps.max_rd_atomic.min(254);
    let of = |what: &str, given: u8| match given {
        u8::MAX => Ok(most),
        given if given <= most => Ok(given),
        given => Err(Fail::invalid(format!("{what} {given}; the device has {most} at most"))),
    };
    match param {
        None => Ok((most, most)),
        Some(param) => Ok((
            of("responder_resources", param.responder_resources)?,
            of("initiator_depth", param.initiator_depth)?,
        )),
    }
}

/// The QP of an identifier, or the one that the program names; and whether it has an SRQ.
pub(super) fn qp_of(
    object: &Object<Id>,
    param: Option<&RdmaConnParam>,
) -> Result<(u32, bool), Fail> {
    let shown = object.read();
    if !shown.qp.is_null() {
        let qp = qp::of(shown.qp)?;
        // SAFETY: a live object's.
        let public = unsafe { (*qp.public()).qp_base };
        return Ok((public.qp_num, !public.srq.is_null()));
    }
    match param {
        Some(param) => Ok((param.qp_num, param.srq != 0)),
        // Who asks for the QP of a datagram service need not have one.
        None if object.is_datagram() => Ok((0, false)),
        None => Err(Fail::invalid("the identifier has no QP, and conn_param names none")),
    }
}

/// The parameters in the words of `urxe::cm`.
pub(super) fn terms<'a>(
    object: &Object<Id>,
    state: &State,
    param: Option<&RdmaConnParam>,
    data: &'a [u8],
) -> Result<ConnParam<'a>, Fail> {
    let (qpn, srq) = qp_of(object, param)?;
    // More than the field can say is as many as it can (Linux drivers/infiniband/core/cma.c).
    let retries = |given: fn(&RdmaConnParam) -> u8| {
        param.and_then(|param| RetryCount::new(given(param)).ok()).unwrap_or(RetryCount::MAX)
    };
    let ece = (state.local_ece != Ece::default()).then_some(state.local_ece);
    Ok(ConnParam {
        srq,
        responder_resources: state.responder_resources,
        initiator_depth: state.initiator_depth,
        flow_control: param.is_some_and(|param| param.flow_control != 0),
        retry_count: retries(|param| param.retry_count),
        rnr_retry_count: retries(|param| param.rnr_retry_count),
        ece,
        private_data: data,
        ..ConnParam::new(Qpn::new(qpn))
    })
}

/// # Safety
/// `param` is null or points to the struct, whose data are as long as it says.
pub(super) unsafe extern "C" fn connect(id: *mut RdmaCmId, param: *mut RdmaConnParam) -> c_int {
    number("rdma_connect", || {
        let object = id::of(id)?;
        // SAFETY: the caller's.
        let (param, mut data) = unsafe { given(param) }?;
        {
            let state = &mut *object.own().state.lock();
            state.at(&[Step::Routed])?;
            let depths = depths(param.as_ref())?;
            (state.responder_resources, state.initiator_depth) = depths;
            if data.is_empty() {
                data = std::mem::take(&mut state.connect_data);
            }
            let terms = terms(object, state, param.as_ref(), &data)?;
            link(state)?.connect(&terms)?;
            state.step = Step::Connecting;
        }
        complete(object).map(|()| 0)
    })
}

/// The peer accepts. Where the identifier has a QP, that is made ready, and the connection is
/// established; else the program does both.
pub(super) fn accepted(object: &'static Object<Id>, told: &mut Told) {
    object.own().state.lock().remote_ece = told.ece;
    if object.read().qp.is_null() {
        return;
    }
    let ready = attrs::ready(object, u8::MAX, u8::MAX);
    let mut state = object.own().state.lock();
    let done = ready.and_then(|()| Ok(link(&state)?.establish(&[])?));
    match done {
        Ok(()) => (told.event, state.step) = (ESTABLISHED, Step::Connected),
        Err(fail) => {
            tracing::debug!(why = %fail, "a QP that the peer accepted cannot be made ready");
            (told.event, told.status) = (CONNECT_ERROR, -fail.errno);
            told.about = About::Nothing;
            (state.failed, state.step) = (true, Step::Over);
            if let Some(link) = &state.link {
                let _ = link.reject(RejReason::ConsumerDefined, &[]);
            }
        }
    }
}

/// A connection is over, or there never was one. Whether the program knows that already.
pub(super) fn over(object: &Object<Id>, event: c_int) -> bool {
    let known = {
        let state = &mut *object.own().state.lock();
        // Both sides may end it at once; the program hears of it once.
        let known = state.failed || event == DISCONNECTED && state.step == Step::Over;
        state.step = Step::Over;
        known
    };
    if !known && event == REJECTED {
        attrs::stop(object);
    }
    known
}

pub(super) extern "C" fn establish(id: *mut RdmaCmId) -> c_int {
    number("rdma_establish", || {
        let object = id::of(id)?;
        if !object.read().qp.is_null() {
            return Err(Fail::invalid("the identifier has a QP, with which this is done already"));
        }
        let state = &mut *object.own().state.lock();
        state.at(&[Step::Connecting])?;
        link(state)?.establish(&[])?;
        state.step = Step::Connected;
        Ok(0)
    })
}

/// An identifier's part of the connection manager.
pub(super) fn link(state: &State) -> Result<&Link, Fail> {
    let why = "the identifier is bound to no device; resolve or bind an address first";
    state.link.as_ref().ok_or_else(|| Fail::invalid(why))
}

pub(super) extern "C" fn disconnect(id: *mut RdmaCmId) -> c_int {
    number("rdma_disconnect", || {
        let object = id::of(id)?;
        let waits = {
            let state = object.own().state.lock();
            if matches!(state.step, Step::Listening) || object.is_datagram() {
                return Err(Fail::invalid("the identifier has no connection to end"));
            }
            link(&state)?;
            state.step == Step::Connected
        };
        attrs::stop(object);
        // As the kernel has it: where the peer was first, or nothing is established, all is well.
        let _ = link(&object.own().state.lock())?.disconnect(&[]);
        if waits {
            complete(object)?;
        }
        Ok(0)
    })
}

pub(super) extern "C" fn notify(id: *mut RdmaCmId, event: c_int) -> c_int {
    number("rdma_notify", || {
        let object = id::of(id)?;
        let state = object.own().state.lock();
        let link = link(&state)?;
        if event != COMM_EST {
            return Err(Fail::invalid(format!("event {event}; COMM_EST, {COMM_EST}, is told so")));
        }
        link.notify_established()?;
        Ok(0)
    })
}
