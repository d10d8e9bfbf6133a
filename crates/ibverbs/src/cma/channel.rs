//! Event channels, and which identifier an event is of.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, BorrowedFd};

use parking_lot::Mutex;
use urxe::cm::{Channel as Queue, IdNumber, What};

use crate::acks::wait_readable;
use crate::call::{Fail, or, pointer};
use crate::fork;
use crate::layout::RdmaEventChannel;
use crate::object::{Kind, Object, get, kind};

use super::id::{Id, made_here};

/// An event channel.
#[derive(Debug)]
pub(super) struct Channel {
    /// As that of an identifier.
    process: u32,
    pub(super) queue: Queue,
}

kind!(Channel, "event channel", RdmaEventChannel);

/// The channel that C means.
pub(super) fn of(channel: *mut RdmaEventChannel) -> Result<&'static Object<Channel>, Fail> {
    let object = get::<Channel>(channel)?;
    made_here(object.own().process)?;
    Ok(object)
}

/// # Safety
/// The process is a child of a fork, and no other thread is there.
pub(super) unsafe fn in_child() {
    // SAFETY: the caller's.
    unsafe { fork::renew(&IDS, None) };
}

/// Whose events are whose. Locked while an event is handed out, so that an identifier that is being
/// destroyed gets no more.
static IDS: Mutex<Option<HashMap<IdNumber, &'static Object<Id>>>> = Mutex::new(None);

/// From now on events of this number are the identifier's.
pub(super) fn enter(number: IdNumber, id: &'static Object<Id>) {
    IDS.lock().get_or_insert_default().insert(number, id);
}

pub(super) fn forget(number: IdNumber) {
    IDS.lock().get_or_insert_default().remove(&number);
}

/// The oldest event; it counts as delivered then, and must be acknowledged.
fn pop(queue: &Queue) -> Option<(&'static Object<Id>, What)> {
    let ids = IDS.lock();
    loop {
        let event = queue.take_event()?;
        // An identifier that is not there any more has no events.
        if let Some(id) = ids.as_ref().and_then(|ids| ids.get(&event.id)) {
            id.own().acks.delivered();
            return Some((*id, event.what));
        }
    }
}

/// The oldest event, waited for unless the program has set O_NONBLOCK.
pub(super) fn next(queue: &Queue) -> Result<(&'static Object<Id>, What), Fail> {
    loop {
        match pop(queue) {
            Some(event) => return Ok(event),
            None => wait_readable(queue.fd())?,
        }
    }
}

/// Whether calls block is the program's to say, and they do until it says so.
fn blocking(fd: BorrowedFd<'_>) -> Result<(), Fail> {
    // SAFETY: the descriptor is open.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    // SAFETY: likewise.
    match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) } {
        0 => Ok(()),
        _ => Err(Fail::host("fcntl")),
    }
}

/// Makes a channel.
pub(super) fn make() -> Result<&'static Object<Channel>, Fail> {
    let queue = Queue::new()?;
    blocking(queue.fd())?;
    let fd = queue.fd().as_raw_fd();
    Channel::pool()
        .make(|_| Ok((RdmaEventChannel { fd }, Channel { process: std::process::id(), queue })))
}

pub(super) extern "C" fn create_event_channel() -> *mut RdmaEventChannel {
    pointer("rdma_create_event_channel", || {
        // A program may fork before it has a device.
        fork::watch();
        Ok(make()?.public())
    })
}

/// Identifiers that are still of it get no more events, and must be destroyed or migrated.
pub(super) extern "C" fn destroy_event_channel(channel: *mut RdmaEventChannel) {
    or("rdma_destroy_event_channel", (), || Channel::pool().destroy(get::<Channel>(channel)?));
}
