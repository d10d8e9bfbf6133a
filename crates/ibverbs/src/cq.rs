//! Completion queues.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use parking_lot::Mutex;
use urxe::Arm;

use crate::acks::Acks;
use crate::call::{Fail, code, input, number, pointer};
use crate::channel::Channel;
use crate::context::{self, Opening, owned};
use crate::cq_ex::{self, Cursor};
use crate::handle::{by_handle, for_destroy, next};
use crate::layout::{IbvCompChannel, IbvContext, IbvCq, IbvCqEx, IbvModifyCqAttr, IbvWc, Zero};
use crate::object::{Held, Kind, Object, get, kind, ours};
use crate::wc;
use crate::{idle, report};

/// A completion queue. All have the room of an `ibv_cq_ex`.
#[derive(Debug)]
pub(crate) struct Cq {
    pub(crate) cq: urxe::Cq,
    pub(crate) opening: Arc<Opening>,
    handle: u32,
    /// Completion events.
    pub(crate) completions: Acks,
    /// Asynchronous events.
    pub(crate) asyncs: Acks,
    /// Where `ibv_start_poll` and its like stand.
    pub(crate) cursor: Cursor,
    channel: Mutex<Option<(usize, Held<Channel>)>>,
}

kind!(Cq, "CQ", IbvCqEx);

owned!(Cq, base.handle);

/// The CQ that C means.
pub(crate) fn of(cq: *mut IbvCq) -> Result<&'static Object<Cq>, Fail> {
    by_handle(ours::<Cq>(cq.cast())?)
}

/// What a CQ is asked for with.
pub(crate) struct Wanted {
    pub(crate) cqe: u32,
    pub(crate) cq_context: *mut c_void,
    pub(crate) channel: *mut IbvCompChannel,
    pub(crate) vector: u32,
}

pub(crate) fn create(
    context: *mut IbvContext,
    wanted: &Wanted,
    extended: IbvCqEx,
) -> Result<*mut IbvCqEx, Fail> {
    let opening = Arc::clone(&context::of(context)?.own().opening);
    if wanted.vector != 0 {
        return Err(Fail::invalid(format!("completion vector {}; there is 0", wanted.vector)));
    }
    let (cq, held) = if wanted.channel.is_null() {
        (opening.nic.create_cq(wanted.cqe)?, None)
    } else {
        let channel = get::<Channel>(wanted.channel)?;
        let cq = opening.nic.create_cq_on(wanted.cqe, &channel.own().channel)?;
        let references = channel.public();
        // SAFETY: a live object's; this field is the library's.
        unsafe { (*references).refcnt += 1 };
        (cq, Some((references.addr(), channel.hold())))
    };
    let handle = next();
    let base = IbvCq {
        context,
        channel: wanted.channel,
        cq_context: wanted.cq_context,
        handle,
        cqe: c_int::try_from(wanted.cqe).unwrap_or(c_int::MAX),
        ..IbvCq::zero()
    };
    let id = cq.id();
    let own = Cq {
        cq,
        opening: Arc::clone(&opening),
        handle,
        completions: Acks::default(),
        asyncs: Acks::default(),
        cursor: Cursor::default(),
        channel: Mutex::new(held),
    };
    let object = Cq::pool().make(|_| Ok((IbvCqEx { base, ..extended }, own)))?;
    opening.books.lock().cqs.insert(id, object);
    Ok(object.public())
}

pub(crate) extern "C" fn create_cq(
    context: *mut IbvContext,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut IbvCompChannel,
    vector: c_int,
) -> *mut IbvCq {
    pointer("ibv_create_cq", || {
        let cqe = u32::try_from(cqe).unwrap_or(0);
        let vector = u32::try_from(vector).unwrap_or(u32::MAX);
        let wanted = Wanted { cqe, cq_context, channel, vector };
        Ok(create(context, &wanted, cq_ex::plain())?.cast())
    })
}

pub(crate) extern "C" fn destroy_cq(cq: *mut IbvCq) -> c_int {
    code("ibv_destroy_cq", || {
        let object = for_destroy(get::<Cq>(cq.cast())?)?;
        let dying = Cq::pool().begin_end(object)?;
        let own = dying.own();
        own.opening.strike(|books| _ = books.cqs.remove(&own.cq.id()));
        own.completions.wait(&own.opening);
        own.asyncs.wait(&own.opening);
        if let Some((channel, held)) = own.channel.lock().take() {
            let channel = held.object().public().with_addr(channel);
            // SAFETY: a live object's, which is held; this field is the library's.
            unsafe { (*channel).refcnt -= 1 };
        }
        Ok(())
    })
}

pub(crate) extern "C" fn resize_cq(cq: *mut IbvCq, cqe: c_int) -> c_int {
    code("ibv_resize_cq", || {
        let object = of(cq)?;
        object.own().cq.resize(u32::try_from(cqe).unwrap_or(0))?;
        // SAFETY: a live object's; this field is the library's.
        unsafe { (*object.public()).base.cqe = cqe };
        Ok(())
    })
}

/// `IBV_CQ_ATTR_MODERATE`.
const MODERATE: u32 = 1;

/// # Safety
/// `attr` is null or points to the struct.
pub(crate) unsafe extern "C" fn modify_cq(cq: *mut IbvCq, attr: *mut IbvModifyCqAttr) -> c_int {
    code("ibv_modify_cq", || {
        of(cq)?;
        // SAFETY: the caller's.
        let attr = unsafe { input(attr, "attr") }?;
        if attr.attr_mask != MODERATE {
            return Err(Fail::invalid(format!("attr_mask {:#x}; wanted 1", attr.attr_mask)));
        }
        // `cq_moderation_caps` says 0 of both: no event waits for others.
        match (attr.cq_count, attr.cq_period) {
            (0, 0) => Ok(()),
            _ => Err(Fail::invalid("completion events are not moderated; 0 and 0 are wanted")),
        }
    })
}

/// # Safety
/// `wcs` has room for `count` completions.
pub(crate) unsafe extern "C" fn poll_cq(cq: *mut IbvCq, count: c_int, wcs: *mut IbvWc) -> c_int {
    number("ibv_poll_cq", || {
        let own = get::<Cq>(cq.cast())?.own();
        let most = usize::try_from(count).map_err(|_| Fail::invalid("a negative count"))?;
        let to = Cell::new(wcs);
        let sl = own.opening.wc_sl;
        let n = own.cq.poll_with(most, |completion| {
            report::completed(&completion);
            let place = to.get();
            // SAFETY: the caller's room: no more than `count` are handed out.
            unsafe { place.write(wc::of(&completion, sl)) };
            to.set(place.wrapping_add(1));
        })?;
        idle::polled(n != 0);
        Ok(c_int::try_from(n).unwrap_or(c_int::MAX))
    })
}

pub(crate) extern "C" fn req_notify_cq(cq: *mut IbvCq, solicited_only: c_int) -> c_int {
    code("ibv_req_notify_cq", || {
        let arm = if solicited_only == 0 { Arm::Next } else { Arm::Solicited };
        Ok(get::<Cq>(cq.cast())?.own().cq.req_notify(arm)?)
    })
}
