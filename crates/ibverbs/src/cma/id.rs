//! Identifiers: made, moved to another channel, destroyed.

use std::ffi::{c_int, c_void};
use std::net::SocketAddr;
use std::ptr;
use std::sync::Once;

use parking_lot::Mutex;
use urxe::cm::Channel as Queue;

use crate::acks::Acks;
use crate::call::{Fail, number, or, output};
use crate::layout::{RdmaCmId, RdmaEventChannel, Zero};
use crate::object::{Kind, Object, get, kind};

use super::channel::{self, Channel};
use super::state::State;
use super::told::{self, PKEY};
use super::{event, sockaddr};

/// `enum rdma_port_space`.
pub(super) const PS_IPOIB: c_int = 0x0002;
pub(super) const PS_TCP: c_int = 0x0106;
pub(super) const PS_UDP: c_int = 0x0111;
pub(super) const PS_IB: c_int = 0x013f;

/// `enum ibv_qp_type`.
pub(super) const QPT_RC: c_int = 2;
pub(super) const QPT_UC: c_int = 3;
pub(super) const QPT_UD: c_int = 4;
pub(super) const QPT_XRC_SEND: c_int = 9;
pub(super) const QPT_XRC_RECV: c_int = 10;

/// An identifier.
#[derive(Debug)]
pub(super) struct Id {
    /// The process that made it: in a child of that one its locks may be held for ever.
    process: u32,
    /// Its events.
    pub(super) acks: Acks,
    /// Where they go. No other lock is taken while this is held.
    pub(super) queue: Mutex<Queue>,
    pub(super) state: Mutex<State>,
}

kind!(Id, "identifier", RdmaCmId);

/// Fields of an identifier that the program sees and may change.
impl Object<Id> {
    pub(super) fn read(&self) -> RdmaCmId {
        // SAFETY: a live object's, plain data.
        unsafe { *self.public() }
    }

    /// Changes what the program sees.
    pub(super) fn show(&self, change: impl FnOnce(&mut RdmaCmId)) {
        let mut shown = self.read();
        change(&mut shown);
        // SAFETY: a live object's; verbs' contract is that the program calls with it one call at a
        // time, or looks only.
        unsafe { *self.public() = shown };
    }

    pub(super) fn show_addresses(
        &self,
        source: Option<SocketAddr>,
        destination: Option<SocketAddr>,
    ) {
        self.show(|id| {
            let addr = &mut id.route.addr;
            if let Some(source) = source {
                addr.src = sockaddr::write(source);
                addr.ib.sgid = told::gid(source.ip());
            }
            if let Some(destination) = destination {
                addr.dst = sockaddr::write(destination);
                addr.ib.dgid = told::gid(destination.ip());
            }
            addr.ib.pkey = PKEY.to_be();
        });
    }

    /// Whether its QPs are datagrams'.
    pub(super) fn is_datagram(&self) -> bool {
        matches!(self.read().ps, PS_UDP | PS_IPOIB)
    }

    pub(super) fn queue(&self) -> Queue {
        self.own().queue.lock().clone()
    }
}

/// The identifier that C means.
pub(super) fn of(id: *mut RdmaCmId) -> Result<&'static Object<Id>, Fail> {
    let object = get::<Id>(id)?;
    made_here(object.own().process)?;
    Ok(object)
}

/// # Errors
/// EIO, where another process, before a fork, made what this is asked of.
pub(super) fn made_here(process: u32) -> Result<(), Fail> {
    if process == std::process::id() { Ok(()) } else { Err(urxe::Error::Forked.into()) }
}

/// Makes an identifier on a channel, or one that waits by itself if there is none.
pub(super) fn make(
    channel: *mut RdmaEventChannel,
    context: *mut c_void,
    ps: c_int,
    qp_type: c_int,
) -> Result<&'static Object<Id>, Fail> {
    if !matches!(ps, PS_IPOIB | PS_TCP | PS_UDP | PS_IB) {
        return Err(Fail::invalid(format!("port space {ps:#x}; there are 2, 0x106, 0x111, 0x13f")));
    }
    let sync = channel.is_null();
    let on = if sync { channel::make()? } else { channel::of(channel)? };
    let queue = on.own().queue.clone();
    let public = RdmaCmId { channel: on.public(), context, ps, qp_type, ..RdmaCmId::zero() };
    let (acks, state) = (Acks::default(), Mutex::new(State::new(sync)));
    let own = Id { process: std::process::id(), acks, queue: Mutex::new(queue), state };
    Id::pool().make(|_| Ok((public, own)))
}

/// The QP type that identifiers of a port space have.
pub(super) const fn qp_type_of(ps: c_int) -> c_int {
    if matches!(ps, PS_UDP | PS_IPOIB) { QPT_UD } else { QPT_RC }
}

/// # Safety
/// `id` is null or has room for a pointer.
pub(super) unsafe extern "C" fn create_id(
    channel: *mut RdmaEventChannel,
    id: *mut *mut RdmaCmId,
    context: *mut c_void,
    ps: c_int,
) -> c_int {
    number("rdma_create_id", || {
        let made = make(channel, context, ps, qp_type_of(ps))?;
        // SAFETY: the caller's.
        let done = unsafe { output(id, made.public(), "id") };
        if done.is_err() {
            destroy(made)?;
        }
        done.map(|()| 0)
    })
}

pub(super) fn destroy(object: &'static Object<Id>) -> Result<(), Fail> {
    let shown = object.read();
    let dying = Id::pool().begin_end(object)?;
    let id = dying.own();
    if made_here(id.process).is_err() {
        // It goes on in the process that made it; here only its place is given back.
        return Ok(());
    }
    let (link, sync) = {
        let state = &mut *id.state.lock();
        state.groups.drain(..).for_each(|group| group.leave(shown.qp));
        (state.link.take(), state.sync)
    };
    // Not locked: what is on its way to the identifier comes to an end now.
    if let Some(link) = link {
        channel::forget(link.number());
        drop(link);
    }
    if sync && !shown.event.is_null() {
        // The program did not get this one to acknowledge it.
        let _ = event::acknowledge(shown.event);
    }
    id.acks.wait_here();
    if sync {
        let _ = get::<Channel>(shown.channel).and_then(|c| Channel::pool().destroy(c));
    }
    Ok(())
}

/// The process exits: the kernel would end the connections it leaves, and peers wait for that.
extern "C" fn exits() {
    let _ = std::panic::catch_unwind(|| {
        Id::pool().first(|object| {
            let id = object.own();
            // Whoever has it locked is about to do something with it: that is done, or not.
            let state = made_here(id.process).ok().and_then(|()| id.state.try_lock());
            drop(state.and_then(|mut state| state.link.take()));
            None::<()>
        });
    });
}

/// Sees to the end of the process, once.
pub(super) fn watch_exit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function lives as long as the library, which is never unloaded.
        let _ = unsafe { libc::atexit(exits) };
    });
}

pub(super) extern "C" fn destroy_id(id: *mut RdmaCmId) -> c_int {
    number("rdma_destroy_id", || destroy(get::<Id>(id)?).map(|()| 0))
}

/// Moves an identifier with what waits for it; waits until what was told is acknowledged.
pub(super) fn migrate(
    object: &'static Object<Id>,
    channel: *mut RdmaEventChannel,
) -> Result<(), Fail> {
    let id = object.own();
    let sync = channel.is_null();
    let to = if sync { channel::make()? } else { channel::of(channel)? };
    let before = {
        let state = &mut *id.state.lock();
        if let Some(link) = &state.link {
            link.migrate(&to.own().queue)?;
        }
        *id.queue.lock() = to.own().queue.clone();
        std::mem::replace(&mut state.sync, sync)
    };
    let shown = object.read();
    if before {
        if !shown.event.is_null() {
            let _ = event::acknowledge(shown.event);
        }
        let _ = get::<Channel>(shown.channel).and_then(|c| Channel::pool().destroy(c));
    }
    id.acks.wait_here();
    object.show(|id| {
        id.channel = to.public();
        if before {
            id.event = ptr::null_mut();
        }
    });
    Ok(())
}

pub(super) extern "C" fn migrate_id(id: *mut RdmaCmId, channel: *mut RdmaEventChannel) -> c_int {
    number("rdma_migrate_id", || migrate(of(id)?, channel).map(|()| 0))
}

/// The port in network byte order, as it stands in memory; 0 without one.
fn port(call: &'static str, id: *mut RdmaCmId, which: impl FnOnce(&State) -> Option<u16>) -> u16 {
    or(call, 0, || Ok(which(&of(id)?.own().state.lock()).unwrap_or(0).to_be()))
}

pub(super) extern "C" fn get_src_port(id: *mut RdmaCmId) -> u16 {
    port("rdma_get_src_port", id, |state| state.source.map(|a| a.port()))
}

pub(super) extern "C" fn get_dst_port(id: *mut RdmaCmId) -> u16 {
    port("rdma_get_dst_port", id, |state| state.destination.map(|a| a.port()))
}
