//! Forks: a child has its parent's memory as it was at that moment, and none of its other threads.
//! A lock that one of them held then stays locked; so those of the library as a whole are taken
//! before, or made anew after. Those of the parent's objects are not: see `object::ours`.

use std::mem;
use std::ptr;
use std::sync::Once;

use parking_lot::lock_api::RawMutex as _;
use parking_lot::{Mutex, RawMutex};

use crate::ah::Ah;
use crate::channel::Channel;
use crate::context::Context;
use crate::cq::Cq;
use crate::device::Device;
use crate::dm::Dm;
use crate::domain::Td;
use crate::mr::{Import, Mr};
use crate::mw::Mw;
use crate::object::Kind;
use crate::pd::Pd;
use crate::qp::Qp;
use crate::srq::Srq;
use crate::xrcd::{self, Xrcd};
use crate::{cma, nic, report};

/// What must be whole in a child.
pub(crate) trait Fork: Sync {
    /// Takes its lock.
    fn before(&'static self);

    /// Gives it back.
    ///
    /// # Safety
    /// The calling thread took it by [`Self::before`].
    unsafe fn in_parent(&'static self);

    /// Gives it back in a child.
    ///
    /// # Safety
    /// Likewise, and no other thread is there yet.
    unsafe fn in_child(&'static self);
}

/// The pools. No thread that holds the lock of one waits for another's.
fn pools() -> [&'static dyn Fork; 17] {
    let [channels, ids, events] = cma::pools();
    [
        channels,
        ids,
        events,
        Device::pool(),
        Context::pool(),
        Pd::pool(),
        Td::pool(),
        Xrcd::pool(),
        Mr::pool(),
        Import::pool(),
        Mw::pool(),
        Dm::pool(),
        Ah::pool(),
        Channel::pool(),
        Cq::pool(),
        Srq::pool(),
        Qp::pool(),
    ]
}

/// Sees to forks from now on.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers live as long as the library, which is never unloaded; that of the
        // child allocates nothing and takes no lock that another thread may hold.
        let rc = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        if rc != 0 {
            tracing::warn!(rc, "pthread_atfork: a child of a fork may hang");
        }
    });
}

extern "C" fn before() {
    pools().iter().for_each(|pool| pool.before());
}

extern "C" fn in_parent() {
    for pool in pools() {
        // SAFETY: this thread took it just before.
        unsafe { pool.in_parent() };
    }
}

extern "C" fn in_child() {
    for pool in pools() {
        // SAFETY: this thread took it just before, and is the only one.
        unsafe { pool.in_child() };
    }
    // SAFETY: this thread is the only one.
    unsafe { nic::in_child() };
    // SAFETY: likewise.
    unsafe { report::in_child() };
    // SAFETY: likewise.
    unsafe { xrcd::in_child() };
    // SAFETY: likewise.
    unsafe { cma::in_child() };
}

/// Unlocks what this thread, or one that is not here, has locked. Threads of the parent that wait
/// for it are not woken, for there are none.
///
/// # Safety
/// No other thread is there, and what is locked is whole.
pub(crate) unsafe fn unlock<T>(lock: &Mutex<T>) {
    // SAFETY: nobody has a guard that would be used.
    let raw = ptr::from_ref(unsafe { lock.raw() }).cast_mut();
    // SAFETY: an atomic that no other thread looks at.
    unsafe { raw.write(RawMutex::INIT) };
}

/// Puts a new value behind a lock, whoever holds it. The old one is left as it is: a thread may
/// have been changing it.
///
/// # Safety
/// No other thread is there.
pub(crate) unsafe fn renew<T>(lock: &Mutex<T>, value: T) {
    // SAFETY: the caller's; what it guards is not looked at.
    unsafe { unlock(lock) };
    mem::forget(mem::replace(&mut *lock.lock(), value));
}
