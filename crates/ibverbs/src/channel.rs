//! Completion channels.

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use urxe::CompChannel;

use crate::acks::{may_wait, reads_go_on};
use crate::call::{Fail, code, number, or, output, pointer};
use crate::context::{self, Opening, owned};
use crate::cq::Cq;
use crate::layout::{IbvCompChannel, IbvContext, IbvCq};
use crate::object::{Kind, Object, get, kind, ours};

/// A completion channel.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) channel: Arc<CompChannel>,
    opening: Arc<Opening>,
}

kind!(Channel, "completion channel", IbvCompChannel);

owned!(Channel);

pub(crate) extern "C" fn create_comp_channel(context: *mut IbvContext) -> *mut IbvCompChannel {
    pointer("ibv_create_comp_channel", || {
        let opening = Arc::clone(&context::of(context)?.own().opening);
        let channel = Arc::new(opening.nic.create_comp_channel()?);
        let fd = channel.fd().as_raw_fd();
        let public = IbvCompChannel { context, fd, refcnt: 0 };
        Ok(Channel::pool().make(|_| Ok((public, Channel { channel, opening })))?.public())
    })
}

pub(crate) extern "C" fn destroy_comp_channel(channel: *mut IbvCompChannel) -> c_int {
    code("ibv_destroy_comp_channel", || Channel::pool().destroy(get::<Channel>(channel)?))
}

/// The oldest event; it counts as delivered then, and must be acknowledged.
fn take(channel: &CompChannel, opening: &Opening) -> Option<&'static Object<Cq>> {
    // Locked until it is counted: who destroys the CQ waits for all that were.
    let books = opening.books.lock();
    loop {
        let id = channel.take_event()?;
        // A CQ that is not there any more has no events.
        if let Some(cq) = books.cqs.get(&id) {
            cq.own().completions.delivered();
            return Some(*cq);
        }
    }
}

/// # Safety
/// `cq` and `cq_context` are null or have room for a pointer.
pub(crate) unsafe extern "C" fn get_cq_event(
    channel: *mut IbvCompChannel,
    cq: *mut *mut IbvCq,
    cq_context: *mut *mut c_void,
) -> c_int {
    number("ibv_get_cq_event", || {
        // Kept while this waits, whatever another thread does meanwhile.
        let own = ours::<Channel>(channel)?.own();
        let (channel, opening) = (Arc::clone(&own.channel), Arc::clone(&own.opening));
        if cq.is_null() || cq_context.is_null() {
            return Err(Fail::invalid("no place for the answer"));
        }
        let object = loop {
            match take(&channel, &opening) {
                Some(object) => break object,
                None => {
                    may_wait(channel.fd())?;
                    if !channel.sleep(None)? && !reads_go_on() {
                        return Err(Fail::not_yet(libc::EINTR, "a signal came"));
                    }
                }
            }
        };
        let public = object.public().cast::<IbvCq>();
        // SAFETY: the caller's.
        unsafe { output(cq, public, "cq") }?;
        // SAFETY: a live object's; it cannot go before this event is acknowledged.
        let of_program = unsafe { (*public).cq_context };
        // SAFETY: the caller's.
        unsafe { output(cq_context, of_program, "cq_context") }.map(|()| 0)
    })
}

pub(crate) extern "C" fn ack_cq_events(cq: *mut IbvCq, count: c_uint) {
    or("ibv_ack_cq_events", (), || {
        let object = Cq::pool().get_dying(cq.cast())?;
        object.own().opening.check_ours()?;
        let completed = object.own().completions.acknowledge(count);
        // SAFETY: the object is there; this field is the library's.
        unsafe { (*object.public()).base.comp_events_completed = completed };
        Ok(())
    });
}
