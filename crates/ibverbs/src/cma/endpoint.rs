//! Endpoints: identifier, address and QP in one call, without a channel.

use std::ffi::c_int;

use crate::call::{Fail, input, number, or, output};
use crate::layout::{IbvPd, IbvQpInitAttr, RdmaAddrinfo, RdmaCmId};
use crate::object::Object;

use super::event::{CONNECT_REQUEST, forget_last, next};
use super::id::{self, Id};
use super::info::PASSIVE;
use super::state::Template;
use super::{bind, option, qp, resolve, sockaddr, srq};

/// What is made of an address that was looked up.
fn prepare(
    object: &'static Object<Id>,
    res: &RdmaAddrinfo,
    pd: *mut IbvPd,
    init: Option<IbvQpInitAttr>,
) -> Result<(), Fail> {
    let init = init.map(|init| IbvQpInitAttr { qp_type: res.ai_qp_type, ..init });
    if res.ai_flags & PASSIVE != 0 {
        // SAFETY: an address of `rdma_getaddrinfo`, or of the program's.
        let address = unsafe { sockaddr::read(res.ai_src_addr, "ai_src_addr") }?;
        let state = &mut *object.own().state.lock();
        bind::bind(object, state, address)?;
        if !pd.is_null() {
            object.show(|id| id.pd = pd);
        }
        state.template = init.map(Template);
        return Ok(());
    }
    // SAFETY: likewise.
    let to = unsafe { sockaddr::read(res.ai_dst_addr, "ai_dst_addr") }?;
    let from = match res.ai_src_len {
        0 => None,
        // SAFETY: likewise.
        _ => Some(unsafe { sockaddr::read(res.ai_src_addr, "ai_src_addr") }?),
    };
    resolve::resolve(object, from, to)?;
    if res.ai_route_len != 0 {
        option::route_given(object, res.ai_route, res.ai_route_len)?;
    } else {
        resolve::route(object)?;
    }
    if let Some(init) = init {
        qp::create_plain(object, pd, &init)?;
    }
    if res.ai_connect_len != 0 {
        let len = u8::try_from(res.ai_connect_len);
        let len = len.map_err(|_| Fail::invalid("ai_connect_len is over 255"))?;
        // SAFETY: as long as the struct says.
        let data = unsafe { super::connect::bytes(res.ai_connect, len) }?;
        object.own().state.lock().connect_data = data;
    }
    Ok(())
}

/// # Safety
/// Each pointer is null or points to its struct; `id` has room for a pointer.
pub(super) unsafe extern "C" fn create_ep(
    id: *mut *mut RdmaCmId,
    res: *mut RdmaAddrinfo,
    pd: *mut IbvPd,
    init: *mut IbvQpInitAttr,
) -> c_int {
    number("rdma_create_ep", || {
        // SAFETY: the caller's.
        let res = unsafe { input(res, "res") }?;
        // SAFETY: null, or the caller's struct.
        let init = unsafe { init.as_ref() }.copied();
        let none = std::ptr::null_mut();
        let object = id::make(none, none.cast(), res.ai_port_space, res.ai_qp_type)?;
        // SAFETY: the caller's.
        let done = prepare(object, res, pd, init)
            .and_then(|()| unsafe { output(id, object.public(), "id") });
        if done.is_err() {
            destroy(object)?;
        }
        done.map(|()| 0)
    })
}

fn destroy(object: &'static Object<Id>) -> Result<(), Fail> {
    if !object.read().qp.is_null() {
        qp::destroy(object);
    }
    if !object.read().srq.is_null() {
        srq::destroy(object);
    }
    id::destroy(object)
}

pub(super) extern "C" fn destroy_ep(id: *mut RdmaCmId) {
    or("rdma_destroy_ep", (), || destroy(id::of(id)?));
}

/// # Safety
/// `id` is null or has room for a pointer.
pub(super) unsafe extern "C" fn get_request(
    listen: *mut RdmaCmId,
    id: *mut *mut RdmaCmId,
) -> c_int {
    number("rdma_get_request", || {
        let listener = id::of(listen)?;
        if id.is_null() {
            return Err(Fail::invalid("no place for the answer"));
        }
        let template = {
            let state = listener.own().state.lock();
            if !state.sync {
                return Err(Fail::invalid("the identifier has a channel; take events from that"));
            }
            state.template
        };
        forget_last(listener);
        let event = next(&listener.queue())?;
        // SAFETY: made just now, and nobody else's.
        let told = unsafe { *event };
        let done = if told.status != 0 {
            Err(Fail::new(told.status.abs(), "the request failed"))
        } else if told.event != CONNECT_REQUEST {
            Err(Fail::invalid(format!("event {} instead of a request", told.event)))
        } else {
            id::of(told.id)
        };
        let made = done.and_then(|child| {
            if let Some(Template(init)) = template {
                qp::create_plain(child, listener.read().pd, &init)?;
            }
            child.show(|id| id.event = event);
            Ok(child)
        });
        match made {
            // SAFETY: the caller's; looked at above.
            Ok(child) => unsafe { output(id, child.public(), "id") }.map(|()| 0),
            Err(fail) => {
                listener.show(|id| id.event = event);
                Err(fail)
            }
        }
    })
}
