//! Asynchronous events.

use std::ffi::c_int;
use std::sync::Arc;

use urxe::{AsyncEvent, Qpn};

use crate::acks::wait_readable;
use crate::call::{code, input, number, output};
use crate::context::{self, Opening, Owned};
use crate::cq::Cq;
use crate::layout::{IbvAsyncEvent, IbvContext};
use crate::object::Kind;
use crate::qp::Qp;
use crate::srq::Srq;

/// `enum ibv_event_type`.
const CQ_ERR: c_int = 0;
const QP_FATAL: c_int = 1;
const QP_REQ_ERR: c_int = 2;
const QP_ACCESS_ERR: c_int = 3;
const COMM_EST: c_int = 4;
const SQ_DRAINED: c_int = 5;
const DEVICE_FATAL: c_int = 8;
const PORT_ACTIVE: c_int = 9;
const PORT_ERR: c_int = 10;
const SRQ_LIMIT_REACHED: c_int = 15;
const QP_LAST_WQE_REACHED: c_int = 16;

/// The oldest event, with the object it is of; it counts as delivered then.
fn take(opening: &Opening) -> Option<IbvAsyncEvent> {
    // Locked until it is counted: who destroys the object waits for all that were.
    let books = opening.books.lock();
    loop {
        let (event, user) = opening.nic.take_async_event_of()?;
        let of_qp = |qpn: &Qpn, event_type| {
            let qp = books.qps.get(&(*qpn, user))?;
            qp.own().asyncs.delivered();
            Some((qp.public().expose_provenance(), event_type))
        };
        let found = match &event {
            AsyncEvent::CqErr(cq, _) => books.cqs.get(cq).map(|cq| {
                cq.own().asyncs.delivered();
                (cq.public().expose_provenance(), CQ_ERR)
            }),
            AsyncEvent::SrqLimitReached(srq) => books.srqs.get(&srq.0).map(|srq| {
                srq.own().asyncs.delivered();
                (srq.public().expose_provenance(), SRQ_LIMIT_REACHED)
            }),
            AsyncEvent::QpFatal(qp) => of_qp(qp, QP_FATAL),
            AsyncEvent::QpReqErr(qp) => of_qp(qp, QP_REQ_ERR),
            AsyncEvent::QpAccessErr(qp) => of_qp(qp, QP_ACCESS_ERR),
            AsyncEvent::CommEst(qp) => of_qp(qp, COMM_EST),
            AsyncEvent::SqDrained(qp) => of_qp(qp, SQ_DRAINED),
            AsyncEvent::QpLastWqeReached(qp) => of_qp(qp, QP_LAST_WQE_REACHED),
            // The element is the port's number, of which there is one.
            AsyncEvent::PortErr => Some((1, PORT_ERR)),
            AsyncEvent::PortActive => Some((1, PORT_ACTIVE)),
            AsyncEvent::DeviceFatal => Some((0, DEVICE_FATAL)),
            // One that is younger than this list.
            _ => None,
        };
        // An object that is not there any more has no events.
        if let Some((element, event_type)) = found {
            return Some(IbvAsyncEvent { element, event_type });
        }
    }
}

/// # Safety
/// `event` is null or has room for one.
pub(crate) unsafe extern "C" fn get_async_event(
    context: *mut IbvContext,
    event: *mut IbvAsyncEvent,
) -> c_int {
    number("ibv_get_async_event", || {
        // Kept while this waits, whatever another thread does meanwhile.
        let opening = Arc::clone(&context::of(context)?.own().opening);
        opening.check_ours()?;
        let taken = loop {
            match take(&opening) {
                Some(taken) => break taken,
                None => wait_readable(opening.nic.async_fd())?,
            }
        };
        // SAFETY: the caller's.
        unsafe { output(event, taken, "event") }.map(|()| 0)
    })
}

/// # Safety
/// `event` is null or points to one that was got.
pub(crate) unsafe extern "C" fn ack_async_event(event: *mut IbvAsyncEvent) {
    code("ibv_ack_async_event", || {
        // SAFETY: the caller's.
        let event = unsafe { input(event, "event") }?;
        let element = std::ptr::with_exposed_provenance_mut::<u8>(event.element);
        match event.event_type {
            CQ_ERR => {
                let object = Cq::pool().get_dying(element.cast())?;
                object.own().opening().check_ours()?;
                let done = object.own().asyncs.acknowledge(1);
                // SAFETY: the object is there; this field is the library's.
                unsafe { (*object.public()).base.async_events_completed = done };
            }
            SRQ_LIMIT_REACHED => {
                let object = Srq::pool().get_dying(element.cast())?;
                object.own().opening().check_ours()?;
                let done = object.own().asyncs.acknowledge(1);
                // SAFETY: the object is there; this field is the library's.
                unsafe { (*object.public()).events_completed = done };
            }
            QP_FATAL..=SQ_DRAINED | QP_LAST_WQE_REACHED => {
                let object = Qp::pool().get_dying(element.cast())?;
                object.own().opening().check_ours()?;
                let done = object.own().asyncs.acknowledge(1);
                // SAFETY: the object is there; this field is the library's.
                unsafe { (*object.public()).qp_base.events_completed = done };
            }
            _ => {}
        }
        Ok(())
    });
}
