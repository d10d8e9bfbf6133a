//! The passive side.

use std::ffi::{c_int, c_void};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use urxe::cm::RejReason;

use crate::call::{Fail, number};
use crate::layout::{RdmaCmId, RdmaConnParam};
use crate::object::Object;

use super::connect::{bytes, depths, given, link, terms};
use super::event::complete;
use super::id::{self, Id};
use super::state::{State, Step};
use super::told::{About, Told};
use super::{attrs, bind, channel, device};

/// How many requests may wait if the program says 0 or less, and at most (as the kernel has it,
/// Linux drivers/infiniband/core/ucma.c).
const BACKLOG: usize = 1024;

pub(super) extern "C" fn listen(id: *mut RdmaCmId, backlog: c_int) -> c_int {
    number("rdma_listen", || {
        let object = id::of(id)?;
        let state = &mut *object.own().state.lock();
        state.at(&[Step::Idle, Step::Bound])?;
        if state.step == Step::Idle {
            let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
            bind::bind(object, state, any)?;
        }
        let backlog = usize::try_from(backlog).ok().filter(|&n| n > 0).unwrap_or(BACKLOG);
        link(state)?.listen(backlog.min(BACKLOG))?;
        state.step = Step::Listening;
        Ok(0)
    })
}

/// A peer asks: makes the identifier that the program decides with. `None` where that cannot be.
pub(super) fn arrived(
    listener: &'static Object<Id>,
    told: &mut Told,
) -> Result<Option<&'static Object<Id>>, Fail> {
    let Some(asked) = told.asked.take() else { return Ok(None) };
    let shown = listener.read();
    let (sync, only_family, bound) = {
        let state = listener.own().state.lock();
        (state.sync, state.options.only_family, state.source)
    };
    let (local, remote) = (asked.local, asked.remote);
    // A wildcard of one family takes that family; IPv6's takes IPv4, too, unless told not to.
    let other = bound.is_some_and(|bound| match bound.ip() {
        IpAddr::V4(_) => remote.is_ipv6(),
        IpAddr::V6(_) => only_family && remote.is_ipv4(),
    });
    if other {
        let _ = asked.link.reject(RejReason::InvalidServiceId, &[]);
        return Ok(None);
    }
    let channel = if sync { std::ptr::null_mut() } else { shown.channel };
    let child = id::make(channel, shown.context, shown.ps, shown.qp_type)?;
    bind::to_device(child, &device::shared(None)?);
    child.show_addresses(Some(local), Some(remote));
    {
        let own = child.own();
        let state = &mut *own.state.lock();
        (state.source, state.destination) = (Some(local), Some(remote));
        state.step = Step::Asked;
        if let About::Conn(info) = &told.about {
            state.responder_resources = info.responder_resources;
            state.initiator_depth = info.initiator_depth;
        }
        state.remote_ece = told.ece;
        // Entered before it is moved: nothing of it is told to nobody.
        channel::enter(asked.link.number(), child);
        asked.link.migrate(&own.queue.lock())?;
        state.link = Some(asked.link);
    }
    Ok(Some(child))
}

/// # Safety
/// `param` is null or points to the struct, whose data are as long as it says.
pub(super) unsafe extern "C" fn accept(id: *mut RdmaCmId, param: *mut RdmaConnParam) -> c_int {
    number("rdma_accept", || {
        let object = id::of(id)?;
        // SAFETY: the caller's.
        let (param, data) = unsafe { given(param) }?;
        let ready = {
            let state = &mut *object.own().state.lock();
            state.at(&[Step::Asked])?;
            agree(state, param.as_ref())?;
            (state.responder_resources, state.initiator_depth)
        };
        let has_qp = !object.read().qp.is_null();
        if has_qp && !object.is_datagram() {
            attrs::ready(object, ready.0, ready.1)?;
        }
        {
            let state = &mut *object.own().state.lock();
            let terms = terms(object, state, param.as_ref(), &data)?;
            if let Err(error) = link(state)?.accept(&terms) {
                if has_qp && !object.is_datagram() {
                    attrs::stop(object);
                }
                return Err(error.into());
            }
            if object.is_datagram() {
                state.step = Step::Connected;
                return Ok(0);
            }
            state.step = Step::Connecting;
        }
        complete(object).map(|()| 0)
    })
}

/// How many READs and atomics at once a request is accepted with: what the program says, or what
/// the peer asks for as far as the device has it.
fn agree(state: &mut State, param: Option<&RdmaConnParam>) -> Result<(), Fail> {
    let most = depths(None)?;
    depths(param)?;
    let depth = |given: Option<u8>, asked: u8, most: u8| match given {
        None | Some(u8::MAX) => asked.min(most),
        Some(given) => given,
    };
    state.responder_resources =
        depth(param.map(|p| p.responder_resources), state.responder_resources, most.0);
    state.initiator_depth = depth(param.map(|p| p.initiator_depth), state.initiator_depth, most.1);
    Ok(())
}

fn refuse(id: *mut RdmaCmId, data: *const c_void, len: u8, why: RejReason) -> Result<c_int, Fail> {
    let object = id::of(id)?;
    // SAFETY: the caller's of the exported functions.
    let data = unsafe { bytes(data, len) }?;
    let state = &mut *object.own().state.lock();
    state.at(&[Step::Asked, Step::Connecting])?;
    link(state)?.reject(why, &data)?;
    state.step = Step::Over;
    Ok(0)
}

/// # Safety
/// `data` is null or has `len` bytes.
pub(super) unsafe extern "C" fn reject(id: *mut RdmaCmId, data: *const c_void, len: u8) -> c_int {
    number("rdma_reject", || refuse(id, data, len, RejReason::ConsumerDefined))
}

/// # Safety
/// `data` is null or has `len` bytes.
pub(super) unsafe extern "C" fn reject_ece(
    id: *mut RdmaCmId,
    data: *const c_void,
    len: u8,
) -> c_int {
    number("rdma_reject_ece", || refuse(id, data, len, RejReason::VendorOptionUnsupported))
}
