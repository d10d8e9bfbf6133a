//! Events, as programs get them, and what getting one does.

use std::ffi::c_int;
use std::ptr;

use urxe::cm::{Channel as Queue, What};

use crate::call::{Fail, number, output};
use crate::layout::{
    RdmaCmEvent, RdmaCmId, RdmaConnParam, RdmaEventChannel, RdmaEventParam, RdmaUdParam, Zero,
};
use crate::object::{Kind, Object, get, kind};

use super::channel;
use super::id::Id;
use super::state::Step;
use super::told::{self, About};
use super::{connect, listen, mcast};

/// `enum rdma_cm_event_type`.
pub(super) const ADDR_RESOLVED: c_int = 0;
pub(super) const ADDR_ERROR: c_int = 1;
pub(super) const ROUTE_RESOLVED: c_int = 2;
pub(super) const CONNECT_REQUEST: c_int = 4;
pub(super) const CONNECT_RESPONSE: c_int = 5;
pub(super) const CONNECT_ERROR: c_int = 6;
pub(super) const UNREACHABLE: c_int = 7;
pub(super) const REJECTED: c_int = 8;
pub(super) const ESTABLISHED: c_int = 9;
pub(super) const DISCONNECTED: c_int = 10;
pub(super) const MULTICAST_JOIN: c_int = 12;
pub(super) const MULTICAST_ERROR: c_int = 13;
pub(super) const TIMEWAIT_EXIT: c_int = 15;

/// An event that the program has got and not acknowledged.
#[derive(Debug)]
pub(super) struct Event {
    /// Whose count it is in; for a request, the listener's.
    of: &'static Object<Id>,
    /// What its `private_data` points to.
    _data: Vec<u8>,
}

kind!(Event, "event", RdmaCmEvent);

fn about(about: &About, data: &[u8]) -> RdmaEventParam {
    let private_data = if data.is_empty() { ptr::null() } else { data.as_ptr().cast() };
    let private_data_len = u8::try_from(data.len()).unwrap_or(u8::MAX);
    match *about {
        // What is told of a group is filled in there.
        About::Nothing | About::Group(_) => {
            let none = RdmaUdParam::zero();
            RdmaEventParam { ud: RdmaUdParam { private_data, private_data_len, ..none } }
        }
        About::Conn(info) => {
            let mut param = RdmaEventParam { ud: RdmaUdParam::zero() };
            param.conn = RdmaConnParam {
                private_data,
                private_data_len,
                responder_resources: info.responder_resources,
                initiator_depth: info.initiator_depth,
                flow_control: info.flow_control.into(),
                retry_count: info.retry_count,
                rnr_retry_count: info.rnr_retry_count,
                srq: info.srq.into(),
                qp_num: info.qp_num,
            };
            param
        }
        About::Datagram { way, qp_num, qkey } => RdmaEventParam {
            ud: RdmaUdParam { private_data, private_data_len, ah_attr: way, qp_num, qkey },
        },
    }
}

/// Makes of what happened the event that the program gets; `None` if it is to hear nothing of it.
fn made(of: &'static Object<Id>, what: What) -> Result<Option<*mut RdmaCmEvent>, Fail> {
    let mut told = told::of(what, &of.own().state.lock());
    let (mut id, mut listen_id) = (of.public(), ptr::null_mut());
    match told.event {
        CONNECT_REQUEST => match listen::arrived(of, &mut told)? {
            Some(child) => (id, listen_id) = (child.public(), of.public()),
            None => return Ok(None),
        },
        CONNECT_RESPONSE => connect::accepted(of, &mut told),
        ESTABLISHED => of.own().state.lock().step = Step::Connected,
        _ => {}
    }
    let unheard = match told.event {
        REJECTED | UNREACHABLE | DISCONNECTED => connect::over(of, told.event),
        MULTICAST_JOIN => !mcast::joined(of, &mut told),
        _ => false,
    };
    if unheard {
        return Ok(None);
    }
    let mut param = about(&told.about, &told.data);
    mcast::tell(of, &told.about, &mut param);
    let (event, status) = (told.event, told.status);
    let public = RdmaCmEvent { id, listen_id, event, status, param };
    let object = Event::pool().make(|_| Ok((public, Event { of, _data: told.data })))?;
    Ok(Some(object.public()))
}

/// The next event of a queue, waited for unless the program has set O_NONBLOCK.
pub(super) fn next(queue: &Queue) -> Result<*mut RdmaCmEvent, Fail> {
    loop {
        let (of, what) = channel::next(queue)?;
        match made(of, what) {
            Ok(Some(event)) => return Ok(event),
            Ok(None) => {
                of.own().acks.acknowledge(1);
            }
            Err(fail) => {
                of.own().acks.acknowledge(1);
                return Err(fail);
            }
        }
    }
}

/// # Safety
/// `event` is null or has room for a pointer.
pub(super) unsafe extern "C" fn get_cm_event(
    channel: *mut RdmaEventChannel,
    event: *mut *mut RdmaCmEvent,
) -> c_int {
    number("rdma_get_cm_event", || {
        if event.is_null() {
            return Err(Fail::invalid("no place for the answer"));
        }
        // Kept while this waits, whatever another thread does meanwhile.
        let queue = channel::of(channel)?.own().queue.clone();
        let next = next(&queue)?;
        // SAFETY: the caller's.
        unsafe { output(event, next, "event") }.map(|()| 0)
    })
}

/// The program is done with an event.
pub(super) fn acknowledge(event: *mut RdmaCmEvent) -> Result<(), Fail> {
    let object = get::<Event>(event)?;
    let dying = Event::pool().begin_end(object)?;
    let of = dying.own().of;
    drop(dying);
    of.own().acks.acknowledge(1);
    Ok(())
}

pub(super) extern "C" fn ack_cm_event(event: *mut RdmaCmEvent) -> c_int {
    number("rdma_ack_cm_event", || acknowledge(event).map(|()| 0))
}

/// Waits for the one event that a call of an identifier without a channel brings.
pub(super) fn complete(object: &'static Object<Id>) -> Result<(), Fail> {
    if !object.own().state.lock().sync {
        return Ok(());
    }
    forget_last(object);
    let event = next(&object.queue())?;
    object.show(|id| id.event = event);
    // SAFETY: made just now, and nobody else's.
    let RdmaCmEvent { event, status, .. } = unsafe { *event };
    match status {
        0 => Ok(()),
        _ if event == REJECTED => Err(Fail::new(libc::ECONNREFUSED, "the peer refuses")),
        _ => Err(Fail::new(status.abs(), format!("event {event} with status {status}"))),
    }
}

/// The event of an earlier call is acknowledged as the next one comes.
pub(super) fn forget_last(object: &'static Object<Id>) {
    let last: *mut RdmaCmEvent = object.read().event;
    if !last.is_null() {
        let _ = acknowledge(last);
        object.show(|id: &mut RdmaCmId| id.event = ptr::null_mut());
    }
}
